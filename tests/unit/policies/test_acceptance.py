"""What the schema lets pass and makes no sense: refused with the path, both fields and what is allowed."""

from typing import Any

import pytest

from support import specs
from tandem_api.inferenceservice import Mismatch
from tandem_operator.policies.acceptance import Verdict, accept
from tandem_operator.render.context import Settings

_NODE_PATHS = Settings(workers_image="x", operator_version="1", allow_node_paths=True)


def _verdict(*changes: tuple[str, Any], base: dict[str, Any] | None = None, settings: Settings = specs.SETTINGS) -> Verdict:
    tree = base or specs.disaggregated()
    for path, value in changes:
        tree = specs.changed(tree, path, value)
    return accept(specs.read(tree), settings)


@pytest.mark.parametrize("tree", [specs.disaggregated(), specs.aggregated()], ids=["disaggregated", "aggregated"])
def test_the_smallest_services_are_accepted_without_a_word(tree: dict[str, Any]) -> None:
    assert accept(specs.read(tree), specs.SETTINGS) == Verdict((), ())


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ([("model", {"uri": "file:///srv/m"})], "spec.model.uri", "not allowed"),
        ([("model", {"uri": "pvc://claim/../other"})], "spec.model.uri", "'..'"),
        ([("model.revision", "-x")], "spec.model.revision", "begin with '-'"),
        ([("model.servedName", "--port")], "spec.model.servedName", "begin with '-'"),
        ([("prefill.parallelism.tensor", 4)], "spec.prefill.parallelism.tensor", "`spec.decode.parallelism.tensor` is 1"),
        (
            [("prefill.parallelism.tensor", 2), ("decode.parallelism.tensor", 3)],
            "spec.prefill.parallelism.tensor",
            "must be a multiple",
        ),
        ([("decode.parallelism.pipeline", 2)], "spec.decode.parallelism.pipeline", "use `tensor`"),
        ([("prefill.resources.gpus", 0)], "spec.prefill.resources.gpus", "`spec.decode.resources.gpus` is 1"),
        (
            [("prefill.resources.gpus", 0), ("decode.resources.gpus", 0), ("kvTransfer.device", "GPU")],
            "spec.kvTransfer.device",
            "needs GPUs",
        ),
        ([("prefill.engine.maxModelLen", 100)], "spec.prefill.engine.maxModelLen", "the limit of the model"),
        (
            [("decode.engine.maxBatchedTokens", 16), ("decode.engine.maxSequences", 17)],
            "spec.decode.engine.maxBatchedTokens",
            "16 tokens in a step are fewer than the 17",
        ),
        ([("kvTransfer.lease", "4s")], "spec.kvTransfer.lease", "at least 5"),
        ([("kvTransfer.lease", "7500ms")], "spec.kvTransfer.lease", "whole seconds"),
        ([("prefill.startup", "9s")], "spec.prefill.startup", "at least '10s'"),
        ([("prefill.replicas", 0)], "spec.prefill.replicas", "both 0 or both greater than 0"),
        ([("slo", {"ttft": {"target": "0s"}})], "spec.slo.ttft.target", "greater than '0s'"),
        ([("slo", {"tpot": {"target": "0ms"}})], "spec.slo.tpot.target", "greater than '0s'"),
        (
            [("decode.template", {"spec": {"terminationGracePeriodSeconds": 30}})],
            "spec.decode.template.spec.terminationGracePeriodSeconds",
            "at least 100",
        ),
    ],
)
def test_a_contradiction_is_refused_where_it_stands(changes: list[tuple[str, Any]], path: str, said: str) -> None:
    errors = _verdict(*changes).errors
    assert [error.path for error in errors] == [path]
    assert said in errors[0].line


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ([("decode.parallelism.expert", True)], "spec.decode.parallelism.expert"),
        ([("prefill.drain", "5s")], "spec.prefill.drain"),
        ([("prefill.parallelism.pipeline", 2)], "spec.prefill.parallelism.pipeline"),
        ([("prefill.resources.gpuResource", "amd.com/gpu")], "spec.prefill.resources.gpuResource"),
        ([("autoscaling", {})], "spec.autoscaling"),
        (
            [
                ("slo", {"tpot": {"target": "50ms"}}),
                ("autoscaling", {"decode": {"min": 2, "max": 3}}),
                ("decode.replicas", 9),
            ],
            "spec.decode.replicas",
        ),
        ([("kvTransfer.transports", ["rc", "tcp"])], "spec.kvTransfer.transports"),
        (
            [
                ("engine.maxModelLen", 4096),
                ("router.lanes", [{"name": "long", "minPromptTokens": 4096, "maxInFlight": 1}]),
            ],
            "spec.router.lanes[0].minPromptTokens",
        ),
        (
            [("router.lanes", [{"name": name, "minPromptTokens": 9, "maxInFlight": 1} for name in ("one", "two")])],
            "spec.router.lanes[1].minPromptTokens",
        ),
        ([("router.rateLimits.requestsPerMinute", 9)], "spec.router.rateLimits"),
    ],
)
def test_what_may_work_is_a_warning(changes: list[tuple[str, Any]], path: str) -> None:
    verdict = _verdict(*changes)
    assert verdict.accepted
    assert [warning.path for warning in verdict.warnings] == [path]


