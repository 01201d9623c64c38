"""The accounts of operator and routers may do what these do, and nothing else."""

import itertools
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import accounts
from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import make_ready, place, ready_pods
from support.services import of_role, sample, selector, wait_for_condition
from support.stub_router import StubRouter
from support.tree import ROOT
from tandem_api import API_VERSION, labels
from tandem_cli import helm
from tandem_local.apiserver import ApiServer
from tandem_operator.cluster import kinds
from tandem_operator.cluster.kinds import Kind
from tandem_operator.cluster.permissions import OWN_PERMISSIONS, PERMISSIONS, ROUTER_PERMISSIONS

UNSEEN = {"watch", "bind", "update"}
"""Verbs that the API server checks without a call of ours by that name: kopf watches, `bind` and `update` guard references."""
LEASE = "tandem-operator"


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
    found = re.findall(r'api_requests_total\{code="2\d\d",resource="([^"]+)",verb="([^"]+)"\}', text)
    gets = re.findall(r'api_requests_total\{code="404",resource="([^"]+)",verb="(get)"\}', text)
    return {*found, *gets}


def allowed() -> set[tuple[str, str]]:
    """Return (resource, verb) of every permission that a call of ours needs by that name."""
    found = {(each.resource, verb) for each in PERMISSIONS for verb in each.verbs if verb not in UNSEEN}
    found |= {(each.resource, verb) for each in OWN_PERMISSIONS for verb in each.verbs}
    # A server-side apply that makes an object is a patch by name, and needs `create` besides.
    return {(resource, verb) for resource, verb in found if verb != "create" or (resource, "patch") not in found}


@pytest.fixture
def narrow(server: ApiServer, shared: OperatorProcess, kube: Kube, tmp_path: Path) -> Iterator[OperatorProcess]:
    """An operator in a namespace of its own, with what the chart grants it where it works in the test's namespace alone."""
    shared.end(signal.SIGTERM)
    release, system = f"tandem-{kube.namespace}", kube.within(f"{kube.namespace}-system")
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system.namespace}})
    values = {"image": {"repository": "r"}, "rbac": {"aggregate": False}, "crds": {"enabled": False}}
    values["watchNamespaces"] = [kube.namespace]
    rendered = helm.render(ROOT / "charts" / "tandem", release=release, namespace=system.namespace, values=values)
    texts = [text for path, text in rendered.items() if path.endswith(".yaml")]
    documents = [each for text in texts for each in yaml.safe_load_all(text) if each]
    for each in documents:
        if each["kind"] != "Deployment":
            kube.within(each["metadata"].get("namespace", "")).create(each)
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    config = accounts.logged_in(system, server.kubeconfig, tmp_path, pod["serviceAccountName"])
    taken = ("TANDEM_WATCH_NAMESPACES", "TANDEM_ROUTER_CLUSTER_ROLE", "TANDEM_KEY_SECRET", "TANDEM_LEASE")
    settings = {each["name"]: each["value"] for each in pod["containers"][0]["env"] if each["name"] in taken}
    settings |= {"TANDEM_NAMESPACE": system.namespace, "TANDEM_KEY_FILE": str(tmp_path / "key"), "TANDEM_RESYNC_PERIOD": "1s"}
    user = f"system:serviceaccount:{system.namespace}:{pod['serviceAccountName']}"
    until(lambda: all(granted(kube, user)), what="the API server knows the chart's roles")
    yield OperatorProcess(config, tmp_path / "log", **settings)
    for each in documents:
        if each["kind"].startswith("Cluster"):
            kube.delete(each["kind"], each["metadata"]["name"])


def granted(kube: Kube, user: str) -> Iterator[bool]:
    """Ask for each permission whether a user has it; the name of the router's role differs by release."""
    for each in PERMISSIONS:
        for verb in each.verbs:
            if verb != "bind":
                yield may(kube, user, kube.namespace, (each.group, each.resource), verb, name="".join(each.names[:1]))


