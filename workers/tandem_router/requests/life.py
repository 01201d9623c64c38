"""The life of a request as a table: which state may follow which, and how long each one took.

A state change that the table does not hold is a defect and raises; nothing is corrected in silence.
"""

from collections.abc import Callable
from enum import StrEnum
from types import MappingProxyType

__all__ = ["TRANSITIONS", "Life", "State"]


class State(StrEnum):
    """Where a request is."""

    ADMITTED = "admitted"
    RESERVED = "reserved"
    PREFILL = "prefill"
    HANDOVER = "handover"
    HELD = "held"
    STREAMING = "streaming"
    RESUMING = "resuming"
    DONE = "done"
    FAILED = "failed"


TRANSITIONS = MappingProxyType(
    {
        State.ADMITTED: frozenset({State.RESERVED, State.FAILED}),
        # Without a prefill leg (short prompt, aggregated pool, unused KV parameters) the hand-over follows at once.
        State.RESERVED: frozenset({State.PREFILL, State.HANDOVER, State.FAILED}),
        # Back to ADMITTED: a new attempt, with new ids.
        State.PREFILL: frozenset({State.HANDOVER, State.ADMITTED, State.RESUMING, State.FAILED}),
        State.HANDOVER: frozenset({State.HELD, State.ADMITTED, State.RESUMING, State.FAILED}),
        # An answer that is not streamed is done without a STREAMING state.
        State.HELD: frozenset({State.STREAMING, State.DONE, State.ADMITTED, State.RESUMING, State.FAILED}),
        State.STREAMING: frozenset({State.DONE, State.RESUMING, State.FAILED}),
        # A stream that broke: it goes on by another attempt, or was complete but for its closing event.
        State.RESUMING: frozenset({State.RESERVED, State.DONE, State.FAILED}),
        State.DONE: frozenset(),
        State.FAILED: frozenset(),
    }
)
"""What may follow each state."""


class Life:
    """The states of one request, with the seconds spent in each over all attempts.

    `trail` holds the states in their order, `times` when each began in monotonic seconds. `to_first` is what was spent until
    the stream began; what a continuation spends is no part of the time to first token.
    """

    __slots__ = ("_clock", "_since", "_to_first", "spent", "state", "times", "trail")

    def __init__(self, clock: Callable[[], float], began: float) -> None:
        self._clock = clock
        self._since = began
        self.state = State.ADMITTED
        self.spent: dict[State, float] = {}
        self.trail: list[State] = [State.ADMITTED]
        self.times = [began]
        self._to_first: dict[State, float] | None = None

    @property
    def over(self) -> bool:
        """Whether the request has ended."""
        return not TRANSITIONS[self.state]

    @property
    def to_first(self) -> dict[State, float]:
        """Seconds spent in each state until the stream began, or so far."""
        return self.spent if self._to_first is None else self._to_first

    def move(self, state: State) -> None:
        """Enter another state.

        Raises:
            ValueError: the table holds no such transition.
        """
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"a request cannot go from {self.state.value} to {state.value}")
        now = self._clock()
        self.spent[self.state] = self.spent.get(self.state, 0.0) + now - self._since
        self._since = now
        if state is State.STREAMING and self._to_first is None:
            self._to_first = dict(self.spent)
        self.state = state
        self.trail.append(state)
        self.times.append(now)
