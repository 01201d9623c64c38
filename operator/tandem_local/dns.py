"""Cluster DNS: CoreDNS beside the control plane, behind the Service address that pods' resolv.conf names."""

import contextlib
import secrets
import socket
import struct
from typing import Any

from tandem_local.api import ApiClient
from tandem_local.controlplane import DNS_ADDRESS, Command, ControlPlane
from tandem_local.nodes import CONTROL_PLANE_ADDRESS

__all__ = ["answers", "apply_objects", "coredns", "query"]

_USER = "tandem-local-dns"
_COREFILE = """\
.:53 {{
    errors
    ready 127.0.0.1:8181
    cache 1
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
"""
_PORTS = (("dns", "UDP"), ("dns-tcp", "TCP"))


def coredns(plane: ControlPlane) -> Command:
    """Write CoreDNS's configuration and return its command. Answers live one second, so new names appear at once."""
    user = plane.identities.authority.issue(_USER, file="coredns")
    corefile = plane.folder / "Corefile"
    corefile.write_text(_COREFILE.format(kubeconfig=plane.kubeconfig("coredns", user)))
    return Command("coredns", (str(plane.binaries / "coredns"), f"-conf={corefile}"))


def apply_objects(client: ApiClient) -> None:
    """Create what makes CoreDNS the cluster's DNS: its rights, and the Service with its one endpoint."""
    for path, body in (*_rights(), *_service()):
        client.apply(path, body)


def _rights() -> list[tuple[str, dict[str, Any]]]:
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    meta = {"apiVersion": f"{group}/v1", "metadata": {"name": _USER}}
    binding = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": _USER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": _USER}],
    }
    base = f"/apis/{group}/v1"
    return [
        (f"{base}/clusterroles/{_USER}", {**meta, "kind": "ClusterRole", "rules": rules}),
        (f"{base}/clusterrolebindings/{_USER}", {**meta, "kind": "ClusterRoleBinding", **binding}),
    ]


def _service() -> list[tuple[str, dict[str, Any]]]:
    namespace = "kube-system"
    ports = [{"name": name, "port": 53, "protocol": protocol} for name, protocol in _PORTS]
    labels = {"kubernetes.io/service-name": "kube-dns", "endpointslice.kubernetes.io/managed-by": "tandem-local"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": namespace, "labels": {"k8s-app": "kube-dns"}},
        "spec": {"clusterIP": DNS_ADDRESS, "ports": ports},
    }
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kube-dns", "namespace": namespace, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [CONTROL_PLANE_ADDRESS], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return [
        (f"/api/v1/namespaces/{namespace}/services/kube-dns", service),
        (f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/kube-dns", slices),
    ]


def query(name: str, *, identifier: int) -> bytes:
    """A DNS question for the IPv4 address of a fully qualified name."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split("."))
    return struct.pack(">HHHHHH", identifier, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", 1, 1)


def answers(name: str) -> bool:
    """Whether the cluster's DNS, asked at its Service address, knows a name: proves DNS and Services at once."""
    identifier = secrets.randbelow(1 << 16)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(OSError):
        asking.settimeout(0.5)
        asking.sendto(query(name, identifier=identifier), (DNS_ADDRESS, 53))
        reply = asking.recv(512)
        number, flags, _, found = struct.unpack(">HHHH", reply[:8])
        return bool(number == identifier and flags & 0xF == 0 and found > 0)
    return False
