"""A role that rolls out: the old worker serves until the new one does, then leaves with all that was made for it."""

from functools import partial
from typing import Any

import pytest

from support.kube import Kube, until
from support.pods import make_ready
from support.services import of_role, sample, selector, wait_for_condition
from tandem_api import labels

pytestmark = pytest.mark.usefixtures("operator")


def by_hash(kube: Kube, kind: str) -> dict[str, Any]:
    """Return the prefill children of a kind by role hash."""
    return {each["metadata"]["labels"][labels.ROLE_HASH]: each for each in of_role(kube, kind, "minimal", "prefill")}


def only(kube: Kube, kind: str, role_hash: str) -> bool:
    """Return whether the prefill children of a kind are those of one role hash."""
    return by_hash(kube, kind).keys() == {role_hash}


def test_an_old_worker_leaves_only_after_its_successor_is_ready(kube: Kube) -> None:
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    make_ready(kube, selector("minimal", "prefill"), count=1)
    (old,) = by_hash(kube, "Deployment")
    until(lambda: by_hash(kube, "Deployment")[old].get("status", {}).get("readyReplicas") == 1, what="the old worker ready")
    kube.patch("InferenceService", "minimal", {"spec": {"prefill": {"engine": {"args": ["--enable-log-requests"]}}}})
    until(lambda: len(by_hash(kube, "Deployment")) == 2, what="both Deployments")
    (new,) = by_hash(kube, "Deployment").keys() - {old}
    until(lambda: by_hash(kube, "Deployment")[new]["spec"]["replicas"] == 1, what="the new worker asked for")
    assert by_hash(kube, "Deployment")[old]["spec"]["replicas"] == 1
    assert by_hash(kube, "Service").keys() == {old, new}
    make_ready(kube, f"{selector('minimal', 'prefill')},{labels.ROLE_HASH}={new}", count=1)
    for kind in ("Deployment", "Service", "ControllerRevision"):
        until(partial(only, kube, kind, new), what=f"only the new {kind}")


def test_going_back_before_the_successor_is_ready_costs_nothing(kube: Kube) -> None:
    kube.create(sample("minimal"))
    make_ready(kube, selector("minimal", "prefill"), count=1)
    (old,) = by_hash(kube, "Deployment")
    until(lambda: by_hash(kube, "Deployment")[old].get("status", {}).get("readyReplicas") == 1, what="the old worker ready")
    before = by_hash(kube, "Deployment")[old]["metadata"]
    kube.patch("InferenceService", "minimal", {"spec": {"prefill": {"engine": {"args": ["--enable-log-requests"]}}}})
    until(lambda: len(by_hash(kube, "Deployment")) == 2, what="both Deployments")
    kube.patch("InferenceService", "minimal", {"spec": {"prefill": {"engine": None}}})
    until(lambda: by_hash(kube, "Deployment").keys() == {old}, what="only the old Deployment")
    after = by_hash(kube, "Deployment")[old]["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"])
