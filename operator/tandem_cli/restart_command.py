"""`tandem restart`: workers of both roles are replaced by a rollout, rendered by the operator of today, on the user's word.

It writes the time into `spec.runtimeVersion` and nothing else, so a restart is a change of the spec like any other: the same
limits, canary and pause, and `tandem rollback` goes back. It never touches a pod or a Deployment.
"""

import argparse
import datetime as dt
import sys
from typing import Any

from tandem_cli import users_kubectl
from tandem_cli.errors import CommandError

__all__ = ["add_commands", "outcome", "patch", "version_at"]

_FIELD = "runtimeVersion"


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("restart", help="replace a service's workers by ones of the present operator")
    users_kubectl.add_service(parser)
    parser.set_defaults(func=_restart)


def _restart(arguments: argparse.Namespace) -> int:
    version = version_at(dt.datetime.now(dt.UTC))
    steps = patch(users_kubectl.service(arguments), version)
    sys.stdout.write(outcome(users_kubectl.patch_service(arguments, steps), version))
    return 0


def version_at(now: dt.datetime) -> str:
    """Return a time in UTC as a value of `runtimeVersion`, to the second: twice within one is one restart."""
    return now.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")


def patch(service: dict[str, Any], version: str) -> list[dict[str, Any]]:
    """Return the JSON patch that restarts a service; its first step guards against other changes."""
    return [users_kubectl.guard(service), {"op": "add", "path": f"/spec/{_FIELD}", "value": version}]


def outcome(stored: dict[str, Any], version: str) -> str:
    """Return what to tell the user of the service as it is stored after the patch.

    Raises:
        CommandError: the cluster's definition has no such field, and the API server dropped it.
    """
    name, spec = stored["metadata"]["name"], stored["spec"]
    if spec.get(_FIELD) != version:
        raise CommandError(
            f"nothing was restarted: the cluster's definition of InferenceService has no `{_FIELD}`; upgrade Tandem there"
        )
    said = f"Workers of {name} are to be replaced (`{_FIELD}` is {version}): kubectl get tsvc {name} -w\n"
    if spec.get("rollout", {}).get("paused"):
        said += "The rollout is paused: they stay until `spec.rollout.paused` is false.\n"
    return said
