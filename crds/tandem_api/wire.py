"""Messages between router, sidecar, launcher and operator, versioned as one protocol.

A reader refuses a message of another protocol version instead of guessing. Times are seconds, sizes are tokens or bytes
as the name says. Histograms are cumulative counts over fixed bounds, so that those of several routers add up.
"""

from pydantic import BaseModel, ConfigDict, Field

from tandem_api.names import Role

__all__ = [
    "LATENCY_BOUNDS",
    "PROTOCOL_VERSION",
    "Histogram",
    "KVCounters",
    "RoleLoad",
    "RouterSignals",
    "SidecarState",
    "StageSeconds",
    "WorkerLoad",
]

PROTOCOL_VERSION = 1

LATENCY_BOUNDS: tuple[float, ...] = (
    0.001,
    0.002,
    0.003,
    0.005,
    0.0075,
    0.01,
    0.015,
    0.02,
    0.03,
    0.04,
    0.05,
    0.06,
    0.075,
    0.1,
    0.125,
    0.15,
    0.2,
    0.25,
    0.3,
    0.4,
    0.5,
    0.6,
    0.75,
    1.0,
    1.25,
    1.5,
    2.0,
    2.5,
    3.0,
    4.0,
    5.0,
    7.5,
    10.0,
    15.0,
    20.0,
    30.0,
    60.0,
    120.0,
)
"""Upper bounds of latency buckets, seconds; one more bucket counts what is above the last."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Histogram(_Message):
    """Counts a bucket (not cumulative) over `LATENCY_BOUNDS`, one more above them; monotonic since process start."""

    counts: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS) + 1)
    sum: float = 0.0


class StageSeconds(_Message):
    """TTFT split into the stages in which it can be lost; all histograms in seconds."""

    wait: Histogram = Histogram()
    prefill: Histogram = Histogram()
    handover: Histogram = Histogram()
    decode_first: Histogram = Histogram()


class WorkerLoad(_Message):
    """What this router has open on one worker."""

    pod: str
    address: str
    role: Role
    kv_group: str
    ready: bool
    in_flight: int = 0


class RoleLoad(_Message):
    """Sum over a role's workers that this router routes to."""

    routable: int = 0
    in_flight: int = 0


class RouterSignals(_Message):
    """`GET /signals` of a router's admin port. Counters are monotonic since `started`; the reader takes differences."""

    protocol: int = PROTOCOL_VERSION
    router: str
    started: float = Field(description="Unix time at which the counters began; a change means a restarted router.")
    now: float = Field(description="Unix time of this reading.")
    requests: int = Field(0, description="Requests offered: every request that reached admission.")
    completed: int = 0
    failed: int = 0
    refused: int = 0
    cancelled: int = Field(0, description="Requests whose client left before the end.")
    invalid: int = Field(0, description="Requests that were the client's own mistake, such as a prompt that is too long.")
    slo_met: int = Field(
        0, description="Completed requests that met both the TTFT target (with its per-token allowance) and the TPOT target."
    )
    ttft_met: int = 0
    tpot_met: int = 0
    ttft: Histogram = Histogram()
    ttft_ratio: Histogram = Field(
        Histogram(),
        description="TTFT divided by this request's own target, so that long prompts are judged by their allowance.",
    )
    tpot: Histogram = Histogram()
    stages: StageSeconds = StageSeconds()
    queued: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    local_prefills: int = Field(
        0, description="Requests whose prompt was computed on the decode worker on purpose (below minPromptTokens)."
    )
    fallbacks: dict[str, int] = Field(default_factory=dict, description="Requests that left the planned path, by reason.")
    roles: dict[Role, RoleLoad] = Field(default_factory=dict)
    workers: tuple[WorkerLoad, ...] = ()


class KVCounters(_Message):
    """Of the engine's own counters; None where the engine has not reported the counter."""

    transferred_bytes: float | None = None
    transfers: float | None = None
    failed_transfers: float | None = None
    expired_leases: float | None = None
    external_tokens: float | None = Field(None, description="Prompt tokens whose KV came from another worker.")
    local_tokens: float | None = Field(None, description="Prompt tokens computed on this worker.")


class SidecarState(_Message):
    """`GET /state` of a worker's sidecar."""

    protocol: int = PROTOCOL_VERSION
    pod: str
    role: Role
    kv_group: str
    engine: str = Field(description="`VLLM` or `Simulator`.")
    engine_version: str | None = None
    engine_ready: bool = False
    draining: bool = False
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = Field(
        None, description="Share of KV blocks that are referenced, 0 to 1; exports not yet pulled count."
    )
    kv: KVCounters = KVCounters()
