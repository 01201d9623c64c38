"""Flags of the router: everything it is told, parsed once. No environment variable and no file adds to them."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from tandem_api import ports
from tandem_api.durations import parse_duration

__all__ = ["OnPrefillFailure", "Options", "parse"]


class OnPrefillFailure(StrEnum):
    """What happens to a request whose prefill leg failed."""

    RETRY_OTHER = "RetryOther"
    FALLBACK_LOCAL = "FallbackLocal"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The router's settings; all times in seconds, sizes in bytes."""

    service: str
    namespace: str
    model: str
    host: str
    port: int
    admin_port: int
    workers_file: Path | None
    min_prompt_tokens: int
    on_prefill_failure: OnPrefillFailure
    slo_ttft: float
    slo_ttft_per_thousand: float
    slo_tpot: float
    drain: float
    drain_grace: float
    max_wait: float
    connect_timeout: float
    prefill_timeout: float
    first_token_timeout: float
    answer_timeout: float
    stall_timeout: float
    role_after: float
    commit_after: float
    max_head_bytes: int
    max_body_bytes: int
    head_timeout: float
    body_timeout: float
    idle_timeout: float
    write_timeout: float


def parse(arguments: Sequence[str]) -> Options:
    """Parse the command line; argparse ends the process with the reason if it is wrong."""
    values = vars(_parser().parse_args(arguments))
    return Options(**{field.name: values[field.name] for field in fields(Options)})


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tandem_router", description="The request path of one InferenceService.")
    parser.add_argument("--service", required=True, help="name of the InferenceService")
    parser.add_argument("--namespace", default="default", help="namespace of the InferenceService")
    parser.add_argument("--model", required=True, help="served model name that clients send")
    parser.add_argument("--host", default="0.0.0.0", help="address of both ports")  # noqa: S104 - a pod serves its pod network
    parser.add_argument("--port", type=int, default=ports.ROUTER_PUBLIC, help="public port")
    parser.add_argument(
        "--admin-port", type=int, default=ports.ROUTER_ADMIN, help="admin port: /signals, /metrics, /state and probes"
    )
    parser.add_argument("--workers-file", type=Path, default=None, help="JSON list of workers instead of EndpointSlices")
    parser.add_argument(
        "--min-prompt-tokens", type=int, default=0, help="estimated tokens below which decode computes the prompt itself"
    )
    parser.add_argument(
        "--on-prefill-failure",
        type=OnPrefillFailure,
        choices=list(OnPrefillFailure),
        default=OnPrefillFailure.RETRY_OTHER,
        help="RetryOther: other prefill workers, else 503; FallbackLocal: then the decode worker; Fail: 503 at once",
    )
    _add_durations(parser)
    parser.add_argument("--max-head-bytes", type=_positive, default=64 * 1024, help="largest request line and headers")
    parser.add_argument("--max-body-bytes", type=_positive, default=8 * 1024 * 1024, help="largest request body")
    return parser


def _add_durations(parser: argparse.ArgumentParser) -> None:
    for flag, default, text in (
        ("--slo-ttft", "500ms", "target of the time to first token"),
        ("--slo-ttft-per-thousand", "0s", "allowance added for each thousand prompt tokens"),
        ("--slo-tpot", "50ms", "target of the mean time per output token after the first"),
        ("--drain", "120s", "how long open requests may go on after SIGTERM"),
        ("--drain-grace", "3s", "how long new connections are still served after SIGTERM, until nobody sends any"),
        ("--max-wait", "10s", "how long a request may wait for a worker that can take it"),
        ("--connect-timeout", "2s", "connecting to an engine"),
        ("--prefill-timeout", "120s", "one prefill leg"),
        ("--first-token-timeout", "300s", "all attempts at a streamed request until its first token"),
        ("--answer-timeout", "30m", "all attempts at a request that is not streamed"),
        ("--stall-timeout", "120s", "silence of a decode worker within a stream"),
        ("--role-after", "50ms", "how long an event without content is held back"),
        ("--commit-after", "15s", "after this a stream that waits for its first token is kept alive by comments"),
        ("--head-timeout", "10s", "receiving a request's head"),
        ("--body-timeout", "60s", "receiving a request's body"),
        ("--idle-timeout", "75s", "an idle client connection"),
        ("--write-timeout", "60s", "a client that reads nothing of a stream"),
    ):
        parser.add_argument(
            flag, type=_duration, default=_duration(default), metavar="DURATION", help=f"{text} (default {default})"
        )
