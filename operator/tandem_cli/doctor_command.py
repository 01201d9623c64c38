"""`tandem doctor`: says within seconds what here would keep Tandem's local cluster from working, and what to do about it."""

import argparse
import os
import sys

from tandem_local.setup.doctor import Need, examine, refusals, report
from tandem_local.setup.places import Places
from tandem_local.setup.probes import gather

__all__ = ["add_commands"]


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `doctor`."""
    parser = subparsers.add_parser("doctor", help="check whether this machine can run the local cluster")
    parser.add_argument(
        "--engine",
        choices=["vllm", "simulator"],
        default=os.environ.get("ENGINE") or "vllm",
        help="the engine that shall run (default: the variable ENGINE, else vllm)",
    )
    parser.set_defaults(func=_doctor)


def _doctor(namespace: argparse.Namespace) -> int:
    findings = examine(gather(Places.find(os.environ)), engine=namespace.engine)
    sys.stdout.write(report(findings))
    refused = refusals(findings, needs=set(Need))
    sys.stdout.write(f"{len(refused)} of {len(findings)} checks failed\n" if refused else "this machine is fit\n")
    return 1 if refused else 0
