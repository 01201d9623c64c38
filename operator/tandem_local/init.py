"""The first process of a cluster's namespaces: makes the machine, starts every program, and keeps them running.

Its end is the end of every process, link and mount. Started by the keeper, with the descriptors that it names.
"""

import argparse
import datetime as dt
import json
import logging
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tandem_local import folders, linux, machine
from tandem_local.bringup import Settings, Start
from tandem_local.errors import LocalClusterError
from tandem_local.events import Reporter
from tandem_local.gpus import advertise
from tandem_local.supervisor import kill_all

__all__ = ["main"]

_LOG = logging.getLogger(__name__)
_TICK_SECONDS = 2.0


class OwnerGoneError(Exception):
    """The keeper has died."""


def main() -> None:
    """Run the cluster until the keeper ends it; if the keeper died, clean up in its place."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    arguments = _parse()
    config = json.loads((arguments.folder / "config.json").read_bytes())
    reporter = Reporter(1, translate=lambda text: text.replace(str(machine.INSIDE), str(arguments.folder)))
    try:
        _run(arguments, config, reporter)
    except OwnerGoneError:
        _clean_up(arguments, config)
    except (LocalClusterError, OSError) as error:
        reporter.failed(str(error))
        sys.exit(1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("--life-line", "--listener", "--host-mounts", "--lock"):
        parser.add_argument(name, type=int, required=True)
    arguments = parser.parse_args()
    for descriptor in (arguments.life_line, arguments.listener, arguments.host_mounts, arguments.lock, 1):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - the standard library's own signature
    return arguments


def _run(arguments: argparse.Namespace, config: dict[str, Any], reporter: Reporter) -> None:
    wake = _wake_on_children()
    reporter.step("making namespaces")
    machine.enter_own_namespaces()
    machine.mount_folders(arguments.folder)
    machine.set_up_network(nodes=config["nodes"])
    settings = Settings(
        name=arguments.folder.name,
        binaries=Path(config["binaries"]),
        nodes=config["nodes"],
        gpus_per_node=config["gpus_per_node"],
        images=config["images"],
        environment=config["environment"],
        now=dt.datetime.now(dt.UTC),
    )
    start = Start(settings, listener=arguments.listener, reporter=reporter, check=lambda: _check_owner(arguments.life_line))
    start.run()
    reporter.ready()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1, inheritable=False)  # from here on nobody listens
    _supervise(arguments.life_line, wake, start)


def _supervise(life_line: int, wake: int, start: Start) -> None:
    while True:
        readable, _, _ = select.select([life_line, wake], [], [], _TICK_SECONDS)
        if wake in readable:
            os.read(wake, 4096)
        _check_owner(life_line)
        start.supervisor.restart_ended(now=time.monotonic())
        _offer_gpus(start)


def _offer_gpus(start: Start) -> None:
    for node in start.nodes if start.settings.gpus_per_node else ():
        try:
            advertise(start.client, node.name, count=start.settings.gpus_per_node)
        except (LocalClusterError, OSError) as error:
            _LOG.warning("Node %s could not offer its GPUs, next try in %.0f s: %s", node.name, _TICK_SECONDS, error)


def _check_owner(life_line: int) -> None:
    if select.select([life_line], [], [], 0)[0]:  # nothing is ever written: readable means ended
        raise OwnerGoneError


def _wake_on_children() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return reader


def _clean_up(arguments: argparse.Namespace, config: dict[str, Any]) -> None:
    kill_all()
    # Where none of the cluster's mounts are: deleting through them would delete what is mounted.
    linux.enter_namespaces(arguments.host_mounts, linux.MOUNT_NAMESPACE)
    folders.discard(arguments.folder, keep_logs=Path(config["keep_logs"]) if config["keep_logs"] else None)


if __name__ == "__main__":
    main()
