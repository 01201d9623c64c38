"""Counts that are somebody else's: the real HPA controller drives a WorkerPool, and counts go from one owner to another."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support import external_samples
from support.external_metrics import ExternalMetrics
from support.kube import Kube, until
from support.pods import become_ready, make_ready, ready_pods
from support.services import condition, of_role, sample, selector, wait_for_condition
from support.stub_router import StubRouter
from tandem_api import labels
from tandem_api.names import Role

pytestmark = pytest.mark.usefixtures("operator")
STREAMS = "tandem_router_in_flight_requests"
EACH = 32
"""Streams for each worker in the sample."""
BOUNDS = {"prefill": {"min": 1, "max": 3}}


@pytest.fixture
def router() -> Iterator[StubRouter]:
    """The only router of the service."""
    with StubRouter() as stub:
        yield stub


@pytest.fixture
def adapter(kube: Kube, tmp_path: Path) -> Iterator[ExternalMetrics]:
    """Serves the number of streams as an external metric."""
    with ExternalMetrics(kube, tmp_path) as metrics:
        yield metrics


def served(kube: Kube, router: StubRouter, tree: dict[str, Any]) -> None:
    """Create a service with one worker of each role that is ready."""
    name = tree["metadata"]["name"]
    tree["spec"]["router"] = {"replicas": 1}
    router.pods = partial(ready_pods, kube, name)
    kube.create(tree)
    wait_for_condition(kube, name, "Accepted", "True")
    make_ready(kube, selector(name, "router"), count=1, ip=router.address)
    make_ready(kube, selector(name, "prefill"), count=1)
    make_ready(kube, selector(name, "decode"), count=1)
    wait_for_condition(kube, name, "Ready", "True")


def hpa() -> dict[str, Any]:
    """Return the sample's HPA for decode, in a hurry to take workers away."""
    (found,) = [each for each in external_samples.load("hpa.yaml") if each["metadata"]["name"] == "chat-decode"]
    found["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    return found


def hpa_says(kube: Kube, kind: str) -> str:
    """Return the status and the reason of a condition of the HPA."""
    found = kube.get("HorizontalPodAutoscaler", "chat-decode").get("status", {}).get("conditions") or ()
    return next((f"{each['status']} {each['reason']}" for each in found if each["type"] == kind), "")


def asked_for(kube: Kube, pool: str) -> int:
    """Return the workers that a pool asks for."""
    count: int = kube.get("WorkerPool", pool)["spec"]["replicas"]
    return count


def scale(kube: Kube, pool: str, replicas: int) -> None:
    """Scale a pool as `kubectl scale` does."""
    kube.patch("WorkerPool", pool, {"spec": {"replicas": replicas}}, "scale", "kubectl")


def workers(kube: Kube) -> dict[str, int]:
    """Return the decode workers that Deployments ask for, by role hash."""
    found = of_role(kube, "Deployment", "chat", "decode")
    return {each["metadata"]["labels"][labels.ROLE_HASH]: each["spec"]["replicas"] for each in found}


def replaced(kube: Kube, old: str, count: int) -> bool:
    """Look at a rollout once, have its new pods become ready, and return whether only new workers are left.

    At every look old and new workers together are as many as the HPA asked for, or one more.
    """
    now, ready = workers(kube), ready_pods(kube, "chat")
    assert count <= sum(now.values()) <= count + 1
    assert sum("decode" in name for name in ready) >= count
    assert asked_for(kube, "chat-decode") == count
    pods = kube.list("Pod", selector("chat", "decode"))
    become_ready(kube, [pod for pod in pods if pod["metadata"]["name"] not in ready])
    return old not in now


@pytest.mark.parametrize("file", ["service.yaml", "hpa.yaml"])
def test_the_api_server_takes_a_sample_as_it_is(kube: Kube, file: str) -> None:
    for tree in external_samples.load(file):
        kube.send("POST", f"{kube.path(tree['kind'])}?dryRun=All&fieldValidation=Strict", tree)


def test_the_hpa_controller_keeps_its_pool_and_its_count_through_a_rollout(
    kube: Kube, router: StubRouter, adapter: ExternalMetrics
) -> None:
    served(kube, router, external_samples.service())
    adapter.values[STREAMS] = EACH
    kube.create(hpa())
    until(lambda: hpa_says(kube, "ScalingActive") == "True ValidMetricFound", what="an HPA that scales", seconds=90)
    adapter.values[STREAMS] = 3 * EACH
    until(lambda: asked_for(kube, "chat-decode") == 3, what="three workers asked for by the HPA")
    until(lambda: list(workers(kube).values()) == [3], what="three workers in the Deployment")
    make_ready(kube, selector("chat", "decode"), count=3)
    assert hpa_says(kube, "AbleToScale").startswith("True ")

    (old,) = workers(kube)
    kube.patch("InferenceService", "chat", {"spec": {"decode": {"engine": {"args": ["--seed=1"]}}}})
    until(lambda: len(workers(kube)) == 2, what="old and new workers")
    until(lambda: replaced(kube, old, 3), what="only new workers")
    assert list(workers(kube).values()) == [3]
    assert hpa_says(kube, "ScalingActive") == "True ValidMetricFound"
    assert hpa_says(kube, "AbleToScale").startswith("True ")

    adapter.values[STREAMS] = EACH
    until(lambda: list(workers(kube).values()) == [1], what="one worker again")
    assert asked_for(kube, "chat-decode") == 1


def mode(kube: Kube, name: str | None, **more: Any) -> None:
    """Change the mode, None for no autoscaling, and wait until a pass has seen it."""
    autoscaling = None if name is None else {"mode": name} | BOUNDS
    changed = kube.patch("InferenceService", "minimal", {"spec": {"autoscaling": autoscaling} | more})
    generation = changed["metadata"]["generation"]
    until(lambda: kube.get("InferenceService", "minimal")["status"]["observedGeneration"] == generation, what="a pass")


@pytest.fixture
def scaled(kube: Kube, router: StubRouter) -> Kube:
    """A service under mode Apply, whose targets are met and whose work fills the workers it has."""
    router.ttft_ratio, router.in_flight = 0.95, 40
    autoscaling = {"mode": "Apply"} | BOUNDS
    served(kube, router, sample("minimal", slo={"ttft": {"target": "500ms"}}, autoscaling=autoscaling))
    return kube


def test_the_autoscaler_takes_over_from_the_count_that_somebody_else_left(scaled: Kube, router: StubRouter) -> None:
    mode(scaled, "External", prefill={"replicas": 1})
    scale(scaled, "minimal-prefill", 2)
    make_ready(scaled, selector("minimal", "prefill"), count=2)
    router.routable[Role.PREFILL] = 2
    until(lambda: condition(scaled, "minimal", "ScalingActive").get("reason") == "ScaledExternally", what="ScaledExternally")
    mode(scaled, "Apply")
    until(lambda: condition(scaled, "minimal", "ScalingActive").get("reason") == "WithinTargets", what="a decision")
    assert asked_for(scaled, "minimal-prefill") == 2


def test_bounds_hold_nobody_else_and_the_status_says_that_a_count_is_outside_of_them(scaled: Kube) -> None:
    mode(scaled, "External", prefill={"replicas": 3})
    scale(scaled, "minimal-prefill", 5)
    outside = "5 workers are outside of 1 to 3"
    until(lambda: outside in condition(scaled, "minimal", "ScalingActive").get("message", ""), what="that it is outside")
    assert asked_for(scaled, "minimal-prefill") == 5
    mode(scaled, "Apply")
    until(lambda: asked_for(scaled, "minimal-prefill") == 3, what="the bound")


@pytest.mark.parametrize("without", ["Recommend", None])
def test_without_another_owner_the_count_is_the_specs_again(scaled: Kube, without: str | None) -> None:
    mode(scaled, "External", prefill={"replicas": 1})
    scale(scaled, "minimal-prefill", 3)
    mode(scaled, without)
    until(lambda: asked_for(scaled, "minimal-prefill") == 1, what="the spec's count")
    scale(scaled, "minimal-prefill", 2)
    until(lambda: asked_for(scaled, "minimal-prefill") == 1, what="the spec's count again")


def test_the_same_manifest_again_leaves_the_count_to_its_owner(scaled: Kube) -> None:
    mode(scaled, "External")
    scale(scaled, "minimal-prefill", 3)
    mode(scaled, "External", prefill={"replicas": 2})
    mode(scaled, "External", prefill={"replicas": None})
    assert asked_for(scaled, "minimal-prefill") == 3
