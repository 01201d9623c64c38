"""`tandem install`: Tandem on a local cluster, by its own chart with the images that the cluster knows.

On any other cluster the chart is installed with Helm, from images that the user has built.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from tandem_cli import helm
from tandem_cli.errors import CommandError
from tandem_local import cluster
from tandem_local.errors import LocalClusterError

__all__ = ["NAMESPACE", "add_commands", "install"]

NAMESPACE = "tandem-system"
_CHART = Path(__file__).resolve().parents[2] / "charts" / "tandem"
_VALUES = {
    "image": {"repository": "tandem.local", "tag": "dev"},
    "nodePaths": {"allowed": True},
    "operator": {"replicas": 1},  # there is one node, so a standby would go with it
}


def install(target: cluster.Cluster, **values: Any) -> None:
    """Install the chart on a local cluster, with `values` besides the local images, and wait until the operator is ready.

    Raises:
        CommandError: the chart is not there, or Helm refused; the message says which.
    """
    if not _CHART.is_dir():
        raise CommandError(f"the chart is not at {_CHART}: run this from a checkout of Tandem")
    helm.install(
        _CHART, release="tandem", namespace=NAMESPACE, values={**_VALUES, **values}, kubeconfig=target.kubeconfig, wait=True
    )


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `install`."""
    parser = subparsers.add_parser("install", help="install Tandem on a local cluster, with its chart")
    default = os.environ.get("TANDEM_CLUSTER") or cluster.DEFAULT_NAME
    parser.add_argument("--name", default=default, help="name of the cluster (default: TANDEM_CLUSTER, else 'default')")
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    try:
        install(cluster.find(arguments.name))
    except LocalClusterError as error:
        raise CommandError(str(error)) from error
    sys.stdout.write(f"Tandem is installed on '{arguments.name}': tandem kubectl --name {arguments.name} apply -f MANIFEST\n")
    return 0
