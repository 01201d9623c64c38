"""Messages between router, sidecar, launcher and operator, versioned as one protocol.

A reader refuses a message of another protocol version instead of guessing. Times are seconds, sizes are tokens or bytes
as the name says. Histograms are cumulative counts over fixed bounds, so that those of several routers add up.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tandem_api.names import Role

__all__ = [
    "LATENCY_BOUNDS",
    "PROTOCOL_VERSION",
    "RECENT_ROWS",
    "RECENT_SECONDS",
    "Fingerprint",
    "Histogram",
    "KVCounters",
    "PairHealth",
    "PairState",
    "PairStatus",
    "PeerLoad",
    "PeerQuarantine",
    "PeerReport",
    "QuarantinedBody",
    "RecentRequests",
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

RECENT_ROWS = 256
"""Most requests in a router's sample of those that ended lately."""
RECENT_SECONDS = 120.0
"""For how long after its end a request may be in the sample."""


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
    """What this router has open on one worker, and what came of its requests there.

    The counts grow from zero for as long as the router knows the worker, and each try of a request is one; a router that
    leaves them at zero knows nothing of the worker. Clients' mistakes, clients that leave and streams that are moved off a
    worker that ends count nowhere.
    """

    pod: str
    address: str
    role: Role
    kv_group: str
    ready: bool
    in_flight: int = 0
    unexplained_tokens: int = Field(
        0, description="Prompt tokens that a decode worker computed and no router had it compute; every router sees the same."
    )
    served: int = Field(
        0, description="Requests that it served: prompts computed by a prefill worker, answers brought to their end by others."
    )
    failed: int = Field(
        0,
        description="Requests that failed on it. One whose KV cache a decode worker did not get counts on both workers.",
    )
    judged: int = Field(0, description="Streamed answers of one try that were held against its targets.")
    met: int = Field(
        0, description="Of these, those that met them: TTFT on a prefill worker, TPOT on a decode worker, both on others."
    )


class RoleLoad(_Message):
    """Sum over a role's workers that this router routes to."""

    routable: int = 0
    in_flight: int = 0


class PairHealth(_Message):
    """A prefill and a decode worker between which KV cache does not move, though both may be well by themselves."""

    prefill: str = Field(description="Pod.")
    decode: str = Field(description="Pod.")
    reason: str = Field(
        description="How the last request over this pair failed, `recomputed` if it was served all the same; `canary` and how "
        "the last canary failed; `fingerprint` if the engines differ."
    )
    seconds: float = Field(description="How long this has been so.")
    differs: dict[str, tuple[str, str]] = Field(
        default_factory=dict,
        description="What differs in the engines' fingerprints: the prefill worker's value, the decode worker's.",
    )
    left_out: bool = Field(description="Whether requests take other pairs; false where no other is left.")


_Counts = Annotated[tuple[int, ...], Field(max_length=RECENT_ROWS)]
_Figures = Annotated[tuple[float, ...], Field(max_length=RECENT_ROWS)]


