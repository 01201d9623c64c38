"""The leader is killed at random moments of a service's life; the next one finishes what it had begun, and nothing twice.

`FAULT_KILLS=50` kills more often, `FAULT_SEED` repeats a run. A dead leader's Lease is taken away by the test: that
it runs out by itself is shown in `test_leadership`.
"""

import os
import random
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from support.busy_kubelet import BusyKubelet, ready_pods
from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pairs import Pair
from support.services import of_role, sample
from support.stub_router import StubRouter
from tandem_api import labels

KINDS = ("WorkerPool", "ServiceAccount", "RoleBinding", "Service", "PodDisruptionBudget", "Deployment")
NAMES = ("chat", "code")
ROLES = ("prefill", "decode")
_KILLS_BETWEEN_LOOKS = 5


class AllReady(StubRouter):
    """A router that sends requests to every worker that is ready."""

    def __init__(self, kube: Kube) -> None:
        super().__init__()
        self.pods = partial(ready_pods, kube)


@dataclass
class Life:
    """What a user does to two services, one random step after the other, and what has to come of it."""

    kube: Kube
    source: random.Random
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """By service and role, the workers that were asked for last."""
    args: dict[str, list[str]] = field(default_factory=dict)
    """By service, the arguments of the prefill engine that were asked for last."""
    steps: int = 0

    def step(self) -> str:
        """Do one thing; return what it was."""
        self.steps += 1
        name = self.source.choice(NAMES)
        if name not in self.counts:
            return self.create(name)
        return self.source.choice([self.roll, self.roll, self.scale, self.scale, self.delete])(name)

    def create(self, name: str) -> str:
        """Make a service that does not exist."""
        tree = sample("minimal", router={"replicas": 1}) | {"metadata": {"name": name}}
        self.kube.create(tree)
        self.counts[name], self.args[name] = dict.fromkeys(ROLES, 1), []
        return f"create {name}"

    def roll(self, name: str) -> str:
        """Give the prefill role other arguments."""
        self.args[name] = ["--seed", str(self.steps)]
        self.kube.patch("InferenceService", name, {"spec": {"prefill": {"engine": {"args": self.args[name]}}}})
        return f"roll {name}"

    def scale(self, name: str) -> str:
        """Ask for another number of workers of a role."""
        role, count = self.source.choice(ROLES), self.source.randint(1, 3)
        pool = f"{name}-{role}"
        until(lambda: self.kube.get("WorkerPool", pool), what=f"the pool {pool}")
        self.kube.patch("WorkerPool", pool, {"spec": {"replicas": count}}, "scale", "kubectl")
        self.counts[name][role] = count
        return f"scale {pool} to {count}"

    def delete(self, name: str) -> str:
        """Delete a service."""
        self.kube.delete("InferenceService", name, self.source.choice(["Background", "Foreground"]))
        until(lambda: self.kube.get("InferenceService", name) is None, what=f"{name} gone")
        del self.counts[name], self.args[name]
        return f"delete {name}"

    def unfinished(self) -> list[str]:
        """Return what is not as it was asked for."""
        found = []
        for name in NAMES:
            if name in self.counts:
                found += [f"{name} {role}: {problem}" for role in ROLES if (problem := self._problem(name, role))]
                service = self.kube.get("InferenceService", name)
                status = service.get("status", {})
                if status.get("observedGeneration") != service["metadata"]["generation"]:
                    found.append(f"{name}: status of generation {status.get('observedGeneration')}")
            else:
                found += [f"{name} left {kind}" for kind in KINDS if self.kube.list(kind, f"{labels.SERVICE}={name}")]
        return found

    def _problem(self, name: str, role: str) -> str:
        wanted = self.counts[name][role]
        (pool,) = of_role(self.kube, "WorkerPool", name, role) or ({"spec": {}},)
        workers = of_role(self.kube, "Deployment", name, role)
        counts = [each["spec"]["replicas"] for each in workers]
        if pool["spec"].get("replicas") != wanted or counts != [wanted]:
            return f"{counts} workers, pool {pool['spec'].get('replicas')}, wanted {wanted}"
        engine = workers[0]["spec"]["template"]["spec"]["containers"][0]
        if role == "prefill" and not set(self.args[name]) <= set(engine["args"]):
            return f"without {self.args[name]}"
        return "" if len(of_role(self.kube, "Service", name, role)) == 1 else "not one Service"


def finish(life: Life) -> None:
    """Wait until everything is as it was asked for."""
    seen: list[str] = []

    def look() -> bool:
        seen[:] = life.unfinished()
        return not seen

    try:
        until(look, what="everything as it was asked for")
    except AssertionError as error:
        raise AssertionError(f"asked for: {life.counts}, {life.args}; unfinished: {seen}") from error


@pytest.mark.timeout(1800)
def test_whatever_the_leader_was_doing_when_it_was_killed_is_finished_and_nothing_is_made_twice(
    cluster: Kube, kube: Kube, alone: OperatorProcess, account: Path, tmp_path: Path
) -> None:
    assert alone.ended() is None
    kills, seed = (
        int(os.environ.get("FAULT_KILLS", "5")),
        int(os.environ.get("FAULT_SEED", secrets.randbelow(10**6))),
    )
    print(f"FAULT_SEED={seed} FAULT_KILLS={kills}")  # noqa: T201  # what repeats a failure
    life = Life(kube, random.Random(seed))  # noqa: S311  # repeats by its seed
    with AllReady(kube) as router, BusyKubelet(kube, ip=router.address) as kubelet:
        pair = Pair(cluster, account, tmp_path, TANDEM_WATCH_NAMESPACES=kube.namespace)
        with pair.running():
            for number in range(1, kills + 1):
                what = life.step()
                moment = life.source.uniform(0, 0.8)
                print(f"kill {number}: {what}, {moment:.3f} s later")  # noqa: T201
                time.sleep(moment)
                pair.replace_leader()
                if number % _KILLS_BETWEEN_LOOKS == 0:
                    finish(life)
        assert all(len(found) == 1 for found in kubelet.uids.values()), f"made again: {dict(kubelet.uids)}"
        assert all(len(found) == 1 for found in kubelet.templates.values()), f"changed: {dict(kubelet.templates)}"
        assert kubelet.uids
        assert all("Traceback" not in each.output() for each in pair.both)
