"""The sidecar's command line, read once at the border and immutable inside."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tandem_api import ports
from tandem_api.durations import parse_duration
from tandem_api.names import Role
from tandem_api.servicetoken import read_token
from tandem_sidecar.fingerprint import served_name

__all__ = ["Settings", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one sidecar is told; durations in seconds."""

    role: Role
    kv_group: str
    engine: str
    """`VLLM` or `Simulator`."""
    engine_url: str
    """Own engine's API, without a path."""
    pod: str
    host: str
    port: int
    lease: float
    """How long the engine holds KV that nobody asks for after a request has ended."""
    drain: float
    """Longest drain that a caller may ask for."""
    settle: float
    """How long a draining worker must stay idle before it counts as drained: routers learn late that it leaves."""
    interval: float
    """Pause between two readings of the engine."""
    token: str | None = None
    """What everyone but a probe has to show; engines ask for the same."""
    engine_line: tuple[str, ...] = ()
    """The engine's argument line."""
    peers: str | None = None
    """Name whose addresses are the workers from which this one pulls; None for one that pulls from nobody."""
    canary_interval: float = 10.0
    """Pause between two canaries, however many peers there are."""


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of a command line; a bad one ends the process as argparse does."""
    parser = _parser()
    given = vars(parser.parse_args(arguments))
    if given["peers"] is not None and served_name(given["engine_line"]) is None:
        parser.error("--peers needs an --engine-line that names the model, which canaries ask for")
    return Settings(pod=environment.get("POD_NAME", ""), **given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tandem_sidecar", description="KV-transfer sidecar of a worker pod.", allow_abbrev=False
    )
    parser.add_argument("--role", required=True, type=Role, choices=list(Role))
    parser.add_argument("--kv-group", required=True, help="hash shared by workers between which KV can move")
    parser.add_argument("--engine", required=True, choices=["VLLM", "Simulator"])
    parser.add_argument("--engine-url", required=True, type=_url, help="own engine, such as http://127.0.0.1:8000")
    # All addresses: the router and the monitoring read it at the pod's address.
    everywhere = "0.0.0.0"  # noqa: S104 - probes, routers and scrapes come from outside the pod
    parser.add_argument("--host", default=everywhere, help="address to listen on")
    parser.add_argument("--port", type=int, default=ports.SIDECAR)
    parser.add_argument("--lease", required=True, type=_duration, help="the engine's KV lease, such as 30s")
    parser.add_argument("--drain", type=_duration, default=3600.0, help="longest drain that a caller may ask for")
    parser.add_argument("--settle", type=_duration, default=2.0, help="idle time after which a worker counts as drained")
    parser.add_argument("--token-file", dest="token", type=_token, help="token that everyone but a probe has to show")
    parser.add_argument("--engine-line", type=_line, default=(), help="the engine's argument line, a JSON list of strings")
    parser.add_argument("--peers", help="DNS name of the workers from which this one pulls KV cache")
    parser.add_argument("--canary-interval", type=_duration, default=10.0, help="pause between two canaries")
    parser.add_argument("--interval", type=_duration, default=1.0, help="pause between two readings of the engine")
    return parser


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _line(text: str) -> tuple[str, ...]:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(line, list) or not all(isinstance(part, str) for part in line):
        raise argparse.ArgumentTypeError("must be a JSON list of strings")
    return tuple(line)


def _token(path: str) -> str:
    try:
        return read_token(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/") or parts.query:
        raise argparse.ArgumentTypeError(f"'{text}' is no http://host:port")
    return text.rstrip("/")
