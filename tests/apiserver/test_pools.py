"""WorkerPools: who writes the count, and who keeps it."""

from typing import Any

import pytest

from support.kube import Kube, until
from support.services import of_role, sample, wait_for_condition

pytestmark = pytest.mark.usefixtures("operator")


def workers(kube: Kube, service: str, role: str) -> int:
    """Return the workers that the Deployments of a role ask for."""
    return sum(each["spec"]["replicas"] for each in of_role(kube, "Deployment", service, role))


def wait_for_workers(kube: Kube, service: str, role: str, count: int) -> None:
    until(lambda: workers(kube, service, role) == count, what=f"{count} {role} workers")


def scale(kube: Kube, pool: str, replicas: int) -> Any:
    """Scale a pool as `kubectl scale` does."""
    return kube.patch("WorkerPool", pool, {"spec": {"replicas": replicas}}, "scale", "kubectl")


def test_the_scale_subresource_moves_the_deployment_and_tells_how_to_select_pods(kube: Kube) -> None:
    kube.create(sample("minimal"))
    wait_for_workers(kube, "minimal", "prefill", 1)
    scale(kube, "minimal-prefill", 3)
    wait_for_workers(kube, "minimal", "prefill", 3)
    selector = "serving.tandem.dev/service=minimal,serving.tandem.dev/role=prefill"
    until(lambda: len(kube.list("Pod", selector)) == 3, what="three pods")

    def told() -> bool:
        found = kube.send("GET", kube.path("WorkerPool", "minimal-prefill", "scale"))
        return bool(found["status"] == {"replicas": 3, "selector": selector})

    until(told, what="three workers and the selector in the scale subresource")


def test_a_count_that_the_spec_does_not_prescribe_stays_with_whoever_wrote_it(kube: Kube) -> None:
    kube.create(sample("minimal"))
    wait_for_workers(kube, "minimal", "decode", 1)
    scale(kube, "minimal-decode", 4)
    wait_for_workers(kube, "minimal", "decode", 4)
    changed = kube.patch("InferenceService", "minimal", {"spec": {"profile": "Batch"}})
    until(
        lambda: kube.get("InferenceService", "minimal")["status"]["observedGeneration"] == changed["metadata"]["generation"],
        what="a pass over the new spec",
    )
    assert kube.get("WorkerPool", "minimal-decode")["spec"]["replicas"] == 4


def test_a_count_that_the_spec_prescribes_is_kept(kube: Kube) -> None:
    kube.create(sample("minimal", prefill={"replicas": 2}, decode={"replicas": 2}))
    wait_for_workers(kube, "minimal", "prefill", 2)
    scale(kube, "minimal-prefill", 5)
    until(lambda: kube.get("WorkerPool", "minimal-prefill")["spec"]["replicas"] == 2, what="two again")
    wait_for_workers(kube, "minimal", "prefill", 2)


def test_a_count_that_the_spec_no_longer_prescribes_does_not_change(kube: Kube) -> None:
    kube.create(sample("minimal", prefill={"replicas": 3}, decode={"replicas": 2}))
    wait_for_workers(kube, "minimal", "prefill", 3)
    kube.patch("InferenceService", "minimal", {"spec": {"prefill": {"replicas": None}}})
    scale(kube, "minimal-decode", 1)
    until(lambda: kube.get("WorkerPool", "minimal-decode")["spec"]["replicas"] == 2, what="a pass over the new spec")
    assert kube.get("WorkerPool", "minimal-prefill")["spec"]["replicas"] == 3


def test_a_deleted_pool_comes_back_with_the_workers_that_are_there(kube: Kube) -> None:
    kube.create(sample("minimal"))
    wait_for_workers(kube, "minimal", "prefill", 1)
    scale(kube, "minimal-prefill", 3)
    wait_for_workers(kube, "minimal", "prefill", 3)
    uid = kube.get("WorkerPool", "minimal-prefill")["metadata"]["uid"]
    kube.delete("WorkerPool", "minimal-prefill")
    again = until(
        lambda: (
            (found := kube.get("WorkerPool", "minimal-prefill"))
            and found["metadata"]["uid"] != uid
            and "replicas" in found["spec"]  # the count is written after the pool
            and found
        ),
        what="the pool and its count again",
    )
    assert again["spec"]["replicas"] == 3
    assert workers(kube, "minimal", "prefill") == 3


def test_no_workers_on_purpose_is_no_fault(kube: Kube) -> None:
    kube.create(sample("minimal", prefill={"replicas": 0}, decode={"replicas": 0}))
    found = wait_for_condition(kube, "minimal", "PrefillAvailable", "True")
    assert found["reason"] == "ScaledToZero"
