"""The launcher's command line: `install` in the init container, `run` in the engine's, `drain` as its preStop hook."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tandem_launcher.become import become
from tandem_launcher.capacity import Layout
from tandem_launcher.drain import drain, log
from tandem_launcher.engines import ENGINES
from tandem_launcher.failures import Failure, report
from tandem_launcher.install import install
from tandem_launcher.run import Plan, check, end_on_sigterm
from tandem_launcher.token import API_KEY, read_token

__all__ = ["main", "seconds"]

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "": 1}


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; `run` returns when the engine has ended."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    given = _parser().parse_args(arguments[:split])
    match given.command:
        case "install":
            sys.stdout.write(f"{install(given.target)}\n")
        case "drain":
            log(drain(given.sidecar, given.timeout, token_file=given.token_file))
        case _:
            return _run(_plan(given, arguments[split + 1 :]), given.token_file)
    return 0


def _run(plan: Plan, token_file: Path | None) -> int:
    end_on_sigterm()
    try:
        check(plan, os.environ)
        if token_file is not None:
            os.environ[API_KEY] = read_token(token_file)
        become(plan.engine, plan.arguments)
    except Failure as failure:
        return report(failure)
    return 0


def _plan(given: argparse.Namespace, engine_line: Sequence[str]) -> Plan:
    return Plan(
        engine=ENGINES[given.engine],
        layout=Layout(gpus=given.gpus, tensor=given.tensor, pipeline=given.pipeline),
        connector=given.connector,
        dtype=given.dtype,
        arguments=tuple(engine_line),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launcher", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("install", help="write launcher.pyz into a folder")
    command.add_argument("target", type=Path)
    command = commands.add_parser("drain", help="wait until this pod's KV cache was pulled")
    command.add_argument("--sidecar", required=True, metavar="URL")
    command.add_argument("--timeout", required=True, type=seconds, help="seconds, or a duration such as 60s")
    command.add_argument("--token-file", type=Path, help="token that the sidecar asks for")
    _add_run(commands.add_parser("run", help="check, then become the engine; its argument line follows after --"))
    return parser


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("--engine", required=True, choices=sorted(ENGINES))
    command.add_argument("--gpus", required=True, type=_at_least(0), help="GPUs of this container; 0 computes on the CPU")
    command.add_argument("--tensor", type=_at_least(1), default=1, help="tensor-parallel ranks")
    command.add_argument("--pipeline", type=_at_least(1), default=1, help="pipeline-parallel ranks")
    command.add_argument("--dtype", help="dtype to check the devices for, where it is not the argument line's")
    command.add_argument("--token-file", type=Path, help="token without which the engine answers nobody under /v1")
    command.add_argument("--connector", help="KV connector that the argument line must name, such as nixl")


def seconds(text: str) -> float:
    """Return the seconds of `60`, `60s`, `1m30s` or `500ms`; more than zero.

    Raises:
        argparse.ArgumentTypeError: it is none of these.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?|([0-9]+(ms|s|m|h))+", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds and no duration such as '60s' or '1m30s'")
    total = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h|)", text))
    if total <= 0:
        raise argparse.ArgumentTypeError("must be more than zero")
    return total


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}")
        return value

    return number
