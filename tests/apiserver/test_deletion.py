"""Services that go in a hurry, with all they have, whatever the operator was doing."""

import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from support.kube import Kube, KubeError, until
from support.operators import OperatorProcess
from support.services import CHILD_KINDS, of_role, sample, wait_for_condition
from support.tree import ROOT
from tandem_api import labels

KINDS = (*CHILD_KINDS, "Pod")
HOLD = "example.test/hold"


def left(kube: Kube) -> list[str]:
    """Return the children of services, as `Kind name`."""
    return [f"{kind} {each['metadata']['name']}" for kind in KINDS for each in kube.list(kind, labels.SERVICE)]


def made(kube: Kube) -> None:
    """Make a service with all its children."""
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    assert left(kube)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_service_that_is_deleted_while_it_rolls_out_leaves_nothing(kube: Kube, policy: str) -> None:
    made(kube)
    kube.patch("InferenceService", "minimal", {"spec": {"prefill": {"engine": {"args": ["--enable-log-requests"]}}}})
    until(lambda: len(of_role(kube, "Deployment", "minimal", "prefill")) == 2, what="both Deployments")
    kube.delete("InferenceService", "minimal", policy)
    until(lambda: kube.get("InferenceService", "minimal") is None, what="the service gone")
    until(lambda: not left(kube), what="nothing left")


def test_nothing_is_made_again_while_a_service_goes(kube: Kube, operator: OperatorProcess) -> None:
    made(kube)
    kube.patch("ServiceAccount", "minimal-router", {"metadata": {"finalizers": [HOLD]}})
    kube.delete("InferenceService", "minimal", "Foreground")
    until(lambda: left(kube) == ["ServiceAccount minimal-router"], what="only what is held is left")
    passes = operator.metric("tandem_operator_reconcile_total")
    kube.patch("InferenceService", "minimal", {"metadata": {"annotations": {"example.test/wakes": "the operator"}}})
    until(lambda: operator.metric("tandem_operator_reconcile_total") > passes, what="a pass over what goes")
    assert left(kube) == ["ServiceAccount minimal-router"]
    kube.patch("ServiceAccount", "minimal-router", {"metadata": {"finalizers": None}})
    until(lambda: kube.get("InferenceService", "minimal") is None, what="the service gone")
    until(lambda: not left(kube), what="nothing left")


def test_a_namespace_goes_with_the_services_in_it(kube: Kube, operator: OperatorProcess) -> None:
    made(kube)
    kube.delete("Namespace", kube.namespace)
    until(lambda: kube.get("Namespace", kube.namespace) is None, what="the namespace gone")
    assert operator.fetch(operator.health, "/healthz") == (200, "ok")
    assert operator.ended() is None
    assert "Traceback" not in operator.output()


@pytest.mark.parametrize(
    ("kind", "name", "spec"),
    [
        ("Service", "minimal-router", {"spec": {"ports": [{"port": 1}]}}),
        ("PodDisruptionBudget", "minimal-router", {"spec": {"maxUnavailable": 7}}),
        ("WorkerPool", "minimal-prefill", {"spec": {"role": "prefill", "service": "minimal", "replicas": 0}}),
    ],
)
@pytest.mark.usefixtures("operator")
def test_an_object_of_somebody_else_is_left_alone_also_when_it_claims_to_belong_to_the_service(
    kube: Kube, kind: str, name: str, spec: dict[str, object]
) -> None:
    version = {"Service": "v1", "PodDisruptionBudget": "policy/v1", "WorkerPool": "serving.tandem.dev/v1alpha1"}[kind]
    metadata = {"name": name, "labels": {labels.SERVICE: "minimal"}}
    before = kube.create({"apiVersion": version, "kind": kind, "metadata": metadata} | spec)
    kube.create(sample("minimal"))
    assert f"{kind} '{name}'" in wait_for_condition(kube, "minimal", "Degraded", "True")["message"]
    after = kube.get(kind, name)
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    assert "ownerReferences" not in after["metadata"]
    kube.delete("InferenceService", "minimal")
    until(lambda: left(kube) == [f"{kind} {name}"], what="the service gone, and what is not its own left")


@pytest.fixture
def definitions(cluster: Kube) -> Iterator[list[dict[str, Any]]]:
    """The definitions, which are there again when the test has ended."""
    found = [yaml.safe_load(file.read_text()) for file in sorted((ROOT / "crds").glob("*.yaml"))]
    yield found
    install(cluster, found)


def install(cluster: Kube, definitions: list[dict[str, Any]]) -> None:
    """Make the definitions that are not there, and wait until their kinds are served."""
    for each in definitions:
        if cluster.get("CustomResourceDefinition", each["metadata"]["name"]) is None:
            cluster.create(each)
        until(partial(_served, cluster, each["spec"]["names"]["kind"]), what="the kind is served")


def _served(cluster: Kube, kind: str) -> bool:
    try:
        cluster.list(kind)
    except KubeError:
        return False
    return True


def test_definitions_that_are_deleted_take_services_and_children_along_and_are_waited_for(
    cluster: Kube, kube: Kube, alone: OperatorProcess, definitions: list[dict[str, Any]]
) -> None:
    with alone:
        made(kube)
        kube.delete("InferenceService", "minimal")
        until(lambda: not left(kube), what="garbage collection, which learns of new kinds twice a minute")
        made(kube)
        for each in definitions:
            cluster.delete("CustomResourceDefinition", each["metadata"]["name"])
        until(lambda: not cluster.list("CustomResourceDefinition"), what="the definitions gone")
        others = [kind for kind in KINDS if kind != "WorkerPool"]
        until(lambda: not any(kube.list(kind, labels.SERVICE) for kind in others), what="nothing left")
        assert until(alone.ended, what="the end of a process that can no longer watch") == 1
        alone.end(signal.SIGTERM)
        alone.launch()
        until(lambda: "is not installed" in alone.fetch(alone.health, "/readyz")[1], what="what is missing")
        install(cluster, definitions)
        until(alone.ready, what="the operator ready again")
        made(kube)
