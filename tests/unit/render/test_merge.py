"""The user's pod template is merged as Kubernetes merges: by the keys of its lists."""

from typing import Any

from tandem_operator.render.merge import merge_pod_template

_BASE: dict[str, Any] = {
    "metadata": {"labels": {"ours": "1"}, "annotations": {"ours": "1"}},
    "spec": {
        "securityContext": {"runAsNonRoot": True, "fsGroup": 65532},
        "tolerations": [{"key": "ours"}],
        "containers": [
            {
                "name": "engine",
                "image": "ours",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                "ports": [{"containerPort": 8000, "name": "http"}],
                "volumeMounts": [{"name": "tmp", "mountPath": "/work"}],
                "livenessProbe": {"httpGet": {"path": "/health"}, "periodSeconds": 5},
            }
        ],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    },
}


def _engine(added: dict[str, Any]) -> dict[str, Any]:
    merged = merge_pod_template(_BASE, {"spec": {"containers": [{"name": "engine", **added}]}})
    engine: dict[str, Any] = merged["spec"]["containers"][0]
    return engine


def test_nothing_added_changes_nothing() -> None:
    assert merge_pod_template(_BASE, {}) == _BASE


def test_neither_side_is_changed() -> None:
    added = {"spec": {"containers": [{"name": "engine", "env": [{"name": "C", "value": "3"}]}]}}
    before = (repr(_BASE), repr(added))
    merge_pod_template(_BASE, added)
    assert (repr(_BASE), repr(added)) == before


def test_labels_and_annotations_are_added() -> None:
    merged = merge_pod_template(_BASE, {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}})
    assert merged["metadata"] == {"labels": {"ours": "1", "team": "a"}, "annotations": {"ours": "1", "note": "b"}}


def test_variables_merge_by_name_and_keep_their_place() -> None:
    env = _engine({"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "2"}]})["env"]
    assert [each["name"] for each in env] == ["A", "B", "C"]
    assert env[0]["value"] == "2"


def test_a_variable_with_another_kind_of_source_replaces_ours_whole() -> None:
    assert _engine({"env": [{"name": "B", "value": "2"}]})["env"][1] == {"name": "B", "value": "2"}


def test_a_port_with_another_protocol_is_another_port() -> None:
    ports = _engine({"ports": [{"containerPort": 8000, "protocol": "UDP", "name": "u"}]})["ports"]
    assert [port["name"] for port in ports] == ["http", "u"]


def test_a_mount_at_the_same_path_is_the_same_mount() -> None:
    assert _engine({"volumeMounts": [{"name": "big", "mountPath": "/work"}]})["volumeMounts"] == [
        {"name": "big", "mountPath": "/work"}
    ]


def test_a_probe_with_the_users_handler_loses_ours_and_keeps_its_times() -> None:
    assert _engine({"livenessProbe": {"exec": {"command": ["true"]}}})["livenessProbe"] == {
        "periodSeconds": 5,
        "exec": {"command": ["true"]},
    }


def test_a_probe_without_a_handler_keeps_ours() -> None:
    assert _engine({"livenessProbe": {"periodSeconds": 60}})["livenessProbe"]["httpGet"] == {"path": "/health"}


def test_tolerations_are_added_once() -> None:
    merged = merge_pod_template(_BASE, {"spec": {"tolerations": [{"key": "gpu"}, {"key": "ours"}]}})
    assert merged["spec"]["tolerations"] == [{"key": "ours"}, {"key": "gpu"}]


def test_another_container_is_added_and_ours_stays_first() -> None:
    merged = merge_pod_template(_BASE, {"spec": {"containers": [{"name": "exporter", "image": "x"}]}})
    assert [container["name"] for container in merged["spec"]["containers"]] == ["engine", "exporter"]


def test_scalars_of_the_user_win() -> None:
    merged = merge_pod_template(_BASE, {"spec": {"securityContext": {"fsGroup": 1}, "hostNetwork": True}})
    assert merged["spec"]["securityContext"] == {"runAsNonRoot": True, "fsGroup": 1}
    assert merged["spec"]["hostNetwork"] is True
