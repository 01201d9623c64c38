"""Faults on request, so that tests need no luck: `POST /sim/faults` with `--sim-admin`. Seeded; off unless asked for."""

import math
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Fault", "FaultRequest", "Faults"]


class Fault(StrEnum):
    """What can go wrong.

    REFUSE answers new requests with 503. STALL accepts requests and makes no progress. DIE ends the process as SIGKILL
    would, at once or within an answer. SLOW_START makes /health 503 for some seconds. KV_DEAD cuts the KV side channel
    while /health stays 200. KV_DEAF makes pulls fail from the peers whose `host:port` is `text` or begins with it (from all
    when absent). KV_FOREIGN makes the side channel answer as an incompatible engine. CUT breaks the connection
    within a streamed answer. ERROR ends requests with an internal error: HTTP 500, or an error event in a 200 stream.
    EXPIRE_LEASES ends all leases now. KILLER_PROMPT ends the process when a prompt contains `text`.
    """

    REFUSE = "refuse"
    STALL = "stall"
    DIE = "die"
    SLOW_START = "slow-start"
    KV_DEAD = "kv-dead"
    KV_DEAF = "kv-deaf"
    KV_FOREIGN = "kv-foreign"
    CUT = "cut"
    ERROR = "error"
    EXPIRE_LEASES = "expire-leases"
    KILLER_PROMPT = "killer-prompt"


class FaultRequest(BaseModel):
    """Body of `POST /sim/faults`.

    `count` requests are hit (all when absent), each with `probability`; `after_tokens` tokens come out before CUT, DIE or
    ERROR strikes; `seconds` limits how long the fault lasts.
    """

    model_config = ConfigDict(extra="forbid")

    fault: Fault
    count: int | None = Field(None, ge=1)
    probability: float = Field(1.0, gt=0, le=1)
    after_tokens: int = Field(0, ge=0)
    seconds: float | None = Field(None, gt=0)
    text: str | None = Field(None, min_length=1)


@dataclass(slots=True)
class _Active:
    request: FaultRequest
    until: float
    left: float


class Faults:
    """The faults that are on.

    Args:
        random: Decides for faults with a probability.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._active: dict[Fault, _Active] = {}

    def add(self, request: FaultRequest, now: float) -> None:
        """Turn a fault on; one that is on already is replaced. `now` is in seconds."""
        until = now + request.seconds if request.seconds is not None else math.inf
        self._active[request.fault] = _Active(request, until, math.inf if request.count is None else request.count)

    def clear(self) -> None:
        """Turn all off."""
        self._active.clear()

    def listing(self, now: float) -> list[dict[str, object]]:
        """The faults that are on."""
        return [self._active[fault].request.model_dump(mode="json") for fault in list(self._active) if self.on(fault, now)]

    def on(self, fault: Fault, now: float) -> bool:
        """Whether a lasting fault is on."""
        active = self._active.get(fault)
        if active is None:
            return False
        if active.until <= now or active.left <= 0:
            del self._active[fault]
            return False
        return True

    def hits(self, fault: Fault, name: str, now: float) -> bool:
        """Whether a lasting fault is on and is about this name."""
        return self.on(fault, now) and name.startswith(self._active[fault].request.text or "")

    def strikes(self, fault: Fault, now: float) -> FaultRequest | None:
        """Whether a fault hits one request now; counts the hit."""
        if not self.on(fault, now):
            return None
        active = self._active[fault]
        if self._random.random() >= active.request.probability:
            return None
        active.left -= 1
        return active.request
