"""Argument lines of the control plane's programs: pure functions of where things are and who listens where.

Used twice: for the cluster (inside its namespaces) and for the lone API server of tests (on the host's loopback).
"""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from tandem_local.certificates import Authority, KeyPair, write_signing_key
from tandem_local.kubeconfigs import write_kubeconfig

__all__ = [
    "DNS_ADDRESS",
    "KUBERNETES_ADDRESS",
    "Command",
    "ControlPlane",
    "Endpoints",
    "Identities",
]

SERVICE_RANGE = "10.96.0.0/16"
KUBERNETES_ADDRESS = "10.96.0.1"
"""ClusterIP of the API server: the first address of the Service range."""
DNS_ADDRESS = "10.96.0.10"
"""ClusterIP of the cluster's DNS, by the convention that pods' clusterDNS follows."""
_API_SERVER_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    "127.0.0.1",
    KUBERNETES_ADDRESS,
)


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run: its name for people and its log, and the argument line with an absolute program."""

    name: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the control plane listens. `bind` is the address of the API server's socket, `advertise` what pods reach."""

    bind: str
    advertise: str
    port: int
    etcd_port: int
    etcd_peer_port: int


@dataclass(frozen=True, slots=True)
class Identities:
    """Certificates of the control plane; `admin` is the cluster's administrator."""

    authority: Authority
    server: KeyPair
    etcd: KeyPair
    kubelet_client: KeyPair
    signing: KeyPair
    admin: KeyPair

    @classmethod
    def create(cls, folder: Path, *, addresses: tuple[str, ...], now: dt.datetime) -> "Identities":
        """Make an authority and all pairs below `folder`; the API server is also known by `addresses`."""
        authority = Authority(folder, now=now)
        return cls(
            authority=authority,
            server=authority.issue("kube-apiserver", file="apiserver", hosts=(*_API_SERVER_NAMES, *addresses)),
            etcd=authority.issue("etcd", file="etcd", hosts=("localhost", "127.0.0.1")),
            kubelet_client=authority.issue("kube-apiserver", file="kubelet-client", organizations=("system:masters",)),
            signing=write_signing_key(folder),
            admin=authority.issue("tandem-local-admin", file="admin", organizations=("system:masters",)),
        )


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The control plane's programs, their state in `folder`, their certificates and where they listen."""

    binaries: Path
    folder: Path
    identities: Identities
    endpoints: Endpoints
    context: str = "tandem"

    @property
    def server(self) -> str:
        """URL of the API server for programs that share its network namespace."""
        return f"https://127.0.0.1:{self.endpoints.port}"

    def kubeconfig(self, file: str, user: KeyPair, *, server: str | None = None) -> Path:
        """Write `<file>.kubeconfig` for one user into the folder."""
        return write_kubeconfig(
            self.folder / f"{file}.kubeconfig",
            server=server or self.server,
            authority=self.identities.authority.certificate,
            user=user,
            context=self.context,
        )

    def etcd(self) -> Command:
        """Etcd without fsync: its data lives as long as the cluster, so nothing has to survive a power cut."""
        pair, authority = self.identities.etcd, self.identities.authority.certificate
        client = f"https://127.0.0.1:{self.endpoints.etcd_port}"
        peer = f"https://127.0.0.1:{self.endpoints.etcd_peer_port}"
        return self._command(
            "etcd",
            f"--data-dir={self.folder}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            *(f"--{side}cert-file={pair.certificate}" for side in ("", "peer-")),
            *(f"--{side}key-file={pair.key}" for side in ("", "peer-")),
            *(f"--{side}trusted-ca-file={authority}" for side in ("", "peer-")),
            "--client-cert-auth",
            "--peer-client-cert-auth",
            "--unsafe-no-fsync",
        )

    def api_server(self) -> Command:
        """The API server, with the admission plugins of a careful production cluster."""
        ids, ends = self.identities, self.endpoints
        alone = ends.advertise == "127.0.0.1"
        return self._command(
            "kube-apiserver",
            f"--etcd-servers=https://127.0.0.1:{ends.etcd_port}",
            f"--etcd-cafile={ids.authority.certificate}",
            f"--etcd-certfile={ids.etcd.certificate}",
            f"--etcd-keyfile={ids.etcd.key}",
            f"--bind-address={ends.bind}",
            f"--secure-port={ends.port}",
            f"--advertise-address={ends.advertise}",
            # A loopback address cannot be an endpoint of the `kubernetes` Service.
            *(["--endpoint-reconciler-type=none"] if alone else []),
            f"--tls-cert-file={ids.server.certificate}",
            f"--tls-private-key-file={ids.server.key}",
            f"--client-ca-file={ids.authority.certificate}",
            f"--kubelet-client-certificate={ids.kubelet_client.certificate}",
            f"--kubelet-client-key={ids.kubelet_client.key}",
            f"--kubelet-certificate-authority={ids.authority.certificate}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-key-file={ids.signing.certificate}",
            f"--service-account-signing-key-file={ids.signing.key}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--allow-privileged=true",
            "--profiling=false",
        )

    def controller_manager(self, *, port: int) -> Command:
        """All controllers; lost nodes are noticed within 15 s and HPAs look every 2 s, so that tests of both are short."""
        return self._command(
            "kube-controller-manager",
            *self._component_flags("kube-controller-manager", port=port),
            f"--root-ca-file={self.identities.authority.certificate}",
            f"--service-account-private-key-file={self.identities.signing.key}",
            "--use-service-account-credentials=true",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=15s",
            "--horizontal-pod-autoscaler-sync-period=2s",
        )

    def scheduler(self, *, port: int) -> Command:
        """The default scheduler."""
        return self._command("kube-scheduler", *self._component_flags("kube-scheduler", port=port))

    def _component_flags(self, component: str, *, port: int) -> tuple[str, ...]:
        pair = self.identities.authority.issue(f"system:{component}", file=component, hosts=("localhost", "127.0.0.1"))
        config = self.kubeconfig(component, pair)
        return (
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            "--profiling=false",
        )

    def _command(self, name: str, *arguments: str) -> Command:
        return Command(name, (str(self.binaries / name), *arguments))
