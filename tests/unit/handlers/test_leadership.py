"""The election, in simulated time: one leader at most, whatever is slow, lost or late."""

import asyncio
import contextlib
import dataclasses
import functools
import random
from collections.abc import Callable

import pytest
from typing_extensions import override

from support.timeline import SkewedClock, Timeline
from tandem_operator.cluster.election import LeaseView, Terms
from tandem_operator.cluster.errors import ConflictError, UnavailableError
from tandem_operator.cluster.lease import Lease
from tandem_operator.handlers.leadership import Leadership, LeaseLostError

TERMS = Terms(15.0)
Delay = Callable[[], tuple[float, float]]


class Server:
    """The API server's copy of the Lease."""

    def __init__(self) -> None:
        self.view: LeaseView | None = None
        self._version = 0

    def write(self, before: LeaseView | None, holder: str, duration: float) -> LeaseView:
        """Write as the API server does: only over the version that the caller has seen."""
        if (before.version if before else None) != (self.view.version if self.view else None):
            raise ConflictError("put leases: HTTP 409")
        self._version += 1
        self.view = LeaseView(holder=holder, duration=duration, version=str(self._version), transitions=0, acquired="")
        return self.view


class SlowLease(Lease):
    """One process's way to the server: `delay` gives the seconds that a request and its answer are under way.

    A caller that no longer waits changes nothing: what was sent arrives, and is carried out when it does.
    """

    def __init__(self, server: Server, timeline: Timeline, delay: Delay) -> None:
        self._server = server
        self._timeline = timeline
        self._delay = delay
        self._sent: set[asyncio.Task[LeaseView | None]] = set()

    @override
    async def read(self) -> LeaseView | None:
        return await self._send(lambda: self._server.view)

    @override
    async def write(self, before: LeaseView | None, *, holder: str, duration: float) -> LeaseView:
        found = await self._send(lambda: self._server.write(before, holder, duration))
        assert found is not None
        return found

    async def _send(self, carry_out: Callable[[], LeaseView | None]) -> LeaseView | None:
        there, back = self._delay()

        async def travel() -> LeaseView | None:
            await self._timeline.sleep(there)
            found = carry_out()
            await self._timeline.sleep(back)
            return found

        task = asyncio.ensure_future(travel())
        self._sent.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[LeaseView | None]) -> None:
        self._sent.discard(task)
        task.exception()


def at_once() -> tuple[float, float]:
    """Return no delay."""
    return 0.01, 0.01


