"""What people do to a running service: edit its children by hand, scale it, lose the operator."""

import json
from typing import Any

import pytest

from support import deployed
from tandem_api import labels
from tandem_api.names import Role

_SERVICE = "operated"
_CHILDREN = "deployments,services,serviceaccounts,rolebindings,poddisruptionbudgets,controllerrevisions,workerpools"
_PROMPTS = [f"Question {number}: {'who wrote this down? ' * 10}" for number in range(5)]


@pytest.fixture(scope="module")
def serving(shared_space: Any) -> Any:
    """A service of one worker of each role, whose counts the spec leaves to others."""
    shared_space.apply(deployed.simulated(_SERVICE, prefill={"drain": "20s"}, decode={"drain": "20s"}))
    shared_space.wait_whole(_SERVICE, prefill=1, decode=1)
    return shared_space


def _children(serving: Any) -> list[dict[str, Any]]:
    return deployed.objects(serving.cluster, serving.name, _CHILDREN, f"{labels.SERVICE}={_SERVICE}")


def _deployment(serving: Any, role: str) -> str:
    """Return the name of a role's Deployment."""
    found = [each["metadata"] for each in _children(serving) if each["kind"] == "Deployment"]
    return str(next(each["name"] for each in found if each["labels"][labels.ROLE] == role))


def _versions(serving: Any) -> dict[str, str]:
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in _children(serving)}


def test_a_hand_edit_of_a_child_is_healed(serving: Any) -> None:
    deployment, service = _deployment(serving, "decode"), f"{_SERVICE}-router"
    serving.kubectl(
        "patch", "service", service, "--type=json", "-p", '[{"op":"replace","path":"/spec/ports/0/targetPort","value":9}]'
    )
    serving.kubectl("patch", "deployment", deployment, "-p", json.dumps({"spec": {"progressDeadlineSeconds": 7777}}))

    def healed() -> bool:
        port = serving.get("service", service)["spec"]["ports"][0]["targetPort"]
        return bool(port != 9 and serving.get("deployment", deployment)["spec"]["progressDeadlineSeconds"] != 7777)

    serving.wait(healed, service=_SERVICE, what="both edits are undone")
    serving.wait_whole(_SERVICE, prefill=1, decode=1)


def test_a_deleted_child_comes_back(serving: Any) -> None:
    deployment = _deployment(serving, "decode")
    before = serving.get("deployment", deployment)["metadata"]["uid"]
    serving.kubectl("delete", "deployment", deployment)

    def back() -> bool:
        found = serving.get("deployment", deployment)
        return bool(found and found["metadata"]["uid"] != before)

    serving.wait(back, service=_SERVICE, what="the Deployment is made anew")
    serving.wait_whole(_SERVICE, prefill=1, decode=1)


def test_without_the_operator_requests_go_on_and_its_return_rewrites_nothing(serving: Any) -> None:
    serving.wait_whole(_SERVICE, prefill=1, decode=1)
    operator = ("-n", deployed.RELEASE_NAMESPACE)
    before = _versions(serving)
    with deployed.LoadGenerator(serving.url(_SERVICE), model="model", prompts=_PROMPTS, clients=2) as load:
        serving.cluster.kubectl(*operator, "delete", "pod", "-l", "app.kubernetes.io/name=tandem")
        without = len(load.answers)
        serving.wait(lambda: len(load.answers) > without, service=_SERVICE, what="an answer without the operator")
        serving.cluster.kubectl(*operator, "rollout", "status", "deployment", "--timeout=90s")
        # The new operator has looked at the service once it acts on it.
        serving.kubectl("scale", "workerpool", f"{_SERVICE}-prefill", "--replicas=2")
        serving.wait_whole(_SERVICE, prefill=2, decode=1)
    assert not load.lost, load.lost
    assert not load.wrong, load.wrong
    after = _versions(serving)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    asked = {f"WorkerPool/{_SERVICE}-prefill", f"Deployment/{_deployment(serving, 'prefill')}"}
    # Kubernetes counts the new pod in the status of its disruption budget.
    assert changed - {f"PodDisruptionBudget/{_SERVICE}-prefill"} == asked


def test_kubectl_scale_of_a_worker_pool_changes_the_workers(serving: Any) -> None:
    for count in (2, 1):
        serving.kubectl("scale", "workerpool", f"{_SERVICE}-decode", f"--replicas={count}")
        serving.wait_whole(_SERVICE, decode=count, prefill=len(serving.workers(_SERVICE, Role.PREFILL)))
    assert serving.get("workerpool", f"{_SERVICE}-decode")["status"]["replicas"] == 1
