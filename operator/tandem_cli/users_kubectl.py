"""One InferenceService on the user's cluster, through the user's own kubectl: what commands on a service have in common.

Whoever runs a command is whom the API server sees, with their rights and their context; nothing here logs in by itself.
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from typing import Any

from tandem_cli.errors import CommandError
from tandem_local.cluster import kubectl_program
from tandem_local.errors import LocalClusterError

__all__ = ["add_service", "guard", "patch_service", "run", "service"]


def add_service(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a service."""
    parser.add_argument("service", metavar="NAME", help="the InferenceService")
    parser.add_argument("-n", "--namespace", help="its namespace (default: that of the kubeconfig's context)")


def service(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the service that the arguments name."""
    found: dict[str, Any] = json.loads(run(arguments, "get", "tsvc", arguments.service, "-o", "json"))
    return found


def guard(service: dict[str, Any]) -> dict[str, Any]:
    """Return the first step of a JSON patch, which refuses it if the spec was changed since `service` was read."""
    # The generation changes with the spec alone; the status is written at any time.
    return {"op": "test", "path": "/metadata/generation", "value": service["metadata"]["generation"]}


def patch_service(arguments: argparse.Namespace, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Apply a JSON patch and return the service as it is stored then."""
    words = ("--type", "json", "-p", json.dumps(steps), "-o", "json")
    stored: dict[str, Any] = json.loads(run(arguments, "patch", "tsvc", arguments.service, *words))
    return stored


def run(arguments: argparse.Namespace, *command: str) -> str:
    """Run kubectl in the namespace that the arguments name and return what it printed.

    Raises:
        CommandError: there is no kubectl, or it failed; the message is kubectl's own.
    """
    where = [] if arguments.namespace is None else ["--namespace", arguments.namespace]
    try:
        program = kubectl_program()
    except LocalClusterError as error:
        raise CommandError(str(error)) from error
    done = subprocess.run(  # noqa: S603 - the user's own kubectl, and no shell
        [program, *where, *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CommandError(done.stderr.strip())
    return done.stdout
