"""Going back changes what the workers are made from, and nothing else."""

from typing import Any

from tandem_cli.rollback_command import differences, patch


def service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 7}, "spec": {"model": {"uri": "hf://a/b"}, "decode": {"replicas": 4}, **spec}}


def test_a_list_of_revisions_says_what_each_changed() -> None:
    before = {"engine": {"image": "a"}, "decode": {"drain": "9s"}}
    after = {"engine": {"image": "b"}, "prefill": {"drain": "9s"}}
    assert differences(before, after) == [
        'decode.drain: "9s" -> unset',
        'engine.image: "a" -> "b"',
        'prefill.drain: unset -> "9s"',
    ]


def test_a_revision_that_is_the_present_one_changes_nothing() -> None:
    assert patch(service(), {"model": {"uri": "hf://a/b"}, "decode": {}})[1:] == []


def test_what_differs_is_put_back_what_was_absent_goes_and_counts_stay() -> None:
    now = service(engine={"image": "new"}, kvTransfer={"lease": "9s"}, router={"replicas": 3})
    assert patch(now, {"model": {"uri": "hf://a/b"}, "engine": {"image": "old"}, "decode": {"drain": "9s"}}) == [
        {"op": "test", "path": "/metadata/generation", "value": 7},
        {"op": "add", "path": "/spec/engine", "value": {"image": "old"}},
        {"op": "add", "path": "/spec/decode", "value": {"drain": "9s", "replicas": 4}},
        {"op": "remove", "path": "/spec/kvTransfer"},
    ]


def test_going_back_takes_a_restart_back() -> None:
    now = service(runtimeVersion="2")
    assert patch(now, {"model": {"uri": "hf://a/b"}, "decode": {}, "runtimeVersion": "1"})[1:] == [
        {"op": "add", "path": "/spec/runtimeVersion", "value": "1"}
    ]
    assert patch(now, {"model": {"uri": "hf://a/b"}, "decode": {}})[1:] == [{"op": "remove", "path": "/spec/runtimeVersion"}]
