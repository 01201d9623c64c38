"""`tandem demo [--simulator] [--keep]`: everything from an empty machine's cluster to a measured answer, and down again."""

import argparse
import os
import sys
import time

from tandem_cli.demo.steps import NAMESPACE, Demo, DemoError
from tandem_cli.errors import CommandError
from tandem_local import cluster as local

__all__ = ["add_commands"]

CLUSTER = "demo"


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `demo`."""
    parser = subparsers.add_parser("demo", help="serve a small model on a local cluster, ask it, and take everything down")
    parser.add_argument("--simulator", action="store_true", default=os.environ.get("ENGINE", "").lower() == "simulator", help="without vLLM (ENGINE=simulator)")
    parser.add_argument("--keep", action="store_true", default=os.environ.get("KEEP") == "1", help="leave the cluster up (KEEP=1)")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; the last line is `DEMO OK` with figures, or says what failed."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:6.1f}s] {text}", flush=True)  # noqa: T201 - the demonstration's output

    say(f"Starting a local Kubernetes ({CLUSTER})")
    cluster = local.up(name=CLUSTER, nodes=1, gpus_per_node=4 if arguments.simulator else 0)
    try:
        figures = _demonstrate(Demo(cluster=cluster, simulated=arguments.simulator, say=say))
    except DemoError as error:
        print(f"DEMO FAILED: {error}", file=sys.stderr)  # noqa: T201 - the demonstration's output
        raise CommandError(str(error)) from error
    finally:
        if not arguments.keep:
            say("Taking everything down")
            cluster.down()
    if arguments.keep:
        _tell_how_to_use(cluster)
    print(f"DEMO OK {figures} seconds={time.monotonic() - started:.0f}")  # noqa: T201 - the demonstration's output
    return 0


def _demonstrate(demo: Demo) -> str:
    demo.install()
    demo.apply()
    demo.wait_ready(seconds=120 if demo.simulated else 600)
    demo.ask()
    moved = demo.prove()
    reason = demo.show_status()
    first, long = demo.answers
    return (
        f"ttft_ms={first.ttft * 1000:.0f} long_ttft_ms={long.ttft * 1000:.0f} tpot_ms={(long.tpot or 0) * 1000:.0f} "
        f"kv_transfers={moved.transfers:.0f} kv_bytes={moved.bytes:.0f} kv_tokens={moved.tokens:.0f} scaling={reason}"
    )


def _tell_how_to_use(cluster: local.Cluster) -> None:
    print(  # noqa: T201 - the demonstration's output
        f"The cluster stays up. Use it with\n  export KUBECONFIG={cluster.kubeconfig}\n  tandem kubectl --name {CLUSTER} -n {NAMESPACE} get tsvc,pods\n"
        f"and take it down with\n  tandem down --name {CLUSTER}"
    )
