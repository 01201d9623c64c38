"""Starts a cluster's keeper and follows it until the cluster is ready, has failed, or the owner gives up."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tandem_local
from tandem_local import keeper
from tandem_local.errors import LocalClusterError, log_tail
from tandem_local.events import read_events

__all__ = ["Keeper", "Request"]

_STOP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Request:
    """What a cluster is started with; `keep_logs` is a folder that gets its logs when it ends."""

    folder: Path
    binaries: Path
    nodes: int
    gpus_per_node: int
    images: Mapping[str, str]
    keep_logs: Path | None

    def as_json(self) -> bytes:
        """One line for the keeper."""
        source = Path(tandem_local.__file__).resolve().parents[1]
        config: dict[str, Any] = {
            "binaries": str(self.binaries),
            "nodes": self.nodes,
            "gpus_per_node": self.gpus_per_node,
            "images": dict(self.images),
            "keep_logs": str(self.keep_logs) if self.keep_logs else None,
            "init": [sys.executable, "-P", "-m", "tandem_local.init"],
            "environment": {
                "PATH": os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin",
                "PYTHONPATH": str(source),
                "HOME": "/root",
                "LANG": "C.UTF-8",
                **{name: os.environ[name] for name in ("TANDEM_CACHE", "XDG_CACHE_HOME") if name in os.environ},
            },
        }
        return json.dumps(config).encode() + b"\n"


class Keeper:
    """The running keeper of one cluster, whose life-line this process holds."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(request.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us; the keeper ends when we do
            cwd="/",
        )

    def follow(self, progress: Callable[[float, str], None]) -> None:
        """Give the request, pass on progress (seconds since the start, text), and return when the cluster is ready.

        Raises:
            LocalClusterError: it could not start; nothing of it is left.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise AssertionError  # both were asked for
        stdin.write(self._request.as_json())
        stdin.flush()
        for seconds, event in read_events(stdout):
            if "step" in event:
                progress(seconds, event["step"])
            elif "failed" in event:
                self.stop()
                raise LocalClusterError(event["failed"])
            else:
                return
        log = log_tail(self._request.folder / "logs" / "init.log")
        self.stop()
        raise LocalClusterError(f"the cluster's first process ended unexpectedly; the last lines of its log:\n{log}")

    def detach(self) -> None:
        """Let the cluster live on after this process."""
        if self._process.stdin:
            self._process.stdin.write(keeper.DETACH)
            self._process.stdin.close()
        self._close()
        self._process.returncode = 0  # it lives on, and is no longer ours to wait for

    def stop(self) -> None:
        """End the cluster and wait until nothing of it is left; harmless when it has ended."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.wait(_STOP_SECONDS)
        self._close()

    def _close(self) -> None:
        if self._process.stdout:
            self._process.stdout.close()
