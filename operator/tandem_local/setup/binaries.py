"""The folder of the control plane's programs, and how each gets there.

In this order: a folder that the user named, what is there already, the official downloads, a build from pinned Go modules.
Each program has its own stamp and takes its place by a rename, so that a set-up killed at any point goes on where it was.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem_local.setup import go_toolchain
from tandem_local.setup.commands import Commands
from tandem_local.setup.downloads import DownloadError, Official
from tandem_local.setup.errors import SetupError
from tandem_local.setup.places import Places
from tandem_local.setup.programs import PROGRAMS, Program
from tandem_local.setup.stamps import Stamp

__all__ = ["Binaries", "binary_folder"]


def binary_folder() -> Path:
    """Return the folder that holds all of the control plane's programs.

    Raises:
        SetupError: some are missing, interrupted or of another version.
    """
    places = Places.find(os.environ)
    missing = [program.name for program in PROGRAMS if not current(places, program)]
    if missing:
        raise SetupError(
            f"{places.binaries} lacks {', '.join(missing)} of the version that this checkout needs: run `make setup`"
        )
    return places.binaries


def current(places: Places, program: Program) -> bool:
    """Whether a program is there, whole, and from the source that set-up would use now."""
    return _stamp(places, program).current() and os.access(places.binaries / program.name, os.X_OK)


@dataclass(frozen=True, slots=True)
class Binaries:
    """Puts programs into the folder."""

    places: Places
    commands: Commands
    official: Official | None
    """None where the downloads cannot be reached."""
    say: Callable[[str], None]

    def make(self, program: Program) -> None:
        """Put one program into the folder.

        Raises:
            SetupError: no source had it.
        """
        folder = self.places.binaries
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f".{program.name}.partial"
        stamp = _stamp(self.places, program)
        stamp.remove()
        self._obtain(program, partial)
        partial.chmod(0o755)
        partial.replace(folder / program.name)
        stamp.write()

    def _obtain(self, program: Program, partial: Path) -> None:
        named = _named_by_user(self.places, program)
        if named:
            self.say(f"{program.name}: taken from {named.parent}")
            shutil.copyfile(named, partial)
        elif not self._downloaded(program, partial):
            self._build(program, partial)

    def _downloaded(self, program: Program, partial: Path) -> bool:
        if not program.official or self.official is None:
            return False
        try:
            self.official.fetch(program.name, target=partial, stopped=lambda: self.commands.stopping)
        except DownloadError as error:
            self.say(f"{program.name}: building it, because the download failed: {error}")
            return False
        return True

    def _build(self, program: Program, partial: Path) -> None:
        go = go_toolchain.find_go(self.places)
        if go is None:
            raise SetupError(f"{program.name} must be built, and there is no Go: this is a fault of set-up, please report it")
        flags = " ".join(program.link_flags(self.places.go_modules))
        build = [str(go), "build", "-trimpath", "-ldflags", flags, "-o", str(partial), program.package]
        folder = self.places.go_modules / program.module
        self.commands.run(build, log=program.name, environ=go_toolchain.ENVIRONMENT, folder=folder)


def needs_go(places: Places, *, downloads: bool) -> bool:
    """Whether some program must be built here."""
    missing = [program for program in PROGRAMS if not current(places, program) and not _named_by_user(places, program)]
    return any(not (downloads and program.official) for program in missing)


def _named_by_user(places: Places, program: Program) -> Path | None:
    named = places.user_binaries / program.name if places.user_binaries else None
    return named if named and named.is_file() else None


def _stamp(places: Places, program: Program) -> Stamp:
    named = _named_by_user(places, program)
    inputs = _identity(named) if named else program.inputs(places.go_modules)
    return Stamp(places.binaries / f".{program.name}.stamp", inputs=inputs)


def _identity(file: Path) -> str:
    known = file.stat()
    return hashlib.sha256(f"{file}:{known.st_size}:{known.st_mtime_ns}".encode()).hexdigest()
