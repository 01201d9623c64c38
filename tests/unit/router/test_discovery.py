"""Workers from EndpointSlices and from a file: followed through every change, kept while the source fails."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from support.endpoint_slices import FakeSlices, endpoint, endpoint_slice
from support.router import eventually
from tandem_api.names import Role
from tandem_router.membership import discovery
from tandem_router.membership.discovery import ApiAccess, FileSource, SliceSource, in_cluster, workers_of
from tandem_router.membership.peers import Peers
from tandem_router.membership.registry import Registry


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(discovery, "BACK_OFF", (0.01, 0.02))


@asynccontextmanager
async def following(api, registry, peers=None):
    tokens = iter(f"token-{number}" for number in range(10_000))
    access = ApiAccess(url=api.url, token=lambda: next(tokens), tls=None)
    peers = peers or Peers(lambda: 0.0)
    source = SliceSource(access, registry, peers, service="s", namespace="ns", pod="r0", jitter=lambda: 0.5)
    task = asyncio.ensure_future(source.run())
    try:
        yield source
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def pods(registry):
    return [worker.pod for worker in registry.routable]


async def test_workers_follow_the_slices():
    registry = Registry()
    async with FakeSlices() as api, following(api, registry):
        api.put(endpoint_slice("a", "prefill", endpoint("p0", "10.0.0.1")))
        await eventually(lambda: pods(registry) == ["p0"] and api.watches == 1)
        api.put(endpoint_slice("b", "decode", endpoint("d0", "10.0.0.2"), endpoint("d1", "10.0.0.3", serving=False)))
        await eventually(lambda: pods(registry) == ["d0", "p0"])
        api.bookmark()
        api.put(endpoint_slice("b", "decode", endpoint("d0", "10.0.0.2", terminating=True), endpoint("d1", "10.0.0.3")))
        await eventually(lambda: pods(registry) == ["d1", "p0"])
        api.remove("a")
        await eventually(lambda: pods(registry) == ["d1"])
    assert registry.workers[0].pod == "d0"


async def test_the_other_routers_are_found_and_this_one_is_no_peer_of_its_own():
    peers = Peers(lambda: 0.0)
    async with FakeSlices() as api, following(api, Registry(), peers):
        api.put(
            endpoint_slice("r", "router", endpoint("r0", "10.0.1.1"), endpoint("r1", "10.0.1.2"), endpoint("r2", "10.0.1.3"))
        )
        await eventually(lambda: [peer.address for peer in peers.members] == ["10.0.1.2:8081", "10.0.1.3:8081"])
        await eventually(lambda: api.watches == 1)
        api.put(endpoint_slice("r", "router", endpoint("r0", "10.0.1.1"), endpoint("r1", "10.0.1.2", terminating=True)))
        await eventually(lambda: [(peer.pod, peer.ready) for peer in peers.members] == [("r1", False)])
    assert peers.count == 1


async def test_it_asks_for_its_own_slices_with_a_fresh_token_each_time():
    async with FakeSlices() as api, following(api, Registry()):
        await eventually(lambda: api.watches == 1)
    listed, watched = api.seen[:2]
    assert listed["path"] == "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
    assert listed["labelSelector"] == watched["labelSelector"] == "serving.tandem.dev/service=s"
    assert (listed["authorization"], watched["authorization"]) == ("Bearer token-0", "Bearer token-1")
    assert (watched["resourceVersion"], watched["allowWatchBookmarks"]) == ("1", "true")


@pytest.mark.parametrize("end", ["expire", "end_watches"])
async def test_the_end_of_a_watch_leads_to_a_new_list_that_repairs_what_was_missed(end):
    registry = Registry()
    async with FakeSlices() as api, following(api, registry):
        await eventually(lambda: api.watches == 1)
        api.put(endpoint_slice("a", "decode", endpoint("d0", "10.0.0.1")), silent=True)
        getattr(api, end)()
        await eventually(lambda: pods(registry) == ["d0"])
        await eventually(lambda: api.watches == 2)


@pytest.mark.parametrize("status", [403, 410, 500])
async def test_a_refusing_api_server_is_asked_again_and_the_known_workers_stay(status):
    registry = Registry()
    async with FakeSlices() as api:
        api.put(endpoint_slice("a", "decode", endpoint("d0", "10.0.0.1")))
        async with following(api, registry):
            await eventually(lambda: pods(registry) == ["d0"] and api.watches == 1)
            api.refuse = [status] * 3
            api.end_watches()
            await eventually(lambda: not api.refuse)
            assert pods(registry) == ["d0"]
            api.put(endpoint_slice("a", "decode", endpoint("d1", "10.0.0.2")), silent=True)
            await eventually(lambda: pods(registry) == ["d1"])


async def test_no_api_server_at_all_leaves_the_known_workers():
    registry = Registry()
    async with FakeSlices() as api:
        api.put(endpoint_slice("a", "decode", endpoint("d0", "10.0.0.1")))
        async with following(api, registry):
            await eventually(lambda: api.watches == 1)
            await api.__aexit__()
            await asyncio.sleep(0.05)
            assert pods(registry) == ["d0"]


def test_slices_are_read_with_their_labels_and_each_pod_once():
    both = [
        endpoint_slice("six", "decode", endpoint("d0", "fd00::1"), family="IPv6"),
        endpoint_slice("four", "decode", endpoint("d0", "10.0.0.1"), group="k"),
        endpoint_slice("router", "router", endpoint("r", "10.0.0.9")),
        endpoint_slice("names", "decode", endpoint("x", "host"), family="FQDN"),
        {"metadata": {"name": "bare"}, "addressType": "IPv4", "endpoints": None},
        endpoint_slice("empty", "decode", {"addresses": []}),
    ]
    (worker,) = workers_of(both)
    assert (worker.address, worker.role, worker.kv_group) == ("10.0.0.1:8000", Role.DECODE, "k")
    assert workers_of(both[:1])[0].address == "[fd00::1]:8000"


@pytest.mark.parametrize(
    ("conditions", "routable"),
    [
        ({"ready": True, "serving": False}, False),
        ({"ready": True, "serving": True, "terminating": True}, False),
        ({"ready": True}, True),
        ({"ready": False}, False),
        ({}, True),
    ],
)
def test_serving_decides_and_ready_only_where_serving_is_unknown(conditions, routable):
    one = {"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": {"name": "p"}}
    assert workers_of([endpoint_slice("a", "prefill", one)])[0].routable is routable


def test_a_file_is_followed_and_a_broken_one_changes_nothing(tmp_path):
    path, registry = tmp_path / "workers.json", Registry()
    source = FileSource(path, registry)
    source.read()
    assert not registry.workers
    entry = {"pod": "p0", "address": "127.0.0.1:1", "role": "prefill", "kv_group": "g", "ready": True, "terminating": False}
    path.write_text(json.dumps([entry]))
    source.read()
    assert pods(registry) == ["p0"]
    for broken in ("{", "[{}]", json.dumps([{**entry, "role": "king"}])):
        path.write_text(broken)
        source.read()
        assert pods(registry) == ["p0"]
    path.write_text("[]")
    source.read()
    assert not registry.workers


def test_outside_a_cluster_it_says_what_to_give(tmp_path):
    with pytest.raises(ValueError, match="--workers-file"):
        in_cluster({}, tmp_path)
