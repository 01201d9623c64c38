"""Faults that strike one request: decided when it arrives, carried out at the token they name."""

from collections.abc import Callable

from tandem_simulator.engine import tokens
from tandem_simulator.engine.errors import internal
from tandem_simulator.engine.faults import Fault, FaultRequest, Faults
from tandem_simulator.engine.jobs import Job
from tandem_simulator.engine.sequences import Delta

__all__ = ["Tampering"]


class Tampering:
    """What will go wrong with one request.

    Args:
        faults: The faults that are on.
        now: Seconds, monotonic.
        die: Ends the process.
    """

    def __init__(self, faults: Faults, *, now: float, die: Callable[[], None]) -> None:
        self._die = die
        self._dies = faults.strikes(Fault.DIE, now)
        self._errs = faults.strikes(Fault.ERROR, now)
        self._cuts = faults.strikes(Fault.CUT, now)
        self._kills = faults.strikes(Fault.KILLER_PROMPT, now)
        self._tokens = 0

    def check_prompt(self, job: Job) -> None:
        """End the process over a prompt that the fault names."""
        if self._kills is None or self._kills.text is None:
            return
        if any(self._kills.text in tokens.decode(sequence.prompt) for sequence in job.sequences):
            self._die()

    def cuts(self, delta: Delta) -> bool:
        """Whether the connection is to be cut before this delta."""
        return self._due(self._cuts, delta)

    def check_delta(self, delta: Delta) -> None:
        """Count the delta's tokens; end the process or the request when it is time.

        Raises:
            APIError: The request fails as the real engine's requests fail.
        """
        if self._due(self._dies, delta):
            self._die()
        if self._due(self._errs, delta):
            raise internal()
        self._tokens += len(delta.token_ids)

    def _due(self, fault: FaultRequest | None, delta: Delta) -> bool:
        return fault is not None and self._tokens + len(delta.token_ids) > fault.after_tokens
