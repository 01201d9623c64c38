"""Reads the routers of one service, for the scaler and for rollouts alike."""

from collections.abc import Callable

import aiohttp

from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.routers import RouterAddress, Unread, read_routers
from tandem_operator.cluster.store import Store
from tandem_operator.policies.scaling.signals import Reading
from tandem_operator.reconcile.observing import router_pods
from tandem_operator.reconcile.tokens import Tokens

__all__ = ["Readings"]


class Readings:
    """Asks routers what they measure and which workers they send requests to."""

    def __init__(self, *, store: Store, session: aiohttp.ClientSession, tokens: Tokens, monotonic: Callable[[], float]) -> None:
        """Read the routers of the services in `store`; `monotonic` stamps what was read."""
        self._store = store
        self._session = session
        self._tokens = tokens
        self._monotonic = monotonic

    async def read(self, service: Observed) -> Reading | None:
        """Return what the routers of a service say now; None while it has none that are ready."""
        pods = router_pods(self._store, (service.namespace, service.name))
        addresses = [RouterAddress(pod.name, pod.body["status"].get("podIP", "")) for pod in pods]
        if not addresses:
            return None
        answers = await read_routers(self._session, addresses, token=self._tokens.of(service))
        return Reading(
            time=self._monotonic(),
            routers=tuple(answer for answer in answers if not isinstance(answer, Unread)),
            unreadable=tuple(f"{answer.pod}: {answer.reason}" for answer in answers if isinstance(answer, Unread)),
        )
