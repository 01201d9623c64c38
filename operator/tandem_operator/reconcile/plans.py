"""Which children a service should have now, as trees in the order in which they are applied. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.cluster import kinds
from tandem_operator.cluster.kinds import Kind
from tandem_operator.policies.replicas import start
from tandem_operator.render.service import Rendered
from tandem_operator.render.workers import worker_deployment

__all__ = ["Counts", "Identity", "first", "identities", "pool", "supports", "workers"]

Counts = Mapping[Role, Mapping[str, int]]
"""Workers by role and role hash; a role whose count is not known is absent."""
Identity = tuple[Kind, str]
"""Kind and name of a child; its namespace is the service's."""


def first(rendered: Rendered, spec: InferenceServiceSpec) -> list[dict[str, Any]]:
    """Return what a service without children gets, but the Secret with its token, in the order in which it is made."""
    starts = {each.role: start(spec, each.role) for each in rendered.roles}
    counts = {each.role: {each.role_hash: starts[each.role]} for each in rendered.roles}
    objects = [
        pool(tree, starts[Role(tree["spec"]["role"])]) if kinds.of(tree) == kinds.WORKER_POOL else tree
        for tree in rendered.objects
    ]
    return objects + workers(rendered, counts)


def pool(tree: dict[str, Any], replicas: int) -> dict[str, Any]:
    """Return a rendered WorkerPool with its count, as it stands once both were written."""
    return tree | {"spec": tree["spec"] | {"replicas": replicas}}


def supports(rendered: Rendered, counts: Counts) -> list[dict[str, Any]]:
    """Return the headless Services and revisions of older hashes that still have workers."""
    kept = [each for each in rendered.previous if counts.get(each.role, {}).get(each.role_hash, 0) > 0]
    return [tree for each in kept for tree in each.objects]


def workers(rendered: Rendered, counts: Counts) -> list[dict[str, Any]]:
    """Return the worker Deployments: of each current hash, and of older ones that keep workers."""
    current = [
        worker_deployment(each, counts[each.role].get(each.role_hash, 0)) for each in rendered.roles if each.role in counts
    ]
    older = [
        worker_deployment(each, count)
        for each in rendered.previous
        if (count := counts.get(each.role, {}).get(each.role_hash, 0)) > 0
    ]
    return current + older


def identities(trees: Iterable[dict[str, Any]]) -> set[Identity]:
    """Return kinds and names of trees."""
    return {(kinds.of(tree), tree["metadata"]["name"]) for tree in trees}
