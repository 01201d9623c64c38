"""Python environments from locks: made whole or made anew.

An environment that was interrupted may hold half a package that looks installed; only its stamp tells. So one without a stamp
is made from nothing (the packages are in uv's cache by then), and one whose lock changed is brought up to date in place.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from tandem_local.setup.commands import Commands
from tandem_local.setup.stamps import Stamp, digest
from tandem_local.setup.uv import ENVIRONMENT

__all__ = ["LockedEnvironment"]


@dataclass(frozen=True, slots=True)
class LockedEnvironment:
    """A virtual environment that holds exactly what one lock names, and possibly the project itself, editable."""

    folder: Path
    lock: Path
    project: Path | None
    python: str
    """The version it must have, such as `3.12`: with another it is made anew. Empty where any will do."""
    log: str

    def current(self) -> bool:
        """Whether it is there, whole, and made from this lock."""
        return self._stamp().current() and (self.folder / "bin" / "python").exists()

    def make(self, *, uv: str, commands: Commands) -> None:
        """Make it, or bring it up to date.

        Raises:
            StepError: uv failed.
        """
        stamp = self._stamp()
        python = self.folder / "bin" / "python"
        if not (stamp.whole() and python.exists()):
            create = [uv, "venv", "--clear", "--python", sys.executable, str(self.folder)]
            commands.run(create, log=self.log, environ=ENVIRONMENT)
        stamp.remove()
        into = ["--python", str(python)]
        # Containers run from it as other users and cannot write beside it: uncompiled, each start of an engine would compile
        # thousands of files for itself.
        sync = [uv, "pip", "sync", "--require-hashes", "--compile-bytecode", *into, str(self.lock)]
        commands.run(sync, log=self.log, environ=ENVIRONMENT)
        if self.project:
            editable = [uv, "pip", "install", "--no-deps", "--no-build-isolation", *into, "--editable", str(self.project)]
            commands.run(editable, log=self.log, environ=ENVIRONMENT)
        # Engines and tests run as other users, whatever the modes in uv's cache.
        commands.run(["chmod", "-R", "a+rX", str(self.folder)], log=self.log)
        stamp.write()

    def _stamp(self) -> Stamp:
        files = [self.lock, *([self.project / "pyproject.toml"] if self.project else [])]
        inputs = digest(files=files, texts=[str(self.folder)])
        return Stamp(self.folder / f".tandem-stamp{self.python}", inputs=inputs)
