"""Rounds of the scaler, for a service whose routers are not there yet."""

import datetime as dt
from typing import Any

import aiohttp
import pytest

from support.fake_api import FakeApi
from support.services import sample
from tandem_operator.cluster import kinds
from tandem_operator.cluster.events import Announcer
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.scaling.decision import ScalingPolicy
from tandem_operator.reconcile.scaling import Scaler
from tandem_operator.reconcile.scaling_memory import ScalingMemory
from tandem_operator.reconcile.service import Reconciler
from tandem_operator.reconcile.tokens import Tokens
from tandem_operator.render.context import Settings

KEY = ("team", "chat")
NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


class Both:
    """The scaler and the pass over one service, with the services that the scaler asked a pass for."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.api, self.store, self.woken = FakeApi(), Store(), list[ServiceKey]()
        shared: dict[str, Any] = {
            "store": self.store,
            "writer": Writer(self.api, self.store),
            "announcer": Announcer(self.api, instance="operator-0", now=lambda: NOW, new_id=lambda: "id"),
            "memory": ScalingMemory(),
            "settings": Settings(workers_image="example.test/workers:1", operator_version="1"),
            "policy": ScalingPolicy(),
            "tokens": Tokens(self.api, b"k" * 32),
        }
        self.reconcile = Reconciler(**shared, now=lambda: NOW, failed_mount=silent)
        self.scaler = Scaler(
            **shared, session=session, monotonic=lambda: 1.0, wake=self.woken.append, observe=lambda _role, _reason: None
        )
        metadata = {"namespace": "team", "name": "chat", "uid": "uid-service", "generation": 1, "resourceVersion": "1"}
        service = sample("chat") | {"metadata": metadata | {"managedFields": []}}
        self.api.objects[kinds.INFERENCE_SERVICE, "chat"] = service
        self.store.put(kinds.INFERENCE_SERVICE, service)


async def silent(_pod: Observed) -> str:
    """Say nothing of a pod's mounts."""
    return ""


@pytest.fixture
async def both():
    async with aiohttp.ClientSession() as session:
        yield Both(session)


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
