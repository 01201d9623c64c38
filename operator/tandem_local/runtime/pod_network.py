"""Pods' network: one namespace, one veth and one routed address each.

There is no bridge: every packet crosses the node's routing, so that kube-proxy's translation of a Service address is undone on
the way back.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NetworkError", "PodNetwork", "PodNetworks"]

_FIRST, _LAST = 2, 254


class NetworkError(Exception):
    """A pod's network could not be made or removed."""


@dataclass(frozen=True, slots=True)
class PodNetwork:
    """A pod's network namespace (a path) and its IPv4 address."""

    path: str
    address: str


class PodNetworks:
    """Addresses `<prefix>.2` to `<prefix>.254` of one node; `<prefix>.1` is the node itself."""

    def __init__(self, node: str, prefix: str) -> None:
        self._node = node
        self._prefix = prefix
        self._used: set[str] = set()
        self._next = self._cycle()

    async def add(self, identifier: str) -> PodNetwork:
        """Make the network of one pod, named by the node and the start of a unique identifier.

        Raises:
            NetworkError: no address is left, or the kernel refused.
        """
        name = f"{self._node}-{identifier[:8]}"  # an interface's name, `v` and this, has at most 15 characters
        address, gateway = self._take(), f"{self._prefix}.1"
        try:
            await _ip(add_outside(name, address, gateway=gateway))
            await _ip(add_inside(address, gateway=gateway), namespace=name)
        except NetworkError:
            self._used.discard(address)
            raise
        return PodNetwork(f"/run/netns/{name}", address)

    async def remove(self, network: PodNetwork) -> None:
        """Remove a pod's network; its veth and route go with the namespace."""
        await _ip(f"netns del {Path(network.path).name}\n")
        self._used.discard(network.address)

    def _take(self) -> str:
        for _ in range(_LAST - _FIRST + 1):
            address = next(self._next)
            if address not in self._used:
                self._used.add(address)
                return address
        raise NetworkError(f"no address left in {self._prefix}.0/24")

    def _cycle(self) -> Iterator[str]:
        # Round and round, so that an address just given back is not reused at once by another pod.
        while True:
            yield from (f"{self._prefix}.{number}" for number in range(_FIRST, _LAST + 1))


def add_outside(name: str, address: str, *, gateway: str) -> str:
    """`ip -batch` lines on the node's side.

    The veth has the gateway's address, as every pod's has, so that masquerading finds one.
    """
    return (
        f"netns add {name}\n"
        f"link add v{name} type veth peer name eth0 netns {name}\n"
        f"link set v{name} up\n"
        f"addr add {gateway}/32 dev v{name}\n"
        f"route add {address}/32 dev v{name}\n"
    )


def add_inside(address: str, *, gateway: str) -> str:
    """`ip -batch` lines in the pod's namespace."""
    return (
        "link set lo up\n"
        "link set eth0 up\n"
        f"addr add {address}/32 dev eth0\n"
        f"route add {gateway} dev eth0 scope link\n"
        f"route add default via {gateway}\n"
    )


async def _ip(batch: str, *, namespace: str | None = None) -> None:
    where = ["-n", namespace] if namespace else []
    process = await asyncio.create_subprocess_exec(
        "ip",
        *where,
        "-batch",
        "-",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate(batch.encode())
    if process.returncode:
        raise NetworkError(f"ip {' '.join(where)}: {output.decode().strip()}; the commands were:\n{batch}")
