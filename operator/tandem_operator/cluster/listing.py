"""Complete lists of every watched kind: the start of what is known, and the correction of what a watch missed."""

from collections.abc import Sequence

from tandem_api import labels
from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.kinds import Kind
from tandem_operator.cluster.store import ServiceKey, Store

__all__ = ["list_all", "selector"]


def selector(kind: Kind) -> str:
    """Return the label selector with which a kind is listed and watched; empty for services themselves."""
    return "" if kind == kinds.INFERENCE_SERVICE else labels.SERVICE


async def list_all(access: Access, store: Store, namespaces: Sequence[str]) -> set[ServiceKey]:
    """List every watched kind into `store`; return the services for which that told something new.

    Args:
        access: the way to the API server.
        store: takes what is listed.
        namespaces: those that are watched; empty for all.

    Raises:
        ApiError: see `errors`; what was listed before stays in the store.
    """
    concerned: set[ServiceKey] = set()
    for namespace in namespaces or (None,):
        for kind in kinds.WATCHED:
            concerned |= await _list(access, store, kind, namespace)
    return concerned


async def _list(access: Access, store: Store, kind: Kind, namespace: str | None) -> set[ServiceKey]:
    """List one kind, page by page: of a thousand services one page is held at a time.

    What is made while the pages come may be in none of them, so only what was known before can turn out to be gone.
    """
    concerned: set[ServiceKey] = set()
    gone = store.uids(kind, namespace)
    async for page in access.pages(kind, namespace, selector(kind)):
        for raw in page:
            gone.pop((raw["metadata"].get("namespace", ""), raw["metadata"]["name"]), None)
            concerned |= store.put(kind, raw)
    return concerned.union(*(store.remove(kind, *key, uid) for key, uid in gone.items()))
