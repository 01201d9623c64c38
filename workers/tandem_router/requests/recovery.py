"""What follows a failed attempt: another one, the decode worker alone, or the end. It talks to nobody.

A decode worker that failed is left alone for a moment, a prefill worker that failed is not asked again by this request.
"""

from collections.abc import Callable

from tandem_api.names import Role
from tandem_router.choice import Need
from tandem_router.errors import ApiError, EngineFailure, Kind, out_of_attempts
from tandem_router.membership.registry import Registry
from tandem_router.options import OnPrefillFailure, Options
from tandem_router.protocols.nixl import Handover
from tandem_router.reporting.signals import Signals
from tandem_router.requests.attempt import Attempt
from tandem_router.requests.call import Call

__all__ = ["Recovery"]

DECODE_RETRIES = 2
"""Further attempts after decode failed."""
LEFT_ALONE = 0.25
"""Seconds for which a decode worker is avoided after its first failure; doubled with each further one."""
LOST_LEFT_ALONE = 1.0
"""The same for one that was lost within an answer, or that cannot be reached."""
RETRY_AFTER = 2
_ON_PURPOSE = frozenset({"short", "cached", "tool_choice", "n", "batch", "prompt_logprobs", "echo"})
_FALLBACKS = frozenset({"no_prefill_worker", "prefill_failed"})


class Recovery:
    """The memory that one request has of its failed attempts."""

    def __init__(
        self, options: Options, signals: Signals, registry: Registry, call: Call, *, clock: Callable[[], float]
    ) -> None:
        self._policy = options.on_prefill_failure
        self._least = options.min_prompt_tokens
        self._signals = signals
        self._registry = registry
        self._call = call
        self._clock = clock
        self.local = call.alone
        self._failed_prefills: set[str] = set()
        self._stale: set[str] = set()
        self._avoid_until: dict[str, float] = {}
        self._forgive_at: float | None = None
        self._decode_failures = 0
        self._keep_prefill: str | None = None
        self._handover: Handover | None = None
        self._group: str | None = None
        self._counted = False
        self.tokens = call.prompt_ids or 0

    def need(self) -> Need:
        """What the next attempt asks of the choice."""
        now = self._clock()
        avoid = {address for address, until in self._avoid_until.items() if until > now}
        self._forgive_at = min((self._avoid_until[address] for address in avoid), default=None)
        return Need(
            conversation=self._call.conversation,
            local=self.local,
            avoid=avoid | self._failed_prefills,
            keep_prefill=self._keep_prefill,
            group=self._group,
            fallback=self._policy is OnPrefillFailure.FALLBACK_LOCAL,
            tokens=self.tokens,
            chunks=self._call.chunks,
            least=self._least,
        )

    def resume(self, lost: Attempt, *, short: bool) -> None:
        """Begin again for a stream whose attempt was lost: its decode worker is left alone, its prefill worker is warm."""
        self._avoid_until[lost.decode.address] = self._clock() + LOST_LEFT_ALONE
        if lost.prefill is not None:
            self._keep_prefill = lost.prefill.address
        # Neither is counted as a prompt that decode computes on purpose: the request was counted when it came.
        self.local = "continued" if short else None

    def soonest(self, limit: float) -> float:
        """Seconds until a worker that the last need avoided may be asked again, at most `limit`."""
        return limit if self._forgive_at is None else min(limit, max(self._forgive_at - self._clock(), 0.0))

    def take_handover(self) -> Handover | None:
        """KV that an earlier attempt prepared and no decode worker has heard of."""
        handover, self._handover, self._group = self._handover, None, None
        return handover

    def drop_group(self) -> bool:
        """Give up prepared KV that no other decode worker can pull; returns whether there was any."""
        return self._group is not None and self.take_handover() is not None

    def count_local(self, attempt: Attempt) -> None:
        """Count a request without a prefill leg by its reason, once."""
        if attempt.local in _ON_PURPOSE and not self._counted:
            self._signals.local[attempt.local] += 1
            self._counted = True
        if attempt.local in _FALLBACKS and not self._counted:
            self._signals.fallbacks[attempt.local] += 1
            self._counted = True

    def after_prefill(self, attempt: Attempt, failure: EngineFailure) -> None:
        """Decide what follows a failed prefill leg.

        Raises:
            ApiError: nothing does.
        """
        self._signals.fallbacks[f"prefill_{failure.kind.value}"] += 1
        if attempt.prefill is not None and not self._forgive_stale(attempt.prefill.address, failure):
            self._failed_prefills.add(attempt.prefill.address)
        if self._policy is OnPrefillFailure.FAIL or attempt.deadline <= self._clock():
            raise out_of_attempts("prefill", failure, retry_after=RETRY_AFTER)
        if self._another_pair():
            return
        if self._policy is not OnPrefillFailure.FALLBACK_LOCAL:
            raise out_of_attempts("prefill", failure, retry_after=RETRY_AFTER)
        self.local = "prefill_failed"

    def after_decode(self, attempt: Attempt, failure: EngineFailure, handover: Handover | None) -> None:
        """Decide what follows a decode leg that failed before its first good event.

        Raises:
            ApiError: nothing does.
        """
        self._signals.fallbacks[f"decode_{failure.kind.value}"] += 1
        self._decode_failures += 1
        if self._decode_failures > DECODE_RETRIES or failure.kind is Kind.TIMEOUT:
            raise out_of_attempts("decode", failure, retry_after=RETRY_AFTER)
        address = attempt.decode.address
        if not self._forgive_stale(address, failure):
            # Where nothing listens nothing will in a moment; discovery may take seconds to say so.
            pause = LEFT_ALONE if failure.reached else LOST_LEFT_ALONE
            self._avoid_until[address] = self._clock() + pause * 2 ** (self._decode_failures - 1)
        if attempt.prefill is not None:
            self._keep_prefill = attempt.prefill.address
        if handover is not None and handover.unused and not failure.reached:
            self._handover, self._group = handover, attempt.decode.kv_group

    def broken(self, failure: EngineFailure) -> ApiError:
        """The error for a stream that ended within its answer."""
        self._signals.broken[failure.kind.value] += 1
        return ApiError(
            502,
            f"The decode worker was lost within the answer ({failure.kind.value}). Send the request again.",
            code="stream_broken",
        )

    def _forgive_stale(self, address: str, failure: EngineFailure) -> bool:
        """A kept connection that the engine had closed says nothing about the engine, once."""
        if failure.kind is not Kind.STALE or address in self._stale:
            return False
        self._stale.add(address)
        return True

    def _another_pair(self) -> bool:
        decodes = {worker.kv_group for worker in self._registry.routable if worker.role is Role.DECODE}
        return any(
            worker.role is Role.PREFILL and worker.address not in self._failed_prefills and worker.kv_group in decodes
            for worker in self._registry.routable
        )
