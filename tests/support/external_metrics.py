"""Stands in for a metrics adapter (prometheus-adapter, KEDA's): external metrics by a real APIService, set by a test.

Only the adapter is played: the API server aggregates it, and the real HPA controller reads it from there.
"""

import datetime as dt
import http.server
import json
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from typing_extensions import override

from support.kube import Kube, until
from tandem_local.certificates import Authority

__all__ = ["ExternalMetrics"]

_GROUP, _VERSION = "external.metrics.k8s.io", "v1beta1"
_ROOT = f"/apis/{_GROUP}/{_VERSION}"
_API_SERVICE = f"{_VERSION}.{_GROUP}"
_SERVICE = "external-metrics"


class ExternalMetrics:
    """The external metrics of one namespace, whatever labels are asked for."""

    def __init__(self, kube: Kube, folder: Path) -> None:
        """Serve on a free port of the loopback and register it with the API server, for the length of a `with` block."""
        self.values: dict[str, int] = {}
        """Value of each metric by its name; others are not known."""
        self._kube = kube
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        pair = Authority(folder / "metrics", now=dt.datetime.now(dt.UTC)).issue("metrics", file="tls", hosts=("localhost",))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        for tree in (self._service(), self._api_service()):
            self._kube.create(tree)
        until(self._available, what="the API server reaches the adapter")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # The APIService first: while one does not answer, the API server's garbage collector stands still.
        self._kube.delete("APIService", _API_SERVICE)
        self._kube.delete("Service", _SERVICE)
        self._server.shutdown()
        self._server.server_close()

    def _service(self) -> dict[str, Any]:
        """The address as a name: a Service without one cannot have an endpoint on the loopback."""
        spec = {"type": "ExternalName", "externalName": "localhost"}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": _SERVICE}, "spec": spec}

    def _api_service(self) -> dict[str, Any]:
        service = {"namespace": self._kube.namespace, "name": _SERVICE, "port": self._server.server_port}
        spec = {
            "group": _GROUP,
            "version": _VERSION,
            "service": service,
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": _API_SERVICE},
            "spec": spec,
        }

    def _available(self) -> bool:
        conditions = self._kube.get("APIService", _API_SERVICE).get("status", {}).get("conditions", ())
        return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)

    def _answer(self, path: str) -> dict[str, Any] | None:
        """Return what is at a path: the resources, or the value of a metric of the namespace."""
        if path == _ROOT:
            return {"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": f"{_GROUP}/{_VERSION}", "resources": []}
        folder, _, name = path.rpartition("/")
        if folder != f"{_ROOT}/namespaces/{self._kube.namespace}" or name not in self.values:
            return None
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        item = {"metricName": name, "metricLabels": {}, "timestamp": now, "value": str(self.values[name])}
        return {"apiVersion": f"{_GROUP}/{_VERSION}", "kind": "ExternalMetricValueList", "metadata": {}, "items": [item]}

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        adapter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the base class's name
                found = adapter._answer(urlsplit(self.path).path)
                body = json.dumps(found).encode() if found else b""
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            @override
            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
