"""Frozen renderings: a role's pod template is rendered once per role hash and kept in a ControllerRevision.

Whatever a later operator would render, workers of that hash go on as they are. Objects around the pods (Deployment,
headless Service) are rendered anew from the frozen part; only the pods are what must not change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tandem_api import labels as keys
from tandem_api import names, ports
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies import roles
from tandem_operator.render import hashes, labels, templating
from tandem_operator.render.context import Owner, Settings
from tandem_operator.render.worker_pod import worker_pod_template

__all__ = ["Frozen", "RoleRendered", "freeze", "render_role", "thaw"]

_PULL_TIME = 600
"""Seconds for scheduling and image pulls, on top of `startup`, before a Deployment counts as stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """`data` of a ControllerRevision."""

    role: Role
    role_hash: str
    kv_group: str
    compatibility: Mapping[str, Any]
    """What the KV group is made of; empty in revisions of operators that did not keep it."""
    progress_deadline: int
    """Seconds."""
    operator_version: str
    """Version that rendered it."""
    template: dict[str, Any]
    """The pod template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRendered:
    """One role at one role hash: the current one, or an older one that still has workers."""

    role: Role
    role_hash: str
    kv_group: str
    compatibility: Mapping[str, Any]
    deployment_template: dict[str, Any]
    """The worker Deployment without `spec.replicas`."""
    headless_service: dict[str, Any]
    revision: dict[str, Any]
    """The ControllerRevision that freezes this rendering."""
    pool: dict[str, Any] | None
    """The role's WorkerPool without `spec.replicas`; None for an older hash."""

    @property
    def objects(self) -> tuple[dict[str, Any], ...]:
        """Children that exist exactly as long as this hash has workers, besides its Deployment.

        The revision comes first: pods of a rendering that was not kept could not be recognised by a later operator.
        """
        return (self.revision, self.headless_service)


def freeze(owner: Owner, spec: InferenceServiceSpec, role: Role, settings: Settings) -> Frozen:
    """Render the pods of a role for the first time."""
    return Frozen(
        role=role,
        role_hash=hashes.role_hash(spec, role),
        kv_group=hashes.kv_group(spec),
        compatibility=hashes.compatibility(spec),
        progress_deadline=roles.seconds(roles.role_spec(spec, role).startup) + _PULL_TIME,
        operator_version=settings.operator_version,
        template=worker_pod_template(owner, spec, role, settings),
    )


def thaw(name: str, data: Mapping[str, Any]) -> Frozen:
    """Read the `data` of the ControllerRevision called `name`.

    Raises:
        ValueError: it is not such a revision.
    """
    try:
        return Frozen(
            role=Role(data["role"]),
            role_hash=data["roleHash"],
            kv_group=data["kvGroup"],
            compatibility=dict(data.get("compatibility", {})),
            progress_deadline=int(data["progressDeadlineSeconds"]),
            operator_version=data["operatorVersion"],
            template=dict(data["template"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"ControllerRevision '{name}' cannot be read ({error!r}): delete it to have its workers rendered anew"
        ) from error


def render_role(
    owner: Owner, frozen: Frozen, *, pool: dict[str, Any] | None, progress_deadline: int | None = None
) -> RoleRendered:
    """Return the objects of one role hash around its frozen pod template.

    Args:
        owner: The InferenceService.
        frozen: The rendering that is kept.
        pool: The role's WorkerPool; None for an older hash.
        progress_deadline: Seconds in place of the frozen ones.
    """
    values = _values(owner, frozen)
    if progress_deadline is not None:
        values["progress_deadline"] = progress_deadline
    return RoleRendered(
        role=frozen.role,
        role_hash=frozen.role_hash,
        kv_group=frozen.kv_group,
        compatibility=frozen.compatibility,
        deployment_template=templating.render("worker-deployment", values),
        headless_service=templating.render("worker-service", values),
        revision=templating.render("revision", values),
        pool=pool,
    )


def _values(owner: Owner, frozen: Frozen) -> dict[str, Any]:
    identity = {keys.ROLE_HASH: frozen.role_hash, keys.KV_GROUP: frozen.kv_group}
    # Not `asdict`, which would copy the template value by value: half the cost of rendering a service.
    return {field.name: getattr(frozen, field.name) for field in fields(frozen)} | {
        "name": names.worker_deployment(owner.name, frozen.role, frozen.role_hash),
        "namespace": owner.namespace,
        "owner": owner.reference(),
        "labels": labels.metadata_labels(owner.name, frozen.role.value) | identity,
        "selector": labels.worker_selector(owner.name, frozen.role, frozen.role_hash),
        "engine_port": ports.ENGINE,
        "sidecar_port": ports.SIDECAR,
        "data": {
            "role": frozen.role.value,
            "roleHash": frozen.role_hash,
            "kvGroup": frozen.kv_group,
            # A revision cannot be changed, so one that was made without this stays without it.
            **({"compatibility": dict(frozen.compatibility)} if frozen.compatibility else {}),
            "progressDeadlineSeconds": frozen.progress_deadline,
            "operatorVersion": frozen.operator_version,
            "template": frozen.template,
        },
    }
