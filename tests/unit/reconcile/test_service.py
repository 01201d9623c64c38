"""Passes over one service, against an API server that remembers and nothing else."""

import copy
import datetime as dt
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from support import specs
from support.fake_api import FakeApi
from support.objects import child, service
from support.services import sample
from tandem_api import labels
from tandem_api.names import Role
from tandem_api.wire import RouterSignals, WorkerLoad
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.access import Call
from tandem_operator.cluster.events import Announcer
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.scaling.decision import ScalingPolicy
from tandem_operator.policies.scaling.signals import Reading
from tandem_operator.reconcile.rollouts import Rollouts
from tandem_operator.reconcile.router_rollouts import RouterRollouts
from tandem_operator.reconcile.scaling_memory import ScalingMemory
from tandem_operator.reconcile.service import Reconciler
from tandem_operator.reconcile.tokens import Tokens
from tandem_operator.render.context import Settings

KEY = ("team", "minimal")
NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def reconcile(api: FakeApi, store: Store) -> Reconciler:
    return reconciler(api, store, rollouts(store, unread))


def rollouts(store: Store, read: Callable[[Observed], Awaitable[Reading | None]]) -> Rollouts:
    return Rollouts(store=store, read=read, monotonic=lambda: 0.0, wake=lambda _key: None)


def reconciler(api: FakeApi, store: Store, followed: Rollouts, settings: Settings = specs.SETTINGS) -> Reconciler:
    """Return passes of one operator of given settings, with one place for newer routers."""
    writer = Writer(api, store)
    routers = RouterRollouts(store=store, writer=writer, places=1, look_again=lambda _key: None)
    routers.begin()
    return Reconciler(
        store=store,
        writer=writer,
        announcer=Announcer(api, instance="operator-0", now=lambda: NOW, new_id=lambda: "id"),
        memory=ScalingMemory(),
        settings=settings,
        policy=ScalingPolicy(),
        tokens=Tokens(api, b"k" * 32),
        rollouts=followed,
        routers=routers,
        now=lambda: NOW,
        kubelet_note=silent,
    )


async def silent(_pod: Observed, _reason: str) -> str:
    """Say nothing of a pod."""
    return ""


async def unread(_service: Observed) -> Reading | None:
    """Find no router."""
    return None


def given(api: FakeApi, store: Store, *, generation: int = 1, **spec: Any) -> None:
    """Make the service known, as a user wrote it."""
    tree = sample("minimal", **spec)
    live = api.objects.get((kinds.INFERENCE_SERVICE, "minimal"), {"metadata": {"managedFields": []}})
    version = int(live["metadata"].get("resourceVersion", "0")) + 1
    identity = {"namespace": "team", "name": "minimal", "uid": "uid-service", "generation": generation}
    metadata = live["metadata"] | identity | {"resourceVersion": str(version)}
    api.objects[kinds.INFERENCE_SERVICE, "minimal"] = live | tree | {"metadata": metadata}
    store.put(kinds.INFERENCE_SERVICE, api.objects[kinds.INFERENCE_SERVICE, "minimal"])


def condition(api: FakeApi, kind: str) -> dict[str, Any]:
    status = api.objects[kinds.INFERENCE_SERVICE, "minimal"]["status"]
    return next(each for each in status["conditions"] if each["type"] == kind)


async def test_a_second_pass_writes_nothing(api: FakeApi, store: Store, reconcile: Reconciler) -> None:
    given(api, store)
    assert await reconcile(KEY) is None
    assert {kind for kind, _ in api.objects} == {kinds.INFERENCE_SERVICE, kinds.SECRET, *kinds.CHILDREN}
    api.writes.clear()
    assert await reconcile(KEY) is None
    assert api.writes == []


