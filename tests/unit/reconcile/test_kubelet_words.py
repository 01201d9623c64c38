"""What the kubelet says of a pod is looked for when it waits for longer than is usual, and only then."""

import datetime as dt
from typing import Any

import pytest

from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.observed import Observed, observe
from tandem_operator.reconcile.kubelet_words import kubelet_words, waits_for

_NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
_LONG_AGO = "2026-01-01T23:59:00Z"
_RUNS = {"name": "engine", "started": True, "ready": False, "state": {"running": {}}}


def _pod(*, placed: str | None = _LONG_AGO, unready: str | None = None, **status: Any) -> Observed:
    times = {("PodScheduled", "True"): placed, ("Ready", "False"): unready}
    conditions = [
        {"type": kind, "status": value, "lastTransitionTime": time} for (kind, value), time in times.items() if time is not None
    ]
    metadata = {"namespace": "team", "name": "p", "uid": "uid-p", "resourceVersion": "1"}
    return observe(kinds.POD, {"metadata": metadata, "status": {"conditions": conditions, **status}})


def _unhealthy(**container: Any) -> Observed:
    return _pod(unready=_LONG_AGO, podIP="10.0.0.1", containerStatuses=[_RUNS | container])


async def _said(_pod: Observed, reason: str) -> str:
    return f"{reason}: the folder is not there"


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (_pod(), "FailedMount"),
        (_pod(placed=None), ""),
        (_pod(podIP="10.0.0.1"), ""),
        (_unhealthy(), "Unhealthy"),
        (_unhealthy(started=False), ""),
        (_unhealthy(state={"waiting": {"reason": "CrashLoopBackOff"}}), ""),
    ],
    ids=["placed", "not placed", "with an address", "not ready though it runs", "starting", "ended"],
)
def test_the_kubelet_is_asked_of_what_a_pods_own_status_does_not_explain(pod: Observed, reason: str) -> None:
    assert waits_for(pod) == reason


async def test_what_the_kubelet_says_is_known_by_the_pod() -> None:
    assert await kubelet_words([_pod()], _said, now=_NOW) == {"uid-p": ("FailedMount", "FailedMount: the folder is not there")}
    assert await kubelet_words([_unhealthy()], _said, now=_NOW) == {
        "uid-p": ("Unhealthy", "Unhealthy: the folder is not there")
    }


async def test_a_pod_that_waits_since_just_now_is_given_time() -> None:
    assert await kubelet_words([_pod(placed="2026-01-01T23:59:58Z")], _said, now=_NOW) == {}


async def test_events_that_cannot_be_read_do_not_end_the_pass() -> None:
    async def refused(_pod: Observed, _reason: str) -> str:
        raise errors.UnavailableError("no answer")

    assert await kubelet_words([_pod()], refused, now=_NOW) == {}
