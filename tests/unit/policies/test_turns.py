"""Few routers are rolled out at a time, whatever happens meanwhile, and all of them come to their turn."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.turns import next_in_line, taken

NAMES = "abcdefgh"
names = st.sampled_from(NAMES)
few = st.frozensets(names)


@given(line=st.lists(names, unique=True), incomplete=few, begun=few, places=st.integers(1, 4))
def test_whoever_may_begin_waits_and_finds_a_place(
    line: list[str], incomplete: frozenset[str], begun: frozenset[str], places: int
) -> None:
    found = next_in_line(line=line, incomplete=incomplete, begun=begun, places=places)
    assert set(found) <= set(line)
    assert not found or len(taken(line=line, incomplete=incomplete, begun=begun)) + len(found) <= places
    assert found == next_in_line(line=line, incomplete=incomplete, begun=begun, places=places)


def test_they_go_in_the_order_in_which_they_came_and_routers_that_were_failing_before_go_last() -> None:
    assert next_in_line(line="cab", incomplete=frozenset(), begun=frozenset(), places=2) == ["c", "a"]
    assert next_in_line(line="cab", incomplete=frozenset("ca"), begun=frozenset(), places=2) == ["b", "c"]


def test_a_router_that_is_not_complete_takes_a_place_unless_it_waits_itself() -> None:
    assert next_in_line(line="b", incomplete=frozenset("a"), begun=frozenset(), places=1) == []
    assert next_in_line(line="ba", incomplete=frozenset("a"), begun=frozenset(), places=1) == ["b"]
    assert next_in_line(line="b", incomplete=frozenset(), begun=frozenset("a"), places=1) == []


@dataclass
class Router:
    """One service's router, and whether its pods of the newer template come up."""

    newer: bool
    complete: bool
    comes_up: bool


@dataclass
class Fleet:
    """Services amid an upgrade; `rolled` are those whose rollout the operator began and that are not complete since."""

    routers: dict[str, Router]
    places: int
    line: list[str] = field(default_factory=list)
    rolled: set[str] = field(default_factory=set)

    @property
    def incomplete(self) -> frozenset[str]:
        """Names of those that are not complete."""
        return frozenset(name for name, router in self.routers.items() if not router.complete)

    def look(self, name: str) -> None:
        """Make a pass over a service."""
        router = self.routers[name]
        if router.newer:
            return
        if name not in self.line:
            self.line.append(name)
        if name in next_in_line(line=self.line, incomplete=self.incomplete, begun=frozenset(), places=self.places):
            self._move(name)
            self.rolled.add(name)

    def edit(self, name: str) -> None:
        """Have a user change a service: it is rolled out without asking."""
        self._move(name)

    def fall(self, name: str) -> None:
        """Have a pod be lost."""
        self.routers[name].complete = False

    def settle(self, name: str) -> None:
        """Have the pods that are to come up become available."""
        router = self.routers[name]
        router.complete = router.complete or router.comes_up or not router.newer
        if router.complete:
            self.rolled.discard(name)

    def restart(self, _name: str) -> None:
        """Have another operator begin with what is there."""
        self.line.clear()

    def _move(self, name: str) -> None:
        if name in self.line:
            self.line.remove(name)
        self.routers[name].newer, self.routers[name].complete = True, False


routers = st.builds(Router, newer=st.booleans(), complete=st.booleans(), comes_up=st.booleans())
fleets = st.builds(Fleet, st.fixed_dictionaries(dict.fromkeys(NAMES, routers)), st.integers(1, 4))
events = st.tuples(st.sampled_from(("look", "look", "edit", "fall", "settle", "restart")), names)


@given(fleet=fleets, happened=st.lists(events, max_size=60))
def test_never_more_are_rolled_out_than_there_are_places_and_edits_pass_at_once(
    fleet: Fleet, happened: list[tuple[str, str]]
) -> None:
    for what, name in happened:
        getattr(fleet, what)(name)
        assert len(fleet.rolled) <= fleet.places
        assert what != "edit" or fleet.routers[name].newer


@given(fleet=fleets, happened=st.lists(events, max_size=30))
def test_all_come_to_their_turn_while_fewer_fail_than_there_are_places(fleet: Fleet, happened: list[tuple[str, str]]) -> None:
    for what, name in happened:
        getattr(fleet, what)(name)
    failing = [name for name, router in fleet.routers.items() if not router.comes_up]
    for name in failing[fleet.places - 1 :]:
        fleet.routers[name].comes_up = True
    _run(fleet)
    assert all(router.newer for router in fleet.routers.values())
    assert all(router.complete or not router.comes_up for router in fleet.routers.values())


@given(fleet=fleets)
def test_routers_that_do_not_come_up_stop_the_others(fleet: Fleet) -> None:
    for router in fleet.routers.values():
        router.newer, router.complete, router.comes_up = False, True, False
    _run(fleet)
    assert sum(router.newer for router in fleet.routers.values()) == fleet.places


def _run(fleet: Fleet) -> None:
    for _ in range(2 * len(NAMES)):
        for name in NAMES:
            fleet.look(name)
        for name in NAMES:
            fleet.settle(name)
