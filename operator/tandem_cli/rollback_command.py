"""`tandem history` and `tandem rollback`: the earlier revisions of a service's workers, and going back to one.

Going back is a change of the spec like any other: the operator rolls it out within the same limits, and workers of that
revision that are still there are used again. Replicas, router, promises and scaling stay as they are.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tandem_api import labels
from tandem_cli import users_kubectl
from tandem_cli.errors import CommandError
from tandem_operator.render.history import SHAPING
from tandem_operator.render.labels import HISTORY

__all__ = ["Revision", "add_commands", "differences", "patch"]

_ROLES = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class Revision:
    """One ControllerRevision of the history."""

    number: int
    created: str
    spec: dict[str, Any]


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add both commands."""
    history = subparsers.add_parser("history", help="list the revisions of a service's workers")
    rollback = subparsers.add_parser("rollback", help="go back to an earlier revision of a service's workers")
    for parser, run in ((history, _history), (rollback, _rollback)):
        users_kubectl.add_service(parser)
        parser.set_defaults(func=run)
    rollback.add_argument("--to", type=int, metavar="REVISION", help="number from `tandem history` (default: the one before)")


def _history(arguments: argparse.Namespace) -> int:
    found = _revisions(arguments)
    rows = [("REVISION", "MADE", "CHANGED")]
    for revision, before in zip(found, [*found[1:], None], strict=True):
        changed = "" if before is None else "; ".join(differences(before.spec, revision.spec))
        rows.append((str(revision.number), revision.created, changed))
    for number, made, changed in rows:
        sys.stdout.write(f"{number:<10}{made:<22}{changed}".rstrip() + "\n")
    return 0


def _rollback(arguments: argparse.Namespace) -> int:
    target = _chosen(_revisions(arguments), arguments.to)
    service = users_kubectl.service(arguments)
    steps = patch(service, target.spec)
    if not steps[1:]:
        sys.stdout.write(f"Revision {target.number} is what the spec already says.\n")
        return 0
    users_kubectl.patch_service(arguments, steps)
    sys.stdout.write(f"The spec is that of revision {target.number} again: kubectl get tsvc {arguments.service} -w\n")
    return 0


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return one line for each field that two revisions do not have alike, as `path: before -> after`."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return [
        f"{path}: {old.get(path, 'unset')} -> {new.get(path, 'unset')}"
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
    ]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    else:
        yield path, json.dumps(value)


def patch(service: dict[str, Any], target: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON patch that makes a service's workers those of a revision; its first step guards against other changes."""
    spec = service["spec"]
    steps = [users_kubectl.guard(service)]
    for name in SHAPING:
        wanted = _with_count(name, target[name], spec.get(name)) if name in target else None
        if wanted is None and name in spec:
            steps.append({"op": "remove", "path": f"/spec/{name}"})
        elif wanted is not None and wanted != spec.get(name):
            steps.append({"op": "add", "path": f"/spec/{name}", "value": wanted})
    return steps


def _with_count(name: str, wanted: Any, present: Any) -> Any:
    replicas = (present or {}).get("replicas") if name in _ROLES else None
    return wanted if replicas is None else {**wanted, "replicas": replicas}


def _chosen(revisions: Sequence[Revision], number: int | None) -> Revision:
    """Return the revision that is asked for; without a number the newest but the present one."""
    if number is None:
        if len(revisions) < 2:  # noqa: PLR2004 - the present one and one before
            raise CommandError("there is no earlier revision: `spec.rollout.historyLimit` says how many are kept")
        return revisions[1]
    found = next((each for each in revisions if each.number == number), None)
    if found is None:
        known = ", ".join(str(each.number) for each in revisions) or "none"
        raise CommandError(f"there is no revision {number}; kept are: {known}")
    return found


def _revisions(arguments: argparse.Namespace) -> list[Revision]:
    selector = f"{labels.SERVICE}={arguments.service},{labels.ROLE}={HISTORY}"
    listed = json.loads(users_kubectl.run(arguments, "get", "controllerrevisions", "-l", selector, "-o", "json"))["items"]
    found = [Revision(each["revision"], each["metadata"]["creationTimestamp"], each["data"]["spec"]) for each in listed]
    return sorted(found, key=lambda each: -each.number)
