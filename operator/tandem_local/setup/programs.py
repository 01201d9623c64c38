"""The control plane's programs: what they are called and what each is built from. Pure."""

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tandem_local.setup.errors import SetupError
from tandem_local.setup.stamps import digest

__all__ = ["PROGRAMS", "Program", "architecture", "kubernetes_version"]

_COMMANDS = "k8s.io/kubernetes/cmd"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Program:
    """One program."""

    name: str
    package: str
    """What Go builds: a package of a dependency, or a folder of the module itself."""
    seconds: float
    """Build time on two cores with nothing cached."""
    module: str = "."
    """Folder of its Go module, below the folder of all of them."""
    official: bool = False
    """Whether the Kubernetes project offers it for download."""

    def inputs(self, modules: Path) -> str:
        """Return the digest of everything that shapes the program: its module's pins, its own sources, the build's flags."""
        folder = modules / self.module
        own = sorted((folder / self.package).glob("*.go")) if self.package.startswith(".") else []
        files = [folder / "go.mod", folder / "go.sum", *own]
        return digest(files=files, texts=[architecture(), *self.link_flags(modules)])

    def link_flags(self, modules: Path) -> list[str]:
        """Return the linker's flags: no debugging information, and the version that Kubernetes' programs report."""
        plain = ["-s", "-w"]
        if not self.official:
            return plain
        version = kubernetes_version(modules)
        major, minor, *_ = version.removeprefix("v").split(".")
        base, client = "k8s.io/component-base/version", "k8s.io/client-go/pkg/version"
        values = [
            f"{base}.gitVersion={version}",
            f"{base}.gitMajor={major}",
            f"{base}.gitMinor={minor}",
            f"{client}.gitVersion={version}",
        ]
        return [*plain, *(part for value in values for part in ("-X", value))]


PROGRAMS = (
    Program("etcd", "go.etcd.io/etcd/server/v3", 60),
    Program("kube-apiserver", f"{_COMMANDS}/kube-apiserver", 480, official=True),
    Program("kube-controller-manager", f"{_COMMANDS}/kube-controller-manager", 240, official=True),
    Program("kube-scheduler", f"{_COMMANDS}/kube-scheduler", 30, official=True),
    Program("kubelet", f"{_COMMANDS}/kubelet", 150, official=True),
    Program("kube-proxy", f"{_COMMANDS}/kube-proxy", 50, official=True),
    Program("streamer", "./streamer", 20),
    Program("coredns", ".", 120, module="dns"),
)


def kubernetes_version(modules: Path) -> str:
    """Return the version of Kubernetes that the modules pin, such as `v1.37.2`."""
    found = re.search(r"k8s\.io/kubernetes (v\S+)", (modules / "go.mod").read_text())
    if not found:
        raise SetupError(f"{modules / 'go.mod'} pins no k8s.io/kubernetes: the checkout is not whole")
    return found[1]


def architecture() -> str:
    """Return this machine's architecture as Go calls it.

    Raises:
        SetupError: none of the programs is offered for it.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise SetupError(f"the architecture {machine} is not supported: use a machine with {' or '.join(_ARCHITECTURES)}")
    return _ARCHITECTURES[machine]
