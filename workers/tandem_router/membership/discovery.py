"""Finds workers: EndpointSlices in a cluster, a file outside one. Whatever was known last is kept while a source fails.

It reads EndpointSlices only, of this service only, with the mounted ServiceAccount, whose token is read anew for each
call because the kubelet rotates it.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import BaseModel, TypeAdapter, ValidationError

from tandem_api import labels, ports
from tandem_api.names import Role
from tandem_router.membership.peers import Peer, Peers
from tandem_router.membership.registry import Registry, Worker

__all__ = ["ApiAccess", "FileSource", "SliceSource", "in_cluster", "peers_of", "workers_of"]

_LOG = logging.getLogger("tandem_router.discovery")
_MOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WATCH_SECONDS = 240
"""Length of one watch; each ends with a new list, which repairs whatever an event did not bring."""
BACK_OFF = (0.5, 15.0)
"""First and longest pause after a failure, seconds."""


class _FileWorker(BaseModel):
    pod: str
    address: str
    role: Role
    kv_group: str = ""
    ready: bool = True
    terminating: bool = False
    sidecar: str | None = None


_FILE = TypeAdapter(list[_FileWorker])


class FileSource:
    """A JSON list of workers, read again when it changes."""

    def __init__(self, path: Path, registry: Registry, *, interval: float = 0.25) -> None:
        self._path = path
        self._registry = registry
        self._interval = interval
        self._seen: bytes | None = None

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            self.read()
            await asyncio.sleep(self._interval)

    def read(self) -> None:
        """Read the file once; one that cannot be read changes nothing."""
        try:
            content = self._path.read_bytes()
            if content == self._seen:
                return
            self._seen = content
            found = _FILE.validate_json(content)
        except (OSError, ValidationError) as error:
            if self._seen is not None or not isinstance(error, FileNotFoundError):
                _LOG.warning("Workers file could not be read, the known workers stay: %s", error)
            return
        self._registry.replace(Worker(**worker.model_dump()) for worker in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAccess:
    """How the API server is reached. `token` reads the current token."""

    url: str
    token: Callable[[], str]
    tls: ssl.SSLContext | None


def in_cluster(environment: Mapping[str, str], mount: Path = _MOUNT) -> ApiAccess:
    """Access with the pod's ServiceAccount.

    Raises:
        ValueError: this is no pod of a cluster; the message says what to give instead.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (mount / "token").exists():
        raise ValueError("not in a cluster (no KUBERNETES_SERVICE_HOST or no ServiceAccount token): give --workers-file")
    bracketed = f"[{host}]" if ":" in host else host
    context = ssl.create_default_context(cafile=str(mount / "ca.crt"))
    return ApiAccess(url=f"https://{bracketed}:{port}", token=lambda: (mount / "token").read_text().strip(), tls=context)


