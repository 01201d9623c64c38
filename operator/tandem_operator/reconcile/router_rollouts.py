"""Turns of the services whose routers an upgrade of the operator changes: few are rolled out at a time.

What a user changes never waits here, nor does a service without a router. Settings do not change while a process runs, so a
router that once had this operator's template never waits again: what differs since is a spec or somebody's hand. Who takes a
place is found again in the store, so an operator that was restarted amid an upgrade counts right; the line forms again with
the first passes.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tandem_api import names
from tandem_operator.cluster import kinds, managers
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.owned import digest_of_template
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.observation import DeploymentState
from tandem_operator.policies.turns import next_in_line, taken
from tandem_operator.reconcile.observing import deployment_state

__all__ = ["RouterRollouts"]

_NAMED = 10
"""Most services named in one line of the log."""
_logger = logging.getLogger(__name__)


class RouterRollouts:
    """The line of services that wait, and those that take a place."""

    def __init__(self, *, store: Store, writer: Writer, places: int, look_again: Callable[[ServiceKey], None]) -> None:
        """Let `places` services roll out at once; `look_again` asks for a pass over one whose turn has come."""
        self._store = store
        self._writer = writer
        self._places = places
        self._look_again = look_again
        self._line: dict[ServiceKey, None] = {}
        self._held: set[ServiceKey] = set()
        self._incomplete: set[ServiceKey] = set()
        self._begun: set[ServiceKey] = set()
        self._current: set[ServiceKey] = set()
        self._late: list[ServiceKey] = []

    @property
    def waiting(self) -> int:
        """How many services wait."""
        return len(self._line)

    def waits(self, key: ServiceKey) -> bool:
        """Return whether a service waits for its turn."""
        return key in self._line

    def begin(self) -> None:
        """Find who takes a place, before the first passes."""
        for service in self._store.services():
            self._note((service.namespace, service.name))

    @contextmanager
    def turn(self, service: Observed) -> Iterator[None]:
        """Enclose the part of a pass that applies: one that does not come to ask `hold` leaves the line.

        A part that failed may have begun a rollout all the same, so the service keeps its place until its next pass.
        """
        key = (service.namespace, service.name)
        self._begun.discard(key)
        self._held.discard(key)
        try:
            yield
            self._begun.discard(key)
        finally:
            if key not in self._held:
                self._line.pop(key, None)
            self._note(key)
            self._call()

    def hold(self, service: Observed, tree: dict[str, Any]) -> bool:
        """Return whether a child is to be left as it is: a router that only the operator changes, before its turn.

        Otherwise it is to be applied within this turn.
        """
        if not self._is_upgrade(service, tree):
            return False
        key = (service.namespace, service.name)
        new = key not in self._line
        self._line[key] = None
        if key in self._next():
            del self._line[key]
            self._begun.add(key)
            return False
        self._held.add(key)
        if new:
            rolling = self._names(self._taken())
            _logger.info("Newer router waits for its turn", extra={"namespace": key[0], "service": key[1], "rolling": rolling})
        return True

    def forget(self, key: ServiceKey) -> None:
        """Drop a service that goes or is gone."""
        for known in (self._incomplete, self._begun, self._held, self._current):
            known.discard(key)
        self._line.pop(key, None)
        self._call()

    def _is_upgrade(self, service: Observed, tree: dict[str, Any]) -> bool:
        key, name = (service.namespace, service.name), names.router(service.name)
        if (kinds.of(tree), tree["metadata"]["name"]) != (kinds.DEPLOYMENT, name):
            return False
        live = self._store.get(kinds.DEPLOYMENT, service.namespace, name)
        if key in self._current or live is None or live.owner != service.uid:
            return False
        if live.body.get("template") == digest_of_template(tree) or not self._writer.differs(tree, manager=managers.CHILDREN):
            self._current.add(key)
            return False
        return bool(service.body["status"].get("observedGeneration") == service.generation)

    def _note(self, key: ServiceKey) -> None:
        router = self._router(key)
        if router is None or router.complete:
            self._incomplete.discard(key)
        else:
            self._incomplete.add(key)

    def _router(self, key: ServiceKey) -> DeploymentState | None:
        service, found = self._store.service(key), self._store.get(kinds.DEPLOYMENT, key[0], names.router(key[1]))
        if service is None or found is None or found.owner != service.uid:
            return None
        return deployment_state(found)

    def _next(self) -> list[ServiceKey]:
        return next_in_line(line=tuple(self._line), incomplete=self._incomplete, begun=self._begun, places=self._places)

    def _taken(self) -> set[ServiceKey]:
        return taken(line=self._line, incomplete=self._incomplete, begun=self._begun)

    def _call(self) -> None:
        """Ask for passes over those whose turn has come, and say once of routers that failed that others wait for them."""
        if not self._line:
            self._late = []
            return
        for key in self._next():
            self._look_again(key)
        found = {key: self._router(key) for key in self._taken()}
        late = sorted(key for key, router in found.items() if router is not None and router.deadline_message)
        if late and late != self._late:
            _logger.warning(
                "Routers that were rolled out do not come up, and those of other services wait for them",
                extra={"failed": self._names(late), "waiting": len(self._line)},
            )
        self._late = late

    @staticmethod
    def _names(keys: Iterable[ServiceKey]) -> list[str]:
        return ["/".join(key) for key in sorted(keys)[:_NAMED]]
