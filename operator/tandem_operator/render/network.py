"""NetworkPolicies of one service: who reaches its routers and its workers. They are not frozen, since no pod restarts for them.

Only what comes in is limited. What a pod sends goes where users say (model hubs, tracing), which addresses cannot describe.
"""

from typing import Any

from tandem_api import names, ports
from tandem_api.names import Role
from tandem_operator.render import labels, templating
from tandem_operator.render.context import NetworkSettings, Owner, Settings

__all__ = ["WORKERS", "render_network"]

WORKERS = "workers"
"""Component of the policy over all roles: of those that the spec has, and of those whose pods are still going."""


def render_network(owner: Owner, settings: Settings) -> tuple[dict[str, Any], ...]:
    """Return the policy of the routers and that of the workers; none where the installation wants none."""
    if settings.network is None:
        return ()
    return tuple(_policy(owner, component, settings.network) for component in (labels.ROUTER, WORKERS))


def _policy(owner: Owner, component: str, network: NetworkSettings) -> dict[str, Any]:
    return templating.render(
        f"{component}-network",
        {
            "name": names.network_policy(owner.name, component),
            "namespace": owner.namespace,
            "owner": owner.reference(),
            "labels": labels.metadata_labels(owner.name, component),
            "routers": labels.component_selector(owner.name, labels.ROUTER),
            "workers": labels.components_selector(owner.name, [role.value for role in Role]),
            "client_namespaces": sorted(network.client_namespaces),
            "monitoring_namespaces": sorted(network.monitoring_namespaces),
            "reading_namespaces": sorted({network.operator_namespace, *network.monitoring_namespaces}),
            "public_port": ports.ROUTER_PUBLIC,
            "admin_port": ports.ROUTER_ADMIN,
            "engine_port": ports.ENGINE,
            "sidecar_port": ports.SIDECAR,
        },
    )
