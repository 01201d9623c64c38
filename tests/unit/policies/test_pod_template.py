"""Paths of a pod template that Tandem owns are refused with the path; everything else passes."""

from typing import Any

import pytest

from support import specs
from tandem_operator.policies.acceptance import accept


def _paths(template: dict[str, Any], *, secret: bool = False) -> list[str]:
    tree = specs.changed(specs.disaggregated(), "decode.template", template)
    tree = specs.changed(tree, "decode.resources", {"memory": "8Gi"})
    if secret:
        tree = specs.changed(tree, "model.secretRef", {"name": "token"})
    return [error.path.removeprefix("spec.decode.template.") for error in accept(specs.read(tree), specs.SETTINGS).errors]


def _engine(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "other", "image": "x"}, {"name": "engine", **fields}]}}


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ({"metadata": {"labels": {"serving.tandem.dev/role": "x"}}}, "metadata.labels['serving.tandem.dev/role']"),
        ({"metadata": {"labels": {"app.kubernetes.io/name": "x"}}}, "metadata.labels['app.kubernetes.io/name']"),
        ({"metadata": {"annotations": {"serving.tandem.dev/model": "x"}}}, "metadata.annotations['serving.tandem.dev/model']"),
        ({"metadata": {"name": "x"}}, "metadata.name"),
        ({"spec": {"restartPolicy": "Never"}}, "spec.restartPolicy"),
        ({"spec": {"activeDeadlineSeconds": 3}}, "spec.activeDeadlineSeconds"),
        ({"spec": {"volumes": [{"name": "tandem-cache", "emptyDir": {}}]}}, "spec.volumes[0].name"),
        ({"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/var/lib/kubelet"}}]}}, "spec.volumes[0].hostPath"),
        ({"spec": {"initContainers": [{"name": "kv-transfer", "image": "x"}]}}, "spec.initContainers[0].name"),
        ({"spec": {"initContainers": [{"name": "launcher"}]}}, "spec.initContainers[0].name"),
        ({"spec": {"containers": [{"name": "kv-transfer"}]}}, "spec.containers[0].name"),
        ({"spec": {"containers": [{"name": "x", "ports": [{"containerPort": 8100}]}]}}, "spec.containers[0].ports[0]"),
        (_engine(image="x"), "spec.containers[1].image"),
        (_engine(command=["x"]), "spec.containers[1].command"),
        (_engine(args=["x"]), "spec.containers[1].args"),
        (_engine(startupProbe={"failureThreshold": 1}), "spec.containers[1].startupProbe"),
        (_engine(terminationMessagePath="/x"), "spec.containers[1].terminationMessagePath"),
        (_engine(lifecycle={"preStop": {"sleep": {"seconds": 1}}}), "spec.containers[1].lifecycle.preStop"),
        (_engine(ports=[{"containerPort": 9000, "name": "http"}]), "spec.containers[1].ports[0]"),
        (_engine(env=[{"name": "PHASE", "value": "x"}]), "spec.containers[1].env[0].name"),
        (_engine(env=[{"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "value": "0.0.0.0"}]), "spec.containers[1].env[0].name"),  # noqa: S104 - must be refused
        (_engine(env=[{"name": "A", "value": "1"}, {"name": "UCX_TLS", "value": "tcp"}]), "spec.containers[1].env[1].name"),
        (_engine(volumeMounts=[{"name": "x", "mountPath": "/opt/tandem"}]), "spec.containers[1].volumeMounts[0].mountPath"),
        (_engine(volumeMounts=[{"name": "x", "mountPath": "/models/x/"}]), "spec.containers[1].volumeMounts[0].mountPath"),
        (_engine(resources={"limits": {"nvidia.com/gpu": 2}}), "spec.containers[1].resources.limits['nvidia.com/gpu']"),
        (_engine(resources={"requests": {"memory": "1Gi"}}), "spec.containers[1].resources.requests['memory']"),
    ],
)
def test_what_tandem_owns_is_refused_with_its_path(template: dict[str, Any], path: str) -> None:
    assert _paths(template) == [path]


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"metadata": {"labels": {"team": "a"}, "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"}}},
        {"spec": {"hostNetwork": True, "serviceAccountName": "mine", "nodeSelector": {"a": "b"}, "affinity": {}}},
        {"spec": {"terminationGracePeriodSeconds": 600, "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}},
        {"spec": {"initContainers": [{"name": "mine", "image": "x"}]}},
        {"metadata": None, "spec": {"containers": None, "volumes": None}},
        _engine(env=[{"name": "NCCL_DEBUG", "value": "INFO"}], envFrom=[{"secretRef": {"name": "x"}}]),
        _engine(volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}, {"name": "x", "mountPath": "/modelsx"}]),  # noqa: S108 - the path of the mount
        _engine(resources={"limits": {"rdma/ib": 1, "cpu": 8}}, livenessProbe={"failureThreshold": 99}),
        _engine(lifecycle={"postStart": {"exec": {"command": ["true"]}}}, securityContext={"runAsUser": 1}),
    ],
)
def test_what_is_the_users_passes(template: dict[str, Any]) -> None:
    assert _paths(template) == []
