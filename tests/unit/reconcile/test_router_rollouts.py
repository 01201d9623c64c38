"""An upgrade of the operator changes all routers; few of them move at a time, and what a user changes never waits."""

import copy
import logging
from typing import Any

import pytest

from support.fake_api import FakeApi
from support.objects import service
from tandem_api import labels
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.reconcile.router_rollouts import RouterRollouts

LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "has timed out"}


def router(name: str, image: str) -> dict[str, Any]:
    """Return a router's Deployment as it is rendered."""
    owner = {"uid": f"uid-{name}", "controller": True}
    metadata = {"namespace": "team", "name": f"{name}-router", "labels": {labels.SERVICE: name}, "ownerReferences": [owner]}
    template = {"spec": {"containers": [{"name": "router", "image": image}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2, "template": template}}


class Fleet:
    """Services with complete routers of an older image, an operator with a newer one, and the services it looks at again."""

    def __init__(self) -> None:
        self.api, self.store, self.image, self.again = FakeApi(), Store(), "image:2", list[ServiceKey]()
        self.writer = Writer(self.api, self.store)
        self.routers = self.operator()

    async def serve(self, name: str) -> None:
        """Make a service as the older operator did, and have its router come up."""
        self.spec(name, generation=1, seen=1)
        await self.writer.apply(router(name, "image:1"), owner=f"uid-{name}")
        self.report(name)

    def operator(self, places: int = 1) -> RouterRollouts:
        """Start an operator on what is known."""
        started = RouterRollouts(store=self.store, writer=self.writer, places=places, look_again=self.again.append)
        started.begin()
        return started

    def spec(self, name: str, *, generation: int, seen: int) -> None:
        """Have a service be of a generation, of which the status speaks or does not."""
        raw = service(name, version=generation) | {"status": {"observedGeneration": seen}}
        raw["metadata"]["generation"] = generation
        self.store.put(kinds.INFERENCE_SERVICE, raw)

    def report(self, name: str, *, available: int = 2, **status: Any) -> None:
        """Have a Deployment say that all of its pods are new, and how many are available."""
        live = copy.deepcopy(self.api.objects[kinds.DEPLOYMENT, f"{name}-router"])
        counts = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": available}
        live["status"] = {"observedGeneration": live["metadata"]["generation"], **counts, **status}
        self._put(live)

    def meddle(self, name: str) -> None:
        """Have somebody set another image."""
        live = copy.deepcopy(self.api.objects[kinds.DEPLOYMENT, f"{name}-router"])
        live["spec"]["template"]["spec"]["containers"][0]["image"] = "image:mine"
        self._put(live)

    def _put(self, live: dict[str, Any]) -> None:
        self.api.put(kinds.DEPLOYMENT, live)
        self.store.put(kinds.DEPLOYMENT, live)

    async def look(self, name: str, image: str = "") -> None:
        """Make a pass over a service."""
        tree, found = router(name, image or self.image), self.store.service(("team", name))
        assert found is not None
        with self.routers.turn(found):
            if not self.routers.hold(found, tree):
                await self._apply(found, tree)

    async def _apply(self, found: Observed, tree: dict[str, Any]) -> None:
        if await self.writer.apply(tree, owner=found.uid):
            self.report(found.name, available=0)

    def images(self) -> dict[str, str]:
        """Return the image of each router."""
        return {
            name.removesuffix("-router"): live["spec"]["template"]["spec"]["containers"][0]["image"]
            for (_, name), live in self.api.objects.items()
        }


@pytest.fixture
async def fleet() -> Fleet:
    """Services `a`, `b` and `c`."""
    found = Fleet()
    for name in "abc":
        await found.serve(name)
    return found


async def test_routers_move_one_after_another_each_when_the_one_before_is_complete(fleet: Fleet) -> None:
    for name in "abc":
        await fleet.look(name)
    assert fleet.images() == {"a": "image:2", "b": "image:1", "c": "image:1"}
    assert (fleet.routers.waiting, fleet.again) == (2, [])
    for before, after in (("a", "b"), ("b", "c")):
        fleet.report(before)
        await fleet.look(before)
        assert fleet.again.pop() == ("team", after)
        await fleet.look(after)
        assert fleet.images()[after] == "image:2"
    assert fleet.routers.waiting == 0


async def test_a_changed_spec_is_never_held_back(fleet: Fleet) -> None:
    await fleet.look("a")
    await fleet.look("b")
    assert fleet.routers.waits(("team", "b"))
    fleet.spec("b", generation=2, seen=1)
    await fleet.look("b")
    assert fleet.images() == {"a": "image:2", "b": "image:2", "c": "image:1"}
    assert not fleet.routers.waits(("team", "b"))


async def test_a_service_without_a_router_gets_one_at_once(fleet: Fleet) -> None:
    await fleet.look("a")
    fleet.spec("d", generation=1, seen=1)
    await fleet.look("d")
    assert fleet.images()["d"] == "image:2"


async def test_what_is_no_router_and_a_router_whose_template_stays_are_applied(fleet: Fleet) -> None:
    await fleet.look("a")
    found = fleet.store.service(("team", "b"))
    assert found is not None
    tree, kept = router("b", "image:2"), router("b", "image:1")
    other = tree | {"metadata": tree["metadata"] | {"name": "b-decode-worker-abc"}}
    kept["spec"]["replicas"] = 3
    with fleet.routers.turn(found):
        assert not fleet.routers.hold(found, other)
        assert not fleet.routers.hold(found, kept)


async def test_what_somebody_changes_by_hand_is_put_right_while_others_wait(fleet: Fleet) -> None:
    await fleet.look("a")
    fleet.report("a")
    for name in "abc":
        await fleet.look(name)
    fleet.meddle("a")
    await fleet.look("a")
    assert fleet.images() == {"a": "image:2", "b": "image:2", "c": "image:1"}


async def test_an_operator_that_was_restarted_finds_who_takes_a_place(fleet: Fleet) -> None:
    await fleet.look("a")
    fleet.routers = fleet.operator()
    for name in "bca":
        await fleet.look(name)
    assert fleet.images() == {"a": "image:2", "b": "image:1", "c": "image:1"}


async def test_a_router_that_failed_before_takes_no_place_while_it_waits_and_goes_last(fleet: Fleet) -> None:
    fleet.report("a", available=0)
    fleet.routers = fleet.operator()
    await fleet.look("b")
    assert fleet.routers.waits(("team", "b"))
    await fleet.look("a")
    assert fleet.again == [("team", "b")]
    await fleet.look("b")
    assert fleet.images() == {"a": "image:1", "b": "image:2", "c": "image:1"}


async def test_a_pass_that_failed_keeps_its_place_until_the_next_one(fleet: Fleet) -> None:
    fleet.api.refused[kinds.DEPLOYMENT, "a-router"] = errors.UnavailableError("no answer")
    with pytest.raises(errors.UnavailableError):
        await fleet.look("a")
    await fleet.look("b")
    assert fleet.images()["b"] == "image:1"
    del fleet.api.refused[kinds.DEPLOYMENT, "a-router"]
    await fleet.look("a", image="image:1")
    assert fleet.again[-1] == ("team", "b")


async def test_one_that_waits_and_does_not_come_to_ask_lets_the_next_one_go(fleet: Fleet) -> None:
    for name in "abc":
        await fleet.look(name)
    fleet.report("a")
    await fleet.look("a")
    found = fleet.store.service(("team", "b"))
    assert found is not None
    with fleet.routers.turn(found):
        pass  # its spec is not accepted any more, or another child could not be applied
    assert fleet.again == [("team", "b"), ("team", "c")]


async def test_the_place_of_a_service_that_goes_is_free(fleet: Fleet) -> None:
    await fleet.look("a")
    await fleet.look("b")
    fleet.routers.forget(("team", "a"))
    assert fleet.again == [("team", "b")]


async def test_routers_that_fail_and_keep_others_back_are_named_once(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    await fleet.look("a")
    await fleet.look("b")
    fleet.report("a", available=0, conditions=[LATE])
    with caplog.at_level(logging.WARNING):
        for name in "abca":
            await fleet.look(name)
    (record,) = caplog.records
    assert (vars(record)["failed"], vars(record)["waiting"]) == (["team/a"], 1)
