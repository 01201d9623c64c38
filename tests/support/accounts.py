"""Accounts with exactly some permissions, as a chart would make them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from support.kube import Kube
from tandem_operator.cluster.permissions import OWN_PERMISSIONS, Permission

__all__ = ["change", "cluster_role", "create", "logged_in"]

_RBAC = "rbac.authorization.k8s.io"


def create(
    kube: Kube, kubeconfig: Path, folder: Path, permissions: Iterable[Permission], *, name: str = "tandem-operator"
) -> Path:
    """Create a ServiceAccount that may do what `permissions` say, and hold the Lease; return a kubeconfig with its token."""
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    kube.create(cluster_role(permissions, name))
    subject = {"kind": "ServiceAccount", "name": name, "namespace": kube.namespace}
    binding = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, "subjects": [subject]}
    kube.create(binding | {"roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}})
    return logged_in(kube, kubeconfig, folder, name)


def logged_in(kube: Kube, kubeconfig: Path, folder: Path, name: str) -> Path:
    """Return a kubeconfig with a token of a ServiceAccount that exists."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token = kube.send("POST", kube.path("ServiceAccount", name, "token"), request)["status"]["token"]
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    found = folder / f"{name}.kubeconfig"
    found.write_text(yaml.safe_dump(config))
    return found


def change(kube: Kube, permissions: Iterable[Permission], *, name: str) -> None:
    """Change what an account may do."""
    kube.patch("ClusterRole", name, {"rules": cluster_role(permissions, name)["rules"]})


def cluster_role(permissions: Iterable[Permission], name: str) -> dict[str, Any]:
    """Return a ClusterRole of some permissions."""
    rules = [
        {"apiGroups": [each.group], "resources": [each.resource], "verbs": list(each.verbs), "resourceNames": list(each.names)}
        for each in (*permissions, *OWN_PERMISSIONS)
        if each.verbs
    ]
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
