"""Entry point of `tandem`, also `kubectl tandem`: finds the command's module, loads only that one, turns errors into one line.

A command's module offers `add_commands(subparsers)` and gives each parser `set_defaults(func=...)`; the function takes the
parsed arguments and returns the exit code. Importing a module may need packages of one of the extras; which one is said here.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from tandem_cli.errors import CommandError

__all__ = ["MODULES", "Module", "main"]


class _Commands(Protocol):
    """What a module with commands offers."""

    def add_commands(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        """Add the module's commands."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module with commands."""

    name: str
    extra: str
    """Extra of the distribution that brings what the module imports."""
    commands: tuple[str, ...]


MODULES: tuple[Module, ...] = (
    Module("tandem_cli.validate_command", "cli", ("validate",)),
    Module("tandem_cli.render_command", "cli", ("render",)),
    Module("tandem_cli.simulate", "cli", ("simulate",)),
    Module("tandem_cli.doctor_command", "local", ("doctor",)),
    Module("tandem_cli.local_commands", "local", ("up", "down", "kubectl")),
    Module("tandem_cli.rollback_command", "local", ("history", "rollback")),
    Module("tandem_cli.restart_command", "local", ("restart",)),
    Module("tandem_cli.install_command", "local", ("install",)),
    Module("tandem_cli.demo.command", "local", ("demo",)),
    Module("tandem_cli.generate_command", "local", ("generate",)),
)

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    try:
        parser = _parser([module for module in MODULES if command is None or command in module.commands] or MODULES)
        namespace = parser.parse_args(arguments)
        return int(namespace.func(namespace))
    except CommandError as error:
        sys.stderr.write(f"tandem: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("tandem: interrupted\n")
        return _INTERRUPTED


def _parser(modules: Sequence[Module]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tandem", description="Serve large language models with prefill and decode apart.")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in modules:
        if len(modules) == 1:
            _load(module).add_commands(subparsers)
        else:
            _list(module, subparsers)
    return parser


def _list(module: Module, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add a module's commands to the overview; what cannot be loaded is listed with the reason."""
    try:
        _load(module).add_commands(subparsers)
    except CommandError as error:
        for command in module.commands:
            subparsers.add_parser(command, help=f"(not available: {error})")


def _load(module: Module) -> _Commands:
    try:
        return cast("_Commands", importlib.import_module(module.name))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise CommandError(
            f"the Python package '{missing}' is not installed; add it with: pip install 'tandem-serving[{module.extra}]'"
        ) from error
