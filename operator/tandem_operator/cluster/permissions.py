"""Every permission that the operator uses, and no other. The chart's ClusterRole is made from this list.

A test compares it with the calls that a running operator makes.
"""

from dataclasses import dataclass

from tandem_api import GROUP

__all__ = ["OWN_PERMISSIONS", "PERMISSIONS", "ROUTER_PERMISSIONS", "WEBHOOK_PERMISSIONS", "Permission"]


@dataclass(frozen=True, slots=True)
class Permission:
    """One rule of a ClusterRole."""

    group: str
    resource: str
    """Plural, with `/subresource` if it is about one."""
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Names of objects to which it is limited; empty for all."""
    cluster: bool = False
    """Whether it is about objects without a namespace, and so needs a ClusterRole even if only some namespaces are watched."""


_OBSERVE = ("list", "watch")
_KEPT = ("get", "list", "watch", "create", "patch")
"""For children that every service has as long as it lives; garbage collection removes them with it."""
_CHILD = (*_KEPT, "delete")

PERMISSIONS: tuple[Permission, ...] = (
    Permission(GROUP, "inferenceservices", _OBSERVE),
    Permission(GROUP, "inferenceservices/status", ("patch",)),
    Permission(GROUP, "inferenceservices/finalizers", ("update",)),
    Permission(GROUP, "workerpools", _CHILD),
    Permission(GROUP, "workerpools/status", ("patch",)),
    Permission("apps", "deployments", _CHILD),
    Permission("apps", "controllerrevisions", _CHILD),
    Permission("", "services", _CHILD),
    Permission("", "serviceaccounts", _KEPT),
    Permission("", "secrets", ("create",)),
    Permission("rbac.authorization.k8s.io", "rolebindings", _KEPT),
    Permission("rbac.authorization.k8s.io", "clusterroles", ("bind",), names=("tandem-router",)),
    Permission("policy", "poddisruptionbudgets", _CHILD),
    Permission("networking.k8s.io", "networkpolicies", _CHILD),
    Permission("", "pods", _OBSERVE),
    Permission("events.k8s.io", "events", ("create", "list")),
    Permission(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        ("get",),
        names=(f"inferenceservices.{GROUP}", f"workerpools.{GROUP}"),
        cluster=True,
    ),
)
"""`create` goes with `patch`: a server-side apply of an object that does not exist yet needs both."""

WEBHOOK_PERMISSIONS: tuple[Permission, ...] = (
    Permission(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        ("get", "patch"),
        names=("tandem-operator",),
        cluster=True,
    ),
)
"""What the operator uses besides where the webhook is on."""

OWN_PERMISSIONS: tuple[Permission, ...] = (
    Permission("coordination.k8s.io", "leases", ("create",)),
    Permission("coordination.k8s.io", "leases", ("get", "update"), names=("tandem-operator",)),
)
"""What the operator needs in its own namespace besides; `create` cannot be limited to a name."""

ROUTER_PERMISSIONS: tuple[Permission, ...] = (Permission("discovery.k8s.io", "endpointslices", _OBSERVE),)
"""What the ClusterRole `tandem-router` lets the routers of a service read, in their own namespace."""
