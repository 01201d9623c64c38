"""The launcher as its one file, run as a container would, with engines that only say what they were given."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem_launcher.install import install

__all__ = ["FakeImage", "Result", "free_port"]

_ENGINE = """
import argparse, os, signal, sys, time
parser = argparse.ArgumentParser()
for flag in ("--model", "--host", "--port", "--max-model-len", "--dtype", "--kv-transfer-config"):
    parser.add_argument(flag)
given = parser.parse_args()
print(os.getpid(), sys.argv[1:], __name__, flush=True)
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
if given.dtype == "float32":
    time.sleep(60)
"""
_TORCH = """
from types import SimpleNamespace
def properties(index):
    return SimpleNamespace(name="Tesla T4", major=7, minor=5, total_memory=16 * 2**30)
cuda = SimpleNamespace(device_count=lambda: 1, get_device_properties=properties)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one run ended."""

    code: int
    stdout: str
    stderr: str
    termination: str


class FakeImage:
    """A folder that stands for an engine image: the launcher's file and small packages named like the engines'."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "termination-log"
        self.launcher = install(folder)
        self.packages = folder / "packages"
        self.add("tandem_simulator/__init__.py", "")
        self.add("tandem_simulator/__main__.py", _ENGINE)

    def add(self, name: str, source: str) -> None:
        """Put one module into the image."""
        path = self.packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)

    def add_vllm(self) -> None:
        """Put in a vLLM and a torch that sees one old GPU."""
        self.add("vllm/__init__.py", "__version__ = '0.32.0'\n")
        for folder in ("vllm/entrypoints", "vllm/entrypoints/openai"):
            self.add(f"{folder}/__init__.py", "")
        self.add("vllm/entrypoints/openai/api_server.py", _ENGINE)
        self.add("torch/__init__.py", _TORCH)
        self.add("nixl/__init__.py", "")

    def start(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the launcher's file."""
        self.log.write_text("")
        given = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": str(self.packages),
            "TERMINATION_LOG": str(self.log),
        }
        return subprocess.Popen(
            [sys.executable, str(self.launcher), *arguments],
            env={**given, **(environment or {})},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Result:
        """Run the launcher's file to its end."""
        process = self.start(arguments, environment)
        try:
            stdout, stderr = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.communicate()
        return Result(code=process.returncode, stdout=stdout, stderr=stderr, termination=self.log.read_text())


def free_port() -> int:
    """Return a port of the loopback on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
