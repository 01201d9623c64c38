"""Who reaches whom: the policies of a service, evaluated over everybody who might knock."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import specs
from support.network_policies import OUTSIDE, Pod, admits
from tandem_api import labels
from tandem_operator.render.context import NetworkSettings, Settings
from tandem_operator.render.service import Rendered, render_service
from tandem_operator.render.workers import worker_deployment

_OWN = specs.OWNER.namespace
_PUBLIC, _ADMIN, _ENGINE, _SIDECAR, _HANDSHAKE, _CHOSEN = 8080, 8081, 8000, 8100, 5600, 41234
_PORTS = (_PUBLIC, _ADMIN, _ENGINE, _SIDECAR, _HANDSHAKE, _CHOSEN)


def _rendered(tree: dict[str, Any], settings: Settings = specs.SETTINGS) -> Rendered:
    return render_service(owner=specs.OWNER, spec=specs.read(tree), settings=settings, revisions={})


def _policies(rendered: Rendered) -> list[dict[str, Any]]:
    return [each for each in rendered.objects if each["kind"] == "NetworkPolicy"]


def _pods(rendered: Rendered) -> dict[str, Pod]:
    """Return a pod of each role and of the router, with the labels of its Deployment's template."""
    deployments = [each for each in rendered.objects if each["kind"] == "Deployment"]
    deployments += [worker_deployment(role, 1) for role in rendered.roles]
    templates = [each["spec"]["template"]["metadata"]["labels"] for each in deployments]
    return {each[labels.ROLE]: Pod(_OWN, each) for each in templates}


_SPLIT = _rendered(specs.disaggregated())
_PODS = _pods(_SPLIT)
_ROUTER, _PREFILL, _DECODE = _PODS["router"], _PODS["prefill"], _PODS["decode"]


def _of(pod: Pod, service: str) -> Pod:
    return replace(pod, labels={**pod.labels, labels.SERVICE: service})


_SOURCES = {
    "router": _ROUTER,
    "prefill": _PREFILL,
    "decode": _DECODE,
    "operator": Pod("tandem-system", {"app.kubernetes.io/name": "tandem"}),
    "monitoring": Pod("monitoring"),
    "another pod of the namespace": Pod(_OWN),
    "a router of another service": _of(_ROUTER, "other"),
    "a worker of another service": _of(_DECODE, "other"),
    "a router of the same name elsewhere": replace(_ROUTER, namespace="team-b"),
    "a worker of the same name elsewhere": replace(_PREFILL, namespace="team-b"),
    "another namespace": Pod("team-b"),
    "no pod": OUTSIDE,
}
_WORKERS = ("prefill", "decode")
_ALLOWED = {
    *(("router", source, _PUBLIC) for source in _SOURCES),
    *(("router", source, _ADMIN) for source in ("router", "operator", "monitoring")),
    *itertools.product(_WORKERS, ("router", "monitoring"), (_ENGINE, _SIDECAR)),
    *itertools.product(_WORKERS, _WORKERS, _PORTS),
}
"""The whole of what may be: target, source, port. Everything else may not."""


@pytest.mark.parametrize("source", _SOURCES)
@pytest.mark.parametrize("target", ["router", *_WORKERS])
def test_a_port_is_reached_by_those_whom_the_matrix_names_and_nobody_else(target: str, source: str) -> None:
    reached = {port for port in _PORTS if admits(_policies(_SPLIT), _PODS[target], source=_SOURCES[source], port=port)}
    assert reached == {port for port in _PORTS if (target, source, port) in _ALLOWED}


def test_the_only_pool_of_an_aggregated_service_is_guarded_alike() -> None:
    rendered = _rendered(specs.aggregated())
    worker = _pods(rendered)["aggregated"]
    reached = {
        (name, port)
        for (name, source), port in itertools.product((_SOURCES | {"worker": worker}).items(), _PORTS)
        if admits(_policies(rendered), worker, source=source, port=port)
    }
    # Pods of both roles, which a service had before it became aggregated, go on talking to each other until they are gone.
    assert {name for name, port in reached if port == _CHOSEN} == {"worker", *_WORKERS}
    assert {name for name, port in reached if port == _ENGINE} == {"worker", *_WORKERS, "router", "monitoring"}


_labels = st.dictionaries(
    st.sampled_from([labels.SERVICE, labels.ROLE, labels.NAME, labels.COMPONENT, "app"]),
    st.sampled_from(["chat", "other", "router", "prefill", "decode", "aggregated", "workers", "tandem", ""]),
)
_namespaces = st.sampled_from([_OWN, "", "team-b", "kube-system", "monitoring-2", "tandem-system-2"])


def _is_nobody(pod: Pod) -> bool:
    """Whether a pod is no part of the service."""
    parts = ("router", "prefill", "decode", "aggregated")
    return pod.namespace != _OWN or pod.labels.get(labels.SERVICE) != "chat" or pod.labels.get(labels.ROLE) not in parts


@given(
    source=st.builds(Pod, _namespaces, _labels).filter(_is_nobody),
    target=st.sampled_from(sorted(_PODS)),
    port=st.sampled_from(_PORTS) | st.integers(1, 65535),
    protocol=st.sampled_from(["TCP", "UDP", "SCTP"]),
)
def test_who_is_nobody_reaches_the_public_port_and_no_other(source: Pod, target: str, port: int, protocol: str) -> None:
    reached = admits(_policies(_SPLIT), _PODS[target], source=source, port=port, protocol=protocol)
    assert reached == (target == "router" and (port, protocol) == (_PUBLIC, "TCP"))


def test_clients_of_named_namespaces_alone_reach_routers_where_the_installation_says_so() -> None:
    network = NetworkSettings(operator_namespace="tandem-system", client_namespaces=("gateway",))
    policies = _policies(_rendered(specs.disaggregated(), replace(specs.SETTINGS, network=network)))
    clients = {name: Pod(name) for name in ("gateway", "team-b", _OWN)} | {"outside": OUTSIDE}
    assert {name for name, pod in clients.items() if admits(policies, _ROUTER, source=pod, port=_PUBLIC)} == {"gateway"}


def test_without_monitoring_namespaces_nobody_but_the_service_reaches_its_workers() -> None:
    network = NetworkSettings(operator_namespace="tandem-system")
    policies = _policies(_rendered(specs.disaggregated(), replace(specs.SETTINGS, network=network)))
    reaching = {
        name
        for (name, source), port in itertools.product(_SOURCES.items(), _PORTS)
        if admits(policies, _DECODE, source=source, port=port)
    }
    assert reaching == {"router", *_WORKERS}


def test_an_installation_without_network_policies_renders_none() -> None:
    assert _policies(_rendered(specs.disaggregated(), replace(specs.SETTINGS, network=None))) == []


def test_a_pod_that_no_policy_selects_is_open() -> None:
    assert admits(_policies(_SPLIT), Pod(_OWN), source=OUTSIDE, port=22)


@pytest.mark.parametrize(
    ("path", "value"),
    [("spec.policyTypes", ["Ingress", "Egress"]), ("spec.egress", []), ("spec.ingress", [{"from": [{"ipBlock": {}}]}])],
)
def test_the_evaluator_refuses_what_it_does_not_understand(path: str, value: Any) -> None:
    policies = [specs.changed(each, path, value) for each in _policies(_SPLIT)]
    with pytest.raises(NotImplementedError):
        admits(policies, _DECODE, source=_SOURCES["another namespace"], port=_ENGINE)
