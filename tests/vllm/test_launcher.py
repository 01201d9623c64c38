"""What is wrong with a worker is said in one line by the launcher in front of real vLLM."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.launcher import free_port
from tandem_launcher.install import install

_TRANSFER = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_consumer", "kv_buffer_device": "cpu"})


@dataclass(frozen=True, slots=True)
class Launcher:
    """The launcher's file, run by the Python that has vLLM, with the small model."""

    python: Path
    file: Path
    model: Path

    def ends(self, *line: str, tensor: int = 1, phase: str = "aggregated") -> tuple[int, Sequence[str]]:
        """Run it to its end; return the exit code and the lines of the termination message."""
        log = self.file.parent / "termination-log"
        program = [str(self.python), str(self.file), "run", "--engine", "vllm", "--gpus", "0", "--tensor", str(tensor), "--"]
        engine = ["--model", str(self.model), "--host", "127.0.0.1", "--port", str(free_port()), *line]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.file.parent),
            "PHASE": phase,
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "TERMINATION_LOG": str(log),
        }
        done = subprocess.run([*program, *engine], env=environment, capture_output=True, check=False, timeout=240)
        assert log.is_file(), done.stderr
        return done.returncode, log.read_text().splitlines()


@pytest.fixture
def launcher(engine_python: Path, model_folder: Path, tmp_path: Path) -> Launcher:
    return Launcher(engine_python, install(tmp_path), model_folder)


def test_heads_that_cannot_be_divided_are_named(launcher: Launcher) -> None:
    code, (line,) = launcher.ends(tensor=2)

    assert code == 65
    assert line.startswith("IndivisibleHeads: the model's 9 attention heads cannot be divided by parallelism.tensor 2")


def test_too_little_memory_is_named_with_what_is_needed(launcher: Launcher) -> None:
    code, (line,) = launcher.ends("--max-model-len", "1000000000", "--dtype", "float32")

    assert code == 71
    assert line.startswith("TooLittleMemory: weights take ")
    assert "raise resources.memory, or lower engine.maxModelLen" in line


def test_a_missing_side_channel_address_is_named(launcher: Launcher) -> None:
    code, (line,) = launcher.ends("--kv-transfer-config", _TRANSFER, phase="decode")

    assert code == 78
    assert line.startswith("NoSideChannel: VLLM_NIXL_SIDE_CHANNEL_HOST is not set")


def test_a_flag_that_vllm_does_not_know_is_named_with_the_nearest(launcher: Launcher) -> None:
    code, (line,) = launcher.ends("--max-modell-len", "2048")

    assert code == 64
    assert line == (
        "UnknownArgument: the engine has no flag --max-modell-len (did you mean --max-model-len?): correct engine.args"
    )


def test_a_value_that_vllm_does_not_take_is_named(launcher: Launcher) -> None:
    code, (line,) = launcher.ends("--max-num-seqs", "many")

    assert code == 64
    assert line.startswith("BadArgument: ")
    assert "--max-num-seqs" in line
