"""The status of a service, with the kubelet's part played by the test."""

import pytest

from support.kube import Kube, until
from support.pods import fail, fail_probe, make_ready
from support.services import condition, deployments, sample, selector, wait_for_condition

pytestmark = pytest.mark.usefixtures("operator")


def everything_ready(kube: Kube, service: str) -> None:
    """Say that every pod of a service that wants one of each role and two routers is ready."""
    for role, count in (("prefill", 1), ("decode", 1), ("router", 2)):
        make_ready(kube, selector(service, role), count=count)


def test_a_service_becomes_ready_with_its_pods_and_says_where_it_is(kube: Kube) -> None:
    kube.create(sample("minimal"))
    waiting = wait_for_condition(kube, "minimal", "Ready", "False")
    assert waiting["observedGeneration"] == 1
    everything_ready(kube, "minimal")
    wait_for_condition(kube, "minimal", "Ready", "True")
    status = kube.get("InferenceService", "minimal")["status"]
    assert status["observedGeneration"] == 1
    assert status["prefill"]["summary"] == status["decode"]["summary"] == "1/1"
    assert status["address"] == f"http://minimal-router.{kube.namespace}.svc"
    for kind in ("Accepted", "PrefillAvailable", "DecodeAvailable", "RouterAvailable"):
        assert condition(kube, "minimal", kind)["status"] == "True", kind
    pool = kube.get("WorkerPool", "minimal-prefill")
    assert (pool["status"]["replicas"], pool["status"]["readyReplicas"]) == (1, 1)


def test_losing_a_role_is_noticed_and_said_in_an_event(kube: Kube) -> None:
    kube.create(sample("minimal"))
    everything_ready(kube, "minimal")
    wait_for_condition(kube, "minimal", "Ready", "True")
    (pod,) = kube.list("Pod", selector("minimal", "decode"))
    kube.patch("Pod", pod["metadata"]["name"], {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "status")
    wait_for_condition(kube, "minimal", "Ready", "False")
    events = until(
        lambda: [each for each in kube.list("Event") if each["type"] == "Warning" and each["regarding"]["name"] == "minimal"],
        what="a warning about the service",
    )
    assert events[0]["regarding"]["kind"] == "InferenceService"


def test_why_a_pod_does_not_start_stands_in_the_condition(kube: Kube) -> None:
    kube.create(sample("minimal"))
    fail(
        kube,
        selector("minimal", "prefill"),
        container="engine",
        waiting={"reason": "CrashLoopBackOff", "message": "back-off"},
        terminated={"exitCode": 1, "reason": "Error", "message": "tandem: 4 heads do not divide by tensor=3"},
    )
    until(
        lambda: "4 heads do not divide" in condition(kube, "minimal", "PrefillAvailable").get("message", ""),
        what="the pod's own reason in PrefillAvailable",
    )


def test_why_pods_cannot_be_created_stands_in_the_conditions_in_the_api_servers_words(kube: Kube) -> None:
    least = {"limits": [{"type": "Pod", "min": {"memory": "1Ti"}}]}
    kube.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "least"}, "spec": least})
    kube.create(sample("minimal"))
    degraded = wait_for_condition(kube, "minimal", "Degraded", "True")
    assert degraded["reason"] == "PodsRefused"
    assert "minimum memory usage per Pod is 1Ti" in degraded["message"]
    for kind in ("Ready", "PrefillAvailable", "RouterAvailable"):
        until(lambda kind=kind: condition(kube, "minimal", kind).get("reason") == "PodsRefused", what=f"PodsRefused in {kind}")


def test_a_pod_that_runs_and_fails_its_probe_is_degraded_in_the_kubelets_words(kube: Kube) -> None:
    kube.create(sample("minimal"))
    everything_ready(kube, "minimal")
    wait_for_condition(kube, "minimal", "Ready", "True")
    said = "Readiness probe failed: HTTP probe failed with statuscode: 503"
    fail_probe(kube, selector("minimal", "decode"), note=said)
    until(lambda: said in condition(kube, "minimal", "DecodeAvailable").get("message", ""), what="the kubelet's words")
    assert said in condition(kube, "minimal", "Degraded")["message"]


def test_a_spec_that_makes_no_sense_is_not_accepted_and_changes_nothing(kube: Kube) -> None:
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    before = deployments(kube, "minimal")
    assert len(before) == 3
    kube.patch("InferenceService", "minimal", {"spec": {"decode": {"engine": {"args": ["--port", "9999"]}}}})
    refused = wait_for_condition(kube, "minimal", "Accepted", "False")
    assert "--port" in refused["message"]
    assert refused["observedGeneration"] == 2
    assert deployments(kube, "minimal").keys() == before.keys()
    kube.patch("InferenceService", "minimal", {"spec": {"decode": {"engine": None}}})
    wait_for_condition(kube, "minimal", "Accepted", "True")
