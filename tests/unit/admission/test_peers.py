"""Limits over several routers: what they exceed a limit by, and what holds while a router is unknown."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_api.wire import PeerLoad, PeerQuarantine, PeerReport
from tandem_router.health.scores import Kind, Subject
from tandem_router.membership.peers import FRESH, Peer, Peers


class Routers:
    """Some routers that open requests on one worker whenever they may, and hear of each other from time to time."""

    def __init__(self, count, limit) -> None:
        self.now, self.limit = 0.0, limit
        self.own = [0] * count
        self.peers = [Peers(lambda: self.now) for _ in range(count)]
        for number, peers in enumerate(self.peers):
            peers.replace(Peer(pod=f"r{each}", address=f"r{each}") for each in range(count) if each != number)

    def hear(self, number):
        """A router asks all others."""
        reports = {
            f"r{each}": PeerReport(router=f"r{each}", workers={"w": PeerLoad(in_flight=own)})
            for each, own in enumerate(self.own)
            if each != number
        }
        self.peers[number].heard(reports, {"w": self.own[number]})

    def open(self, number):
        """A router opens a request if it may."""
        peers = self.peers[number]
        if peers.room("w", limit=self.limit, own=self.own[number], others=peers.in_flight["w"]) > 0:
            self.own[number] += 1

    def close(self, number):
        """A request of a router ends."""
        self.own[number] = max(self.own[number] - 1, 0)


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(1, 40), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=60))
def test_routers_that_heard_each_other_at_one_moment_exceed_a_limit_by_one_each_at_most(count, limit, bursts):
    routers = Routers(count, limit)
    for number in range(count):
        routers.hear(number)
    for number, size in bursts:
        for _ in range(size):
            routers.open(number % count)
        assert sum(routers.own) <= limit + count - 1


@pytest.mark.parametrize("count", [2, 4])
def test_rounds_at_different_moments_exceed_a_limit_by_little(count):
    """Each router asks every 200 ms at its own moment; requests stay a second and come at thrice the limit."""
    routers, draw, limit = Routers(count, 32), random.Random(1), 32  # noqa: S311 - arrivals, not secrets
    ends, most, over, steps = [], 0, 0, 20_000
    for step in range(steps):
        routers.now = step / 1000
        for number in range(count):
            if step % 200 == number * 200 // count:
                routers.hear(number)
        for end, number in [each for each in ends if each[0] <= routers.now]:
            ends.remove((end, number))
            routers.close(number)
        if draw.random() < 0.1:
            number = draw.randrange(count)
            before = routers.own[number]
            routers.open(number)
            if routers.own[number] > before:
                ends.append((routers.now + draw.expovariate(1), number))
        most = max(most, sum(routers.own))
        over += sum(routers.own) > limit
    assert most <= limit * 1.25
    assert over <= 0.35 * steps


def test_while_a_peer_is_unknown_each_router_keeps_to_its_share():
    routers = Routers(4, 32)
    assert routers.peers[0].room("w", limit=32, own=0, others=0) == 8
    routers.hear(0)
    assert routers.peers[0].known
    routers.now = FRESH + 1
    assert not routers.peers[0].known
    assert routers.peers[0].room("w", limit=32, own=8, others=0) == 0
    assert routers.peers[0].room("w", limit=2, own=0, others=0) == 1


def test_a_router_that_leaves_still_counts_with_what_it_has_open_and_gets_no_share():
    peers = Peers(lambda: 0.0)
    peers.replace([Peer(pod="r1", address="r1", ready=False)])
    peers.heard({"r1": PeerReport(router="r1", workers={"w": PeerLoad(in_flight=5)})}, {})
    assert (peers.count, peers.room("w", limit=8, own=0, others=peers.in_flight["w"])) == (1, 3)
    peers.replace([])
    assert peers.room("w", limit=8, own=0, others=peers.in_flight["w"]) == 8


def test_quarantines_of_peers_are_heard_while_they_are_fresh():
    now = 0.0
    peers = Peers(lambda: now)
    peers.replace([Peer(pod="r1", address="r1")])
    pair = PeerQuarantine(kind="pair", prefill="p", decode="d")
    peers.heard({"r1": PeerReport(router="r1", quarantines=(pair, PeerQuarantine(kind="of tomorrow")))}, {})
    assert list(peers.quarantined()) == [Subject(Kind.PAIR, "p", "d")]
    now = FRESH + 1
    assert list(peers.quarantined()) == []
