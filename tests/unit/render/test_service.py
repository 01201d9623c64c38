"""What all children of a service have in common, and what an operator's upgrade may not touch."""

import json
from dataclasses import replace
from typing import Any

import pytest

from support import specs
from tandem_api import labels
from tandem_api.names import Role
from tandem_operator.render.context import Settings
from tandem_operator.render.service import Rendered, render_service
from tandem_operator.render.workers import worker_deployment


def _rendered(
    tree: dict[str, Any], *, revisions: dict[str, Any] | None = None, settings: Settings = specs.SETTINGS
) -> Rendered:
    return render_service(owner=specs.OWNER, spec=specs.read(tree), settings=settings, revisions=revisions or {})


def _frozen(rendered: Rendered) -> dict[str, Any]:
    return {role.revision["metadata"]["name"]: role.revision["data"] for role in rendered.roles}


def _everything(rendered: Rendered) -> list[dict[str, Any]]:
    return [*rendered.objects, *(worker_deployment(role, 1) for role in rendered.roles)]


def _present(rendered: Rendered) -> str:
    return "-".join(("chat-spec", *(role.role_hash for role in rendered.roles)))


def _pod(rendered: Rendered, index: int = 0) -> dict[str, Any]:
    pod: dict[str, Any] = rendered.roles[index].deployment_template["spec"]["template"]
    return pod


def _engine(rendered: Rendered, index: int = 0) -> dict[str, Any]:
    engine: dict[str, Any] = _pod(rendered, index)["spec"]["containers"][0]
    return engine


def test_the_children_of_a_disaggregated_service() -> None:
    rendered = _rendered(specs.disaggregated())
    found = sorted((child["kind"], child["metadata"]["name"].rsplit("-worker-", 1)[0]) for child in _everything(rendered))
    assert found == sorted(
        [
            ("WorkerPool", "chat-prefill"),
            ("WorkerPool", "chat-decode"),
            ("ControllerRevision", "chat-prefill"),
            ("ControllerRevision", "chat-decode"),
            ("ControllerRevision", _present(rendered)),
            ("Service", "chat-prefill"),
            ("Service", "chat-decode"),
            ("Service", "chat-prefill-peers"),
            ("Deployment", "chat-prefill"),
            ("Deployment", "chat-decode"),
            ("ServiceAccount", "chat-router"),
            ("RoleBinding", "chat-router"),
            ("Service", "chat-router"),
            ("Deployment", "chat-router"),
            ("NetworkPolicy", "chat-router"),
            ("NetworkPolicy", "chat-workers"),
            ("PodDisruptionBudget", "chat-prefill"),
            ("PodDisruptionBudget", "chat-decode"),
            ("PodDisruptionBudget", "chat-router"),
        ]
    )


def test_the_only_pool_of_an_aggregated_service_moves_no_kv() -> None:
    rendered = _rendered(specs.aggregated())
    assert [role.role for role in rendered.roles] == [Role.AGGREGATED]
    assert "--kv-transfer-config" not in _engine(rendered)["args"]
    assert not [each for each in _engine(rendered)["env"] if "NIXL" in each["name"]]


def test_every_child_is_owned_labelled_and_in_the_namespace() -> None:
    for child in _everything(_rendered(specs.disaggregated())):
        metadata = child["metadata"]
        assert metadata["ownerReferences"] == [specs.OWNER.reference()]
        assert metadata["namespace"] == "team-a"
        assert metadata["labels"][labels.SERVICE] == "chat"
        assert metadata["labels"][labels.ROLE] in {"prefill", "decode", "router", "workers", "prefill-peers", "history"}
        assert len(metadata["name"]) <= 63


def test_rendering_twice_gives_the_same_bytes() -> None:
    first, second = (json.dumps(_everything(_rendered(specs.disaggregated()))) for _ in range(2))
    assert first == second


