"""`tandem up`, `tandem down` and `tandem kubectl`: the local cluster from the command line.

Only translates arguments, prints progress and turns errors into the command line's own; the cluster is `tandem_local`.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from tandem_cli.errors import CommandError
from tandem_local import cluster
from tandem_local.environments import KINDS, parse_mapping
from tandem_local.errors import LocalClusterError

__all__ = ["add_commands"]

_NO_PREFIX = "\0"


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands; each parser's `func` takes the parsed arguments and returns an exit code."""
    _add_up(subparsers.add_parser("up", help="start a local Kubernetes cluster on this machine"))
    down = subparsers.add_parser("down", help="end a local cluster and delete everything that it made")
    _add_name(down)
    down.set_defaults(func=_down)
    kubectl = subparsers.add_parser(
        "kubectl",
        help="run kubectl against a local cluster: tandem kubectl [--name NAME] ARGS...",
        add_help=False,
        prefix_chars=_NO_PREFIX,  # every argument is kubectl's own, also those with dashes
    )
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    kubectl.set_defaults(func=_kubectl)


def _add_up(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="number of nodes (default: 1)")
    parser.add_argument(
        "--gpus-per-node", type=int, default=0, metavar="K", help="nvidia.com/gpu that each node offers, none real (default: 0)"
    )
    parser.add_argument(
        "--map-image",
        action="append",
        default=[],
        metavar="NAME=KIND",
        help=f"let an image name stand for an environment of this machine: {' or '.join(KINDS)}; may be repeated",
    )
    parser.add_argument("--keep-logs", type=Path, metavar="FOLDER", help="copy the cluster's logs there when it ends")
    parser.set_defaults(func=_up)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=_chosen_name(), help="name of the cluster (default: TANDEM_CLUSTER, else 'default')")


def _chosen_name() -> str:
    return os.environ.get("TANDEM_CLUSTER") or cluster.DEFAULT_NAME


def _up(arguments: argparse.Namespace) -> int:
    try:
        started = cluster.up(
            name=arguments.name,
            nodes=arguments.nodes,
            gpus_per_node=arguments.gpus_per_node,
            images=parse_mapping(arguments.map_image),
            keep_logs=arguments.keep_logs,
            progress=_print_step,
        )
    except LocalClusterError as error:
        raise CommandError(str(error)) from error
    started.detach()
    named = f" --name {started.name}"
    sys.stdout.write(
        f"Cluster '{started.name}' is ready.\n"
        f"  tandem kubectl{named} get nodes\n"
        f"  export KUBECONFIG={started.kubeconfig}\n"
        f"  tandem down{named}\n"
    )
    return 0


def _down(arguments: argparse.Namespace) -> int:
    try:
        ended = cluster.down(arguments.name)
    except LocalClusterError as error:
        raise CommandError(str(error)) from error
    sys.stdout.write(f"Cluster '{arguments.name}' is gone.\n" if ended else f"There is no cluster '{arguments.name}'.\n")
    return 0


def _kubectl(arguments: argparse.Namespace) -> NoReturn:
    """Become kubectl, so that signals, terminals and exit codes are its own."""
    name, rest = split_name(arguments.arguments, default=_chosen_name())
    try:
        found, program = cluster.find(name), cluster.kubectl_program()
    except LocalClusterError as error:
        raise CommandError(str(error)) from error
    environment = {**os.environ, "KUBECONFIG": str(found.kubeconfig)}
    os.execve(program, ["kubectl", *rest], environment)  # noqa: S606 - see the docstring


def split_name(arguments: list[str], *, default: str) -> tuple[str, list[str]]:
    """Take a leading `--name NAME` or `--name=NAME` off kubectl's arguments."""
    match arguments:
        case ["--name", name, *rest]:
            return name, rest
        case [first, *rest] if first.startswith("--name="):
            return first.removeprefix("--name="), rest
        case _:
            return default, arguments


def _print_step(seconds: float, text: str) -> None:
    sys.stdout.write(f"[{seconds:5.1f} s] {text}\n")
    sys.stdout.flush()
