"""A prefill and a decode worker of real vLLM behind a router: what clients get, and what each engine itself says.

Answers are taken as they come, status, headers and text, so that tests can compare them byte by byte.
"""

import http.client
import json
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from support import deployed
from tandem_api import labels, names, ports
from tandem_api.names import Role
from tandem_api.wire import KVCounters, RouterSignals, SidecarState
from tandem_cli.private_ports import PrivatePorts
from tandem_local.cluster import Cluster
from tandem_sidecar.observations import Load, parse_metrics

__all__ = ["CHAT", "TEXT", "Pair", "Reply", "last_words", "salted", "send"]

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
_SECONDS = 120.0
_LAST_LINES = "25"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer; header names are lowercase."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> dict[str, Any]:
        """The body as an object."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events of a stream, which must have ended well."""
        assert self.status == 200, self.body
        *events, last = [line.removeprefix("data: ") for line in self.body.split("\n\n") if line.startswith("data: ")]
        assert last == "[DONE]", f"the stream did not end well: {last}"
        return [json.loads(event) for event in events]

    @property
    def text(self) -> str:
        """What the model wrote, streamed or not."""
        parts = [part for event in self._parts() for part in event["choices"]]
        return "".join(_written(part) for part in parts)

    @property
    def ids(self) -> list[int]:
        """Token ids of the answer."""
        return [number for event in self._parts() for part in event["choices"] for number in part.get("token_ids") or ()]

    @property
    def finish(self) -> str:
        """Why the answer ended."""
        reasons = [part["finish_reason"] for event in self._parts() for part in event["choices"]]
        return str(next(filter(None, reasons)))

    def _parts(self) -> list[dict[str, Any]]:
        if self.headers["content-type"].startswith("text/event-stream"):
            return self.events
        assert self.status == 200, self.body
        return [self.json]


def _written(choice: dict[str, Any]) -> str:
    said = choice.get("delta") or choice.get("message") or {}
    return str(choice.get("text") or said.get("content") or "")


def send(url: str, path: str, body: Any, *, method: str = "POST", token: str = "") -> Reply:
    """Send a request, whose body is text or becomes JSON, and read the whole answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_SECONDS)
    data = body if isinstance(body, str) or body is None else json.dumps(body)
    try:
        shown = {"authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, data, {"content-type": "application/json", **shown})
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(status=response.status, headers=headers, body=response.read().decode())
    finally:
        connection.close()


def salted(body: dict[str, Any]) -> dict[str, Any]:
    """Return the same request with a prefix cache of its own, so that nothing computed before answers it."""
    return {**body, "cache_salt": uuid.uuid4().hex}


@dataclass
class Pair:
    """A service with one prefill and one decode worker."""

    cluster: Cluster
    namespace: str
    name: str
    model: str
    _urls: dict[tuple[str, int], str] = field(default_factory=dict)

    @cached_property
    def private(self) -> PrivatePorts:
        """The ports of the service's own parts."""
        return PrivatePorts(self.cluster, self.namespace, self.name)

    @property
    def router(self) -> str:
        """Base URL of the router's Service."""
        service = deployed.get(self.cluster, self.namespace, "service", names.router(self.name))
        return self._forward(service["spec"]["clusterIP"], ports.SERVICE_PUBLIC)

    def alone(self, role: Role, path: str, body: Any, *, method: str = "POST") -> Reply:
        """Ask the engine itself of the only worker of a role, as the router does."""
        url = self._forward(self.pod(role)["status"]["podIP"], ports.ENGINE)
        return send(url, path, body, method=method, token=self.private.token)

    def pod(self, role: Role) -> dict[str, Any]:
        """The only worker pod of a role that is not on its way out."""
        (pod,) = deployed.worker_pods(self.cluster, self.namespace, self.name, role)
        return pod

    def counted(self, role: Role) -> tuple[Load, KVCounters]:
        """What the engine itself counts."""
        return parse_metrics(self.alone(role, "/metrics", None, method="GET").body)

    def sidecar(self, pod: str) -> SidecarState:
        """What a worker's sidecar publishes."""
        return SidecarState.model_validate_json(self.private.ask(pod, ports.SIDECAR, "state"))

    def signals(self) -> RouterSignals:
        """What the router publishes for the operator."""
        chosen = f"{labels.SERVICE}={self.name},{labels.ROLE}=router"
        (pod,) = deployed.objects(self.cluster, self.namespace, "pods", chosen)
        return RouterSignals.model_validate_json(self.private.ask(pod["metadata"]["name"], ports.ROUTER_ADMIN, "signals"))

    def _forward(self, address: str, port: int) -> str:
        if (address, port) not in self._urls:
            self._urls[address, port] = self.cluster.forward_address(address, port)
        return self._urls[address, port]


def last_words(cluster: Cluster, namespace: str, name: str) -> str:
    """Return the last lines that each engine of a service wrote."""
    told = []
    for pod in deployed.worker_pods(cluster, namespace, name):
        pod_name = pod["metadata"]["name"]
        log = cluster.kubectl("-n", namespace, "logs", pod_name, "-c", "engine", "--tail", _LAST_LINES, "--ignore-errors")
        told.append(f"--- {pod_name}\n{log}")
    return "\n".join(told)
