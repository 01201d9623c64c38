"""The launcher as one file, run as a container runs it: each wrong set-up ends with its one line, a right one in the engine."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.launcher import FakeImage, free_port

TRANSFER = {"prefill": "kv_producer", "decode": "kv_consumer"}


@pytest.fixture
def image(tmp_path: Path) -> FakeImage:
    return FakeImage(tmp_path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    config = {"num_attention_heads": 9, "hidden_size": 576, "num_hidden_layers": 30, "max_position_embeddings": 8192}
    (folder / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16"}))
    (folder / "model.safetensors").write_bytes(bytes(1000))
    return folder


def command(model: Path, *extra: str, engine: str = "simulator", gpus: int = 0, tensor: int = 1) -> list[str]:
    line = ["--model", str(model), "--host", "127.0.0.1", "--port", str(free_port()), *extra]
    return ["run", "--engine", engine, "--gpus", str(gpus), "--tensor", str(tensor), "--", *line]


def test_the_launcher_becomes_the_engine_with_its_pid_its_arguments_and_default_signals(image: FakeImage, model: Path) -> None:
    given = command(model, "--max-model-len", "128")
    process = image.start(given, {"PHASE": "aggregated"})
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert stdout.splitlines() == [f"{process.pid} {given[given.index('--') + 1 :]} __main__", "True"]
    assert image.log.read_text() == ""


def test_sigterm_reaches_the_engine(image: FakeImage, model: Path) -> None:
    with image.start(command(model, "--dtype", "float32"), {"PHASE": "aggregated"}) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == -signal.SIGTERM


def test_sigterm_ends_the_checks(image: FakeImage, model: Path) -> None:
    image.add_vllm()
    image.add("torch/__init__.py", "import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    with image.start(command(model, engine="vllm", gpus=1), {"PHASE": "aggregated"}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
        assert process.stdout.read() == "", "the child that loads torch ended too"


def test_a_worker_with_kv_transfer_starts_when_all_agrees(image: FakeImage, model: Path) -> None:
    # Another connector than NIXL, whose side channel needs an address that a test machine may not have.
    transfer = json.dumps({"kv_connector": "ExampleConnector", "kv_role": "kv_producer"})
    result = image.run(command(model, "--kv-transfer-config", transfer), {"PHASE": "prefill"})
    assert (result.code, result.termination) == (0, "")


@pytest.mark.parametrize(
    ("phase", "extra", "code", "line"),
    [
        ("", [], 78, "BadRole: PHASE is '': set it to prefill, decode or aggregated"),
        ("decode", [], 78, "BadTransfer: PHASE=decode but there is no --kv-transfer-config: add one with kv_role kv_consumer"),
        ("decode", ["--kv-transfer-config", "{"], 78, "BadTransfer: --kv-transfer-config must be a JSON object"),
        (
            "decode",
            ["--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}'],
            78,
            "BadRole: PHASE=decode but --kv-transfer-config has kv_role 'kv_producer': it must be kv_consumer",
        ),
        (
            "decode",
            ["--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'],
            78,
            "NoSideChannel: VLLM_NIXL_SIDE_CHANNEL_HOST is not set",
        ),
        (
            "aggregated",
            ["--model", "/no/such/model"],
            66,
            "ModelMissing: there is no folder '/no/such/model' in this container",
        ),
        ("aggregated", ["--dtype", "bf16"], 69, "UnsupportedDtype: there is no dtype 'bf16'"),
        ("aggregated", ["--max-modle-len", "1"], 64, "UnknownArgument: the engine has no flag --max-modle-len (did you mean"),
        ("aggregated", ["--model"], 66, "ModelMissing: the argument line names no model: add --model"),
    ],
)
def test_a_wrong_set_up_ends_with_its_one_line(
    image: FakeImage, model: Path, phase: str, extra: list[str], code: int, line: str
) -> None:
    result = image.run(command(model, *extra), {"PHASE": phase})
    assert result.termination.startswith(line)
    assert result.termination.count("\n") == 1
    assert result.stderr.endswith(result.termination)
    assert (result.code, result.stdout) == (code, "")


def test_heads_and_gpus_are_checked_before_anything_is_loaded(image: FakeImage, model: Path) -> None:
    environment = {"PHASE": "aggregated"}
    assert image.run(command(model, gpus=2, tensor=2), environment).termination.startswith("IndivisibleHeads: ")
    assert image.run(command(model, gpus=1, tensor=3), environment).termination.startswith(
        "TooFewDevices: tensor 3 x pipeline 1"
    )


def test_a_taken_port_is_named(image: FakeImage, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = image.run(command(model, "--port", port), {"PHASE": "aggregated"})
    assert result.termination.startswith(f"PortTaken: port {port} on 127.0.0.1 for the engine's API is already taken")
    assert result.code == 75


def test_an_image_without_the_engine_is_named(image: FakeImage, model: Path) -> None:
    result = image.run(command(model, engine="vllm"), {"PHASE": "aggregated"})
    assert result.termination.startswith("MissingPackage: this image has no Python package 'vllm'")
    assert result.code == 69


def test_an_engine_that_cannot_be_imported_is_named(image: FakeImage, model: Path) -> None:
    image.add_vllm()
    image.add("vllm/__init__.py", "raise ImportError('libtorch.so is missing')\n")
    result = image.run(command(model, engine="vllm"), {"PHASE": "aggregated"})
    assert result.termination.startswith("MissingPackage: vLLM cannot be imported (libtorch.so is missing)")


@pytest.mark.parametrize(
    ("gpus", "extra", "line"),
    [
        (2, [], "TooFewDevices: 2 GPUs are asked for but torch sees 1"),
        (1, ["--dtype", "bfloat16"], "UnsupportedDtype: Tesla T4 (compute capability 7.5) cannot compute in bfloat16"),
        (
            1,
            ["--max-model-len", "1M"],
            "TooLittleMemory: weights take 0.0 GiB and the KV cache of one request of 1048576 tokens",
        ),
    ],
)
def test_torch_is_asked_what_the_node_has(image: FakeImage, model: Path, gpus: int, extra: list[str], line: str) -> None:
    image.add_vllm()
    result = image.run(command(model, *extra, engine="vllm", gpus=gpus), {"PHASE": "aggregated"})
    assert result.termination.startswith(line)
    assert result.stdout == ""


def test_vllm_starts_on_the_gpu_that_torch_sees(image: FakeImage, model: Path) -> None:
    image.add_vllm()
    result = image.run(command(model, "--dtype", "float16", engine="vllm", gpus=1), {"PHASE": "aggregated"})
    assert (result.code, result.termination) == (0, "")
    assert "starting vLLM 0.32.0" in result.stderr


def test_the_file_runs_in_isolated_mode_under_any_folder(image: FakeImage) -> None:
    isolated = [sys.executable, "-I", str(image.launcher)]
    environment = {**os.environ, "PHASE": "router", "TERMINATION_LOG": str(image.log)}
    done = subprocess.run([*isolated, "run", "--engine", "vllm", "--gpus", "0", "--"], env=environment, check=False, cwd="/")
    assert done.returncode == 78


@pytest.mark.parametrize("arguments", [[], ["--gpus", "-1"], ["--gpus", "0", "--tensor", "0"], ["--gpus", "many"]])
def test_a_command_line_of_its_own_that_makes_no_sense_is_refused(image: FakeImage, arguments: list[str]) -> None:
    assert image.run(["run", "--engine", "vllm", *arguments]).code == 2
