"""Flags of the router: everything it is told, parsed once. No environment variable and no file adds to them."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from tandem_api import ports
from tandem_api.durations import parse_duration
from tandem_router.admission.lanes import Lane, parse_lane

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
    handover: float
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
    max_held_bytes: int
    token_file: Path | None
    api_keys: Path | None
    tls: Path | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    replicas: int
    max_queue: int
    lanes: tuple[Lane, ...]
    refuse_late: bool
    keep_tpot: bool
    decode_requests: int
    peers: tuple[str, ...]
    trace_endpoint: str | None
    trace_percent: int


def parse(arguments: Sequence[str]) -> Options:
    """Parse the command line; argparse ends the process with the reason if it is wrong."""
    values = vars(_parser().parse_args(arguments))
    values |= {name: tuple(values[name]) for name in ("lanes", "peers")}
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
    _add_edge(parser)
    _add_admission(parser)
    _add_tracing(parser)
    parser.add_argument("--max-head-bytes", type=_positive, default=64 * 1024, help="largest request line and headers")
    parser.add_argument("--max-body-bytes", type=_positive, default=8 * 1024 * 1024, help="largest request body")
    parser.add_argument(
        "--max-held-bytes",
        type=_positive,
        default=512 * 1024 * 1024,
        help="memory for the bodies of all requests together, as they are once parsed; beyond it new ones get a 503",
    )
    return parser


def _lane(text: str) -> Lane:
    try:
        return parse_lane(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _add_admission(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-queue", type=_positive, default=512, help="requests that may wait, over all routers of the service"
    )
    parser.add_argument(
        "--lane",
        dest="lanes",
        type=_lane,
        action="append",
        default=[],
        metavar="NAME,TOKENS,MAX_IN_FLIGHT,TIMEOUT",
        help="requests with at least TOKENS prompt tokens: at most so many at once, and so long a wait; repeatable",
    )
    parser.add_argument(
        "--refuse-late", action="store_true", help="refuse at arrival what would miss the target of the time to first token"
    )
    parser.add_argument(
        "--keep-tpot", action="store_true", help="give a decode worker no more requests at once than keep the target per token"
    )
    parser.add_argument(
        "--decode-requests", type=int, default=0, help="requests that one decode worker takes at once; 0: what its speed shows"
    )
    parser.add_argument(
        "--peer",
        dest="peers",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="admin port of another router, outside a cluster",
    )


def _add_edge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file", type=Path, default=None, help="token that engines, sidecars and the admin ports of routers ask for"
    )
    parser.add_argument(
        "--api-keys", type=Path, default=None, help="folder with one file an API key, or one such file; absent: anyone may ask"
    )
    parser.add_argument("--tls", type=Path, default=None, help="folder with tls.crt and tls.key: the public port speaks HTTPS")
    parser.add_argument("--requests-per-minute", type=_positive, default=None, help="requests of one API key")
    parser.add_argument("--tokens-per-minute", type=_positive, default=None, help="prompt and output tokens of one API key")
    parser.add_argument("--replicas", type=_positive, default=1, help="routers of the service, over which its limits are split")


def _add_tracing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trace-endpoint",
        type=_endpoint,
        default=None,
        metavar="URL",
        help="OTLP over HTTP: where spans go; absent: there are none",
    )
    parser.add_argument(
        "--trace-percent",
        type=int,
        choices=range(101),
        default=100,
        metavar="PERCENT",
        help="requests that are recorded of those whose client did not decide (default 100)",
    )


def _endpoint(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
        raise argparse.ArgumentTypeError(f"{text} is not an http or https address")
    if url.username is not None or url.query or url.fragment:
        raise argparse.ArgumentTypeError("the endpoint may hold no credentials, query or fragment")
    return text


def _add_durations(parser: argparse.ArgumentParser) -> None:
    for flag, default, text in (
        ("--slo-ttft", "500ms", "target of the time to first token"),
        ("--slo-ttft-per-thousand", "0s", "allowance added for each thousand prompt tokens"),
        ("--slo-tpot", "50ms", "target of the mean time per output token after the first"),
        ("--drain", "120s", "how long open requests may go on after SIGTERM"),
        ("--drain-grace", "3s", "how long new connections are still served after SIGTERM, until nobody sends any"),
        ("--handover", "45s", "how long a worker has been terminating when its streams are moved to others"),
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