@pytest.mark.parametrize(
    "changes",
    [
        [("kvTransfer.transports", transports), *more]
        for transports, more in (
            ([], []),
            (["rc", "cuda_copy"], []),
            (["all"], []),
            (["^tcp"], []),
            (["tcp"], [("kvTransfer.device", "CPU")]),
            (["tcp"], [("prefill.resources.gpus", 0), ("decode.resources.gpus", 0)]),
            (["tcp"], [(f"{role}.resources.gpuResource", "example.com/npu") for role in ("prefill", "decode")]),
        )
    ],
)
def test_transports_that_reach_the_memory_of_the_workers_need_no_warning(changes: list[tuple[str, Any]]) -> None:
    assert _verdict(*changes) == Verdict((), ())


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("Apply", "workers start within the bounds"),
        ("Recommend", "mode 'Recommend' leaves it"),
        ("External", "mode 'External' leaves it"),
    ],
)
def test_a_count_outside_of_the_bounds_is_told_what_becomes_of_it(mode: str, said: str) -> None:
    autoscaling = {"mode": mode, "decode": {"min": 2, "max": 3}}
    verdict = _verdict(("slo", {"tpot": {"target": "50ms"}}), ("autoscaling", autoscaling), ("decode.replicas", 9))
    (warning,) = verdict.warnings
    assert said in warning.line


def test_counts_may_be_given_away_without_bounds() -> None:
    assert _verdict(("autoscaling", {"mode": "External"})) == Verdict((), ())


_MISMATCHES = {
    "TensorParallelism": ([("prefill.parallelism.tensor", 4)], "spec.prefill.parallelism.tensor"),
    "MaxModelLen": ([("prefill.engine.maxModelLen", 100)], "spec.prefill.engine.maxModelLen"),
}


def test_every_check_that_may_be_allowed_is_tested() -> None:
    assert list(_MISMATCHES) == [check.value for check in Mismatch]


@pytest.mark.parametrize("name", _MISMATCHES)
def test_an_allowed_mismatch_is_a_warning_that_names_both_fields(name: str) -> None:
    changes, path = _MISMATCHES[name]
    verdict = _verdict(*changes, ("kvTransfer.allowMismatch", [name]))
    assert verdict.accepted
    (warning,) = verdict.warnings
    assert warning.path == path
    assert path.replace("prefill", "decode") in warning.line
    assert "`spec.kvTransfer.allowMismatch` lets pass" in warning.line


@pytest.mark.parametrize("name", _MISMATCHES)
def test_another_name_does_not_allow_it_and_is_said_to_have_no_effect(name: str) -> None:
    changes, path = _MISMATCHES[name]
    others = [other for other in _MISMATCHES if other != name]
    verdict = _verdict(*changes, ("kvTransfer.allowMismatch", others))
    assert [error.path for error in verdict.errors] == [path]
    assert f"name '{name}' in `spec.kvTransfer.allowMismatch`" in verdict.errors[0].line
    assert [warning.path for warning in verdict.warnings] == ["spec.kvTransfer.allowMismatch"]
    assert f"'{others[0]}' has no effect" in verdict.warnings[0].line


def test_what_can_never_work_cannot_be_allowed() -> None:
    changes = [("kvTransfer.allowMismatch", list(_MISMATCHES)), ("decode.parallelism.pipeline", 2)]
    verdict = _verdict(*changes, ("prefill.resources.gpus", 0))
    assert [error.path for error in verdict.errors] == ["spec.decode.parallelism.pipeline", "spec.prefill.resources.gpus"]


def test_node_paths_are_accepted_where_the_administrator_allows_them() -> None:
    assert _verdict(("model", {"uri": "file:///srv/m"}), settings=_NODE_PATHS).accepted


def test_a_wider_decode_role_is_accepted() -> None:
    assert _verdict(("prefill.parallelism.tensor", 2), ("decode.parallelism.tensor", 4)).accepted


def test_all_problems_are_told_at_once_and_in_the_same_order() -> None:
    pod = {"activeDeadlineSeconds": 5, "restartPolicy": "Never", "ephemeralContainers": []}
    changes = [("prefill.startup", "1s"), ("decode.startup", "1s"), ("prefill.template", {"spec": pod})]
    first, second = (_verdict(*changes).errors for _ in range(2))
    assert first == second
    assert [error.path.removeprefix("spec.") for error in first] == [
        "prefill.startup",
        "prefill.template.spec.activeDeadlineSeconds",
        "prefill.template.spec.ephemeralContainers",
        "prefill.template.spec.restartPolicy",
        "decode.startup",
    ]
