"""The launcher and the simulator's own parser: what the simulator would refuse is refused in one line."""

from pathlib import Path

import tandem_simulator
from support.launcher import FakeImage, free_port

PACKAGES = Path(tandem_simulator.__file__).parents[1]


def test_a_flag_that_the_simulator_does_not_know_is_answered_with_the_nearest(tmp_path: Path) -> None:
    line = ["--model", "simulated", "--host", "127.0.0.1", "--port", str(free_port()), "--max-modle-len", "128"]
    command = ["run", "--engine", "simulator", "--gpus", "0", "--", *line]
    result = FakeImage(tmp_path).run(command, {"PHASE": "aggregated", "PYTHONPATH": str(PACKAGES)})
    assert result.termination == (
        "UnknownArgument: the engine has no flag --max-modle-len (did you mean --max-model-len?): correct engine.args\n"
    )
    assert result.code == 64
