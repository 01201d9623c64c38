"""Makes what the benchmark needs beside the checkout: an environment with the rivals, and the compiled load generator."""

import os
from pathlib import Path

from tandem_local.setup import uv
from tandem_local.setup.commands import Commands
from tandem_local.setup.environments import LockedEnvironment
from tandem_local.setup.go_toolchain import ENVIRONMENT, find_go, install_go
from tandem_local.setup.locking import exclusive
from tandem_local.setup.packages import Debian
from tandem_local.setup.places import Places
from tandem_local.setup.progress import Progress

__all__ = ["prepare"]

_LOAD = Path(__file__).resolve().parent / "load"


def prepare() -> tuple[Path, Path]:
    """Return the folder with the rivals' programs and the load generator, made if need be.

    Raises:
        SetupError: something could not be installed or built.
    """
    places, progress = Places.find(os.environ), Progress()
    folder = places.cache / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(places.cache / "setup.lock", say=progress.say) as descriptor:
        commands = Commands(logs=places.logs, environ=os.environ, lock=descriptor)
        lock = places.requirements / "bench.txt"
        rivals = LockedEnvironment(folder=folder / "venv", lock=lock, project=None, python="", log="bench")
        go = find_go(places)
        found = ""
        if not (go and rivals.current()):
            found = uv.provide(places, commands=commands, debian=Debian(commands, progress.say), say=progress.say)
        if not rivals.current():
            progress.say("bench: installing vllm-router and Envoy")
            rivals.make(uv=found, commands=commands)
        if go is None:
            install_go(places, uv=found, commands=commands)
            go = find_go(places)
        load = folder / "load"
        commands.run([str(go), "build", "-o", str(load), "."], log="bench", environ=ENVIRONMENT, folder=_LOAD)
    return folder / "venv" / "bin", load
