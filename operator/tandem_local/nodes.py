"""Configuration and argument lines of each node: its container runtime and its kubelet; and kube-proxy for all of them.

Pure, but for the files that the programs read, which are written into the cluster's folder.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tandem_local.certificates import KeyPair
from tandem_local.controlplane import DNS_ADDRESS, Command, ControlPlane

__all__ = ["CONTROL_PLANE_ADDRESS", "MAX_NODES", "Node", "kube_proxy", "node_address"]

CONTROL_PLANE_ADDRESS = "10.244.0.1"
MAX_NODES = 16
_POD_RANGE = "10.244.0.0/16"


def node_address(number: int) -> str:
    """Address of node `number`, counted from 1; its pods have the other addresses of that /24."""
    return f"10.244.{number}.1"


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its number and the folder of its files, both as seen from inside the cluster."""

    number: int
    folder: Path
    logs: Path

    @property
    def name(self) -> str:
        """Name of the Node object."""
        return f"n{self.number}"

    @property
    def socket(self) -> Path:
        """The runtime's socket."""
        return Path(f"/run/{self.name}.sock")

    def runtime(self, *, binaries: Path, images: Path) -> Command:
        """The container runtime."""
        arguments = (
            f"--node={self.name}",
            f"--socket={self.socket}",
            f"--state={self.folder}/runtime",
            f"--prefix=10.244.{self.number}",
            f"--images={images}",
            f"--streamer={binaries}/streamer",
        )
        return Command(f"runtime-{self.name}", (sys.executable, "-P", "-m", "tandem_local.runtime.server", *arguments))

    def kubelet(self, plane: ControlPlane) -> Command:
        """Write the kubelet's configuration and credentials, and return its command."""
        self.folder.mkdir(parents=True, exist_ok=True)
        user = plane.identities.authority.issue(
            f"system:node:{self.name}",
            file=f"kubelet-{self.name}",
            organizations=("system:nodes",),
            hosts=(self.name, node_address(self.number)),
        )
        config = self.folder / "kubelet.yaml"
        config.write_text(yaml.safe_dump(self.kubelet_configuration(plane.identities.authority.certificate, user)))
        return Command(
            f"kubelet-{self.name}",
            (
                str(plane.binaries / "kubelet"),
                f"--config={config}",
                f"--kubeconfig={plane.kubeconfig(f'kubelet-{self.name}', user)}",
                f"--hostname-override={self.name}",
                f"--node-ip={node_address(self.number)}",
                f"--root-dir={self.folder}/kubelet",
            ),
        )

    def kubelet_configuration(self, authority: Path, pair: KeyPair) -> dict[str, Any]:
        """A kubelet without cgroups, image collection and eviction; callers are authenticated and authorized as usual."""
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "address": node_address(self.number),
            "tlsCertFile": str(pair.certificate),
            "tlsPrivateKeyFile": str(pair.key),
            "readOnlyPort": 0,
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "clusterDNS": [DNS_ADDRESS],
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "podLogsDir": str(self.logs),
            "volumePluginDir": f"{self.folder}/plugins",
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 10,
            "syncFrequency": "10s",
            "maxPods": 200,
            "serializeImagePulls": False,
            "configMapAndSecretChangeDetectionStrategy": "Watch",
            "featureGates": {"EventedPLEG": True},
            **_WITHOUT_LIMITS,
        }


_WITHOUT_LIMITS: dict[str, Any] = {
    "cgroupDriver": "cgroupfs",
    "cgroupsPerQOS": False,
    "failCgroupV1": False,
    "enforceNodeAllocatable": [],
    "localStorageCapacityIsolation": False,
    "makeIPTablesUtilChains": False,
    "failSwapOn": False,
    "oomScoreAdj": 0,
    "evictionHard": dict.fromkeys(
        ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"), "0%"
    ),
    "imageGCHighThresholdPercent": 100,
}


def kube_proxy(plane: ControlPlane) -> Command:
    """Write kube-proxy's configuration and return its command; one serves all nodes, which share a network namespace."""
    user = plane.identities.authority.issue("system:kube-proxy", file="kube-proxy")
    config = plane.folder / "kube-proxy.json"
    config.write_text(json.dumps(_proxy_configuration(plane.kubeconfig("kube-proxy", user))))
    return Command("kube-proxy", (str(plane.binaries / "kube-proxy"), f"--config={config}"))


def _proxy_configuration(kubeconfig: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": "n1",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": _POD_RANGE,
        # The kernel's table is the host's own: its limits are left alone.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "nftables": {"minSyncPeriod": "100ms"},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }
