"""What set-up does, in which order: the checkout's environment first, then the control plane and the engine side by side."""

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tandem_local.setup import binaries, go_toolchain
from tandem_local.setup.commands import Commands
from tandem_local.setup.downloads import Official
from tandem_local.setup.environments import LockedEnvironment
from tandem_local.setup.model import make_model, model_current
from tandem_local.setup.packages import PROGRAMS as HELPERS
from tandem_local.setup.packages import Debian, missing_programs
from tandem_local.setup.places import Places
from tandem_local.setup.programs import PROGRAMS, Program, architecture, kubernetes_version
from tandem_local.setup.progress import Progress
from tandem_local.setup.stamps import Stamp, digest
from tandem_local.setup.steps import Step, Track
from tandem_local.setup.vllm_environment import vllm_environment

__all__ = ["Plan", "checkout_environment", "control_plane_ready", "engine_ready"]

_MAKE_STUBS = """
import pathlib, sys
from tandem_local.runtime import stubs
stubs.generate(go_binary=pathlib.Path(sys.argv[1]), target=pathlib.Path(sys.argv[2]))
"""
_DOWNLOAD_SECONDS = 15.0


def checkout_environment(places: Places) -> LockedEnvironment:
    """Return the checkout's own environment: all extras, all tools, and the project itself."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    lock = places.requirements / "dev.txt"
    return LockedEnvironment(places.venv, lock=lock, project=places.repository, python=python, log="environment")


def control_plane_ready(places: Places) -> bool:
    """Whether everything that the local cluster starts is there, whole and current."""
    return all(binaries.current(places, program) for program in PROGRAMS) and _stubs_stamp(places).current()


def engine_ready(places: Places) -> bool:
    """Whether vLLM and the model that it serves are there, whole and current."""
    return vllm_environment(places).current() and model_current(places)


@dataclass(frozen=True, slots=True)
class Plan:
    """Makes the tracks from what is missing."""

    places: Places
    commands: Commands
    progress: Progress
    uv: str
    debian: Debian

    def environment(self) -> Track:
        """Return the steps after which the project's own programs run."""
        checkout = checkout_environment(self.places)
        make = partial(checkout.make, uv=self.uv, commands=self.commands)
        return [Step("Python packages", 60, checkout.current, make)]

    def engine(self) -> Track:
        """Return the steps that bring vLLM and a model."""
        environment = vllm_environment(self.places)
        packages = partial(environment.make, uv=self.uv, commands=self.commands)
        model = partial(make_model, self.places, uv=self.uv, commands=self.commands)
        return [
            Step("vLLM packages (2.7 GB to download)", 300, environment.current, packages),
            Step("chat model", 80, partial(model_current, self.places), model),
        ]

    def control_plane(self) -> Track:
        """Return the steps that bring the control plane; finds out first what can be downloaded."""
        official = self._official()
        source = binaries.Binaries(places=self.places, commands=self.commands, official=official, say=self.progress.say)
        programs = [self._program(source, program) for program in PROGRAMS]
        return [*self._helpers(), self._go(downloads=official is not None), *programs, self._stubs()]

    def _official(self) -> Official | None:
        if all(binaries.current(self.places, program) for program in PROGRAMS if program.official):
            return None
        official = Official(kubernetes_version(self.places.go_modules), architecture())
        if official.reachable():
            return official
        self.progress.say(f"{official.host} cannot be reached: Kubernetes is built from source, once")
        return None

    def _helpers(self) -> Track:
        missing = missing_programs()
        if not missing:
            return []
        packages = sorted({HELPERS[name] for name in missing})
        if not self.debian.usable():
            self.progress.say(f"the local cluster needs {', '.join(missing)}: please install {', '.join(packages)}")
            return []
        return [
            Step(f"Debian packages {' '.join(packages)}", 30, lambda: not missing_programs(), lambda: self._install(packages))
        ]

    def _install(self, packages: list[str]) -> None:
        self.debian.install(*packages)

    def _go(self, *, downloads: bool) -> Step:
        def done() -> bool:
            needless = not binaries.needs_go(self.places, downloads=downloads) and _stubs_stamp(self.places).current()
            return needless or go_toolchain.find_go(self.places) is not None

        return Step("Go", 40, done, partial(go_toolchain.install_go, self.places, uv=self.uv, commands=self.commands))

    def _program(self, source: binaries.Binaries, program: Program) -> Step:
        downloaded = program.official and source.official is not None
        seconds = _DOWNLOAD_SECONDS if downloaded else program.seconds * 2 / (os.cpu_count() or 1)
        return Step(program.name, seconds, partial(binaries.current, self.places, program), partial(source.make, program))

    def _stubs(self) -> Step:
        stamp = _stubs_stamp(self.places)
        return Step("gRPC stubs", 10, stamp.current, self._make_stubs)

    def _make_stubs(self) -> None:
        go = go_toolchain.find_go(self.places) or Path("go")
        stamp = _stubs_stamp(self.places)
        stamp.remove()
        # Where nothing was built, the module with the interface's definition was not needed until now.
        fetch = [str(go), "mod", "download", "k8s.io/cri-api"]
        self.commands.run(fetch, log="stubs", environ=go_toolchain.ENVIRONMENT, folder=self.places.go_modules)
        make = [str(self.places.venv / "bin" / "python"), "-c", _MAKE_STUBS, str(go), str(self.places.stubs)]
        self.commands.run(make, log="stubs", environ={"GOTOOLCHAIN": "local"})
        stamp.write()


def _stubs_stamp(places: Places) -> Stamp:
    generator = places.repository / "operator" / "tandem_local" / "runtime" / "stubs.py"
    inputs = digest(files=[places.go_modules / "go.mod", generator])
    return Stamp(places.stubs / ".tandem-stamp", inputs=inputs)
