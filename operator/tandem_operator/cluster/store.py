"""What is known of the cluster: every watched object as last seen, by service. No I/O.

Watch events, lists and answers to our own writes all arrive here, in any order; the resource version decides which is
newer, so a pass sees its own writes even before the watch tells of them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tandem_operator.cluster import kinds
from tandem_operator.cluster.kinds import Kind
from tandem_operator.cluster.observed import Observed, observe

__all__ = ["ServiceKey", "Store"]

ServiceKey = tuple[str, str]
"""Namespace and name of an InferenceService."""
_ObjectKey = tuple[str, str]


class Store:
    """Objects by kind and name, and by the service they belong to."""

    def __init__(self) -> None:
        """Know of nothing yet."""
        self._objects: dict[Kind, dict[_ObjectKey, Observed]] = {kind: {} for kind in kinds.WATCHED}
        self._children: dict[ServiceKey, dict[tuple[Kind, str], Observed]] = defaultdict(dict)

    def get(self, kind: Kind, namespace: str, name: str) -> Observed | None:
        """Return an object, or None if none of that name is known."""
        return self._objects[kind].get((namespace, name))

    def service(self, key: ServiceKey) -> Observed | None:
        """Return an InferenceService, or None."""
        return self.get(kinds.INFERENCE_SERVICE, *key)

    def services(self) -> Iterator[Observed]:
        """Return all InferenceServices."""
        return iter(tuple(self._objects[kinds.INFERENCE_SERVICE].values()))

    def children(self, key: ServiceKey, kind: Kind) -> list[Observed]:
        """Return the objects of one kind that carry the label of a service, oldest first."""
        found = [child for (of_kind, _), child in self._children.get(key, {}).items() if of_kind == kind]
        return sorted(found, key=lambda child: (child.created, child.name))

    def put(self, kind: Kind, raw: Mapping[str, Any]) -> set[ServiceKey]:
        """Take an object as seen now; return the services that it concerns, empty if nothing is new."""
        metadata = raw["metadata"]
        known = self.get(kind, metadata.get("namespace", ""), metadata["name"])
        if known is not None and known.version >= int(metadata["resourceVersion"]):
            return set()
        seen = observe(kind, raw)
        concerned = self._forget(known) | {(seen.namespace, seen.service)}
        self._objects[kind][seen.namespace, seen.name] = seen
        if seen.service and kind != kinds.INFERENCE_SERVICE:
            self._children[seen.namespace, seen.service][kind, seen.name] = seen
        return {key for key in concerned if key[1]}

    def remove(self, kind: Kind, namespace: str, name: str, uid: str) -> set[ServiceKey]:
        """Take that an object is gone; return the services that this concerns."""
        known = self.get(kind, namespace, name)
        return self._forget(known) if known is not None and known.uid == uid else set()

    def uids(self, kind: Kind, namespace: str | None) -> dict[tuple[str, str], str]:
        """Return the uids of what is known of one kind, in one or in all namespaces, by namespace and name."""
        return {key: known.uid for key, known in self._objects[kind].items() if namespace in {None, known.namespace}}

    def _forget(self, known: Observed | None) -> set[ServiceKey]:
        if known is None:
            return set()
        self._objects[known.kind].pop((known.namespace, known.name), None)
        key = (known.namespace, known.service)
        children = self._children.get(key, {})
        children.pop((known.kind, known.name), None)
        if not children:
            self._children.pop(key, None)
        return {key} if known.service else set()
