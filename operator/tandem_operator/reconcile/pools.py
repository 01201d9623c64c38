"""WorkerPools: everything but the count is rendered; the count has a field manager of its own.

Whoever wrote the count last keeps it (autoscaler, HPA, `kubectl scale`), unless the spec prescribes it.
"""

from typing import Any

from tandem_api import labels, names
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.cluster import kinds, managers
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.replicas import declared, start

__all__ = ["apply", "asked_for", "write_count", "write_status"]


def asked_for(store: Store, service: Observed, role: Role) -> int | None:
    """Return the workers that a role's WorkerPool asks for; None if the service has no such pool of its own, or no count."""
    pool = store.get(kinds.WORKER_POOL, service.namespace, names.worker_pool(service.name, role))
    return pool.body["spec"].get("replicas") if pool is not None and pool.owner == service.uid else None


async def apply(tree: dict[str, Any], *, store: Store, writer: Writer, service: Observed, spec: InferenceServiceSpec) -> None:
    """Apply one rendered WorkerPool, and its count where the spec prescribes it or nobody has written one yet.

    Raises:
        NameTakenError: a pool of that name belongs to someone else.
        ApiError: see `cluster.errors`.
    """
    role = Role(tree["spec"]["role"])
    await writer.apply(tree, owner=service.uid)
    count = declared(spec, role)
    if count is None and asked_for(store, service, role) is None:
        count = _first_count(store, service, spec, role)
    if count is not None:
        await write_count(writer, namespace=service.namespace, name=tree["metadata"]["name"], replicas=count)


async def write_count(writer: Writer, *, namespace: str, name: str, replicas: int) -> bool:
    """Write the count of a pool, taking it over from whoever wrote it; return whether it had to be written.

    Raises:
        ApiError: see `cluster.errors`.
    """
    tree = _identity(namespace, name) | {"spec": {"replicas": replicas}}
    return await writer.apply_as(tree, manager=managers.SCALER)


async def write_status(store: Store, writer: Writer, *, service: Observed, role: Role) -> None:
    """Write what HPA and `kubectl scale` read: pods that exist, pods that are ready, and how to select them.

    Before the first Deployment was looked at by its controller there is nothing to say.

    Raises:
        ApiError: see `cluster.errors`.
    """
    name = names.worker_pool(service.name, role)
    pool = store.get(kinds.WORKER_POOL, service.namespace, name)
    if pool is None or pool.owner != service.uid:
        return
    statuses = [found.body["status"] for found in _deployments(store, service, role)]
    if not any(each.get("observedGeneration") for each in statuses) and not pool.body.get("status", {}).get("selector"):
        return
    status = {
        "replicas": sum(each.get("replicas", 0) for each in statuses),
        "readyReplicas": sum(each.get("readyReplicas", 0) for each in statuses),
        "selector": f"{labels.SERVICE}={service.name},{labels.ROLE}={role.value}",
    }
    tree = _identity(service.namespace, name) | {"status": status}
    await writer.apply_as(tree, manager=managers.STATUS, subresource="status")


def _identity(namespace: str, name: str) -> dict[str, Any]:
    kind = kinds.WORKER_POOL
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"namespace": namespace, "name": name}}


def _first_count(store: Store, service: Observed, spec: InferenceServiceSpec, role: Role) -> int:
    """A pool that was deleted by hand comes back with the workers that are there, not with the start value."""
    existing = _deployments(store, service, role)
    return sum(found.body["spec"]["replicas"] for found in existing) if existing else start(spec, role)


def _deployments(store: Store, service: Observed, role: Role) -> list[Observed]:
    return [
        found
        for found in store.children((service.namespace, service.name), kinds.DEPLOYMENT)
        if found.owner == service.uid and found.labels.get(labels.ROLE) == role.value
    ]
