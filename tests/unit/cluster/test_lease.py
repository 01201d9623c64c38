"""The Lease as it is sent to the API server, and as it comes back."""

import datetime as dt
from collections.abc import AsyncIterator

import pytest
from kubernetes.aio.client.configuration import Configuration

from support.api_stub import Answer, ApiStub, stub
from tandem_operator.cluster import errors
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.election import LeaseView
from tandem_operator.cluster.lease import Lease

ALL = "/apis/coordination.k8s.io/v1/namespaces/tandem-system/leases"
PATH = f"{ALL}/tandem-operator"
THEIRS = LeaseView(holder="b", duration=15.0, version="7", transitions=3, acquired="2026-01-01T00:00:00.000000Z")
STORED = {
    "metadata": {"resourceVersion": "7"},
    "spec": {
        "holderIdentity": "b",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:09.000000Z",
    },
}


@pytest.fixture
async def api() -> AsyncIterator[ApiStub]:
    async with stub() as found:
        yield found


@pytest.fixture
async def lease(api: ApiStub) -> AsyncIterator[Lease]:
    access = Access(Configuration(host=api.url), observe=lambda _call, _code: None, may_write=lambda: True)
    yield Lease(access, namespace="tandem-system", name="tandem-operator", now=lambda: dt.datetime(2026, 1, 2, tzinfo=dt.UTC))
    await access.close()


async def test_a_lease_is_read_as_it_stands_and_may_be_missing(api: ApiStub, lease: Lease) -> None:
    assert await lease.read() is None
    api.answers[f"GET {PATH}"] = [Answer(STORED)]
    assert await lease.read() == THEIRS
    api.answers[f"GET {PATH}"] = [Answer({"metadata": {"resourceVersion": "8"}})]
    assert await lease.read() == LeaseView(holder="", duration=0.0, version="8", transitions=0, acquired="")


async def test_the_first_holder_makes_it(api: ApiStub, lease: Lease) -> None:
    api.answers[f"POST {ALL}"] = [Answer(STORED)]
    await lease.write(None, holder="a", duration=15.0)
    time = "2026-01-02T00:00:00.000000Z"
    assert api.asked[-1].body["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": time,
        "renewTime": time,
    }


@pytest.mark.parametrize(
    ("holder", "transitions", "acquired"), [("a", 4, "2026-01-02"), ("b", 3, "2026-01-01"), ("", 3, "2026-01-02")]
)
async def test_a_write_names_the_version_that_it_replaces(
    api: ApiStub, lease: Lease, holder: str, transitions: int, acquired: str
) -> None:
    api.answers[f"PUT {PATH}"] = [Answer(STORED)]
    await lease.write(THEIRS, holder=holder, duration=15.0)
    body = api.asked[-1].body
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["spec"].get("holderIdentity", "") == holder
    assert body["spec"]["leaseTransitions"] == transitions
    assert body["spec"]["acquireTime"].startswith(acquired)


async def test_a_lease_that_has_changed_meanwhile_is_a_conflict(api: ApiStub, lease: Lease) -> None:
    api.answers[f"PUT {PATH}"] = [Answer({"kind": "Status", "message": "modified"}, status=409)]
    with pytest.raises(errors.ConflictError):
        await lease.write(THEIRS, holder="a", duration=15.0)
