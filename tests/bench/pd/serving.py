"""A service with real engines on a local cluster, as users have it: the chart, kubectl, the router's Service.

Each engine has one core to itself among the engines. Everything else runs wherever the kernel puts it, in every arrangement.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.pd.cases import WORKERS, Arrangement, manifest
from bench.pd.clients import Service
from support import deployed, real_engines
from tandem_cli import install_command
from tandem_local import cluster as local
from tandem_local import environments, folders
from tandem_local.cluster import Cluster

__all__ = ["MODEL", "Site", "check", "cores", "site"]

MODEL = "SmolLM2-135M-Instruct"
_NAMESPACE = "bench"
_READY_SECONDS = 600
_GONE_SECONDS = 180


def check() -> None:
    """Find out whether the real engines can run.

    Raises:
        RuntimeError: vLLM or its model is not there.
    """
    if environments.environment("vllm") is None or not (folders.cache_folder() / "models" / MODEL / "config.json").is_file():
        raise RuntimeError("vLLM or its model is not there: run `make setup` without ENGINE=simulator")


def cores() -> tuple[int, ...]:
    """Return the cores of the engines.

    Raises:
        RuntimeError: there are too few.
    """
    found = sorted(os.sched_getaffinity(0))
    if len(found) < WORKERS:
        raise RuntimeError(f"the benchmark needs {WORKERS} cores, one for each engine; there is {len(found)}")
    return tuple(found[:WORKERS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A cluster with Tandem installed, on which one service is served at a time."""

    cluster: Cluster
    cores: tuple[int, ...]
    simulator: bool

    @contextmanager
    def serving(self, arrangement: Arrangement) -> Iterator[Service]:
        """Serve an arrangement with fresh engines; afterwards nothing of it is left.

        What fails inside leaves the service for the logs; it ends with the cluster.
        """
        tree = manifest(arrangement, simulator=self.simulator)
        name = tree["metadata"]["name"]
        sys.stderr.write(f"starting: {arrangement.name}\n")
        deployed.apply(self.cluster, _NAMESPACE, tree)
        deployed.wait_for(
            lambda: deployed.condition(self.cluster, _NAMESPACE, name).get("status") == "True",
            what=f"{arrangement.name} is ready",
            seconds=_READY_SECONDS,
            words=lambda: self._last_words(name),
        )
        self._pin(name)
        url = deployed.router_url(self.cluster, _NAMESPACE, name)
        yield Service(url=url, model=tree["spec"]["model"]["servedName"])
        self.cluster.kubectl("-n", _NAMESPACE, "delete", "inferenceservice", name)
        deployed.wait_for(
            lambda: not deployed.left(self.cluster, _NAMESPACE, name),
            what=f"nothing of {arrangement.name} is left",
            seconds=_GONE_SECONDS,
            words=lambda: str(deployed.left(self.cluster, _NAMESPACE, name)),
        )

    def _pin(self, name: str) -> None:
        pods = deployed.worker_pods(self.cluster, _NAMESPACE, name)
        for pod, core in zip(pods, self.cores, strict=True):
            deployed.pin_engine(self.cluster, pod["metadata"]["name"], core)

    def _last_words(self, name: str) -> str:
        return "\n".join(tell(self.cluster, _NAMESPACE, name) for tell in (deployed.describe, real_engines.last_words))


@contextmanager
def site(*, simulator: bool) -> Iterator[Site]:
    """A cluster of one node, which ends with the block.

    Raises:
        RuntimeError: the machine has too few cores.
        LocalClusterError: it cannot run a cluster; the message says what to do.
    """
    chosen = cores()
    with local.up(name=f"bench-pd-{os.getpid()}") as cluster:
        install_command.install(cluster)
        cluster.kubectl("create", "namespace", _NAMESPACE)
        yield Site(cluster=cluster, cores=chosen, simulator=simulator)
