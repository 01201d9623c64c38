"""The ports of a service that only its own parts may use, opened with the service's token by whoever may read its Secret.

Reaches pods of a local cluster through forwards, each of which stays open as long as the cluster's object.
"""

import base64
import json
import urllib.request
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tandem_api import names
from tandem_api.servicetoken import bearer
from tandem_cli.errors import CommandError
from tandem_local.cluster import Cluster

__all__ = ["PrivatePorts"]

_SECONDS = 60


@dataclass
class PrivatePorts:
    """The private ports of one InferenceService's pods."""

    cluster: Cluster
    namespace: str
    service: str
    _urls: dict[tuple[str, int], str] = field(default_factory=dict)

    @cached_property
    def token(self) -> str:
        """The service's token."""
        owner = self._read("inferenceservice", self.service)
        secret = self._read("secret", names.token_secret(self.service, owner["metadata"]["uid"]))
        return base64.b64decode(secret["data"]["token"]).decode()

    def url(self, pod: str, port: int) -> str:
        """The base URL of a pod's port."""
        address = self._read("pod", pod)["status"]["podIP"]
        if (address, port) not in self._urls:
            self._urls[address, port] = self.cluster.forward_address(address, port)
        return self._urls[address, port]

    def ask(self, pod: str, port: int, path: str, body: Any = None) -> str:
        """Return what a pod answers: to GET, or to POST where there is a body, which becomes JSON.

        Raises:
            CommandError: it does not answer, or not with success.
        """
        url = f"{self.url(pod, port)}/{path}"
        headers = {**bearer(self.token), "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        asking = urllib.request.Request(url, data, headers)  # noqa: S310 - a forward's own http URL
        try:
            with urllib.request.urlopen(asking, timeout=_SECONDS) as answer:  # noqa: S310 - the same
                return str(answer.read().decode())
        except OSError as error:
            raise CommandError(f"pod {pod} does not answer /{path} on port {port}: {error}") from error

    def _read(self, kind: str, name: str) -> Any:
        return json.loads(self.cluster.kubectl("-n", self.namespace, "get", kind, name, "-o", "json"))
