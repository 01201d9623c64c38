"""The engine's own parser refuses; the launcher only says it better."""

import pytest

from tandem_launcher.become import refusal
from tandem_launcher.failures import Reason

OPTIONS = ["--model", "--max-model-len", "--max-num-seqs", "--port", "-O"]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            "unrecognized arguments: --max-modle-len 2048",
            "UnknownArgument: the engine has no flag --max-modle-len (did you mean --max-model-len?): correct engine.args",
        ),
        (
            "unrecognized arguments: --max_num_seq=4 --zzz",
            (
                "UnknownArgument: the engine has no flag --max_num_seq (did you mean --max-num-seqs?);"
                " the engine has no flag --zzz: correct engine.args"
            ),
        ),
        ("unrecognized arguments: stray", "UnknownArgument: the engine has no use for 'stray': remove it from engine.args"),
        (
            "argument --port: invalid int value: 'x'",
            "BadArgument: argument --port: invalid int value: 'x': correct engine.args",
        ),
    ],
)
def test_a_parsers_refusal_becomes_one_line_that_says_what_to_change(message: str, line: str) -> None:
    assert refusal(message, options=OPTIONS).line == line


def test_only_a_flag_that_nobody_knows_counts_as_unknown() -> None:
    assert refusal("the following arguments are required: --model", options=OPTIONS).reason is Reason.BAD_ARGUMENT
