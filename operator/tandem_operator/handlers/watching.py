"""kopf's watches: each event goes into the store, and the service that it concerns into the queue. Nothing else.

Handlers keep no state in the cluster: no annotation, no finalizer, no progress.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import kopf

from tandem_operator.cluster.access import Connection
from tandem_operator.cluster.kinds import WATCHED, Kind
from tandem_operator.cluster.listing import selector
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.handlers.heartbeats import Heartbeats
from tandem_operator.handlers.stateless import NoDiffBase, NoProgress

__all__ = ["Endings", "WatchLostError", "end_watches", "watch_cluster"]

_SERVER_TIMEOUT = 240
_CLIENT_TIMEOUT = 300
_PAGE = 100
"""Objects of a list that are held at once, of each kind: all kinds are listed at the same time."""
_RETRIES = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0)
"""Seconds between attempts to list or watch a kind."""
_ENDING = 2.0
_AGAIN = 0.5
_ATTEMPTS = 6


@dataclass(frozen=True)
class Endings:
    """The end of the watches."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a signal: whatever kopf does from now on, nothing was lost."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when they have ended, before kopf waits for every task that was made meanwhile, also for ours."""


class WatchLostError(Exception):
    """A watch ended for good; the process must end too."""


async def watch_cluster(
    *,
    store: Store,
    wake: Callable[[ServiceKey], None],
    login: Callable[[], Awaitable[Connection]],
    heartbeats: Heartbeats,
    namespaces: Sequence[str],
    silence: float,
    endings: Endings,
) -> None:
    """Feed events into `store` and call `wake` for each service that they concern, until SIGTERM or a watch that is lost.

    kopf takes SIGTERM and SIGINT over and tells nobody that one came, so they are taken back: they set `endings.asked`.

    Args:
        store: takes what is seen.
        wake: called with each service for which something is new.
        login: coroutine function that returns a `Connection`; called again when the API server refuses the old one.
        heartbeats: takes when each watch was answered.
        namespaces: those that are watched; empty for all.
        silence: seconds without an event or a bookmark after which a watch is made anew from where it was.
        endings: how the end is asked for and told.

    Raises:
        Exception: a watch ended for good, such as after its permission was taken away; the process must end too.
    """
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(_login_handler(login, heartbeats))
    kopf.on.cleanup(registry=registry)(_cleanup_handler(endings))
    for kind in WATCHED:
        kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"watch-{kind.plural}")(
            _event_handler(kind, store, wake)
        )
    before = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry,
        # Without peering nobody reads it; left out, kopf asks for the user's name, which a container's user does not have.
        identity="tandem-operator",  # type: ignore[arg-type]  # a string; its own type is not public
        settings=_settings(silence),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=tuple(namespaces),
        stop_flag=endings.asked,
    )
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, endings.asked.set)
    await kopf.run_tasks(tasks, ignored=before)


async def end_watches(watches: "asyncio.Task[None]", *, spared: "set[asyncio.Task[Any]]") -> None:
    """Wait until the task of `watch_cluster` has ended, and end what kopf leaves behind: all tasks but those `spared`.

    When one watch is lost, kopf closes the others' connection. A watcher that is cancelled while it waits for another one goes
    on as if it had not been, and kopf waits for it until it kills the process. Cancelled again, it ends.
    """
    await asyncio.wait([watches], timeout=_ENDING)
    for _ in range(_ATTEMPTS):
        left = asyncio.all_tasks() - spared
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=_AGAIN)


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


def _cleanup_handler(endings: Endings) -> Any:
    async def handle(**_: Any) -> None:
        endings.reached.set()

    return handle


def _login_handler(login: Callable[[], Awaitable[Connection]], heartbeats: Heartbeats) -> Any:
    used: dict[Connection, kopf.AiohttpSession] = {}

    async def handle(**_: Any) -> kopf.AiohttpSession:
        connection = await login()
        # The same object for the same login: that is how kopf knows that what was refused is no better now.
        if connection not in used:
            used[connection] = _session(connection, heartbeats)
        return used[connection]

    return handle


def _session(connection: Connection, heartbeats: Heartbeats) -> kopf.AiohttpSession:
    scheme, _separator, token = connection.authorization.rpartition(" ")
    info = kopf.ConnectionInfo(
        server=connection.server,
        ca_path=connection.authority_path,
        insecure=not connection.verified,
        scheme=scheme.capitalize() or None,
        token=token or None,
        certificate_path=connection.certificate_path,
        private_key_path=connection.key_path,
    )
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers=info.as_http_headers(),
        trace_configs=[heartbeats.trace()],
    )
    return kopf.AiohttpSession(server=connection.server, aiohttp_session=session)


def _settings(silence: float) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # namespaces and kinds are fixed at the start: no permission to list them is needed
    settings.posting.enabled = False  # Events are created on transitions only, by ourselves
    settings.peering.standalone = True  # kopf's peering is not leader election
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.watching.server_timeout = _SERVER_TIMEOUT  # a watch is renewed before a balancer on the way forgets it
    settings.watching.client_timeout = _CLIENT_TIMEOUT  # a connection that hangs ends shortly after the server would end it
    settings.watching.inactivity_timeout = silence
    settings.watching.chunk_size = _PAGE
    settings.queueing.idle_timeout = 0.5  # an object's task need not outlive its events for long
    settings.process.ultimate_exiting_timeout = 20.0  # shorter than a pod's grace period
    settings.networking.connect_timeout = 5.0
    settings.networking.error_backoffs = _RETRIES  # after these a watch is lost, which ends the process
    for kind in WATCHED:
        if selector(kind):
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = selector(kind)
    return settings
