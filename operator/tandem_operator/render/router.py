"""The router's objects. They are not frozen: an upgrade of the operator moves routers forward."""

from collections.abc import Iterator
from typing import Any

from tandem_api import names, ports
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.policies import ownership, roles
from tandem_operator.render import labels, templating
from tandem_operator.render.arguments import literal
from tandem_operator.render.context import Owner, Settings

__all__ = ["render_router"]

_FAREWELL = 5
"""Seconds that a router pod goes on accepting after it was told to go."""
_MARGIN = 10


_KEYS_PATH = "/var/run/secrets/tandem/keys"
_TLS_PATH = "/var/run/secrets/tandem/tls"


def render_router(owner: Owner, spec: InferenceServiceSpec, settings: Settings) -> tuple[dict[str, Any], ...]:
    """Return the router's account, binding, Service and Deployment."""
    values = {
        "name": names.router(owner.name),
        "namespace": owner.namespace,
        "owner": owner.reference(),
        "labels": labels.metadata_labels(owner.name, labels.ROUTER),
        "selector": labels.component_selector(owner.name, labels.ROUTER),
        "cluster_role": settings.router_cluster_role,
        "service_port": ports.SERVICE_HTTPS if spec.router.tls else ports.SERVICE_PUBLIC,
        "scheme": "https" if spec.router.tls else "http",
        "token_path": ownership.SERVICE_TOKEN_PATH,
        "token_secret": names.token_secret(owner.name, owner.uid),
        "keys_path": _KEYS_PATH,
        "keys_secret": spec.router.auth.secret_ref.name if spec.router.auth else None,
        "tls_path": _TLS_PATH,
        "tls_secret": spec.router.tls.secret_name if spec.router.tls else None,
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
        "--token-file": f"{ownership.SERVICE_TOKEN_PATH}/token",
        "--min-prompt-tokens": str(transfer.min_prompt_tokens),
        "--on-prefill-failure": transfer.on_prefill_failure.value,
        "--drain": spec.router.drain,
        "--handover": _handover(spec),
    }
    return [
        word
        for pair in (*line.items(), *_targets(spec), *_admission(spec), *_edge(spec), *_tracing(spec))
        for word in pair
        if word
    ]


def _handover(spec: InferenceServiceSpec) -> str:
    """Return when streams leave a decode worker that goes: late, and with time enough to compute their prompts elsewhere."""
    drain = roles.seconds(roles.role_spec(spec, roles.roles(spec)[-1]).drain)
    return f"{drain * 3 // 4}s"


def _targets(spec: InferenceServiceSpec) -> Iterator[tuple[str, str]]:
    if spec.slo and spec.slo.ttft:
        yield ("--slo-ttft", spec.slo.ttft.target)
        yield ("--slo-ttft-per-thousand", spec.slo.ttft.per_thousand_tokens)
    if spec.slo and spec.slo.tpot:
        yield ("--slo-tpot", spec.slo.tpot.target)


def _admission(spec: InferenceServiceSpec) -> Iterator[tuple[str, str]]:
    """Return how requests wait, and by what they are refused; an empty word is a flag without a value."""
    decode = roles.roles(spec)[-1]
    yield ("--max-queue", str(spec.router.queue.max_requests))
    yield ("--max-wait", spec.router.queue.max_wait)
    yield ("--decode-requests", str(roles.engine_numbers(spec, decode).sequences))
    for lane in spec.router.lanes:
        yield ("--lane", f"{lane.name},{lane.min_prompt_tokens},{lane.max_in_flight},{lane.timeout or ''}")
    if spec.slo and spec.slo.ttft:
        yield ("--refuse-late", "")
    if spec.slo and spec.slo.tpot:
        yield ("--keep-tpot", "")


def _edge(spec: InferenceServiceSpec) -> Iterator[tuple[str, str]]:
    limits = spec.router.rate_limits
    if spec.router.auth:
        yield ("--api-keys", _KEYS_PATH)
    if spec.router.tls:
        yield ("--tls", _TLS_PATH)
    if limits and limits.requests_per_minute:
        yield ("--requests-per-minute", str(limits.requests_per_minute))
    if limits and limits.tokens_per_minute:
        yield ("--tokens-per-minute", str(limits.tokens_per_minute))
    if limits:
        yield ("--replicas", str(spec.router.replicas))


def _tracing(spec: InferenceServiceSpec) -> Iterator[tuple[str, str]]:
    if spec.observability and spec.observability.tracing:
        yield ("--trace-endpoint", spec.observability.tracing.endpoint)
        yield ("--trace-percent", str(spec.observability.tracing.sampling))


def _pull_secrets(spec: InferenceServiceSpec, settings: Settings) -> list[str]:
    """Return the installation's secrets and those of the workers: the router's own account inherits none."""
    found = list(settings.image_pull_secrets)
    for role in roles.roles(spec):
        template = roles.role_spec(spec, role).template or {}
        found += [secret["name"] for secret in template.get("spec", {}).get("imagePullSecrets", [])]
    return list(dict.fromkeys(found))