class Election:
    """Processes that want one Lease."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.server = Server()
        self.members: dict[str, Leadership] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.led: list[str] = []
        """Who began to lead, in order."""

    def join(self, name: str, *, delay: Delay = at_once, offset: float = 0.0, rate: float = 1.0) -> Leadership:
        """Start a process."""
        clock = SkewedClock(self.timeline, offset=offset, rate=rate)
        lease = SlowLease(self.server, self.timeline, delay)
        member = Leadership(lease, identity=name, terms=TERMS, clock=clock, changed=lambda: None)
        self.members[name] = member
        self.tasks[name] = asyncio.ensure_future(member.run())
        return member

    def leaders(self) -> list[str]:
        """Return who may work at this moment."""
        return [name for name, member in self.members.items() if member.works()]

    async def run(self, seconds: float) -> None:
        """Let time pass; nobody begins to lead between two moments at which something happens."""
        await self.timeline.run(self.timeline.now + seconds, self._look)

    def _look(self) -> None:
        found = self.leaders()
        assert len(found) <= 1, f"{found} lead at {self.timeline.now:.1f} s"
        self.led += [name for name in found if self.led[-1:] != [name]]

    async def kill(self, name: str) -> None:
        """End a process without a word."""
        self.tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError, LeaseLostError):
            await self.tasks[name]
        del self.members[name], self.tasks[name]

    async def end(self) -> None:
        """End them all."""
        for name in list(self.tasks):
            await self.kill(name)


async def test_the_first_leads_at_once_and_keeps_leading() -> None:
    election = Election()
    election.join("a")
    await election.run(1)
    election.join("b")
    await election.run(60)
    assert election.led == ["a"]
    await election.end()


async def test_a_leader_that_dies_is_followed_when_its_lease_has_run_out() -> None:
    election = Election()
    election.join("a")
    await election.run(1)
    election.join("b", offset=1e6)
    await election.run(20)
    await election.kill("a")
    await election.run(TERMS.work)
    assert election.leaders() == []
    await election.run(TERMS.duration + 2 * TERMS.pause - TERMS.work)
    assert election.led == ["a", "b"]
    await election.end()


async def test_a_released_lease_is_taken_at_the_next_look() -> None:
    election = Election()
    member = election.join("a")
    await election.run(1)
    election.join("b")
    await election.run(10)
    election.tasks["a"].cancel()
    release = asyncio.ensure_future(member.release())
    await election.run(2 * TERMS.pause)
    assert release.done()
    assert election.leaders() == ["b"]
    await election.end()


async def test_a_renewal_that_hangs_ends_the_leader_before_another_one_leads() -> None:
    election = Election()
    hung = {"a": False}
    election.join("a", delay=lambda: (40.0, 0.0) if hung["a"] else at_once())
    await election.run(1)
    election.join("b")
    await election.run(10)
    hung["a"] = True
    await election.run(60)
    with pytest.raises(LeaseLostError, match="could not be renewed in time"):
        await election.tasks["a"]
    assert election.led == ["a", "b"]
    await election.end()


async def test_a_lease_that_is_deleted_under_its_holder_stays_with_it() -> None:
    election = Election()
    election.join("a")
    await election.run(1)
    election.join("b")
    await election.run(10)
    election.server.view = None
    await election.run(30)
    assert election.led == ["a"]
    await election.end()


async def test_a_leader_that_sees_another_holder_ends_at_once() -> None:
    election = Election()
    election.join("a")
    await election.run(5)
    assert election.server.view is not None
    election.server.view = dataclasses.replace(election.server.view, holder="by hand", version="x")
    await election.run(2 * TERMS.pause + 1)
    with pytest.raises(LeaseLostError, match="another operator holds the Lease"):
        await election.tasks["a"]
    assert election.leaders() == []
    await election.end()


async def test_a_server_that_cannot_answer_is_asked_again_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    election = Election()
    with monkeypatch.context() as away:
        away.setattr(Server, "write", _unavailable)
        member = election.join("a")
        await election.run(5)
        assert member.problem == "the Lease could neither be read nor made: the server is away"
    await election.run(5)
    assert member.problem is None
    assert election.leaders() == ["a"]
    await election.end()


def _unavailable(*_: object) -> LeaseView:
    raise UnavailableError("the server is away")


@pytest.mark.parametrize("seed", range(20))
async def test_two_never_lead_whatever_is_slow_and_whatever_the_clocks_say(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311  # repeats by its seed
    election = Election()
    slow: dict[str, float] = {}

    def delay(name: str) -> tuple[float, float]:
        if source.random() < slow[name]:
            return source.choice([(0.0, source.uniform(0, 4)), (source.uniform(0, 30), 0.0)])
        return source.uniform(0, 0.2), source.uniform(0, 0.2)

    def join(name: str) -> None:
        slow[name] = 0.0
        rate = source.uniform(0.85, 1.15)
        election.join(name, delay=functools.partial(delay, name), offset=source.uniform(0, 1e6), rate=rate)

    names = [f"process-{number}" for number in range(100)]
    join(names.pop())
    join(names.pop())
    for _ in range(12):
        slow |= {name: source.choice([0.0, 0.0, 0.5, 1.0]) for name in slow}
        await election.run(source.uniform(5, 40))
        for name in [name for name, task in election.tasks.items() if task.done() or source.random() < 0.1]:
            await election.kill(name)
            join(names.pop())
    slow |= dict.fromkeys(slow, 0.0)
    await election.run(60)
    assert election.leaders(), "nobody leads although everything is well again"
    await election.end()
