"""The router's objects. They are not frozen: an upgrade of the operator moves routers forward."""

from collections.abc import Iterator
from typing import Any

from tandem_api import names, ports
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.policies import roles
from tandem_operator.render import labels, templating
from tandem_operator.render.arguments import literal
from tandem_operator.render.context import Owner, Settings

__all__ = ["address", "render_router"]

_FAREWELL = 5
"""Seconds that a router pod goes on accepting after it was told to go."""
_MARGIN = 10


def address(owner: Owner) -> str:
    """Return where clients inside the cluster reach the service."""
    return f"http://{names.router(owner.name)}.{owner.namespace}.svc"


def render_router(owner: Owner, spec: InferenceServiceSpec, settings: Settings) -> tuple[dict[str, Any], ...]:
    """Return the router's account, binding, Service and Deployment."""
    values = {
        "name": names.router(owner.name),
        "namespace": owner.namespace,
        "owner": owner.reference(),
        "labels": labels.metadata_labels(owner.name, labels.ROUTER),
        "selector": labels.component_selector(owner.name, labels.ROUTER),
        "cluster_role": settings.router_cluster_role,
        "service_port": ports.SERVICE_PUBLIC,
        "public_port": ports.ROUTER_PUBLIC,
        "admin_port": ports.ROUTER_ADMIN,
        "replicas": spec.router.replicas,
        "args": router_arguments(owner, spec),
        "farewell": _FAREWELL,
        "grace_period": _FAREWELL + roles.seconds(spec.router.drain) + _MARGIN,
        "workers_image": settings.workers_image,
        "pull_policy": settings.image_pull_policy,
        "pull_secrets": _pull_secrets(spec, settings),
    }
    kinds = ("router-account", "router-binding", "router-service", "router-deployment")
    return tuple(templating.render(kind, values) for kind in kinds)


def router_arguments(owner: Owner, spec: InferenceServiceSpec) -> list[str]:
    """Return the router's complete argument line."""
    transfer = roles.kv_transfer(spec)
    line = {
        "--service": owner.name,
        "--namespace": owner.namespace,
        "--model": literal(roles.served_name(spec)),
        "--port": str(ports.ROUTER_PUBLIC),
        "--admin-port": str(ports.ROUTER_ADMIN),
        "--min-prompt-tokens": str(transfer.min_prompt_tokens),
        "--on-prefill-failure": transfer.on_prefill_failure.value,
        "--drain": spec.router.drain,
    }
    return [word for pair in (*line.items(), *_targets(spec)) for word in pair]


def _targets(spec: InferenceServiceSpec) -> Iterator[tuple[str, str]]:
    if spec.slo and spec.slo.ttft:
        yield ("--slo-ttft", spec.slo.ttft.target)
        yield ("--slo-ttft-per-thousand", spec.slo.ttft.per_thousand_tokens)
    if spec.slo and spec.slo.tpot:
        yield ("--slo-tpot", spec.slo.tpot.target)


def _pull_secrets(spec: InferenceServiceSpec, settings: Settings) -> list[str]:
    """Return the installation's secrets and those of the workers: the router's own account inherits none."""
    found = list(settings.image_pull_secrets)
    for role in roles.roles(spec):
        template = roles.role_spec(spec, role).template or {}
        found += [secret["name"] for secret in template.get("spec", {}).get("imagePullSecrets", [])]
    return list(dict.fromkeys(found))
