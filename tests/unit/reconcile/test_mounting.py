"""What the kubelet says of volumes is looked for when a pod waits for them for longer than is usual, and only then."""

import datetime as dt

import pytest

from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.observed import Observed, observe
from tandem_operator.reconcile.mounting import mount_failures, waits_for_volumes

_NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


def _pod(*, placed: str | None = "2026-01-01T23:59:00Z", **status: str) -> Observed:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": placed}] if placed else []
    metadata = {"namespace": "team", "name": "p", "uid": "uid-p", "resourceVersion": "1"}
    return observe(kinds.POD, {"metadata": metadata, "status": {"conditions": conditions, **status}})


async def _said(_pod: Observed) -> str:
    return "the folder is not there"


@pytest.mark.parametrize(
    ("pod", "waits"),
    [(_pod(), True), (_pod(placed=None), False), (_pod(podIP="10.0.0.1"), False)],
    ids=["placed", "not placed", "with an address"],
)
def test_a_pod_that_is_placed_and_has_no_address_waits_for_its_volumes(pod: Observed, waits: bool) -> None:  # noqa: FBT001 - a table of cases
    assert waits_for_volumes(pod) is waits


async def test_what_the_kubelet_says_is_known_by_the_pod() -> None:
    assert await mount_failures([_pod()], _said, now=_NOW) == {"uid-p": "the folder is not there"}


async def test_a_pod_that_was_placed_just_now_is_given_time() -> None:
    assert await mount_failures([_pod(placed="2026-01-01T23:59:58Z")], _said, now=_NOW) == {}


async def test_events_that_cannot_be_read_do_not_end_the_pass() -> None:
    async def refused(_pod: Observed) -> str:
        raise errors.UnavailableError("no answer")

    assert await mount_failures([_pod()], refused, now=_NOW) == {}
