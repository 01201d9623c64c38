"""Debian packages that a base image may lack: installed where that is possible, named where it is not."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem_local.setup.commands import Commands

__all__ = ["PROGRAMS", "Debian", "find_program", "missing_programs"]

PROGRAMS = {"nft": "nftables", "ip": "iproute2"}
"""Programs that the local cluster calls, and the package that has each."""
_APT = "/usr/bin/apt-get"
ADMIN_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


def find_program(name: str) -> str | None:
    """Return the path of a program on PATH or where administrators' programs lie."""
    return shutil.which(name) or shutil.which(name, path=ADMIN_PATH)


def missing_programs() -> list[str]:
    """Return which of the local cluster's helper programs this machine lacks."""
    return [name for name in PROGRAMS if find_program(name) is None]


@dataclass(frozen=True, slots=True)
class Debian:
    """Installs packages with apt-get, as root, on the machines that have it."""

    commands: Commands
    say: Callable[[str], None]

    @staticmethod
    def usable() -> bool:
        """Whether packages can be installed here."""
        return os.geteuid() == 0 and Path(_APT).exists()

    def install(self, *packages: str) -> bool:
        """Install packages; False where that is impossible.

        Raises:
            StepError: apt-get failed.
        """
        if not self.usable():
            return False
        self.say(f"installing {' '.join(packages)} with apt-get")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        self.commands.run([_APT, "update", "-qq"], log="apt", environ=quiet)
        install = [_APT, "install", "-y", "-qq", "--no-install-recommends", *packages]
        self.commands.run(install, log="apt", environ=quiet)
        return True