def test_no_pool_is_rendered_with_a_count() -> None:
    tree = specs.changed(specs.disaggregated(), "prefill.replicas", 5)
    assert all("replicas" not in (role.pool or {})["spec"] for role in _rendered(tree).roles)


def test_the_longest_name_of_a_service_fits_its_children() -> None:
    owner = replace(specs.OWNER, name="a" * 38)
    rendered = render_service(owner=owner, spec=specs.read(specs.disaggregated()), settings=specs.SETTINGS, revisions={})
    assert max(len(child["metadata"]["name"]) for child in _everything(rendered)) <= 63


@pytest.mark.parametrize("tree", [specs.disaggregated(), specs.aggregated()], ids=["disaggregated", "aggregated"])
def test_an_upgrade_of_the_operator_restarts_no_model(tree: dict[str, Any]) -> None:
    before = _rendered(tree)
    newer = replace(specs.SETTINGS, workers_image="registry.example/tandem/workers:2", operator_version="0.2.0")
    after = _rendered(tree, revisions=_frozen(before), settings=newer)
    assert [role.deployment_template for role in after.roles] == [role.deployment_template for role in before.roles]
    assert [role.revision for role in after.roles] == [role.revision for role in before.roles]
    assert after.previous == ()


@pytest.mark.parametrize("tree", [specs.disaggregated(), specs.aggregated()], ids=["disaggregated", "aggregated"])
def test_another_runtime_version_has_the_present_operator_render_and_the_old_one_brings_its_rendering_back(
    tree: dict[str, Any],
) -> None:
    before = _rendered(tree)
    newer = replace(specs.SETTINGS, workers_image="registry.example/tandem/workers:2", operator_version="0.2.0")
    after = _rendered(specs.changed(tree, "runtimeVersion", "1"), revisions=_frozen(before), settings=newer)
    for role in after.roles:
        sidecar = role.deployment_template["spec"]["template"]["spec"]["initContainers"][1]
        assert (sidecar["image"], role.revision["data"]["operatorVersion"]) == (newer.workers_image, "0.2.0")
    assert {role.kv_group for role in after.roles} == {role.kv_group for role in before.roles}
    assert [role.objects for role in after.previous] == [
        role.objects for role in sorted(before.roles, key=lambda each: each.revision["metadata"]["name"])
    ]
    back = _rendered(tree, revisions=_frozen(before) | _frozen(after), settings=newer)
    assert [role.deployment_template for role in back.roles] == [role.deployment_template for role in before.roles]


def test_an_upgrade_of_the_operator_moves_the_router() -> None:
    newer = replace(specs.SETTINGS, workers_image="registry.example/tandem/workers:2")
    rendered = _rendered(specs.disaggregated(), revisions=_frozen(_rendered(specs.disaggregated())), settings=newer)
    routers = [child for child in rendered.objects if child["kind"] == "Deployment"]
    assert [router["spec"]["template"]["spec"]["containers"][0]["image"] for router in routers] == [newer.workers_image]


def test_a_role_whose_hash_is_unchanged_never_restarts_while_the_other_moves() -> None:
    before = _rendered(specs.disaggregated())
    after = _rendered(specs.changed(specs.disaggregated(), "prefill.drain", "90s"), revisions=_frozen(before))
    assert after.roles[0].role_hash != before.roles[0].role_hash
    assert after.roles[1].deployment_template == before.roles[1].deployment_template
    assert [role.role_hash for role in after.previous] == [before.roles[0].role_hash]
    assert after.previous[0].deployment_template == before.roles[0].deployment_template
    assert after.previous[0].objects == before.roles[0].objects


def test_roles_that_the_spec_no_longer_has_are_among_the_previous_ones() -> None:
    after = _rendered(specs.aggregated(), revisions=_frozen(_rendered(specs.disaggregated())))
    assert sorted(role.role for role in after.previous) == [Role.DECODE, Role.PREFILL]


