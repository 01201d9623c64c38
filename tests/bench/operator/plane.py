"""The control plane of one measurement: a new API server with Tandem's definitions, tenants' namespaces and an account."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.operator.cases import NAMESPACES, namespace
from bench.operator.counting import Request, requests
from support import accounts
from support.installed import install
from support.kube import Kube
from tandem_local.apiserver import ApiServer
from tandem_operator.cluster.access import Access, Call, load_configuration
from tandem_operator.cluster.kinds import Kind
from tandem_operator.cluster.permissions import PERMISSIONS

__all__ = ["Plane", "missing", "plane", "transport"]


@dataclass(frozen=True, slots=True)
class Plane:
    """A running control plane."""

    admin: Path
    """Kubeconfig of the administrator, who plays everybody but the operator."""
    account: Path
    """Kubeconfig of the operator."""
    kube: Kube

    def requests(self) -> Counter[Request]:
        """Return what the API server was asked so far."""
        return requests(self.kube.text("/metrics"))


@contextmanager
def plane(binaries: Path, folder: Path) -> Iterator[Plane]:
    """Start etcd and kube-apiserver. No controllers run: what they would say is said by patches."""
    folder.mkdir()
    with ApiServer.start(binaries, folder) as server:
        kube = Kube(server.kubeconfig, folder)
        install(kube)
        for name in map(namespace, range(NAMESPACES)):
            kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            # Made by a controller elsewhere; a pod without it is refused.
            kube.within(name).create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        account = accounts.create(kube, server.kubeconfig, folder, PERMISSIONS)
        yield Plane(server.kubeconfig, account, kube)


@asynccontextmanager
async def transport(kubeconfig: Path) -> AsyncIterator[Access]:
    """The operator's own transport."""
    access = Access(await load_configuration(str(kubeconfig)), observe=lambda _call, _code: None, may_write=lambda: True)
    try:
        yield access
    finally:
        await access.close()


async def missing(access: Access, wanted: Mapping[Kind, int]) -> dict[str, int]:
    """Return a kind of which the API server has fewer objects than wanted, with how many it lacks; empty if there is none.

    What stands last in `wanted` is asked about first: where it is made last, one question is enough nearly always.
    """
    for kind, count in reversed(wanted.items()):
        if (lacking := count - await _count(access, kind)) > 0:
            return {kind.label: lacking}
    return {}


async def _count(access: Access, kind: Kind) -> int:
    page = await access.call(Call("list", kind, query={"limit": "1"}))
    return len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
