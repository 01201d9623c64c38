"""Complete lists: they correct what is known, and never forget what was made meanwhile."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from typing_extensions import override

from support.fake_api import FakeApi
from support.objects import child
from tandem_operator.cluster import kinds
from tandem_operator.cluster.kinds import Kind
from tandem_operator.cluster.listing import list_all
from tandem_operator.cluster.store import Store

KEY = ("team", "chat")


class Lists(FakeApi):
    """Answers lists of Services, page by page; `store` learns of `made` after the first page."""

    def __init__(self, store: Store, *pages: list[dict[str, Any]]) -> None:
        super().__init__()
        self.made: dict[str, Any] | None = None
        self._store = store
        self._pages = pages

    @override
    async def pages(self, kind: Kind, namespace: str | None, selector: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield what the test prepared."""
        for page in self._pages if kind == kinds.SERVICE else ():
            yield page
            if self.made is not None:
                self._store.put(kind, self.made)


@pytest.fixture
def store() -> Store:
    store = Store()
    store.put(kinds.SERVICE, child("Service", "stays", version=1))
    store.put(kinds.SERVICE, child("Service", "goes", version=2, service="other"))
    return store


def names(store: Store) -> list[str]:
    return sorted(found.name for found in store.children(KEY, kinds.SERVICE))


async def test_a_complete_list_drops_what_it_does_not_have(store: Store) -> None:
    api = Lists(store, [child("Service", "stays", version=1)], [child("Service", "new", version=3)])
    assert await list_all(api, store, ()) == {KEY, ("team", "other")}
    assert names(store) == ["new", "stays"]
    assert store.get(kinds.SERVICE, "team", "goes") is None


async def test_a_list_of_one_namespace_says_nothing_about_another(store: Store) -> None:
    assert await list_all(Lists(store), store, ["elsewhere"]) == set()
    assert names(store) == ["stays"]


async def test_what_is_made_while_pages_come_is_not_forgotten(store: Store) -> None:
    api = Lists(store, [child("Service", "stays", version=1), child("Service", "goes", version=2, service="other")])
    api.made = child("Service", "made", version=9)
    await list_all(api, store, ())
    assert names(store) == ["made", "stays"]


async def test_what_was_made_anew_while_pages_come_is_not_forgotten(store: Store) -> None:
    api = Lists(store, [child("Service", "stays", version=1)])
    api.made = child("Service", "goes", version=9, uid="anew")
    await list_all(api, store, ())
    assert names(store) == ["goes", "stays"]
