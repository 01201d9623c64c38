"""The operator's account may do what the operator does, and nothing else."""

import re

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import make_ready, place
from support.services import of_role, sample, selector, wait_for_condition
from tandem_api import labels
from tandem_operator.cluster import kinds
from tandem_operator.cluster.permissions import PERMISSIONS

UNSEEN = {"watch", "bind", "update"}
"""Verbs that the API server checks without a call of ours by that name: kopf watches, `bind` and `update` guard references."""

GETS = {(kind.plural, "get") for kind in kinds.CHILDREN}


def lose_label(kube: Kube, kind: str) -> None:
    """Take the label by which the operator watches from one child of a kind."""
    child = until(lambda: kube.list(kind, labels.SERVICE), what=f"a {kind}")[0]
    kube.patch(kind, child["metadata"]["name"], {"metadata": {"labels": {labels.SERVICE: None}}})


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
        for kind in (each.kind for each in kinds.CHILDREN):
            lose_label(kube, kind)
        until(lambda: called(alone) >= GETS, what="children that lost their label are looked for")
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
