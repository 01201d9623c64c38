"""`tandem demo [--simulator] [--keep]`: everything from an empty machine's cluster to a measured answer, and down again."""

import argparse
import os
import sys
import time

from tandem_cli.demo.steps import NAMESPACE, Demo, Say
from tandem_cli.errors import CommandError
from tandem_local import cluster as local
from tandem_local.errors import LocalClusterError

__all__ = ["add_commands"]

CLUSTER = "demo"
_READY_SECONDS = {True: 120.0, False: 600.0}
"""How long the workers may take to start, by whether they are simulated."""


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `demo`."""
    simulated = os.environ.get("ENGINE", "").lower() == "simulator"
    keep = os.environ.get("KEEP") == "1"
    parser = subparsers.add_parser("demo", help="serve a small model on a local cluster, ask it, and take everything down")
    parser.add_argument("--simulator", action="store_true", default=simulated, help="without vLLM (ENGINE=simulator)")
    parser.add_argument("--keep", action="store_true", default=keep, help="leave the cluster up (KEEP=1)")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; the last line is `DEMO OK` with figures, or says what failed."""
    started = time.monotonic()

    def say(text: str) -> None:
        _write(f"[{time.monotonic() - started:6.1f} s] {text}\n")

    try:
        figures = _run(say, simulated=arguments.simulator, keep=arguments.keep)
    except LocalClusterError as error:
        raise CommandError(f"the demonstration failed: {error}") from error
    _write(f"DEMO OK {figures} seconds={time.monotonic() - started:.0f}\n")
    return 0


def _run(say: Say, *, simulated: bool, keep: bool) -> str:
    say(f"Starting a local Kubernetes named '{CLUSTER}'")
    cluster = local.up(name=CLUSTER, gpus_per_node=2 if simulated else 0, progress=lambda _, text: say(f"  {text}"))
    finished = False
    try:
        figures = _demonstrate(Demo(cluster=cluster, simulated=simulated, say=say, write=_write), simulated=simulated)
        finished = True
    finally:
        if keep:
            cluster.detach()
            _write(_how_to_use(cluster))
        else:
            say("Taking everything down" if finished else "Taking everything down; KEEP=1 leaves it up to be looked at")
            cluster.down()
    return figures


def _demonstrate(demo: Demo, *, simulated: bool) -> str:
    demo.install()
    demo.apply()
    demo.wait_ready(seconds=_READY_SECONDS[simulated])
    demo.ask()
    reason = demo.load()
    moved = demo.prove()
    demo.show_status()
    first, long = demo.answers[:2]
    return (
        f"ttft_ms={first.ttft * 1000:.0f} long_ttft_ms={long.ttft * 1000:.0f} tpot_ms={(long.tpot or 0) * 1000:.0f} "
        f"kv_transfers={moved.transfers:.0f} kv_bytes={moved.bytes:.0f} kv_tokens={moved.tokens:.0f} scaling={reason}"
    )


def _how_to_use(cluster: local.Cluster) -> str:
    return (
        "The cluster stays up. Use it with\n"
        f"  export KUBECONFIG={cluster.kubeconfig}\n"
        f"  .venv/bin/tandem kubectl --name {CLUSTER} --namespace {NAMESPACE} get tsvc,pods\n"
        f"  .venv/bin/tandem kubectl --name {CLUSTER} --namespace {NAMESPACE} port-forward service/cpu-router 8080:80\n"
        "and take it down with\n"
        f"  .venv/bin/tandem down --name {CLUSTER}\n"
    )


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
