"""What workers were made from before, so that a user can go back: the parts of the spec that shape pods, by revision.

One ControllerRevision for each pair of role hashes that the service ever had, the newest few of them. Replicas are left
out: going back changes what runs, not how much of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tandem_api import names
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.policies import roles
from tandem_operator.render import hashes, labels, templating
from tandem_operator.render.context import Owner

__all__ = ["SHAPING", "Past", "render_history"]

SHAPING = ("model", "profile", "engine", "prefill", "decode", "kvTransfer", "runtimeVersion")
"""Fields of the spec that a revision holds: all that a role hash is made of.

`runtimeVersion` is among them so that going back from a restart finds the hashes, and with them the workers and the frozen
rendering, that were there before it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One revision that is kept."""

    name: str
    number: int
    """The greater is the newer."""
    data: Mapping[str, Any]


def render_history(owner: Owner, spec: InferenceServiceSpec, past: Sequence[Past]) -> list[dict[str, Any]]:
    """Return the ControllerRevisions of a service: the present one as the newest, and as many older as the spec keeps.

    A revision that comes back is the newest again, and its data, which cannot be changed, stays as it was first written.
    """
    digest = "-".join(hashes.role_hash(spec, role) for role in roles.roles(spec))
    name = names.history(owner.name, digest)
    older = sorted((each for each in past if each.name != name), key=lambda each: -each.number)
    newest = max((each.number for each in older), default=0)
    known = next((each for each in past if each.name == name), None)
    number = known.number if known is not None and known.number > newest else newest + 1
    present = Past(name=name, number=number, data=known.data if known is not None else {"spec": _written(spec)})
    return [_revision(owner, each) for each in (present, *older[: spec.rollout.history_limit])]


def _written(spec: InferenceServiceSpec) -> dict[str, Any]:
    found = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    kept = {name: found[name] for name in SHAPING if name in found}
    return kept | {
        role: {name: value for name, value in kept[role].items() if name != "replicas"}
        for role in ("prefill", "decode")
        if kept.get(role)
    }


def _revision(owner: Owner, past: Past) -> dict[str, Any]:
    return templating.render(
        "history",
        {
            "name": past.name,
            "namespace": owner.namespace,
            "owner": owner.reference(),
            "labels": labels.metadata_labels(owner.name, labels.HISTORY),
            "number": past.number,
            "data": dict(past.data),
        },
    )
