"""Turns this process into the engine, and answers for the engine's own argument parser.

The engine's module runs in this very process, as `python3 -m` would run it: same pid, so the kubelet's signals reach it,
and its parser reads the line before anything is loaded, as its first step. Asking that parser beforehand, in a process of
its own, was measured to cost 11 s of CPU time for vLLM's imports alone, at each start of each worker, for the same
answer. So the parser is only given another way to say no: one line, with the flag that was probably meant.
"""

import argparse
import difflib
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from tandem_launcher.engines import Engine
from tandem_launcher.failures import Failure, Reason, report

__all__ = ["become", "refusal"]

_UNKNOWN = "unrecognized arguments: "


def become(engine: Engine, arguments: Sequence[str]) -> None:
    """Run the engine with its argument line; return when it ends, or leave with exit code 64 if its parser refuses.

    Raises:
        Failure: the engine cannot be imported.
    """
    sys.stderr.write(f"Checks passed; starting {engine.name}{_version(engine)}\n")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    if not getattr(sys.flags, "safe_path", False):  # engine images with Python 3.10 have no such flag
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 -- sys.path holds strings; `python3 -m` puts the same there
    sys.argv = [engine.module, *arguments]
    argparse.ArgumentParser.error = _refuse  # type: ignore[assignment, method-assign]  # see the docstring
    runpy.run_module(engine.module, run_name="__main__", alter_sys=True)


def _version(engine: Engine) -> str:
    if not engine.computes:
        return ""
    try:
        import vllm  # noqa: PLC0415 -- takes seconds, so only when every other check has passed
    except ImportError as error:
        raise Failure(
            Reason.MISSING_PACKAGE, f"vLLM cannot be imported ({error}): set engine.image to one that works"
        ) from error
    return f" {vllm.__version__}"


def _refuse(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    # argparse has no public way to list a parser's options.
    sys.exit(report(refusal(message, options=sorted(parser._option_string_actions))))  # noqa: SLF001 - argparse shows them nowhere else


def refusal(message: str, *, options: Sequence[str]) -> Failure:
    """Return the failure for an argparse message; unknown flags get the nearest known one."""
    if not message.startswith(_UNKNOWN):
        return Failure(Reason.BAD_ARGUMENT, f"{message}: correct engine.args")
    words = message.removeprefix(_UNKNOWN).split()
    flags = [word.partition("=")[0] for word in words if word.startswith("-")]
    if not flags:
        return Failure(Reason.UNKNOWN_ARGUMENT, f"the engine has no use for '{' '.join(words)}': remove it from engine.args")
    said = "; ".join(f"the engine has no flag {flag}{_nearest(flag, options)}" for flag in flags)
    return Failure(Reason.UNKNOWN_ARGUMENT, f"{said}: correct engine.args")


def _nearest(flag: str, options: Sequence[str]) -> str:
    near = difflib.get_close_matches(flag.replace("_", "-"), options, n=1)
    return f" (did you mean {near[0]}?)" if near else ""
