"""One sequence on its way through the engine, and what it tells the client."""

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tandem_simulator.engine.blocks import Key
from tandem_simulator.engine.detokenizing import Detokenizer
from tandem_simulator.engine.oracle import BlockDigester, Oracle

if TYPE_CHECKING:
    import asyncio

__all__ = ["Delta", "Finish", "RemoteBlocks", "Sampling", "Sequence", "State"]


class Finish(enum.StrEnum):
    """Why a sequence ended; the values are vLLM's."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


class State(enum.Enum):
    """Where a sequence is. LOADED has its KV cache and waits for a place in the batch."""

    WAITING = enum.auto()
    LOADING = enum.auto()
    LOADED = enum.auto()
    RUNNING = enum.auto()
    FINISHED = enum.auto()


@dataclass(frozen=True, slots=True)
class Sampling:
    """What of the sampling parameters matters here: when the answer ends and which text it shows."""

    max_tokens: int
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    include_stop: bool = False
    skip_special: bool = True


@dataclass(frozen=True, slots=True)
class RemoteBlocks:
    """Where a prompt's KV cache can be pulled from, as another engine told it."""

    engine_id: str
    request_id: str
    host: str
    port: int
    block_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """One step's news of one sequence.

    Attributes:
        index: Which choice of the request.
        token_ids: New tokens.
        text: New text; may be empty although there are tokens.
        finish: Set on the last delta.
        stop_reason: Stop string or stop token that ended it; None for the end token.
        kv_transfer_params: What a peer needs to pull the prompt's KV cache; on the last delta only.
        cached_tokens: Prompt tokens that were not computed here.
    """

    index: int
    token_ids: tuple[int, ...] = ()
    text: str = ""
    finish: Finish | None = None
    stop_reason: int | str | None = None
    kv_transfer_params: dict[str, Any] | None = None
    cached_tokens: int = 0


@dataclass(slots=True, eq=False)
class Sequence:
    """A prompt and its answer so far; the scheduler's unit.

    Attributes:
        request_id: Engine-wide unique.
        sink: Receives every delta; shared by the choices of one request.
        salt: Separates prefix caches.
        remote: Where to pull the prompt's KV cache from, until that was tried.
        peer_cached: Cached tokens that the prefill engine reported; told to the client instead of this engine's own.
        export: Whether the KV cache is to be held for a peer.
        computed: Tokens whose KV cache is there.
        taint: What wrong KV cache was read, if any.
    """

    request_id: str
    index: int
    prompt: list[int]
    sampling: Sampling
    sink: "asyncio.Queue[Delta]"
    digester: BlockDigester
    arrived: float
    salt: str = ""
    remote: RemoteBlocks | None = None
    peer_cached: int | None = None
    export: bool = False
    state: State = State.WAITING
    output: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    computed: int = 0
    published: int = 0
    cached_local: int = 0
    cached_remote: int = 0
    preemptions: int = 0
    taint: bytes | None = None
    oracle: Oracle | None = None
    scheduled_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    load: "asyncio.Task[None] | None" = None
    detokenizer: Detokenizer = field(init=False)

    def __post_init__(self) -> None:
        sampling = self.sampling
        self.digester.push(self.prompt)
        self.detokenizer = Detokenizer(
            sampling.stop,
            include_stop=sampling.include_stop,
            min_tokens=sampling.min_tokens,
            skip_special=sampling.skip_special,
            prompt=self.prompt,
        )

    @property
    def known(self) -> int:
        """Tokens that exist: prompt and answer so far."""
        return len(self.prompt) + len(self.output)

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next one can be chosen; 1 while decoding."""
        return self.known - self.computed

    @property
    def reported_cached(self) -> int:
        """Cached prompt tokens as usage tells them: what a pull brought does not count as cached."""
        return self.cached_local + self.cached_remote if self.peer_cached is None else self.peer_cached

    def key(self, block_index: int) -> Key:
        """Prefix-cache key of one full block."""
        return (self.salt, self.digester.full[block_index])
