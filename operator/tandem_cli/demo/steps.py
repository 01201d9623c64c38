"""The steps of the demonstration, in a user's order: install, apply, wait, ask, look, and take down.

Each step is one function over `Demo`; `command` decides which are run. A step that fails raises `DemoError` with what to do.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tandem_api import names
from tandem_cli import helm, simulate
from tandem_cli.demo import chat, evidence
from tandem_local.cluster import Cluster

__all__ = ["Demo", "DemoError"]

ROOT = Path(__file__).resolve().parents[3]
NAMESPACE = "demo"
RELEASE_NAMESPACE = "tandem-system"
QUESTION = "What is the capital of France?"
LONG_QUESTION = (
    "Here is a list of cities with a note on each. "
    + " ".join(f"City number {n} lies on a river, has a harbour, two bridges and a market that opens on day {n % 7}." for n in range(1, 21))
    + " In one short sentence: what do all these cities have in common?"
)


class DemoError(Exception):
    """A step failed; the message says which, why, and what to do."""


@dataclass(slots=True)
class Demo:
    """State of one demonstration."""

    cluster: Cluster
    simulated: bool
    say: Callable[[str], None]
    answers: list[chat.Answer] = field(default_factory=list)
    service: str = ""
    model: str = ""

    def install(self) -> None:
        """Install Tandem with its chart."""
        self.say("Installing Tandem with its chart")
        helm.install(
            ROOT / "charts" / "tandem",
            release="tandem",
            namespace=RELEASE_NAMESPACE,
            values={"image": {"repository": "tandem.local", "tag": "dev"}, "nodePaths": {"allowed": True}},
            kubeconfig=self.cluster.kubeconfig,
        )

    def apply(self) -> None:
        """Apply the CPU sample, with the simulator in place of vLLM where that was asked for."""
        manifest = yaml.safe_load((ROOT / "crds" / "samples" / "cpu.yaml").read_text())
        manifest = simulate.simulated(manifest) if self.simulated else manifest
        self.service = manifest["metadata"]["name"]
        self.model = manifest["spec"]["model"].get("servedName") or manifest["spec"]["model"]["uri"].rsplit("/", 1)[-1]
        self.say(f"Applying the InferenceService {self.service}")
        self.cluster.kubectl("create", "namespace", NAMESPACE)
        self.cluster.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=yaml.safe_dump(manifest))

    def wait_ready(self, *, seconds: float) -> None:
        """Wait until the service says Ready, telling every change of its own message."""
        deadline, told = time.monotonic() + seconds, ""
        while time.monotonic() < deadline:
            ready = self._condition("Ready")
            text = f"{ready.get('reason', 'Waiting')}: {ready.get('message', 'not seen by the operator yet')}"
            if ready.get("status") == "True":
                self.say("Ready")
                return
            if text != told:
                self.say(f"  {text}")
                told = text
            time.sleep(0.5)
        raise DemoError(f"the service was not ready after {seconds:.0f} s; last word: {told}. Run with KEEP=1 and look at the pods' logs")

    def _object(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = json.loads(self.cluster.kubectl("-n", NAMESPACE, "get", "tsvc", self.service, "-o", "json"))
        return found

    def _condition(self, kind: str) -> dict[str, str]:
        conditions: list[dict[str, str]] = self._object().get("status", {}).get("conditions", [])  # type: ignore[assignment]  # JSON
        return next((found for found in conditions if found["type"] == kind), {})

    def ask(self) -> None:
        """Ask through the router; print the answers as they stream."""
        url = self.cluster.forward(NAMESPACE, names.router(self.service), 80)
        for question, tokens in ((QUESTION, 24), (LONG_QUESTION, 32)):
            shown = question if len(question) < 100 else f"{question[:97]}..."  # noqa: PLR2004 - a terminal's width
            self.say(f"> {shown}")
            answer = chat.ask(url, self.model, question, max_tokens=tokens, show=lambda piece: print(piece, end="", flush=True))  # noqa: T201 - the demonstration's output
            print()  # noqa: T201 - the same
            tpot = f"{answer.tpot * 1000:.0f} ms" if answer.tpot is not None else "one token"
            self.say(
                f"  TTFT {answer.ttft * 1000:.0f} ms, TPOT {tpot}, {answer.prompt_tokens} prompt and {answer.output_tokens} output tokens, "
                f"{answer.prefill} -> {answer.decode}"
            )
            self.answers.append(answer)
        if not self.simulated and "Paris" not in self.answers[0].text:
            raise DemoError(f"asked '{QUESTION}', the model answered without 'Paris': {self.answers[0].text!r}")

    def prove(self, *, seconds: float = 30) -> evidence.Moved:
        """Show what the engines counted of the KV cache that moved; fail when nothing did."""
        deadline = time.monotonic() + seconds
        while True:
            states = evidence.worker_states(self.cluster.kubectl, namespace=NAMESPACE, service=self.service)
            found = evidence.moved(states)
            if found.transfers >= len(self.answers) and found.bytes:
                break
            if time.monotonic() > deadline:
                raise DemoError(f"{len(self.answers)} questions were answered, but the decode engine counted {found.transfers:.0f} KV transfers")
            time.sleep(0.5)
        self.say(f"KV cache moved: {found.transfers:.0f} transfers, {found.bytes / 1e6:.2f} MB, {found.tokens:.0f} prompt tokens, as the engines counted")
        return found

    def show_status(self, *, seconds: float = 60) -> str:
        """Print `kubectl get tsvc` and the autoscaler's last decision; return the decision's reason."""
        deadline = time.monotonic() + seconds
        while not (scaling := self._object().get("status", {}).get("scaling")):
            if time.monotonic() > deadline:
                raise DemoError("the autoscaler decided nothing within a minute; look at the operator's log")
            time.sleep(0.5)
        self.say("$ kubectl get tsvc")
        print(self.cluster.kubectl("-n", NAMESPACE, "get", "tsvc"))  # noqa: T201 - the demonstration's output
        self.say(f"Autoscaler: prefill {scaling.get('prefill')}, decode {scaling.get('decode')}: {scaling['reason']}: {scaling['message']}")  # type: ignore[attr-defined,index]  # JSON
        return str(scaling["reason"])  # type: ignore[index]  # JSON
