"""kopf's watches: each event goes into the store, and the service that it concerns into the queue. Nothing else.

Handlers keep no state in the cluster: no annotation, no finalizer, no progress.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import kopf

from tandem_operator.cluster.access import Connection
from tandem_operator.cluster.kinds import WATCHED, Kind
from tandem_operator.cluster.listing import selector
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.handlers.stateless import NoDiffBase, NoProgress

__all__ = ["watch_cluster"]

_SERVER_TIMEOUT = 240
_CLIENT_TIMEOUT = 300
_PAGE = 100
"""Objects of a list that are held at once, of each kind: all kinds are listed at the same time."""
_RETRIES = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0)
"""Seconds between attempts to list or watch a kind."""


async def watch_cluster(
    *,
    store: Store,
    wake: Callable[[ServiceKey], None],
    login: Callable[[], Awaitable[Connection]],
    namespaces: Sequence[str],
    ready: asyncio.Event,
) -> None:
    """Feed events into `store` and call `wake` for each service that they concern, until SIGTERM or a watch that is lost.

    Args:
        store: takes what is seen.
        wake: called with each service for which something is new.
        login: coroutine function that returns a `Connection`; called again when the API server refuses the old one.
        namespaces: those that are watched; empty for all.
        ready: event that is set when all watches start.

    Raises:
        Exception: a watch ended for good, such as after its permission was taken away; the process must end too.
    """
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(_login_handler(login))
    for kind in WATCHED:
        kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"watch-{kind.plural}")(
            _event_handler(kind, store, wake)
        )
    await kopf.operator(
        registry=registry,
        # Without peering nobody reads it; left out, kopf asks for the user's name, which a container's user does not have.
        identity="tandem-operator",  # type: ignore[arg-type]  # a string; its own type is not public
        settings=_settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=tuple(namespaces),
        ready_flag=ready,
    )


def _event_handler(kind: Kind, store: Store, wake: Callable[[ServiceKey], None]) -> Any:
    async def handle(event: Any, **_: Any) -> None:
        raw = event["object"]
        if event["type"] == "DELETED":
            metadata = raw["metadata"]
            concerned = store.remove(kind, metadata.get("namespace", ""), metadata["name"], metadata["uid"])
        else:
            concerned = store.put(kind, raw)
        for key in concerned:
            wake(key)

    return handle


def _login_handler(login: Callable[[], Awaitable[Connection]]) -> Any:
    async def handle(**_: Any) -> kopf.ConnectionInfo:
        connection = await login()
        scheme, _separator, token = connection.authorization.rpartition(" ")
        return kopf.ConnectionInfo(
            server=connection.server,
            ca_path=connection.authority_path,
            insecure=not connection.verified,
            scheme=scheme.capitalize() or None,
            token=token or None,
            certificate_path=connection.certificate_path,
            private_key_path=connection.key_path,
        )

    return handle


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # namespaces and kinds are fixed at the start: no permission to list them is needed
    settings.posting.enabled = False  # Events are created on transitions only, by ourselves
    settings.peering.standalone = True  # kopf's peering is not leader election
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.watching.server_timeout = _SERVER_TIMEOUT  # a watch is renewed before a balancer on the way forgets it
    settings.watching.client_timeout = _CLIENT_TIMEOUT  # a connection that hangs ends shortly after the server would end it
    settings.watching.chunk_size = _PAGE
    settings.queueing.idle_timeout = 0.5  # an object's task need not outlive its events for long
    settings.process.ultimate_exiting_timeout = 20.0  # shorter than a pod's grace period
    settings.networking.connect_timeout = 5.0
    settings.networking.error_backoffs = _RETRIES  # after these a watch is lost, which ends the process
    for kind in WATCHED:
        if selector(kind):
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = selector(kind)
    return settings