def test_a_revision_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match=r"'chat-decode-worker-1234' cannot be read.*delete it"):
        _rendered(specs.disaggregated(), revisions={"chat-decode-worker-1234": {"role": "other"}})


def _pods() -> list[dict[str, Any]]:
    tree = specs.changed(specs.disaggregated(), "model.secretRef", {"name": "token"})
    rendered = _rendered(tree)
    routers = [child["spec"]["template"] for child in rendered.objects if child["kind"] == "Deployment"]
    return [_pod(rendered, 0), _pod(rendered, 1), *routers]


def test_all_pods_pass_the_restricted_profile() -> None:
    for pod in _pods():
        context = pod["spec"]["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] == 65532
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]):
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}
        assert not [volume for volume in pod["spec"]["volumes"] if "hostPath" in volume]


def test_workers_get_no_token_of_a_service_account_and_the_namespaces_own_account() -> None:
    for pod in _pods()[:2]:
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in pod["spec"]


def test_no_container_gets_a_secret_but_as_a_file() -> None:
    for pod in _pods():
        for container in (*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]):
            said = json.dumps([container.get(part) for part in ("command", "args", "env", "envFrom")])
            assert "secretKeyRef" not in said
            assert "secretRef" not in said
    engine = _pods()[0]["spec"]["containers"][0]
    assert {"name": "HF_TOKEN_PATH", "value": "/var/run/secrets/tandem/hf/token"} in engine["env"]


def test_a_slow_answer_restarts_no_engine_and_loading_has_its_own_time() -> None:
    engine = _engine(_rendered(specs.changed(specs.disaggregated(), "prefill.startup", "2m")))
    liveness, startup = engine["livenessProbe"], engine["startupProbe"]
    assert liveness["timeoutSeconds"] >= 10
    assert liveness["failureThreshold"] * liveness["periodSeconds"] >= 60
    assert startup["failureThreshold"] * startup["periodSeconds"] == 120


