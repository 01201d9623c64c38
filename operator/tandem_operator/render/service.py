"""All children of one service, from its spec.

Worker Deployments are not among `Rendered.objects`, because the rollout planner decides their counts: make them with
`workers.worker_deployment`. Everything else is complete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tandem_api import names, ports
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies import roles
from tandem_operator.render import hashes, labels, templating
from tandem_operator.render.context import Owner, Settings
from tandem_operator.render.history import Past, render_history
from tandem_operator.render.network import render_network
from tandem_operator.render.revisions import Frozen, RoleRendered, freeze, render_role, thaw
from tandem_operator.render.router import render_router

__all__ = ["Rendered", "render_service"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Everything that one service should consist of."""

    objects: tuple[dict[str, Any], ...]
    """All children but worker Deployments and the `objects` of `previous`; in the order in which they are best applied."""
    roles: tuple[RoleRendered, ...]
    """The current hash of each role: prefill then decode, or aggregated alone."""
    previous: tuple[RoleRendered, ...]
    """Older hashes that were frozen in `revisions`, also of roles that the spec no longer has; apply their `objects` and
    Deployment while the planner keeps them."""


def render_service(
    *,
    owner: Owner,
    spec: InferenceServiceSpec,
    settings: Settings,
    revisions: Mapping[str, Mapping[str, Any]],
    past: Sequence[Past] = (),
) -> Rendered:
    """Render the children of one service.

    Args:
        owner: The InferenceService.
        spec: Its spec, which `policies.acceptance.accept` found without errors.
        settings: What the installation configured.
        revisions: Name of each existing ControllerRevision of this service, with its `data`. A role whose current hash
            is among them keeps its frozen pod template, so that an upgrade of the operator restarts no model.
        past: The revisions of the spec that are kept.

    Raises:
        ValueError: a revision holds something that this operator cannot read; the message names it.
    """
    frozen = {name: thaw(name, data) for name, data in revisions.items()}
    current = [_current(owner, spec, role, settings, frozen) for role in roles.roles(spec)]
    kept = {found.deployment_template["metadata"]["name"] for found in current}
    deadline = _deadline(spec)
    previous = [
        render_role(owner, old, pool=None, progress_deadline=deadline)
        for name, old in sorted(frozen.items())
        if name not in kept
    ]
    return Rendered(
        objects=(
            *render_network(owner, settings),
            *(found.pool for found in current if found.pool),
            *(child for found in current for child in found.objects),
            *render_history(owner, spec, past),
            *(_peers(owner, found.role) for found in current if found.role is Role.PREFILL),
            *render_router(owner, spec, settings),
            *(_budget(owner, component) for component in (*(found.role.value for found in current), labels.ROUTER)),
        ),
        roles=tuple(current),
        previous=tuple(previous),
    )


def _current(
    owner: Owner, spec: InferenceServiceSpec, role: Role, settings: Settings, frozen: Mapping[str, Frozen]
) -> RoleRendered:
    name = names.revision(owner.name, role, hashes.role_hash(spec, role))
    found = frozen.get(name) or freeze(owner, spec, role, settings)
    return render_role(owner, found, pool=_pool(owner, role), progress_deadline=_deadline(spec))


def _deadline(spec: InferenceServiceSpec) -> int | None:
    asked = spec.rollout.progress_deadline
    return None if asked is None else roles.seconds(asked)


def _pool(owner: Owner, role: Role) -> dict[str, Any]:
    return templating.render(
        "worker-pool",
        {
            "name": names.worker_pool(owner.name, role),
            "namespace": owner.namespace,
            "owner": owner.reference(),
            "labels": labels.metadata_labels(owner.name, role.value),
            "service": owner.name,
            "role": role.value,
        },
    )


def _peers(owner: Owner, role: Role) -> dict[str, Any]:
    return templating.render(
        "worker-peers",
        {
            "name": names.peers(owner.name, role),
            "namespace": owner.namespace,
            "owner": owner.reference(),
            "labels": labels.metadata_labels(owner.name, f"{role.value}-peers"),
            "selector": labels.component_selector(owner.name, role.value),
            "engine_port": ports.ENGINE,
            "sidecar_port": ports.SIDECAR,
        },
    )


def _budget(owner: Owner, component: str) -> dict[str, Any]:
    return templating.render(
        "disruption-budget",
        {
            "name": names.pod_disruption_budget(owner.name, component),
            "namespace": owner.namespace,
            "owner": owner.reference(),
            "labels": labels.metadata_labels(owner.name, component),
            "selector": labels.component_selector(owner.name, component),
        },
    )
