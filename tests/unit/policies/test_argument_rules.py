"""No spelling of a flag that Tandem owns passes, and none is set twice."""

import pytest

from support import specs
from tandem_operator.policies.acceptance import accept
from tandem_operator.policies.flags import flags
from tandem_operator.policies.ownership import OWNED_FLAGS
from tandem_operator.policies.problems import Problem
from tandem_operator.policies.roles import roles
from tandem_operator.render.arguments import engine_arguments, launcher_command


def _errors(args: list[str], *, path: str = "engine.args", shared: list[str] | None = None) -> tuple[Problem, ...]:
    tree = specs.changed(specs.disaggregated(), path, args)
    if shared:
        tree = specs.changed(tree, "engine.args", shared)
    return accept(specs.read(tree), specs.SETTINGS).errors


@pytest.mark.parametrize(
    "args",
    [
        ["--port", "8300"],
        ["--port=8300"],
        ["--served-model-name", "x"],
        ["--served_model_name=x"],
        ["--served-mod", "x"],
        ["--kv-transfer-config", "{}"],
        ["--kv-transfer-config.kv_role", "kv_both"],
        ["--kv_transfer_config.kv_role=kv_both"],
        ["-tp", "4"],
        ["-tp=4"],
        ["-dpl=2"],
        ["--tensor-parallel-size=2"],
        ["--no-enable-prefix-caching"],
        ["--no-enable_prefix_caching"],
        ["--disable-log-stats"],
        ["--enable-per-request-metrics"],
        ["--config", "file.yaml"],
        ["--api-key=secret"],
        ["--max-model-len", "4096"],
    ],
)
@pytest.mark.parametrize("path", ["engine.args", "prefill.engine.args", "decode.engine.args"])
def test_every_spelling_of_an_owned_flag_is_refused(args: list[str], path: str) -> None:
    errors = _errors(args, path=path)
    assert [error.path for error in errors] == [f"spec.{path}[0]"]
    assert "belongs to Tandem" in errors[0].line


@pytest.mark.parametrize("args", [["--api-key=canary"], ["--hf_token=canary"], ["--api-key", "canary"], ["api-key=canary"]])
def test_a_key_in_the_arguments_is_refused_without_saying_it_again(args: list[str]) -> None:
    errors = _errors(args)
    assert errors
    assert not [error for error in errors if "canary" in error.line]


@pytest.mark.parametrize(
    "args",
    [
        ["--enable-log-requests"],
        ["--tokenizer", "org/other"],
        ["--gpu-memory-utilization", "0.9"],
        ["--seed", "-1"],
        ["--attention-backend=FLASHINFER"],
        ["--compilation-config.level", "3", "--compilation-config.debug", "1"],
        ["--middleware", "a", "--middleware", "b"],
        ["--override-generation-config", '{"temperature": -0.5}'],
    ],
)
def test_other_flags_pass(args: list[str]) -> None:
    assert _errors(args) == ()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["value"], "is not a flag"),
        (["--seed", "1", "--", "--port"], "would end the engine's flags"),
        (["--seed", "1", "--seed=2"], "`--seed` is already set at `spec.engine.args[0]`"),
    ],
)
def test_a_line_that_the_engine_would_misread_is_refused(args: list[str], said: str) -> None:
    assert said in _errors(args)[0].line


def test_a_flag_of_a_role_may_not_repeat_a_shared_one() -> None:
    errors = _errors(["--seed=2"], path="decode.engine.args", shared=["--seed", "1"])
    assert [error.line for error in errors] == [
        "spec.decode.engine.args[0]: `--seed` is already set at `spec.engine.args[0]` (set it once)"
    ]


def test_what_shapes_the_kv_cache_is_set_for_both_roles() -> None:
    errors = _errors(["--attention-backend", "FLASHINFER"], path="prefill.engine.args")
    assert "which both roles must share" in errors[0].line


@pytest.mark.parametrize("tree", [specs.disaggregated(), specs.aggregated()], ids=["disaggregated", "aggregated"])
def test_every_flag_that_is_rendered_is_owned_and_stands_once(tree: dict[str, object]) -> None:
    spec = specs.read(tree)
    for role in roles(spec):
        names = [flag.name for flag in flags(engine_arguments(spec, role))]
        assert len(names) == len(set(names))
        assert set(names) <= OWNED_FLAGS.keys()
        assert launcher_command(spec, role)[-1] == "--"
