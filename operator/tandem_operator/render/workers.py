"""Worker Deployments, whose counts come from the rollout planner and from nowhere else."""

from typing import Any

from tandem_operator.render.revisions import RoleRendered

__all__ = ["worker_deployment"]


def worker_deployment(rendered: RoleRendered, replicas: int) -> dict[str, Any]:
    """Return the complete Deployment of one role and role hash with `replicas` workers (0 or more)."""
    template = rendered.deployment_template
    return template | {"spec": template["spec"] | {"replicas": replicas}}
