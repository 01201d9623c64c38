"""The operator's account may do what the operator does, and nothing else."""

import re
from functools import partial

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import make_ready, place
from support.services import of_role, sample, selector, wait_for_condition
from tandem_api import labels
from tandem_operator.cluster import kinds
from tandem_operator.cluster.kinds import Kind
from tandem_operator.cluster.permissions import PERMISSIONS

UNSEEN = {"watch", "bind", "update"}
"""Verbs that the API server checks without a call of ours by that name: kopf watches, `bind` and `update` guard references."""


def looked_for(kube: Kube, operator: OperatorProcess, kind: Kind) -> bool:
    """Return whether the operator has asked for a child of a kind; until then take the label by which it watches from one.

    Once is not always enough: an answer to a write that was on its way shows the child without its label.
    """
    if (kind.plural, "get") in called(operator):
        return True
    for child in kube.list(kind.kind, labels.SERVICE)[:1]:
        kube.patch(kind.kind, child["metadata"]["name"], {"metadata": {"labels": {labels.SERVICE: None}}})
    return False


def called(operator: OperatorProcess) -> set[tuple[str, str]]:
    """Return (resource, verb) of every call that succeeded."""
    text = operator.fetch(operator.metrics, "/metrics")[1]
    return {*re.findall(r'api_requests_total\{code="2\d\d",resource="([^"]+)",verb="([^"]+)"\}', text)}


def allowed() -> set[tuple[str, str]]:
    """Return (resource, verb) of every permission that a call of ours needs by that name."""
    found = {(each.resource, verb) for each in PERMISSIONS for verb in each.verbs if verb not in UNSEEN}
    # A server-side apply that makes an object is a patch by name, and needs `create` besides.
    return {(resource, verb) for resource, verb in found if verb != "create" or (resource, "patch") not in found}


def test_every_permission_is_used_and_no_call_is_refused(kube: Kube, alone: OperatorProcess) -> None:
    with alone:
        kube.create(sample("minimal"))
        wait_for_condition(kube, "minimal", "Accepted", "True")
        for kind in kinds.CHILDREN:
            until(partial(looked_for, kube, alone, kind), what=f"a {kind.kind} without its label is looked for")
        kube.patch("InferenceService", "minimal", {"spec": {"decode": {"engine": {"args": ["--port", "1"]}}}})
        wait_for_condition(kube, "minimal", "Accepted", "False")
        kube.patch("InferenceService", "minimal", {"spec": {"prefill": None, "decode": {"engine": None}}})
        until(lambda: not of_role(kube, "WorkerPool", "minimal", "prefill"), what="no prefill pool")
        place(kube, selector("minimal", "aggregated"))
        until(lambda: ("events", "list") in called(alone), what="Events of a pod without volumes are read")
        make_ready(kube, selector("minimal", "aggregated"), count=1)
        until(
            lambda: called(alone) == allowed(), what=f"exactly {sorted(allowed())}; called {sorted(called(alone))}", seconds=20
        )
        assert 'code="403"' not in alone.fetch(alone.metrics, "/metrics")[1]
