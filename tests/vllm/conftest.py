"""One local cluster with one pair of real vLLM engines, for all tests of this tier.

Where it cannot run, the tests are skipped and say why; with STRICT=1 they fail.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from support import deployed, real_engines
from support.real_engines import Pair
from tandem_local import cluster as local
from tandem_local import environments, folders
from tandem_local.errors import LocalClusterError

_HERE = Path(__file__).parent
_SAMPLE = _HERE.parents[1] / "crds" / "samples" / "cpu.yaml"
_NAMESPACE = "real"
_READY_SECONDS = 600
_TIMEOUT = 900
"""Seconds for one test; the first one's include the start of the engines."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything below this folder."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.timeout(_TIMEOUT))


def _cannot_run(reason: str) -> NoReturn:
    if os.environ.get("STRICT") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def engine_python() -> Path:
    """The Python of the environment that has vLLM."""
    if environments.environment("vllm") is None:
        _cannot_run("vLLM is not there: run `make setup` without ENGINE=simulator")
    return folders.cache_folder() / "vllm" / "bin" / "python"


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The small model's folder."""
    folder = folders.cache_folder() / "models" / "SmolLM2-135M-Instruct"
    if not (folder / "config.json").is_file():
        _cannot_run("the model is not there: run `make setup` without ENGINE=simulator")
    return folder


@pytest.fixture(scope="session")
def pair(engine_python: Path, model_folder: Path) -> Iterator[Pair]:
    """The CPU sample, ready, on a cluster of its own that ends with the session."""
    try:
        local.check_machine()
    except LocalClusterError as error:
        _cannot_run(str(error))
    manifest = yaml.safe_load(_SAMPLE.read_text())
    name, model = manifest["metadata"]["name"], manifest["spec"]["model"]["servedName"]
    sys.stderr.write(f"starting a cluster with two engines of {engine_python}, which load {model_folder}\n")
    with local.up(name=f"vllm-{os.getpid()}") as cluster:
        deployed.install_tandem(cluster)
        cluster.kubectl("create", "namespace", _NAMESPACE)
        deployed.apply(cluster, _NAMESPACE, manifest)
        deployed.wait_for(
            lambda: deployed.condition(cluster, _NAMESPACE, name).get("status") == "True",
            what=f"{name} is ready",
            seconds=_READY_SECONDS,
            words=lambda: "\n".join(tell(cluster, _NAMESPACE, name) for tell in (deployed.describe, real_engines.last_words)),
        )
        yield Pair(cluster, _NAMESPACE, name, model)
