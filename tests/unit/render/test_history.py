"""What the workers were made from is kept, newest first, so that a user can go back to it."""

from typing import Any

from support import specs
from tandem_operator.render.history import Past, render_history


def kept(tree: dict[str, Any], past: list[Past]) -> list[Past]:
    """Return what is kept after one pass."""
    rendered = render_history(specs.OWNER, specs.read(tree), past)
    return [Past(name=each["metadata"]["name"], number=each["revision"], data=each["data"]) for each in rendered]


def changed(number: int) -> dict[str, Any]:
    return specs.changed(specs.disaggregated(), "decode.engine.args", [f"--seed={number}"])


def test_the_first_revision_holds_what_shapes_workers_and_no_count() -> None:
    tree = specs.changed(specs.disaggregated(), "decode.replicas", 7)
    (only,) = kept(tree, [])
    assert only.number == 1
    assert only.data["spec"].keys() <= {"model", "profile", "engine", "prefill", "decode", "kvTransfer", "runtimeVersion"}
    assert only.data["spec"]["model"] == tree["model"]
    assert "replicas" not in only.data["spec"]["decode"]


def test_a_second_pass_changes_nothing() -> None:
    once = kept(changed(1), kept(specs.disaggregated(), []))
    assert kept(changed(1), once) == once


def test_what_does_not_shape_workers_makes_no_revision() -> None:
    once = kept(specs.disaggregated(), [])
    assert kept(specs.changed(specs.disaggregated(), "router.replicas", 9), once) == once


def test_a_revision_that_comes_back_is_the_newest_and_keeps_what_it_held() -> None:
    first = kept(specs.disaggregated(), [])
    back = kept(specs.disaggregated(), kept(changed(1), first))
    assert [each.number for each in back] == [3, 2]
    assert back[0].data == first[0].data


def test_a_restart_is_a_revision_whose_value_is_kept() -> None:
    restarted = specs.changed(specs.disaggregated(), "runtimeVersion", "1")
    newest, before = kept(restarted, kept(specs.disaggregated(), []))
    assert newest.data["spec"] == before.data["spec"] | {"runtimeVersion": "1"}


def test_the_oldest_are_forgotten() -> None:
    found: list[Past] = []
    for number in range(9):
        found = kept(changed(number), found)
    assert [each.number for each in found] == [9, 8, 7, 6, 5, 4]
    none = specs.changed(changed(8), "rollout.historyLimit", 0)
    assert [each.number for each in kept(none, found)] == [9]