class SliceSource:
    """Lists and watches the EndpointSlices of one service: its workers, and the other routers beside `pod`."""

    def __init__(
        self,
        access: ApiAccess,
        registry: Registry,
        peers: Peers,
        *,
        service: str,
        namespace: str,
        pod: str,
        jitter: Callable[[], float],
    ) -> None:
        self._access = access
        self._registry = registry
        self._peers = peers
        self._pod = pod
        self._url = f"{access.url}/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._selector = f"{labels.SERVICE}={service}"
        self._jitter = jitter
        self._slices: dict[str, dict[str, Any]] = {}
        self.synced = False

    async def run(self) -> None:
        """Follow the slices until cancelled."""
        pause = BACK_OFF[0]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=WATCH_SECONDS + 30)
        async with aiohttp.ClientSession(timeout=timeout, read_bufsize=2**20) as session:
            while True:
                try:
                    version = await self._list(session)
                    pause = BACK_OFF[0]
                    await self._watch(session, version)
                except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                    _LOG.warning("EndpointSlices could not be followed, the known workers stay: %s", _explain(error))
                    await asyncio.sleep(pause * (0.5 + self._jitter()))
                    pause = min(pause * 2, BACK_OFF[1])

    async def _list(self, session: aiohttp.ClientSession) -> str:
        async with session.get(self._url, **self._call({})) as response:
            response.raise_for_status()
            listed = await response.json()
        self._slices = {item["metadata"]["name"]: item for item in listed.get("items") or ()}
        self._report()
        if not self.synced:
            self.synced = True
            _LOG.info("EndpointSlices were listed: %d workers", len(self._registry.workers))
        return str(listed["metadata"]["resourceVersion"])

    async def _watch(self, session: aiohttp.ClientSession, version: str) -> None:
        """Apply changes until the watch ends, in order or because its beginning is too old; then a list follows."""
        seconds = round(WATCH_SECONDS * (0.75 + self._jitter() / 4))
        query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        async with session.get(self._url, **self._call(query)) as response:
            if response.status == HTTPStatus.GONE:
                return
            response.raise_for_status()
            async for line in response.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    if event["object"].get("code") != HTTPStatus.GONE:
                        raise ValueError(f"the watch reported: {event['object'].get('message', 'an error')}")
                    return
                self._apply(event)

    def _apply(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "BOOKMARK":
            return
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            self._slices.pop(name, None)
        else:
            self._slices[name] = event["object"]
        self._report()

    def _report(self) -> None:
        self._registry.replace(workers_of(self._slices.values()))
        self._peers.replace(peer for peer in peers_of(self._slices.values()) if peer.pod != self._pod)

    def _call(self, query: Mapping[str, str]) -> dict[str, Any]:
        return {
            "params": {"labelSelector": self._selector, **query},
            "headers": {"authorization": f"Bearer {self._access.token()}", "accept": "application/json"},
            "ssl": self._access.tls if self._access.tls is not None else False,
        }


def workers_of(slices: Iterable[Mapping[str, Any]]) -> list[Worker]:
    """The workers that EndpointSlices name, each once; slices of other roles, or without labels, are left out.

    `serving` says whether a pod is ready, also where its Service publishes pods that are not.
    """
    found: dict[str, Worker] = {}
    for item in sorted(slices, key=lambda item: (item.get("addressType") != "IPv4", item["metadata"]["name"])):
        marks = item["metadata"].get("labels") or {}
        role = marks.get(labels.ROLE)
        if role not in set(Role) or item.get("addressType") not in {"IPv4", "IPv6"}:
            continue
        for endpoint in item.get("endpoints") or ():
            worker = _worker(endpoint, Role(role), marks.get(labels.KV_GROUP, ""))
            if worker is not None:
                found.setdefault(worker.pod, worker)
    return list(found.values())


def peers_of(slices: Iterable[Mapping[str, Any]]) -> list[Peer]:
    """Translate the EndpointSlices of the router's own Service; a router that goes away is known, and gets no requests."""
    found: dict[str, Peer] = {}
    for item in sorted(slices, key=lambda item: (item.get("addressType") != "IPv4", item["metadata"]["name"])):
        if (item["metadata"].get("labels") or {}).get(labels.ROLE) != "router":
            continue
        for endpoint in item.get("endpoints") or ():
            worker = _worker(endpoint, Role.AGGREGATED, "")
            if worker is not None:
                host = worker.address.rpartition(":")[0]
                peer = Peer(pod=worker.pod, address=f"{host}:{ports.ROUTER_ADMIN}", ready=worker.routable)
                found.setdefault(peer.pod, peer)
    return list(found.values())


def _worker(endpoint: Mapping[str, Any], role: Role, kv_group: str) -> Worker | None:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        return None
    conditions = endpoint.get("conditions") or {}
    serving = conditions.get("serving")
    host = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
    return Worker(
        pod=(endpoint.get("targetRef") or {}).get("name") or addresses[0],
        address=f"{host}:{ports.ENGINE}",
        role=role,
        kv_group=kv_group,
        ready=bool(conditions.get("ready", True) if serving is None else serving),
        terminating=bool(conditions.get("terminating")),
        sidecar=f"{host}:{ports.SIDECAR}",
    )


def _explain(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError) and error.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return (
            f"{error.status} from the API server: the router's ServiceAccount must be allowed to list and watch endpointslices"
        )
    return f"{type(error).__name__}: {error}"
