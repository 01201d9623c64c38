"""An API server that refuses, fails, or falls silent: what was asked for is made all the same, or the reason is told."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.faulty_api import Fault, FaultyApi
from support.kube import Kube, until
from support.operators import OperatorProcess
from support.services import condition, names_of, of_role, sample, wait_for_condition
from tandem_local.apiserver import ApiServer

LONG = {"TANDEM_RESYNC_PERIOD": "10m", "TANDEM_WATCH_SILENCE": "3s"}
"""No complete list within a test: what is seen is seen by the watches."""
TOO_OLD = '{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}\n'


@pytest.fixture(scope="module")
def api(server: ApiServer, account: Path) -> Iterator[FaultyApi]:
    """The way to the API server of the operator below."""
    with FaultyApi(server.url, account) as api:
        yield api


@pytest.fixture(scope="module")
def behind(api: FaultyApi, shared: OperatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """One operator for these tests, which sees the API server only through `api`."""
    shared.end(signal.SIGTERM)
    folder = tmp_path_factory.mktemp("behind")
    with OperatorProcess(api.kubeconfig(folder), folder / "log", **LONG) as operator:
        yield operator


@pytest.fixture(autouse=True)
def _well_again(api: FaultyApi, behind: OperatorProcess) -> Iterator[None]:
    yield
    api.faults.clear()
    assert behind.ended() is None


@pytest.mark.parametrize(
    "fault",
    [
        Fault("PATCH", "/deployments/", status=409, times=2),
        Fault("PATCH", "/services/", status=410, times=2),
        Fault("PATCH", "/workerpools/", status=429, headers={"Retry-After": "1"}, times=2),
        Fault("PATCH", "/poddisruptionbudgets/", status=500, times=2),
        Fault("PATCH", "/rolebindings/", status=503, times=2),
        Fault("PATCH", "/serviceaccounts/", status=0, times=2),
        Fault("PATCH", "/inferenceservices/minimal/status", status=409, times=2),
        Fault("POST", "/secrets", status=500, times=2),
    ],
    ids=lambda fault: f"{fault.method} {fault.path} {fault.status or 'cut'}",
)
def test_a_call_that_fails_is_tried_again(kube: Kube, api: FaultyApi, fault: Fault) -> None:
    api.add(fault)
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    assert fault.seen == fault.times
    assert len(names_of(kube, "Deployment", "minimal")) == 3
    assert condition(kube, "minimal", "Degraded").get("status") != "True"


@pytest.mark.parametrize("status", [403, 422])
def test_a_child_that_is_refused_is_named_with_the_api_servers_words(kube: Kube, api: FaultyApi, status: int) -> None:
    fault = api.add(Fault("PATCH", "/poddisruptionbudgets/", status=status, message="no budgets today"))
    kube.create(sample("minimal"))
    said = wait_for_condition(kube, "minimal", "Degraded", "True")["message"]
    assert "PodDisruptionBudget 'minimal-" in said
    assert "no budgets today" in said
    assert fault.seen
    api.faults.clear()
    kube.patch("InferenceService", "minimal", {"spec": {"router": {"drain": "90s"}}})
    until(lambda: len(names_of(kube, "PodDisruptionBudget", "minimal")) == 3, what="the budgets")
    wait_for_condition(kube, "minimal", "Degraded", "False")


def test_a_watch_that_falls_silent_is_made_anew_and_misses_nothing(kube: Kube, api: FaultyApi) -> None:
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    until(lambda: api.silence("/workerpools"), what="the watch of pools is silent")
    kube.patch("WorkerPool", "minimal-prefill", {"spec": {"replicas": 2}}, "scale", "kubectl")
    until(lambda: _prefill(kube) == 2, what="two prefill workers")


def test_a_watch_that_is_too_old_is_begun_anew_with_a_list(kube: Kube, api: FaultyApi) -> None:
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    old = api.add(Fault("GET", "/workerpools[?].*watch=true", body=TOO_OLD, times=1))
    until(lambda: api.silence("/workerpools"), what="the watch of pools is silent")
    kube.patch("WorkerPool", "minimal-prefill", {"spec": {"replicas": 2}}, "scale", "kubectl")
    until(lambda: _prefill(kube) == 2, what="two prefill workers")
    until(lambda: old.seen == 1, what="a watch that was told that it is too old")


def test_writes_that_hang_do_not_keep_other_services_waiting(kube: Kube, api: FaultyApi) -> None:
    hung = api.add(Fault("PATCH", f"/namespaces/{kube.namespace}/.*/hung-", status=-1))
    kube.create(sample("minimal") | {"metadata": {"name": "hung"}})
    until(lambda: hung.seen, what="a write that hangs")
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")


def _prefill(kube: Kube) -> int:
    """Return the prefill workers that Deployments ask for."""
    return sum(each["spec"]["replicas"] for each in of_role(kube, "Deployment", "minimal", "prefill"))
