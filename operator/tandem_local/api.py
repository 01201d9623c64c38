"""A small synchronous client of the local API server, for readiness and the few objects that the cluster itself needs.

JSON in, JSON out, authenticated by a client certificate. Everything else is done with kubectl or a real client.
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tandem_local.certificates import KeyPair
from tandem_local.errors import LocalClusterError

__all__ = ["ApiClient", "ApiError"]

_TIMEOUT_SECONDS = 5
_OK = 300
_APPLY = "application/apply-patch+yaml"


class ApiError(LocalClusterError):
    """The API server answered with an error; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(f"the API server answered {status}: {message}")


class ApiClient:
    """Requests to one API server, one connection each."""

    def __init__(self, *, host: str, port: int, authority: Path, user: KeyPair) -> None:
        self._address = (host, port)
        self._context = ssl.create_default_context(cafile=str(authority))
        self._context.load_cert_chain(user.certificate, user.key)

    def ready(self) -> bool:
        """Whether the API server says that it is ready; an unreachable one is not."""
        try:
            self._send("GET", "/readyz", None, {})
        except (ApiError, OSError, http.client.HTTPException):
            return False
        return True

    def get(self, path: str) -> dict[str, Any]:
        """GET one object or list.

        Raises:
            ApiError: the server refused.
            OSError: the server cannot be reached.
        """
        return _object(self._send("GET", path, None, {}))

    def patch(self, path: str, operations: list[dict[str, Any]]) -> dict[str, Any]:
        """Apply a JSON patch; raises as `get` does."""
        headers = {"Content-Type": "application/json-patch+json"}
        return _object(self._send("PATCH", path, json.dumps(operations).encode(), headers))

    def apply(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply of one object; raises as `get` does."""
        headers = {"Content-Type": _APPLY}
        query = "?fieldManager=tandem-local&force=true"
        return _object(self._send("PATCH", path + query, json.dumps(body).encode(), headers))

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        host, port = self._address
        connection = http.client.HTTPSConnection(host, port, context=self._context, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        if response.status >= _OK:
            raise ApiError(response.status, _message(data))
        return data


def _object(data: bytes) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ApiError(http.client.OK, f"expected an object, got {type(value).__name__}")
    return value


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data).get("message", ""))
    except (ValueError, AttributeError):
        return data[:400].decode(errors="replace")