class RecentRequests(_Message):
    """A sample of the requests that were completed lately, as columns of one length: a row is one request.

    Nothing of it says what was asked or who asked. -1 stands for what nobody saw.
    """

    seconds: float = Field(description="Back from `now`: every request completed since then is here, or one for it.", ge=0)
    every: int = Field(1, description="One of so many requests is here, and stands for as many.", ge=1)
    ended: _Figures = Field((), description="Seconds before `now` at which the answer was complete.")
    arrived: _Figures = Field((), description="Seconds before `now` at which the request had been received.")
    prompt: _Counts = Field((), description="Prompt tokens.")
    uncached: _Counts = Field(
        (), description="Of these, those that a worker computed, as its engine reports cached ones; all where it does not."
    )
    output: _Counts = Field((), description="Output tokens.")
    local: _Counts = Field((), description="1 where the worker that decoded computed the prompt too, else 0.")
    wait: _Figures = Field((), description="Seconds in the router until the prompt was sent to the worker that computed it.")
    prefill: _Figures = Field(
        (), description="Seconds from then until the prompt was computed, the engine's queue included; -1 if unseen."
    )
    compute: _Figures = Field(
        (), description="Of these, those that the engine says it took to compute the prompt; -1 where it does not say."
    )
    ahead: _Counts = Field(
        (), description="Prompt tokens that all routers, as far as known, had pending on that worker when this one was sent."
    )
    handover: _Figures = Field(
        (), description="Seconds from the end of the prefill leg to the first token; 0 where `local`, -1 if unseen."
    )
    tpot: _Figures = Field((), description="Seconds per token after the first; -1 for one token, or an answer not streamed.")
    batch: _Figures = Field(
        (), description="Requests open on its decode worker, of all routers as far as known: their mean while it decoded."
    )
    kv: _Figures = Field(
        (), description="Tokens of KV cache that these hold, each its prompt and half of its output: their mean."
    )

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        lengths = {len(column) for column in self.columns().values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {', '.join(map(str, sorted(lengths)))}")
        return self

    def columns(self) -> dict[str, tuple[float, ...]]:
        """All columns by name."""
        return {name: value for name, value in self if isinstance(value, tuple)}


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
    continuations: dict[str, int] = Field(
        default_factory=dict, description="Streams whose worker was lost within the answer: continued, failed or not_eligible."
    )
    streams: int = Field(0, description="Streamed requests offered.")
    streams_continuable: int = Field(0, description="Of these, those that another worker could go on with.")
    roles: dict[Role, RoleLoad] = Field(default_factory=dict)
    workers: tuple[WorkerLoad, ...] = ()
    dead_pairs: tuple[PairHealth, ...] = Field((), description="Pairs between which KV cache does not move now.")
    turned_away: dict[Role, Histogram] = Field(
        default_factory=dict,
        description="Refused requests by the role they waited for: predicted TTFT divided by the request's own target.",
    )
    proven_pairs: int = Field(0, description="Pairs over which a canary was pulled lately.")
    offered_prompt_tokens: int | None = Field(
        None, description="Prompt tokens of the requests offered, as estimated when they came; None where nobody counts."
    )
    recent: RecentRequests | None = Field(
        None, description="A sample of the requests completed lately; None of a router that keeps none."
    )


class PeerLoad(_Message):
    """What a router has open on one worker."""

    in_flight: int = 0
    pending_tokens: int = Field(0, description="Prompt tokens sent there and not computed yet.")
    declared_tokens: int = Field(
        0, description="Prompt tokens that a decode worker was to compute itself, since the router's start."
    )
    decoding: int = Field(0, description="Requests whose decode leg runs there.")
    kv_tokens: int = Field(0, description="Tokens that these hold in KV cache: prompts, and what they are expected to add.")


class PeerQuarantine(_Message):
    """What a router leaves out because it failed there: a worker, or a pair, by address."""

    kind: str = Field(description="`prefill`, `decode` or `pair`.")
    prefill: str = ""
    decode: str = ""


class QuarantinedBody(_Message):
    """A request that engines died of, as the router that found it refuses it."""

    digest: str = Field(max_length=64)
    seconds: float = Field(description="For how long it is still refused.", ge=0)


class PeerReport(_Message):
    """`GET /peer` of a router's admin port: what the other routers of the service need to keep common limits."""

    protocol: int = PROTOCOL_VERSION
    router: str
    workers: dict[str, PeerLoad] = Field(default_factory=dict, description="By address.")
    lanes: dict[str, int] = Field(default_factory=dict, description="Requests in flight by lane.")
    keys: dict[str, int] = Field(default_factory=dict, description="Prompt tokens that wait, by key.")
    queued: int = 0
    queued_tokens: int = 0
    quarantines: tuple[PeerQuarantine, ...] = ()
    prefixes: dict[str, Annotated[str, Field(pattern="^([0-9a-f]{16})*$")]] = Field(
        default_factory=dict, description="Keys of the prompts sent lately, 16 digits each, by the address that computed them."
    )
    bodies: tuple[QuarantinedBody, ...] = Field(
        (), description="The newest requests that this router itself found to be deadly."
    )


class KVCounters(_Message):
    """Of the engine's own counters; None where the engine has not reported the counter."""

    transferred_bytes: float | None = None
    transfers: float | None = None
    failed_transfers: float | None = None
    expired_leases: float | None = None
    external_tokens: float | None = Field(None, description="Prompt tokens whose KV came from another worker.")
    local_tokens: float | None = Field(None, description="Prompt tokens computed on this worker.")
    preemptions: float | None = Field(None, description="Requests that lost their KV cache here and were computed again.")


class Fingerprint(_Message):
    """What an engine turned out to be, as far as it decides whether KV cache can move; None where nobody says."""

    engine_version: str | None = None
    model: str | None = None
    revision: str | None = None
    dtype: str | None = None
    kv_dtype: str | None = None
    block_size: str | None = None
    connector: str | None = Field(None, description="Its version is the engine's, which no engine tells apart.")
    attention_backend: str | None = None


class PairStatus(StrEnum):
    """What is known of the KV path from a peer: nothing yet, that it works, or that it does not."""

    COLD = "cold"
    WARM = "warm"
    QUARANTINED = "quarantined"


class PairState(_Message):
    """The KV path from one prefill worker to the decode worker that publishes this."""

    peer: str = Field(description="Pod of the prefill worker.")
    address: str = Field(description="URL of its engine.")
    status: PairStatus
    reason: str = Field("", description="How the last canary failed; `fingerprint` if the engines differ.")
    differs: dict[str, tuple[str, str]] = Field(
        default_factory=dict, description="What differs in the fingerprints: this worker's value, the peer's."
    )
    proven_seconds_ago: float | None = Field(None, description="Since KV cache was last pulled by a canary.")


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
    fingerprint: Fingerprint = Fingerprint()
    pairs: tuple[PairState, ...] = Field((), description="Of a decode worker: one for each prefill worker that it reached.")
    canary_tokens: int = Field(0, description="Prompt tokens of canaries that this worker's engine served.")
    canary_failures: int = Field(
        0, description="Canaries that this engine had and did not pull; its failed transfers count them too."
    )
    canary_running: bool = Field(
        default=False, description="Whether this engine has a canary now, whose outcome is in no counter yet."
    )
