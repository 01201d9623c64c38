"""The store: the newest view of each object wins, whatever the order in which views arrive."""

import pytest

from support.objects import child, service
from tandem_operator.cluster import kinds
from tandem_operator.cluster.store import Store

KEY = ("team", "chat")


@pytest.fixture
def store() -> Store:
    return Store()


def test_a_new_object_concerns_the_service_of_its_label(store: Store) -> None:
    assert store.put(kinds.DEPLOYMENT, child("Deployment", "d")) == {KEY}
    assert [found.name for found in store.children(KEY, kinds.DEPLOYMENT)] == ["d"]


def test_the_same_or_an_older_view_concerns_nobody(store: Store) -> None:
    store.put(kinds.DEPLOYMENT, child("Deployment", "d", version=10))
    assert store.put(kinds.DEPLOYMENT, child("Deployment", "d", version=10)) == set()
    assert store.put(kinds.DEPLOYMENT, child("Deployment", "d", version=9)) == set()
    found = store.get(kinds.DEPLOYMENT, "team", "d")
    assert found is not None
    assert found.version == 10


def test_a_relabelled_object_concerns_both_services(store: Store) -> None:
    store.put(kinds.SERVICE, child("Service", "s", version=1))
    assert store.put(kinds.SERVICE, child("Service", "s", version=2, service="other")) == {KEY, ("team", "other")}
    assert store.children(KEY, kinds.SERVICE) == []


def test_the_end_of_an_earlier_object_of_the_same_name_is_ignored(store: Store) -> None:
    store.put(kinds.SERVICE, child("Service", "s", version=5, uid="new"))
    assert store.remove(kinds.SERVICE, "team", "s", "old") == set()
    assert store.remove(kinds.SERVICE, "team", "s", "new") == {KEY}
    assert store.get(kinds.SERVICE, "team", "s") is None


def test_services_are_found_by_name_and_are_no_children(store: Store) -> None:
    assert store.put(kinds.INFERENCE_SERVICE, service()) == {KEY}
    assert [found.name for found in store.services()] == ["chat"]
    assert store.service(KEY) is not None
    assert store.children(KEY, kinds.INFERENCE_SERVICE) == []


def test_children_come_oldest_first(store: Store) -> None:
    for name, created in (("b", "2026-01-02T00:00:00Z"), ("a", "2026-01-03T00:00:00Z"), ("c", "2026-01-01T00:00:00Z")):
        raw = child("Deployment", name)
        raw["metadata"]["creationTimestamp"] = created
        store.put(kinds.DEPLOYMENT, raw)
    assert [found.name for found in store.children(KEY, kinds.DEPLOYMENT)] == ["c", "b", "a"]


def test_a_pod_keeps_only_what_its_reasons_need(store: Store) -> None:
    raw = child("Pod", "p") | {
        "spec": {"containers": [{"name": "engine", "env": [{"name": "X", "value": "secret"}]}]},
        "status": {
            "phase": "Pending",
            "hostIP": "10.0.0.1",
            "containerStatuses": [{"name": "engine", "image": "big", "state": {"waiting": {"reason": "ErrImagePull"}}}],
        },
    }
    store.put(kinds.POD, raw)
    (found,) = store.children(KEY, kinds.POD)
    assert found.body == {
        "status": {
            "phase": "Pending",
            "initContainerStatuses": [],
            "containerStatuses": [{"name": "engine", "state": {"waiting": {"reason": "ErrImagePull"}}}],
        }
    }