def test_both_roles_advertise_the_address_of_the_pod() -> None:
    rendered = _rendered(specs.disaggregated())
    for index in (0, 1):
        env = {each["name"]: each for each in _engine(rendered, index)["env"]}
        assert env["POD_IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
        assert env["VLLM_NIXL_SIDE_CHANNEL_HOST"]["value"] == "$(POD_IP)"
        names = list(env)
        assert names.index("POD_IP") < names.index("VLLM_NIXL_SIDE_CHANNEL_HOST")


def test_the_sidecar_is_native_and_its_startup_waits_for_nobody_else() -> None:
    sidecar = _pod(_rendered(specs.disaggregated()))["spec"]["initContainers"][1]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert sidecar["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_a_worker_is_given_time_for_drain_and_shutdown() -> None:
    rendered = _rendered(specs.changed(specs.disaggregated(), "prefill.drain", "100s"))
    args = _engine(rendered)["args"]
    shutdown = int(args[args.index("--shutdown-timeout") + 1])
    assert shutdown > 30, "longer than the lease, for which a prefill worker keeps KV cache"
    assert _pod(rendered)["spec"]["terminationGracePeriodSeconds"] > 100 + shutdown


def test_a_longer_grace_period_of_the_user_is_kept() -> None:
    tree = specs.changed(specs.disaggregated(), "decode.template", {"spec": {"terminationGracePeriodSeconds": 900}})
    assert _pod(_rendered(tree), 1)["spec"]["terminationGracePeriodSeconds"] == 900


@pytest.mark.parametrize(("tensor", "expected"), [(1, False), (2, True)])
def test_workers_with_several_devices_get_shared_memory(tensor: int, *, expected: bool) -> None:
    tree = specs.changed(specs.aggregated(), "decode.parallelism.tensor", tensor)
    mounts = [mount["mountPath"] for mount in _engine(_rendered(tree))["volumeMounts"]]
    assert ("/dev/shm" in mounts) is expected  # noqa: S108 - the path of the mount


def test_workers_on_the_cpu_ask_for_no_gpu_and_send_from_host_memory() -> None:
    tree = specs.changed(specs.disaggregated(), "prefill.resources", {"gpus": 0, "memory": "4Gi"})
    engine = _engine(_rendered(tree))
    assert engine["resources"] == {"requests": {"memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    config = json.loads(engine["args"][engine["args"].index("--kv-transfer-config") + 1])
    assert config["kv_buffer_device"] == "cpu"


@pytest.mark.parametrize(
    ("uri", "location", "source"),
    [
        ("pvc://weights/llm/tiny", "/models/llm/tiny", {"persistentVolumeClaim": {"claimName": "weights", "readOnly": True}}),
        ("pvc://weights", "/models", {"persistentVolumeClaim": {"claimName": "weights", "readOnly": True}}),
        ("file:///srv/tiny", "/models", {"hostPath": {"path": "/srv/tiny", "type": "Directory"}}),
    ],
)
def test_models_that_are_already_there_are_mounted_read_only(uri: str, location: str, source: dict[str, Any]) -> None:
    rendered = _rendered(specs.changed(specs.aggregated(), "model", {"uri": uri}))
    engine, volumes = _engine(rendered), _pod(rendered)["spec"]["volumes"]
    assert engine["args"][:2] == ["--model", location]
    assert {"name": "tandem-model", "mountPath": "/models", "readOnly": True} in engine["volumeMounts"]
    assert {"name": "tandem-model", **source} in volumes


def test_the_router_pulls_with_the_secrets_of_the_workers_too() -> None:
    settings = replace(specs.SETTINGS, image_pull_secrets=("chart",))
    tree = specs.changed(specs.disaggregated(), "decode.template", {"spec": {"imagePullSecrets": [{"name": "private"}]}})
    rendered = _rendered(tree, settings=settings)
    router = next(child for child in rendered.objects if child["kind"] == "Deployment")
    assert router["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "chart"}, {"name": "private"}]
    assert _pod(rendered, 1)["spec"]["imagePullSecrets"] == [{"name": "chart"}, {"name": "private"}]
    assert _pod(rendered, 0)["spec"]["imagePullSecrets"] == [{"name": "chart"}]


def test_a_model_id_is_no_label_and_is_kept_exactly() -> None:
    uri = "hf://Org.Name/Very-Long.Model_" + "x" * 120
    rendered = _rendered(specs.changed(specs.aggregated(), "model.uri", uri))
    assert all(uri not in value for child in _everything(rendered) for value in child["metadata"]["labels"].values())
    assert _pod(rendered)["metadata"]["annotations"]["serving.tandem.dev/model"] == uri


def test_a_decode_worker_knows_its_peers_by_a_name_that_no_rollout_changes() -> None:
    rendered = _rendered(specs.disaggregated())
    sidecars = [_pod(rendered, index)["spec"]["initContainers"][1]["args"] for index in (0, 1)]
    assert "--peers" not in sidecars[0]
    assert sidecars[1][sidecars[1].index("--peers") + 1] == "chat-prefill-peers"
    (peers,) = [child for child in rendered.objects if child["metadata"]["name"] == "chat-prefill-peers"]
    assert peers["spec"]["publishNotReadyAddresses"]
    assert peers["spec"]["selector"] == {labels.SERVICE: "chat", labels.ROLE: "prefill"}
    # A role's label of its own keeps routers from taking its endpoints for more workers.
    assert peers["metadata"]["labels"][labels.ROLE] not in set(Role)


def test_the_sidecar_is_told_the_engines_own_argument_line() -> None:
    rendered = _rendered(specs.disaggregated())
    for index in (0, 1):
        sidecar = _pod(rendered, index)["spec"]["initContainers"][1]["args"]
        assert json.loads(sidecar[sidecar.index("--engine-line") + 1]) == _engine(rendered, index)["args"]
