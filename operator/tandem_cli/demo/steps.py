"""The steps of the demonstration, in a user's order: install, apply, wait, ask, look.

Each step does what a user does, with the chart, kubectl and the router's address; a step that fails says what to do.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tandem_api import names, ports
from tandem_cli import install_command, simulate
from tandem_cli.demo import chat, evidence
from tandem_cli.errors import CommandError
from tandem_cli.private_ports import PrivatePorts
from tandem_local.cluster import Cluster

__all__ = ["NAMESPACE", "Demo", "Say"]

Say = Callable[[str], None]

NAMESPACE = "demo"
_ROOT = Path(__file__).resolve().parents[3]
_POLL_SECONDS = 0.5
_SHOWN_CHARACTERS = 100
_QUESTION = "What is the capital of France?"
_CITIES = (f"City number {n} lies on a river, has a harbour and a market that opens on day {n % 7}." for n in range(1, 21))
_LONG_QUESTION = (
    f"Here is a list of cities. {' '.join(_CITIES)} In one short sentence: what do all these cities have in common?"
)
_QUESTIONS = ((_QUESTION, 24), (_LONG_QUESTION, 32))
"""Questions with the most tokens of an answer; the long one fills several blocks of KV cache."""
_SHORT_QUESTIONS = 24
_SHORT_ANSWER = 4
_CLIENTS = 4
_ROUNDS = 4
_ROUND_SECONDS = 12
"""Longer than two of the autoscaler's intervals."""
_UNDECIDED = frozenset({"", "WaitingForWorkers", "NoReport", "TooFewRequests"})
"""Reasons of the autoscaler for having no opinion yet."""


