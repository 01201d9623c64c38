"""The scaler, from a router's figures to the WorkerPool, with a stub for the router."""

from typing import Any

import pytest

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import make_ready
from support.services import condition, sample, selector
from support.stub_router import StubRouter
from tandem_api.names import Role

SLO = {"ttft": {"target": "500ms"}}
ROUTER = {"replicas": 1}


def autoscaling(mode: str) -> dict[str, Any]:
    return {"mode": mode, "prefill": {"min": 1, "max": 3}}


def served(kube: Kube, router: StubRouter, mode: str) -> None:
    """Create a service whose only router is the stub and whose workers are ready."""
    kube.create(sample("minimal", slo=SLO, router=ROUTER, autoscaling=autoscaling(mode)))
    make_ready(kube, selector("minimal", "router"), count=1, ip=router.address)
    make_ready(kube, selector("minimal", "prefill"), count=1)
    make_ready(kube, selector("minimal", "decode"), count=1)


def prefill(kube: Kube) -> int:
    """Return the prefill workers that are asked for."""
    count: int = kube.get("WorkerPool", "minimal-prefill")["spec"]["replicas"]
    return count


def scaling(kube: Kube) -> dict[str, Any]:
    """Return the last decision in the status."""
    found: dict[str, Any] = kube.get("InferenceService", "minimal").get("status", {}).get("scaling") or {}
    return found


def test_late_first_tokens_raise_prefill_up_to_its_bound_and_say_why(kube: Kube, operator: OperatorProcess) -> None:
    with StubRouter() as router:
        router.ttft_ratio = 2.5
        served(kube, router, "Apply")
        until(lambda: prefill(kube) == 3, what="three prefill workers")
        make_ready(kube, selector("minimal", "prefill"), count=3)
        router.routable[Role.PREFILL] = 3
        until(lambda: scaling(kube).get("reason") == "AtMaximum", what="AtMaximum in the status")
    events = [each for each in kube.list("Event") if each["regarding"]["name"] == "minimal"]
    raised = [each for each in events if each["reason"] == "TTFTAboveTarget"]
    assert "1 -> 3" in raised[0]["note"]
    managers = {
        each["manager"]
        for each in kube.get("WorkerPool", "minimal-prefill")["metadata"]["managedFields"]
        if "f:replicas" in each["fieldsV1"].get("f:spec", {})
    }
    assert managers == {"tandem-scaler"}
    assert operator.metric("tandem_operator_scaling_decisions_total") > 0


@pytest.mark.usefixtures("operator")
def test_a_recommendation_is_shown_and_not_carried_out(kube: Kube) -> None:
    with StubRouter() as router:
        router.ttft_ratio = 2.5
        served(kube, router, "Recommend")
        until(lambda: scaling(kube).get("prefill") == 3, what="a recommendation of three")
        assert prefill(kube) == 1
        until(lambda: condition(kube, "minimal", "ScalingActive").get("reason") == "RecommendOnly", what="RecommendOnly")


@pytest.mark.usefixtures("operator")
def test_a_router_that_does_not_answer_holds_the_count(kube: Kube) -> None:
    with StubRouter() as router:
        served(kube, router, "Apply")
        until(lambda: scaling(kube).get("reason") not in {None, "NoReport"}, what="a decision from figures")
    until(lambda: scaling(kube).get("reason") == "NoReport", what="NoReport in the status")
    assert "unreachable" in scaling(kube)["message"]
    assert condition(kube, "minimal", "ScalingActive")["status"] == "Unknown"
    assert prefill(kube) == 1


def test_load_that_goes_away_takes_workers_away_one_by_one(kube: Kube, alone: OperatorProcess) -> None:
    with StubRouter() as router, alone.with_settings(TANDEM_SCALING_WINDOW="5s", TANDEM_SCALING_DOWN_STABILISATION="3s"):
        router.ttft_ratio = 2.5
        served(kube, router, "Apply")
        until(lambda: prefill(kube) == 3, what="three prefill workers")
        make_ready(kube, selector("minimal", "prefill"), count=3)
        router.ttft_ratio, router.in_flight, router.routable[Role.PREFILL] = 0.1, 0, 3
        until(lambda: prefill(kube) == 2, what="two prefill workers")
        router.routable[Role.PREFILL] = 2
        until(lambda: prefill(kube) == 1, what="one prefill worker")
