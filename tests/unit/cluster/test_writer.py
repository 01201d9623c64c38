"""Writes: only what differs is written, only what is ours is touched."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration

from support.api_stub import Answer, ApiStub, stub
from tandem_api import labels
from tandem_operator.cluster import errors, kinds, managers
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.store import Store
from tandem_operator.cluster.writer import Writer

PATH = "/api/v1/namespaces/team/services/chat-router"
OWNER = "uid-of-chat"
TREE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"namespace": "team", "name": "chat-router", "labels": {labels.SERVICE: "chat"}},
    "spec": {"type": "ClusterIP"},
}

TAKEN = Answer({"kind": "Status", "message": "the object has been modified"}, status=409)


def stored(*, version: int = 1, owner: str = OWNER, kind: str = "ClusterIP", owned: bool = True) -> dict[str, Any]:
    """Return TREE as the API server would."""
    live = copy.deepcopy(TREE)
    fields = {"f:metadata": {"f:labels": {f"f:{labels.SERVICE}": {}}}, "f:spec": {"f:type": {}}}
    live["spec"]["type"] = kind
    live["metadata"] |= {
        "uid": "u",
        "resourceVersion": str(version),
        "ownerReferences": [{"uid": owner, "controller": True}],
        "managedFields": [{"manager": managers.CHILDREN, "operation": "Apply", "fieldsV1": fields}] if owned else [],
    }
    return live


@pytest.fixture
async def api() -> AsyncIterator[ApiStub]:
    async with stub() as found:
        yield found


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def writer(api: ApiStub, store: Store) -> AsyncIterator[Writer]:
    access = Access(Configuration(host=api.url), observe=lambda _call, _code: None, may_write=lambda: True)
    yield Writer(access, store)
    await access.close()


def methods(api: ApiStub) -> list[str]:
    return [asked.method for asked in api.asked]


async def test_what_is_as_wanted_is_not_written(api: ApiStub, store: Store, writer: Writer) -> None:
    store.put(kinds.SERVICE, stored())
    assert await writer.apply(TREE, owner=OWNER) is False
    assert methods(api) == []


async def test_a_hand_edit_is_undone_and_then_left_alone(api: ApiStub, store: Store, writer: Writer) -> None:
    store.put(kinds.SERVICE, stored(kind="NodePort"))
    api.answers[f"PATCH {PATH}"] = [Answer(stored(version=2))]
    assert await writer.apply(TREE, owner=OWNER) is True
    assert await writer.apply(TREE, owner=OWNER) is False
    assert methods(api) == ["PATCH"]
    assert api.asked[0].query == {"fieldManager": "tandem", "force": "true"}


async def test_a_new_child_is_made_by_one_apply_that_no_existing_object_takes(
    api: ApiStub, store: Store, writer: Writer
) -> None:
    api.answers[f"PATCH {PATH}"] = [Answer(stored(version=7))]
    assert await writer.apply(TREE, owner=OWNER) is True
    assert methods(api) == ["PATCH"]
    assert api.asked[0].body["metadata"]["resourceVersion"] == "1"
    assert store.get(kinds.SERVICE, "team", "chat-router") is not None
    assert await writer.apply(TREE, owner=OWNER) is False


async def test_an_object_of_someone_else_is_not_touched(api: ApiStub, writer: Writer) -> None:
    api.answers[f"PATCH {PATH}"] = [TAKEN]
    api.answers[f"GET {PATH}"] = [Answer(stored(owner="another"))]
    with pytest.raises(errors.NameTakenError, match="Service 'chat-router' exists"):
        await writer.apply(TREE, owner=OWNER)
    assert methods(api) == ["PATCH", "GET"]


async def test_a_child_that_lost_its_labels_is_found_and_gets_them_back(api: ApiStub, writer: Writer) -> None:
    bare = stored()
    bare["metadata"]["labels"] = {}
    api.answers[f"PATCH {PATH}"] = [TAKEN, Answer(stored(version=2))]
    api.answers[f"GET {PATH}"] = [Answer(bare)]
    assert await writer.apply(TREE, owner=OWNER) is True
    assert methods(api) == ["PATCH", "GET", "PATCH"]


async def test_what_the_server_stores_in_another_form_is_written_once(api: ApiStub, store: Store, writer: Writer) -> None:
    store.put(kinds.SERVICE, stored(owned=False))
    api.answers[f"PATCH {PATH}"] = [Answer(stored(version=2, kind="Rewritten"))]
    assert await writer.apply(TREE, owner=OWNER) is True
    assert await writer.apply(TREE, owner=OWNER) is False
    store.put(kinds.SERVICE, stored(version=3, kind="EditedLater"))
    assert await writer.apply(TREE, owner=OWNER) is True


async def test_exactly_the_seen_object_is_deleted(api: ApiStub, store: Store, writer: Writer) -> None:
    store.put(kinds.SERVICE, stored())
    found = store.get(kinds.SERVICE, "team", "chat-router")
    assert found is not None
    api.answers[f"DELETE {PATH}"] = [Answer({"kind": "Status"}, status=409)]
    await writer.delete(found)
    assert api.asked[0].body["preconditions"] == {"uid": "u"}
    assert store.get(kinds.SERVICE, "team", "chat-router") is None


async def test_a_refusal_is_passed_on(api: ApiStub, store: Store, writer: Writer) -> None:
    store.put(kinds.SERVICE, stored(kind="NodePort"))
    api.answers[f"PATCH {PATH}"] = [Answer({"kind": "Status", "message": "spec.type: no"}, status=422)]
    with pytest.raises(errors.InvalidError, match=r"spec\.type: no"):
        await writer.apply(TREE, owner=OWNER)
