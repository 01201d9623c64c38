"""The way to the API server: the official client's configuration, authentication and connection, and raw JSON.

No object is decoded into the client's models. Each call has a timeout and is counted.
"""

import json
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from tandem_operator.cluster import errors
from tandem_operator.cluster.kinds import Kind

__all__ = ["APPLY", "Access", "Call", "Connection", "load_configuration"]

APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=5.0)
_PAGE = "500"
_METHODS = {"get": "GET", "list": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_READS = {"get", "list"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the API server, as permissions and metrics name it."""

    verb: str
    kind: Kind
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """Return the call as error messages name it."""
        resource = f"{self.kind.label}/{self.subresource}" if self.subresource else self.kind.label
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {resource} {where}".rstrip()

    @property
    def target(self) -> str:
        """Path and query of the URL."""
        path = self.kind.path(self.namespace, self.name if self.verb != "create" else None, self.subresource)
        return f"{path}?{urlencode(self.query)}" if self.query else path


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach the API server, for a client of another library."""

    server: str
    authority_path: str | None
    verified: bool
    authorization: str
    """Value of the header, empty for certificates."""
    certificate_path: str | None
    key_path: str | None


async def load_configuration(kubeconfig: str | None) -> Configuration:
    """Return where the API server is and how to log in: a kubeconfig file if named, else the pod's own account.

    Raises:
        kubernetes.aio.config.ConfigException: neither is usable; the message says why.
    """
    configuration = Configuration()
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # untyped there
    else:
        await config.load_kube_config(  # type: ignore[no-untyped-call]  # untyped there
            config_file=kubeconfig, client_configuration=configuration
        )
    configuration.retries = False
    configuration.proxy = configuration.proxy or _proxy(configuration.host)
    configuration.client_session_kwargs = {"trust_env": False}
    return configuration


def _proxy(server: str) -> str | None:
    """Return the environment's proxy on the way to a URL, if there is one.

    Read once: the client's session would look for it, and for a `.netrc`, in a thread before every call, which takes twice
    as long as the call itself.
    """
    address = urlsplit(server)
    return None if proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)


class Access:
    """Calls of the API server as JSON trees."""

    def __init__(
        self, configuration: Configuration, *, observe: Callable[[Call, str], None], may_write: Callable[[], bool]
    ) -> None:
        """Prepare a connection pool; nothing is sent yet.

        Args:
            configuration: see `load_configuration`.
            observe: told each call and its HTTP status (or `error` if there was no answer).
            may_write: asked before each write; whoever does not lead writes nothing.
        """
        self._configuration = configuration
        self._observe = observe
        self._may_write = may_write
        self._client: Any = RESTClientObject(configuration)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def connection(self) -> Connection:
        """Return how to reach the API server, with the account's token as it is now."""
        found = self._configuration
        return Connection(
            server=found.host,
            authority_path=found.ssl_ca_cert,
            verified=found.verify_ssl,
            authorization=await found.get_api_key_with_prefix("BearerToken") or "",
            certificate_path=found.cert_file,
            key_path=found.key_file,
        )

    async def call(self, call: Call, *, body: Any = None, content_type: str = _JSON) -> Any:
        """Send one call and return the parsed answer.

        Raises:
            ApiError: by meaning, see `errors`.
        """
        if call.verb not in _READS and not self._may_write():
            raise errors.NotLeadingError(f"{call.what}: not sent, because this operator does not hold the Lease")
        code = "error"
        try:
            response = await self._send(call, body, content_type)
            text = await response.read()
            code = str(response.status)
        except (TimeoutError, aiohttp.ClientError, ssl.SSLError, OSError) as error:
            raise errors.UnavailableError(f"{call.what}: {error!r}") from error
        finally:
            self._observe(call, code)
        answer = _parse(text, call)
        if response.status >= 400:  # noqa: PLR2004  # HTTP's client and server errors
            raise errors.from_status(response.status, answer, what=call.what, retry_after=response.getheader("Retry-After"))
        return answer

    async def pages(self, kind: Kind, namespace: str | None, selector: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the objects of a list in pages; each item has its `apiVersion` and `kind`."""
        following: str | None = ""
        while following is not None:
            query = {"limit": _PAGE} | ({"labelSelector": selector} if selector else {})
            query |= {"continue": following} if following else {}
            page = await self.call(Call("list", kind, namespace, query=query))
            yield [item | {"apiVersion": kind.api_version, "kind": kind.kind} for item in page.get("items", ())]
            following = page.get("metadata", {}).get("continue") or None

    async def _send(self, call: Call, body: Any, content_type: str) -> Any:
        headers = {"Accept": _JSON, "Content-Type": content_type, "User-Agent": "tandem-operator"}
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        if token:
            headers["Authorization"] = token
        return await self._client.request(
            _METHODS[call.verb],
            f"{self._configuration.host}{call.target}",
            headers=headers,
            body=body,
            _request_timeout=_TIMEOUT,
        )


def _parse(text: bytes, call: Call) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise errors.UnavailableError(f"{call.what}: the answer is not JSON") from error
