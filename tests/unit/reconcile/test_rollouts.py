"""Which workers serve is known from what every ready router says, lately, of a service that rolls out."""

from typing import Any

import pytest

from tandem_api import labels
from tandem_api.names import Role
from tandem_api.wire import RouterSignals, WorkerLoad
from tandem_operator.cluster import kinds
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.policies.proving import Candidate
from tandem_operator.policies.scaling.signals import Reading, routable_pods
from tandem_operator.reconcile.rollouts import Rollouts

KEY: ServiceKey = ("team", "chat")


def router(name: str, *pods: str, unready: tuple[str, ...] = ()) -> RouterSignals:
    workers = tuple(
        WorkerLoad(pod=pod, address=f"{pod}:8000", role=Role.DECODE, kv_group="g", ready=pod not in unready) for pod in pods
    )
    return RouterSignals(router=name, started=1.0, now=2.0, workers=workers)


def reading(*routers: RouterSignals, time: float = 0.0, unreadable: tuple[str, ...] = ()) -> Reading:
    return Reading(time=time, routers=routers, unreadable=unreadable)


def test_a_worker_serves_when_every_router_sends_requests_to_it() -> None:
    assert routable_pods(reading(router("a", "p", "q"), router("b", "q", "r"))) == {"q"}
    assert routable_pods(reading(router("a", "p", "q", unready=("p",)))) == {"q"}


def test_a_router_that_does_not_say_leaves_everything_unknown() -> None:
    assert routable_pods(reading(router("a", "p"), unreadable=("b: unreachable",))) is None
    assert routable_pods(reading()) is None


def _pod(name: str, role_hash: str) -> dict[str, Any]:
    found = {labels.SERVICE: "chat", labels.ROLE: "decode", labels.ROLE_HASH: role_hash}
    return {"metadata": {"namespace": "team", "name": name, "uid": name, "resourceVersion": "1", "labels": found}, "status": {}}


class Desk:
    """A service, a clock and what its routers say."""

    def __init__(self) -> None:
        self.now = 0.0
        self.said: Reading | None = None
        self.woken: list[ServiceKey] = []
        self.reads = 0
        store = Store()
        metadata = {"namespace": "team", "name": "chat", "uid": "u", "resourceVersion": "1"}
        store.put(kinds.INFERENCE_SERVICE, {"metadata": metadata, "spec": {}})
        for pod, role_hash in (("old", "h1"), ("new", "h2")):
            store.put(kinds.POD, _pod(pod, role_hash))
        self.rollouts = Rollouts(store=store, read=self.read, monotonic=lambda: self.now, wake=self.woken.append)

    async def read(self, _service: Any) -> Reading | None:
        """Say what the routers say."""
        self.reads += 1
        return self.said


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_routers_are_read_only_while_their_service_rolls_out(desk: Desk) -> None:
    await desk.rollouts.round()
    assert desk.reads == 0
    desk.rollouts.follow(KEY, moves=True)
    await desk.rollouts.round()
    desk.rollouts.follow(KEY, moves=False)
    await desk.rollouts.round()
    assert desk.reads == 1


async def test_a_pass_is_asked_for_when_routers_see_other_workers(desk: Desk) -> None:
    desk.rollouts.follow(KEY, moves=True)
    desk.said = reading(router("a", "p"))
    for _ in range(2):
        await desk.rollouts.round()
    assert (desk.woken, desk.rollouts.routable(KEY)) == ([KEY], {"p"})
    desk.said = reading(router("a", "p", "q"))
    await desk.rollouts.round()
    assert (len(desk.woken), desk.rollouts.routable(KEY)) == (2, {"p", "q"})


async def test_what_was_said_long_ago_says_nothing(desk: Desk) -> None:
    desk.rollouts.follow(KEY, moves=True)
    desk.said = reading(router("a", "p"))
    await desk.rollouts.round()
    desk.now = 20.0
    assert desk.rollouts.routable(KEY) is None
    # Passes that follow again do not forget it either.
    desk.now = 1.0
    desk.rollouts.follow(KEY, moves=True)
    assert desk.rollouts.routable(KEY) == {"p"}


def counted(time: float, *, new: int, old: int) -> Reading:
    """Return a reading in which a router served requests on the old worker and failed them on the new one."""
    workers = tuple(
        WorkerLoad(pod=pod, address=pod, role=Role.DECODE, kv_group="g", ready=True, **outcomes)
        for pod, outcomes in (("old", {"served": old}), ("new", {"failed": new}))
    )
    return reading(RouterSignals(router="a", started=1.0, now=time, workers=workers), time=time)


async def fail(desk: Desk) -> tuple[str, ...]:
    """Let a router report that the new worker fails everything; return what is found."""
    desk.rollouts.follow(KEY, moves=True, candidates={Role.DECODE: Candidate(role_hash="h2", promised=False)})
    for number in range(3):
        desk.said = counted(2.0 * number, new=10 * number, old=50 * number)
        await desk.rollouts.round()
    return desk.rollouts.worse(KEY)


async def test_new_workers_that_fail_ask_for_a_pass_once(desk: Desk) -> None:
    assert await fail(desk) == ("decode workers of revision h2 failed 10 of 10 requests, older ones 0 of 50",)
    assert len(desk.woken) == 2


async def test_what_was_found_of_other_workers_is_forgotten(desk: Desk) -> None:
    await fail(desk)
    desk.rollouts.follow(KEY, moves=True, candidates={Role.DECODE: Candidate(role_hash="h3", promised=False)})
    assert desk.rollouts.worse(KEY) == ()
    desk.rollouts.follow(KEY, moves=False)
    assert desk.rollouts.worse(KEY) == ()


async def test_the_same_workers_are_judged_on_from_pass_to_pass(desk: Desk) -> None:
    found = await fail(desk)
    desk.rollouts.follow(KEY, moves=True, candidates={Role.DECODE: Candidate(role_hash="h2", promised=False)})
    assert desk.rollouts.worse(KEY) == found != ()


async def test_a_rollout_that_is_paused_is_not_judged(desk: Desk) -> None:
    desk.rollouts.follow(KEY, moves=True)
    for number in range(3):
        desk.said = counted(2.0 * number, new=10 * number, old=50 * number)
        await desk.rollouts.round()
    assert desk.rollouts.worse(KEY) == ()


async def test_what_routers_count_while_one_of_them_is_missed_is_lost(desk: Desk) -> None:
    desk.rollouts.follow(KEY, moves=True, candidates={Role.DECODE: Candidate(role_hash="h2", promised=False)})
    for said in (counted(0.0, new=0, old=0), None, counted(4.0, new=50, old=500)):
        desk.said = said
        await desk.rollouts.round()
    assert desk.rollouts.worse(KEY) == ()