def old_policy(kube: Kube, service: str) -> dict[str, Any]:
    """Return a child of a service that is rendered no longer."""
    uid = kube.get("InferenceService", service)["metadata"]["uid"]
    owner = {"apiVersion": API_VERSION, "kind": "InferenceService", "name": service, "uid": uid, "controller": True}
    metadata = {"name": f"{service}-old", "labels": {labels.SERVICE: service}, "ownerReferences": [owner]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": {"podSelector": {}}}


@pytest.fixture
def router(kube: Kube) -> Iterator[StubRouter]:
    """The only router of the service; it sends requests to every worker that is ready, so that old ones may leave."""
    with StubRouter() as stub:
        stub.pods = partial(ready_pods, kube, "minimal")
        yield stub


def live(kube: Kube, operator: OperatorProcess, router: StubRouter) -> None:
    """Lead a service through everything for which an operator calls the API server."""
    kube.create(sample("minimal", router={"replicas": 1}))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    for kind in kinds.CHILDREN:
        until(partial(looked_for, kube, operator, kind), what=f"a {kind.kind} without its label is looked for")
    kube.create(old_policy(kube, "minimal"))
    kube.patch("InferenceService", "minimal", {"spec": {"decode": {"engine": {"args": ["--port", "1"]}}}})
    wait_for_condition(kube, "minimal", "Accepted", "False")
    kube.patch("InferenceService", "minimal", {"spec": {"prefill": None, "decode": {"engine": None}}})
    until(lambda: not of_role(kube, "WorkerPool", "minimal", "prefill"), what="no prefill pool")
    place(kube, selector("minimal", "aggregated"))
    until(lambda: ("events", "list") in called(operator), what="Events of a pod without volumes are read")
    make_ready(kube, selector("minimal", "aggregated"), count=1)
    make_ready(kube, selector("minimal", "router"), count=1, ip=router.address)


def uses_what_it_may(operator: OperatorProcess) -> None:
    """Wait until each permission was used, and fail if a call was refused."""
    until(
        lambda: called(operator) == allowed(),
        what=f"exactly {sorted(allowed())}; called {sorted(called(operator))}",
        seconds=20,
    )
    assert 'code="403"' not in operator.fetch(operator.metrics, "/metrics")[1]


def test_every_permission_is_used_and_no_call_is_refused(
    cluster: Kube, kube: Kube, alone: OperatorProcess, router: StubRouter
) -> None:
    if cluster.get("Lease", LEASE):
        cluster.delete("Lease", LEASE)
    with alone:
        live(kube, alone, router)
        uses_what_it_may(alone)


def test_for_one_namespace_the_charts_roles_there_are_used_and_no_call_is_refused(
    kube: Kube, narrow: OperatorProcess, router: StubRouter
) -> None:
    with narrow:
        live(kube, narrow, router)
        uses_what_it_may(narrow)


def test_a_router_may_follow_the_endpoints_of_its_namespace_and_nothing_else(kube: Kube, operator: OperatorProcess) -> None:
    assert operator
    kube.create(sample("minimal"))
    (only,) = ROUTER_PERMISSIONS
    user, slices = f"system:serviceaccount:{kube.namespace}:minimal-router", (only.group, only.resource)
    until(lambda: may(kube, user, kube.namespace, slices, "list"), what="the API server knows the router's binding")
    resources = {(each.group, each.resource) for each in (*PERMISSIONS, *ROUTER_PERMISSIONS)}
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    found = {
        (namespace, *resource, verb)
        for namespace, resource, verb in itertools.product((kube.namespace, "default"), resources, verbs)
        if may(kube, user, namespace, resource, verb)
    }
    assert found == {(kube.namespace, *slices, verb) for verb in only.verbs}


def may(kube: Kube, user: str, namespace: str, resource: tuple[str, str], verb: str, *, name: str = "") -> bool:
    """Ask the API server whether a user may do something."""
    group, (plural, _, subresource) = resource[0], resource[1].partition("/")
    asked = {"namespace": namespace, "group": group, "resource": plural, "subresource": subresource, "verb": verb, "name": name}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    review["spec"] = {"user": user, "resourceAttributes": asked}
    return bool(kube.send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"])