@dataclass(slots=True)
class Demo:
    """One demonstration on a running cluster. `say` prints a line with the time, `write` prints as it is told."""

    cluster: Cluster
    simulated: bool
    say: Say
    write: Say
    answers: list[chat.Answer] = field(default_factory=list)
    service: str = ""
    model: str = ""

    def install(self) -> None:
        """Install Tandem with its chart."""
        self.say("Installing Tandem with its chart")
        install_command.install(self.cluster, scaling={"interval": "5s"})

    def apply(self) -> None:
        """Apply the CPU sample, with the simulator in place of vLLM where that was asked for."""
        manifest = yaml.safe_load((_ROOT / "crds" / "samples" / "cpu.yaml").read_text())
        manifest = simulate.simulated(manifest) if self.simulated else manifest
        self.service, self.model = manifest["metadata"]["name"], manifest["spec"]["model"]["servedName"]
        self.say(f"Applying the InferenceService '{self.service}'")
        self.cluster.kubectl("create", "namespace", NAMESPACE)
        self.cluster.kubectl("--namespace", NAMESPACE, "apply", "--filename", "-", stdin=yaml.safe_dump(manifest))

    def wait_ready(self, *, seconds: float) -> None:
        """Wait until the service says that it is ready, telling each change of its own words.

        Raises:
            CommandError: it was not ready in time; its last words are in the message.
        """
        deadline, told = time.monotonic() + seconds, ""
        while time.monotonic() < deadline:
            ready = self._condition("Ready")
            text = f"{ready.get('reason', 'Unknown')}: {ready.get('message', 'the operator has not seen the service yet')}"
            if text != told:
                self.say(f"  {text}")
                told = text
            if ready.get("status") == "True":
                return
            time.sleep(_POLL_SECONDS)
        raise CommandError(f"the service was not ready after {seconds:.0f} s; its last word: {told}")

    def ask(self) -> None:
        """Ask through the router; print the answers as they stream.

        Raises:
            CommandError: there was no answer, or a wrong one.
        """
        url = self._url()
        for question, tokens in _QUESTIONS:
            shown = question if len(question) < _SHOWN_CHARACTERS else f"{question[:_SHOWN_CHARACTERS]}..."
            self.say(f"Asking: {shown}")
            answer = chat.ask(url, self.model, question, max_tokens=tokens, show=self.write)
            self.write("\n")
            self.say(f"  {answer.figures}")
            self.answers.append(answer)
        if not self.simulated and "Paris" not in self.answers[0].text:
            raise CommandError(f"asked '{_QUESTION}', the model answered without 'Paris': {self.answers[0].text!r}")

    def load(self) -> str:
        """Ask short questions until the autoscaler has an opinion; return its reason.

        It judges what happened between its readings since the number of workers last changed, so the first questions may
        come too early for it.

        Raises:
            CommandError: a question was not answered, or the autoscaler had no opinion after several rounds.
        """
        self.say(f"Asking {_SHORT_QUESTIONS} short questions, {_CLIENTS} at once, for the autoscaler to judge")
        for _ in range(_ROUNDS):
            self._ask_short_questions()
            deadline = time.monotonic() + _ROUND_SECONDS
            while time.monotonic() < deadline:
                scaling = self._scaling()
                if scaling.get("reason", "") not in _UNDECIDED:
                    return str(scaling["reason"])
                time.sleep(_POLL_SECONDS)
            self.say("  it wants to see more; asking again")
        raise CommandError(f"the autoscaler had no opinion after {_ROUNDS} rounds; its last word: {self._scaling()}")

    def _ask_short_questions(self) -> None:
        url = self._url()

        def ask(number: int) -> chat.Answer:
            return chat.ask(url, self.model, f"What is {number} plus one?", max_tokens=_SHORT_ANSWER, show=lambda _: None)

        with ThreadPoolExecutor(_CLIENTS) as clients:
            self.answers.extend(clients.map(ask, range(_SHORT_QUESTIONS)))

    def prove(self, *, seconds: float = 30) -> evidence.Moved:
        """Say what the engines counted of the KV cache that moved.

        Raises:
            CommandError: they counted fewer transfers than questions were asked.
        """
        deadline = time.monotonic() + seconds
        private = PrivatePorts(self.cluster, NAMESPACE, self.service)
        while True:
            found = evidence.moved(evidence.worker_states(private))
            if found.transfers >= len(self.answers) and found.bytes:
                break
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{len(self.answers)} questions were answered, but the engines counted {found.transfers:.0f} KV transfers"
                )
            time.sleep(_POLL_SECONDS)
        self.say(
            f"KV cache moved, as the engines counted: {found.transfers:.0f} transfers, {found.bytes / 1e6:.2f} MB, "
            f"{found.tokens:.0f} prompt tokens"
        )
        return found

    def show_status(self, *, seconds: float = 60) -> None:
        """Print `kubectl get tsvc` and the autoscaler's last decision.

        Raises:
            CommandError: the status held no measured TTFT in time.
        """
        deadline = time.monotonic() + seconds
        while not self._status().get("slo", {}).get("ttft"):
            if time.monotonic() > deadline:
                raise CommandError(f"the status held no TTFT within {seconds:.0f} s; see the operator's log")
            time.sleep(_POLL_SECONDS)
        self.say("kubectl get tsvc")
        self.write(self.cluster.kubectl("--namespace", NAMESPACE, "get", "tsvc"))
        scaling = self._scaling()
        counts = f"prefill {scaling.get('prefill', '-')}, decode {scaling.get('decode', '-')}"
        self.say(f"The autoscaler's decision: {counts}, because {scaling['reason']}: {scaling['message']}")

    def _url(self) -> str:
        return self.cluster.forward(NAMESPACE, names.router(self.service), ports.SERVICE_PUBLIC)

    def _scaling(self) -> dict[str, Any]:
        return dict(self._status().get("scaling", {}))

    def _status(self) -> dict[str, Any]:
        found = json.loads(self.cluster.kubectl("--namespace", NAMESPACE, "get", "tsvc", self.service, "--output", "json"))
        return dict(found.get("status", {}))

    def _condition(self, kind: str) -> dict[str, str]:
        conditions: list[dict[str, str]] = self._status().get("conditions", [])
        return next((found for found in conditions if found["type"] == kind), {})