async def test_a_service_that_is_not_known_or_goes_away_is_left_alone(
    api: FakeApi, store: Store, reconcile: Reconciler
) -> None:
    assert await reconcile(KEY) is None
    given(api, store)
    raw = api.objects[kinds.INFERENCE_SERVICE, "minimal"]
    raw["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "99"}
    store.put(kinds.INFERENCE_SERVICE, raw)
    assert await reconcile(KEY) is None
    assert api.writes == []


async def test_a_spec_that_is_not_accepted_changes_no_child(api: FakeApi, store: Store, reconcile: Reconciler) -> None:
    given(api, store)
    await reconcile(KEY)
    api.writes.clear()
    given(api, store, generation=2, decode={"engine": {"args": ["--port", "1"]}})
    await reconcile(KEY)
    assert [what for what in api.writes if "events" not in what] == [
        "patch serving.tandem.dev/inferenceservices/status team/minimal"
    ]
    assert condition(api, "Accepted")["status"] == "False"
    assert condition(api, "PrefillAvailable")["type"] == "PrefillAvailable"


async def test_a_spec_of_another_version_is_not_accepted_and_named(api: FakeApi, store: Store, reconcile: Reconciler) -> None:
    given(api, store, fromTheFuture=1)
    await reconcile(KEY)
    assert "spec.fromTheFuture" in condition(api, "Accepted")["message"]


async def test_a_refused_child_is_said_and_tried_again_and_the_others_are_made(
    api: FakeApi, store: Store, reconcile: Reconciler
) -> None:
    given(api, store)
    api.refused[kinds.POD_DISRUPTION_BUDGET, "minimal-router"] = errors.ForbiddenError("exceeded quota")
    assert await reconcile(KEY) == 60.0
    assert "exceeded quota" in condition(api, "Degraded")["message"]
    assert (kinds.DEPLOYMENT, "minimal-router") in api.objects
    del api.refused[kinds.POD_DISRUPTION_BUDGET, "minimal-router"]
    assert await reconcile(KEY) is None
    assert condition(api, "Degraded")["status"] == "False"


async def test_without_a_place_for_a_newer_router_it_stays_and_everything_else_is_applied(
    api: FakeApi, store: Store, reconcile: Reconciler
) -> None:
    given(api, store)
    await reconcile(KEY)
    for live in [live for (kind, _), live in api.objects.items() if kind == kinds.DEPLOYMENT]:
        live["status"] = {"observedGeneration": 1}
        api.put(kinds.DEPLOYMENT, live)
        store.put(kinds.DEPLOYMENT, live)
    before = copy.deepcopy(api.objects[kinds.DEPLOYMENT, "minimal-router"])
    store.put(kinds.INFERENCE_SERVICE, service("other"))
    rolling = child("Deployment", "other-router", service="other", owner="uid-other")
    store.put(kinds.DEPLOYMENT, rolling | {"spec": {"replicas": 2}})
    newer = reconciler(api, store, rollouts(store, unread), replace(specs.SETTINGS, workers_image="newer", network=None))
    api.writes.clear()
    await newer(KEY)
    assert api.objects[kinds.DEPLOYMENT, "minimal-router"] == before
    assert not [name for kind, name in api.objects if kind == kinds.NETWORK_POLICY]
    assert condition(api, "Progressing")["reason"] == "WaitingForTurn"
    api.writes.clear()
    await newer(KEY)
    assert api.writes == []


async def test_an_api_server_that_is_busy_stops_the_pass(api: FakeApi, store: Store, reconcile: Reconciler) -> None:
    given(api, store)
    api.refused[kinds.DEPLOYMENT, "minimal-router"] = errors.TooManyRequestsError("busy", retry_after=3.0)
    with pytest.raises(errors.TooManyRequestsError):
        await reconcile(KEY)


async def test_a_pool_that_belongs_to_someone_else_never_scales_our_workers(
    api: FakeApi, store: Store, reconcile: Reconciler
) -> None:
    api.objects[kinds.WORKER_POOL, "minimal-prefill"] = {
        "metadata": {"namespace": "team", "name": "minimal-prefill", "uid": "foreign", "resourceVersion": "1"},
        "spec": {"service": "other", "role": "prefill", "replicas": 9},
    }
    given(api, store)
    assert await reconcile(KEY) == 60.0
    made = [name for kind, name in api.objects if kind == kinds.DEPLOYMENT]
    assert not any("prefill" in name for name in made)
    assert any("decode" in name for name in made)


async def test_a_pool_is_born_with_the_start_value_and_its_count_belongs_to_the_scaler(
    api: FakeApi, store: Store, reconcile: Reconciler
) -> None:
    given(api, store, prefill={"replicas": 3})
    await reconcile(KEY)
    pool = api.objects[kinds.WORKER_POOL, "minimal-prefill"]
    assert pool["spec"]["replicas"] == 3
    owners = {
        each["manager"] for each in pool["metadata"]["managedFields"] if "f:replicas" in each["fieldsV1"].get("f:spec", {})
    }
    assert owners == {"tandem-scaler"}
    (worker,) = (tree for (kind, name), tree in api.objects.items() if kind == kinds.DEPLOYMENT and "prefill" in name)
    assert worker["spec"]["replicas"] == 3


async def test_a_revision_that_cannot_be_read_is_said(api: FakeApi, store: Store, reconcile: Reconciler) -> None:
    given(api, store)
    await reconcile(KEY)
    (revision,) = (found for found in store.children(KEY, kinds.CONTROLLER_REVISION) if "prefill" in found.name)
    raw = api.objects[kinds.CONTROLLER_REVISION, revision.name]
    raw["data"] = {"format": "of another time"}
    raw["metadata"]["resourceVersion"] = "999"
    store.put(kinds.CONTROLLER_REVISION, raw)
    api.writes.clear()
    assert await reconcile(KEY) == 60.0
    assert revision.name in condition(api, "Degraded")["message"]


async def test_a_service_that_is_deleted_during_a_pass_gets_no_further_child(
    api: FakeApi, store: Store, reconcile: Reconciler, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(api, store)
    answered = api.call

    async def call(asked: Call, **rest: Any) -> Any:
        if asked.verb == "patch" and asked.kind == kinds.SERVICE_ACCOUNT:
            store.remove(kinds.INFERENCE_SERVICE, *KEY, "uid-service")
        return await answered(asked, **rest)

    monkeypatch.setattr(api, "call", call)
    await reconcile(KEY)
    made = {kind for kind, _ in api.objects}
    assert kinds.SERVICE_ACCOUNT in made
    assert kinds.DEPLOYMENT not in made


class Workers:
    """The decode workers of the service, each ready, as their only router sees them; those of some hashes fail everything."""

    def __init__(self, api: FakeApi, store: Store) -> None:
        self.api = api
        self.store = store
        self.failing: set[str] = set()
        self.counts: Counter[tuple[str, str]] = Counter()

    def asked_for(self) -> dict[str, int]:
        """Return the decode workers that are asked for, by role hash."""
        trees = (tree for (kind, _), tree in self.api.objects.items() if kind == kinds.DEPLOYMENT)
        found = {tree["metadata"]["labels"].get(labels.ROLE_HASH, ""): tree for tree in trees if _decodes(tree)}
        return {name: tree["spec"]["replicas"] for name, tree in found.items()}

    def start(self) -> None:
        """Have every worker that is asked for become ready."""
        for name, count in self.asked_for().items():
            for number in range(count):
                pod = f"{name}-{number}"
                metadata = {
                    "namespace": "team",
                    "name": pod,
                    "uid": pod,
                    "resourceVersion": "1",
                    "labels": {labels.SERVICE: "minimal", labels.ROLE: "decode", labels.ROLE_HASH: name},
                }
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                self.store.put(kinds.POD, {"metadata": metadata, "status": {"conditions": [ready]}})

    async def read(self, _service: Observed) -> Reading:
        """Say what came of 50 more requests on each."""
        pods = [pod for pod in self.store.children(KEY, kinds.POD) if pod.labels.get(labels.ROLE) == "decode"]
        for pod in pods:
            self.counts[pod.name, "failed" if pod.labels[labels.ROLE_HASH] in self.failing else "served"] += 50
        workers = tuple(
            WorkerLoad(
                pod=pod.name,
                address=pod.name,
                role=Role.DECODE,
                kv_group="g",
                ready=True,
                served=self.counts[pod.name, "served"],
                failed=self.counts[pod.name, "failed"],
            )
            for pod in pods
        )
        return Reading(time=0.0, routers=(RouterSignals(router="r", started=-100.0, now=0.0, workers=workers),))


def _decodes(tree: dict[str, Any]) -> bool:
    return bool(tree["metadata"]["labels"].get(labels.ROLE) == "decode")


async def test_new_workers_that_do_worse_replace_nobody_under_this_operator_and_the_next(api: FakeApi, store: Store) -> None:
    workers = Workers(api, store)
    followed = rollouts(store, workers.read)
    reconcile = reconciler(api, store, followed)
    given(api, store)
    await reconcile(KEY)
    (old,) = workers.asked_for()
    given(api, store, generation=2, decode={"engine": {"args": ["--seed=1"]}})
    await reconcile(KEY)
    (new,) = workers.asked_for().keys() - {old}
    assert workers.asked_for() == {old: 1, new: 1}
    workers.start()
    workers.failing.add(new)
    for _ in range(2):
        await followed.round()
    await reconcile(KEY)
    assert condition(api, "Progressing")["reason"] == condition(api, "Degraded")["reason"] == "NewWorkersWorse"
    workers.failing.clear()
    for operator in (followed, rollouts(store, workers.read)):
        await operator.round()
        await reconciler(api, store, operator)(KEY)
        await operator.round()
        await reconciler(api, store, operator)(KEY)
        assert workers.asked_for() == {old: 1, new: 1}
        assert condition(api, "Progressing")["reason"] == "NewWorkersWorse"


async def test_a_spec_that_asks_for_other_workers_ends_the_stop(api: FakeApi, store: Store) -> None:
    workers = Workers(api, store)
    followed = rollouts(store, workers.read)
    reconcile = reconciler(api, store, followed)
    given(api, store)
    await reconcile(KEY)
    (old,) = workers.asked_for()
    given(api, store, generation=2, decode={"engine": {"args": ["--seed=1"]}})
    await reconcile(KEY)
    workers.start()
    workers.failing |= workers.asked_for().keys() - {old}
    for _ in range(2):
        await followed.round()
    await reconcile(KEY)
    assert condition(api, "Degraded")["reason"] == "NewWorkersWorse"
    given(api, store, generation=3)
    await reconcile(KEY)
    assert workers.asked_for() == {old: 1}
    await reconcile(KEY)
    assert condition(api, "Degraded")["status"] == "False"
