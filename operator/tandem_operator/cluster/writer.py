"""Writes objects by server-side apply, and only when what we own of them is not what we want.

An apply that changes nothing is still a call, an admission and an audit entry; so the digest of what we own (see `owned`)
is compared first. If the API server stores something in another form than we wrote it, the pair of digests is remembered,
and that object is not written again until either side changes.
"""

import contextlib
from typing import Any

from tandem_operator.cluster import errors, managers
from tandem_operator.cluster.access import APPLY, Access, Call
from tandem_operator.cluster.kinds import Kind, of
from tandem_operator.cluster.observed import Observed, observe
from tandem_operator.cluster.owned import digest_of
from tandem_operator.cluster.store import Store

__all__ = ["Writer"]

_MOST_SETTLED = 10_000
_OF_NO_OBJECT = "1"
"""A resource version that no object has, because the store's counter starts there. An apply with a version that is not the
object's is a conflict; where there is no object, there is nothing to compare with, and it is made."""


class Writer:
    """Applies and deletes objects, and tells the store what the API server answered."""

    def __init__(self, access: Access, store: Store) -> None:
        """Write through `access`; compare with, and keep current, `store`."""
        self._access = access
        self._store = store
        self._settled: dict[tuple[str, str], tuple[str, str]] = {}

    async def apply(self, tree: dict[str, Any], *, owner: str) -> bool:
        """Apply a child of the InferenceService with uid `owner`; return whether anything had to be written.

        Raises:
            NameTakenError: an object of that name exists and is not controlled by `owner`.
            ApiError: see `errors`.
        """
        kind, metadata = of(tree), tree["metadata"]
        live = self._store.get(kind, metadata["namespace"], metadata["name"])
        if live is None and await self.make(tree, manager=managers.CHILDREN):
            return True
        live = live or await self._find(kind, metadata["namespace"], metadata["name"])
        if live.owner != owner:
            raise errors.NameTakenError(
                f"{kind.kind} '{live.name}' exists and is not this service's: rename the service, or remove that object"
            )
        return await self.apply_as(tree, manager=managers.CHILDREN)

    async def make(self, tree: dict[str, Any], *, manager: str) -> bool:
        """Apply `tree` as a new object; return False, with nothing written, if there is an object of its name.

        Raises:
            ApiError: see `errors`.
        """
        new = tree | {"metadata": tree["metadata"] | {"resourceVersion": _OF_NO_OBJECT}}
        try:
            await self._patch(new, digest_of(tree), manager=manager, subresource=None)
        except errors.ConflictError:
            return False
        return True

    async def apply_as(self, tree: dict[str, Any], *, manager: str, subresource: str | None = None) -> bool:
        """Apply `tree` as a field manager, taking over its fields from others; return whether it had to be written.

        Raises:
            ApiError: see `errors`.
        """
        wanted = digest_of(tree)
        if not self._differs(tree, wanted, manager):
            return False
        await self._patch(tree, wanted, manager=manager, subresource=subresource)
        return True

    def differs(self, tree: dict[str, Any], *, manager: str) -> bool:
        """Return whether applying `tree` as a field manager would be a write."""
        return self._differs(tree, digest_of(tree), manager)

    async def delete(self, target: Observed) -> None:
        """Delete exactly this object and what it owns; nothing happens if it is gone or was replaced meanwhile.

        Raises:
            ApiError: see `errors`.
        """
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": target.uid},
            "propagationPolicy": "Background",
        }
        with contextlib.suppress(errors.NotFoundError, errors.ConflictError):
            await self._access.call(Call("delete", target.kind, target.namespace, target.name), body=body)
        self._store.remove(target.kind, target.namespace, target.name, target.uid)

    async def _patch(self, tree: dict[str, Any], wanted: str, *, manager: str, subresource: str | None) -> None:
        """Apply a tree, of which `wanted` is the digest."""
        kind, metadata = of(tree), tree["metadata"]
        query = {"fieldManager": manager, "force": "true"}
        call = Call("patch", kind, metadata["namespace"], metadata["name"], subresource, query)
        self._store.put(kind, await self._access.call(call, body=tree, content_type=APPLY))
        self._remember(self._store.get(kind, metadata["namespace"], metadata["name"]), manager, wanted)

    async def _find(self, kind: Kind, namespace: str, name: str) -> Observed:
        """Return an object that is not known: one without our labels is not watched."""
        return observe(kind, await self._access.call(Call("get", kind, namespace, name)))

    def _differs(self, tree: dict[str, Any], wanted: str, manager: str) -> bool:
        live = self._store.get(of(tree), tree["metadata"]["namespace"], tree["metadata"]["name"])
        return live is None or not self._is_settled(live, manager, wanted)

    def _is_settled(self, live: Observed, manager: str, wanted: str) -> bool:
        owned = live.owned.get(manager, "")
        return owned == wanted or self._settled.get((live.uid, manager)) == (wanted, owned)

    def _remember(self, live: Observed | None, manager: str, wanted: str) -> None:
        if live is not None and live.owned.get(manager, "") != wanted:
            self._settled[live.uid, manager] = (wanted, live.owned.get(manager, ""))
            while len(self._settled) > _MOST_SETTLED:
                del self._settled[next(iter(self._settled))]
