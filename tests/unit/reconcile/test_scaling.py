"""Rounds of the scaler, for a service whose routers are not there yet."""

import datetime as dt
from typing import Any

import pytest

from support.fake_api import FakeApi
from support.services import sample
from tandem_operator.cluster import kinds
from tandem_operator.cluster.events import Announcer
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.scaling.decision import ScalingPolicy
from tandem_operator.policies.scaling.signals import Reading
from tandem_operator.reconcile.rollouts import Rollouts
from tandem_operator.reconcile.router_rollouts import RouterRollouts
from tandem_operator.reconcile.scaling import Scaler
from tandem_operator.reconcile.scaling_memory import ScalingMemory
from tandem_operator.reconcile.service import Reconciler
from tandem_operator.reconcile.tokens import Tokens
from tandem_operator.render.context import Settings

KEY = ("team", "chat")
NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


class Both:
    """The scaler and the pass over one service, with the services that the scaler asked a pass for."""

    def __init__(self) -> None:
        self.api, self.store, self.woken = FakeApi(), Store(), list[ServiceKey]()
        shared: dict[str, Any] = {
            "store": self.store,
            "writer": Writer(self.api, self.store),
            "announcer": Announcer(self.api, instance="operator-0", now=lambda: NOW, new_id=lambda: "id"),
            "memory": ScalingMemory(),
            "settings": Settings(workers_image="example.test/workers:1", operator_version="1"),
            "policy": ScalingPolicy(),
        }
        wake, tokens = self.woken.append, Tokens(self.api, b"k" * 32)
        rollouts = Rollouts(store=self.store, read=unread, monotonic=lambda: 1.0, wake=wake)
        routers = RouterRollouts(store=self.store, writer=shared["writer"], places=1, look_again=wake)
        self.reconcile = Reconciler(
            **shared, tokens=tokens, rollouts=rollouts, routers=routers, now=lambda: NOW, kubelet_note=silent
        )
        readings: Any = self
        self.scaler = Scaler(**shared, readings=readings, monotonic=lambda: 1.0, wake=wake, observe=lambda _role, _reason: None)
        metadata = {"namespace": "team", "name": "chat", "uid": "uid-service", "generation": 1, "resourceVersion": "1"}
        service = sample("chat") | {"metadata": metadata | {"managedFields": []}}
        self.api.objects[kinds.INFERENCE_SERVICE, "chat"] = service
        self.store.put(kinds.INFERENCE_SERVICE, service)

    async def read(self, service: Observed) -> Reading | None:
        """Find no router."""
        return await unread(service)


async def unread(_service: Observed) -> Reading | None:
    """Find no router."""
    return None


async def silent(_pod: Observed, _reason: str) -> str:
    """Say nothing of a pod."""
    return ""


@pytest.fixture
def both() -> Both:
    return Both()


async def test_a_decision_that_the_status_does_not_show_asks_for_a_pass_and_the_same_again_for_none(both: Both) -> None:
    await both.reconcile(KEY)
    await both.scaler.round()
    assert both.woken == [KEY]
    await both.reconcile(KEY)
    both.woken.clear()
    await both.scaler.round()
    assert both.woken == []


async def test_a_pass_that_did_not_come_about_is_asked_for_again(both: Both) -> None:
    await both.reconcile(KEY)
    await both.scaler.round()
    await both.scaler.round()
    assert both.woken == [KEY, KEY]


@pytest.mark.parametrize("pool", ["chat-prefill", "chat-decode"])
async def test_a_pool_that_has_no_count_yet_is_not_scaled_before_it_has_its_first(both: Both, pool: str) -> None:
    await both.reconcile(KEY)
    live = both.api.objects[kinds.WORKER_POOL, pool]
    version = str(int(live["metadata"]["resourceVersion"]) + 1000)
    spec = {name: value for name, value in live["spec"].items() if name != "replicas"}
    uncounted = live | {"spec": spec, "metadata": live["metadata"] | {"resourceVersion": version}}
    both.api.objects[kinds.WORKER_POOL, pool] = uncounted
    both.store.put(kinds.WORKER_POOL, uncounted)

    await both.scaler.round()

    assert "replicas" not in both.api.objects[kinds.WORKER_POOL, pool]["spec"]


async def test_a_spec_that_changes_while_the_routers_are_read_is_not_decided_by_what_it_said_before(both: Both) -> None:
    await both.reconcile(KEY)
    changed(both, kinds.WORKER_POOL, "chat-decode", replicas=9)

    async def read(_service: Observed) -> Reading | None:
        changed(both, kinds.INFERENCE_SERVICE, "chat", autoscaling={"mode": "External"})
        return None

    both.read = read  # type: ignore[method-assign]
    await both.scaler.round()

    assert both.api.objects[kinds.WORKER_POOL, "chat-decode"]["spec"]["replicas"] == 9


def changed(both: Both, kind: kinds.Kind, name: str, **spec: Any) -> None:
    """Have somebody change fields of an object's spec."""
    live = both.api.objects[kind, name]
    old = live["metadata"]
    new = {"resourceVersion": str(int(old["resourceVersion"]) + 1000), "generation": old.get("generation", 1) + 1}
    tree = live | {"spec": live["spec"] | spec, "metadata": old | new}
    both.api.objects[kind, name] = tree
    both.store.put(kind, tree)
