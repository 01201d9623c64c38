"""A newer operator brings newer routers to few services at a time, and stops where they do not come up."""

import pytest

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import make_ready
from support.services import condition, sample, selector, wait_for_condition

NAMES = ("first", "second", "third")
OLD, NEW = "example.test/workers:1", "example.test/workers:2"


def image(kube: Kube, name: str) -> str:
    """Return the image that a service's router is to have."""
    found: str = kube.get("Deployment", f"{name}-router")["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


def moved(kube: Kube) -> list[str]:
    """Return the services whose routers have the new image."""
    return [name for name in NAMES if image(kube, name) == NEW]


def rolled_out(kube: Kube, name: str) -> bool:
    """Return whether all pods of a service's router are of its newest template and available."""
    found = kube.get("Deployment", f"{name}-router")
    status = found.get("status", {})
    counts = [status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration") == found["metadata"]["generation"] and counts == [1, 1, 1]


def waiting(kube: Kube) -> list[str]:
    """Return the services whose status says that they wait for their turn."""
    return [name for name in NAMES if condition(kube, name, "Progressing").get("reason") == "WaitingForTurn"]


@pytest.fixture
def newer(kube: Kube, alone: OperatorProcess) -> OperatorProcess:
    """An operator of another image, not started, that rolls one router at a time; the older one's serve three services."""
    with alone.with_settings(TANDEM_WORKERS_IMAGE=OLD, TANDEM_ROUTER_ROLLOUTS="1"):
        for name in NAMES:
            tree = sample("minimal", router={"replicas": 1})
            tree["metadata"]["name"] = name
            kube.create(tree)
        for name in NAMES:
            for role in ("router", "prefill", "decode"):
                make_ready(kube, selector(name, role), count=1)
        for name in NAMES:
            wait_for_condition(kube, name, "Ready", "True")
            until(lambda name=name: rolled_out(kube, name), what=f"the router of {name}")
    return alone.with_settings(TANDEM_WORKERS_IMAGE=NEW)


def test_routers_move_one_after_another_each_once_the_one_before_is_complete(kube: Kube, newer: OperatorProcess) -> None:
    with newer:
        done: list[str] = []
        while len(done) < len(NAMES):
            until(lambda: len(moved(kube)) == len(done) + 1, what="one more router")
            until(lambda: len(waiting(kube)) == len(NAMES) - len(moved(kube)), what="the others waiting")
            assert newer.metric("tandem_operator_router_rollouts_waiting") == len(NAMES) - len(moved(kube))
            assert all(rolled_out(kube, name) for name in done)
            (name,) = set(moved(kube)) - set(done)
            make_ready(kube, selector(name, "router"), count=2)
            done.append(name)
        until(lambda: all(rolled_out(kube, name) for name in NAMES), what="all routers")
        for name in NAMES:
            wait_for_condition(kube, name, "Progressing", "False")


def test_a_router_that_never_comes_up_keeps_the_others_as_they_are_but_not_what_a_user_changes(
    kube: Kube, newer: OperatorProcess
) -> None:
    with newer:
        until(lambda: len(waiting(kube)) == 2, what="two services waiting")
        failed = moved(kube)
        assert len(failed) == 1
    with newer:
        until(lambda: newer.metric("tandem_operator_resyncs_total") >= 3, what="three lists")
        assert moved(kube) == failed
        assert set(waiting(kube)) == set(NAMES) - set(failed)
        for name in NAMES:
            assert condition(kube, name, "Ready")["status"] == "True", name
        changed, kept = sorted(set(NAMES) - set(failed))
        kube.patch("InferenceService", changed, {"spec": {"router": {"queue": {"maxRequests": 7}}}})
        until(lambda: image(kube, changed) == NEW, what="the changed service's router")
        until(lambda: waiting(kube) == [kept], what="only the third service waiting")
        assert image(kube, kept) == OLD
