"""A small synchronous client of a Kubernetes API server, for tests: JSON in, JSON out, and polling with a deadline."""

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import yaml

__all__ = ["Kube", "KubeError", "until"]

Found = TypeVar("Found")
_PATHS = {
    "InferenceService": "/apis/serving.tandem.dev/v1alpha1/namespaces/{}/inferenceservices",
    "WorkerPool": "/apis/serving.tandem.dev/v1alpha1/namespaces/{}/workerpools",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ControllerRevision": "/apis/apps/v1/namespaces/{}/controllerrevisions",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Pod": "/api/v1/namespaces/{}/pods",
    "LimitRange": "/api/v1/namespaces/{}/limitranges",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Namespace": "/api/v1/namespaces",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Event": "/apis/events.k8s.io/v1/namespaces/{}/events",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}
_TYPES = {"POST": "application/json", "PATCH": "application/merge-patch+json", "DELETE": "application/json"}


class KubeError(Exception):
    """The API server refused; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


class Kube:
    """One user's view of one namespace."""

    def __init__(self, kubeconfig: Path, folder: Path, namespace: str = "default") -> None:
        """Log in as the kubeconfig's user; `folder` takes the certificates that Python's ssl wants as files."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server = urlsplit(cluster["server"])
        self._context = ssl.create_default_context(cadata=_decoded(cluster, "certificate-authority").decode())
        certificate, key = folder / "client.crt", folder / "client.key"
        certificate.write_bytes(_decoded(user, "client-certificate"))
        key.write_bytes(_decoded(user, "client-key"))
        self._context.load_cert_chain(certificate, key)
        self.namespace = namespace

    def within(self, namespace: str) -> "Kube":
        """Return the same user's view of another namespace."""
        view = object.__new__(Kube)
        view.__dict__ |= self.__dict__ | {"namespace": namespace}
        return view

    def path(self, kind: str, name: str = "", subresource: str = "") -> str:
        """Return the URL path of an object or a list."""
        return "/".join(part for part in (_PATHS[kind].format(self.namespace), name, subresource) if part)

    def send(self, method: str, path: str, body: Any = None, *, content_type: str | None = None) -> Any:
        """Send one request and return the parsed answer; a body that is text is sent as it is, another as JSON.

        Raises:
            KubeError: the answer's status is 400 or above.
        """
        text = self._exchange(method, path, body, content_type or _TYPES.get(method, "application/json"))
        return json.loads(text) if text else None

    def text(self, path: str) -> str:
        """Return a page that is not JSON, such as `/metrics`; raises as `send` does."""
        return self._exchange("GET", path, None, "application/json").decode()

    def _exchange(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        connection = http.client.HTTPSConnection(
            self._server.hostname or "", self._server.port, context=self._context, timeout=30
        )
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        try:
            text = body if isinstance(body, str) else json.dumps(body)
            connection.request(method, path, None if body is None else text.encode(), headers)
            answer = connection.getresponse()
            found = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise KubeError(answer.status, found.decode(errors="replace"))
        return found

    def create(self, tree: dict[str, Any]) -> Any:
        """Create an object."""
        return self.send("POST", self.path(tree["kind"]), tree)

    def get(self, kind: str, name: str) -> Any:
        """Return an object, or None if there is none."""
        try:
            return self.send("GET", self.path(kind, name))
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind: str, selector: str = "") -> list[Any]:
        """Return the objects of a kind."""
        query = f"?labelSelector={selector}" if selector else ""
        found: list[Any] = self.send("GET", self.path(kind) + query)["items"]
        return found

    def patch(self, kind: str, name: str, change: dict[str, Any], subresource: str = "", manager: str = "kubectl-edit") -> Any:
        """Change an object by a merge patch, as `kubectl edit` would."""
        return self.send("PATCH", f"{self.path(kind, name, subresource)}?fieldManager={manager}", change)

    def apply(self, tree: dict[str, Any], manager: str) -> Any:
        """Apply an object by server-side apply, without force."""
        path = f"{self.path(tree['kind'], tree['metadata']['name'])}?fieldManager={manager}"
        return self.send("PATCH", path, tree, content_type="application/apply-patch+yaml")

    def delete(self, kind: str, name: str, policy: str = "Background") -> None:
        """Delete an object."""
        self.send("DELETE", self.path(kind, name), {"propagationPolicy": policy})


def until(look: Callable[[], Found | None], *, what: str, seconds: float = 60.0) -> Found:
    """Return what `look` finds as soon as it is true.

    Raises:
        AssertionError: it was not within `seconds`; the message has what was seen last.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}; last seen: {found!r}")
        time.sleep(0.05)


def _decoded(entry: dict[str, str], name: str) -> bytes:
    inline = entry.get(f"{name}-data")
    return base64.b64decode(inline) if inline is not None else Path(entry[name]).read_bytes()
