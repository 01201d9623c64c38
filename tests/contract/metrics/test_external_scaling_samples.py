"""The samples for HPA and KEDA: they aim at pools that the sample service has, by metrics that routers have.

The real HPA controller works with the HPA in tests/apiserver. Of KEDA, whose definitions are not in this repository, only what
its documentation says of a ScaledObject is held here.
"""

import re
from typing import Any

import pytest

from support import external_samples
from support.specs import read
from support.tree import ROOT
from tandem_api import names
from tandem_cli.checks import verdict
from tandem_operator.policies import replicas
from tandem_operator.policies.roles import roles

_METRICS = set(re.findall(r"^\| `(tandem_\w+)`", (ROOT / "docs" / "reference" / "metrics.md").read_text(), flags=re.MULTILINE))
_SERVICE = external_samples.service()
_SPEC = read(_SERVICE["spec"])
_POOLS = {names.worker_pool(_SERVICE["metadata"]["name"], role) for role in roles(_SPEC)}
_KEDA = external_samples.load("keda.yaml")
_TRIGGERS = [trigger for each in _KEDA for trigger in each["spec"]["triggers"]]


def _with_a_target() -> list[dict[str, Any]]:
    return [*external_samples.load("hpa.yaml"), *_KEDA]


def test_the_service_is_accepted_and_gives_its_counts_away() -> None:
    assert verdict.judge(_SERVICE, verdict.Installation()).errors == ()
    assert [replicas.declared(_SPEC, role) for role in roles(_SPEC)] == [None, None]


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_each_pool_of_the_service_has_one_owner(kind: str) -> None:
    targets = [each["spec"]["scaleTargetRef"] for each in _with_a_target() if each["kind"] == kind]
    expected = {"apiVersion": _SERVICE["apiVersion"], "kind": "WorkerPool"}
    assert sorted(targets, key=lambda target: str(target["name"])) == [expected | {"name": name} for name in sorted(_POOLS)]


def test_every_metric_is_one_that_routers_have() -> None:
    texts = [(external_samples.FOLDER / file).read_text(encoding="utf-8") for file in ("hpa.yaml", "keda.yaml")]
    named = {name for text in texts for name in re.findall(r"\btandem_router_\w+", text)}
    assert named
    assert named <= _METRICS


def test_queries_of_keda_are_of_the_services_routers_and_no_figures_are_not_zero() -> None:
    routers = f'pod=~"{names.router(_SERVICE["metadata"]["name"])}-.+"'
    for trigger in _TRIGGERS:
        assert trigger["type"] == "prometheus"
        assert {"serverAddress", "query", "threshold"} <= trigger["metadata"].keys()
        assert {type(value) for value in trigger["metadata"].values()} == {str}
        assert routers in trigger["metadata"]["query"]
        assert trigger["metadata"]["ignoreNullValues"] == "false"


def test_no_role_goes_to_zero_alone() -> None:
    least = [each["spec"].get("minReplicas", each["spec"].get("minReplicaCount")) for each in _with_a_target()]
    assert min(least) >= 1
