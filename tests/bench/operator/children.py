"""The children that the operator makes for a service, rendered by its own code: what the bare loop applies, and how many."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.cluster import kinds
from tandem_operator.cluster.kinds import Kind
from tandem_operator.policies.replicas import start
from tandem_operator.render.context import Owner
from tandem_operator.render.service import render_service
from tandem_operator.render.token import render_token
from tandem_operator.render.workers import worker_deployment
from tandem_operator.settings import read_settings

__all__ = ["applied", "counts", "token"]

_SETTINGS = read_settings({"TANDEM_WORKERS_IMAGE": "example.test/tandem/workers:test"}).render


def applied(tree: Mapping[str, Any], uid: str) -> Iterator[dict[str, Any]]:
    """Yield the children of a service that are applied, in the operator's order."""
    owner, spec = _owner(tree, uid), InferenceServiceSpec.model_validate(tree["spec"])
    rendered = render_service(owner=owner, spec=spec, settings=_SETTINGS, revisions={})
    counts = {each.role: start(spec, each.role) for each in rendered.roles}
    for child in rendered.objects:
        pool = next((each for each in rendered.roles if each.pool is child), None)
        yield child | {"spec": child["spec"] | {"replicas": counts[pool.role]}} if pool else child
    for each in rendered.roles:
        yield worker_deployment(each, counts[each.role])


def token(tree: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """Return the Secret of a service, which is made by POST."""
    return render_token(_owner(tree, uid), "0" * 43)


def counts(tree: Mapping[str, Any]) -> Counter[Kind]:
    """Return how many children of each kind a service has, in the order in which the kinds are begun."""
    return Counter([kinds.SECRET, *map(kinds.of, applied(tree, "uid"))])


def _owner(tree: Mapping[str, Any], uid: str) -> Owner:
    return Owner(tree["metadata"]["name"], tree["metadata"]["namespace"], uid)
