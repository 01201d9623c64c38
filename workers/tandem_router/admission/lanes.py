"""Lanes: requests of a size, with a bound of their own on how many run at once. A request is in the lane it just reaches."""

from collections.abc import Sequence
from dataclasses import dataclass

from tandem_api.durations import parse_duration

__all__ = ["DEFAULT", "Lane", "lane_of", "parse_lane"]

_PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One lane; `max_in_flight` is per service and 0 is no bound, `timeout` the seconds that a request of it may wait."""

    name: str
    min_prompt_tokens: int
    max_in_flight: int
    timeout: float | None


DEFAULT = Lane(name="", min_prompt_tokens=0, max_in_flight=0, timeout=None)
"""Where requests are that reach no lane."""


def lane_of(lanes: Sequence[Lane], tokens: int) -> Lane:
    """Return the lane with the highest threshold that a prompt of this length reaches."""
    reached = [lane for lane in lanes if lane.min_prompt_tokens <= tokens]
    return max(reached, key=lambda lane: lane.min_prompt_tokens, default=DEFAULT)


def parse_lane(text: str) -> Lane:
    """Read `NAME,TOKENS,MAX_IN_FLIGHT,TIMEOUT`; an empty timeout is the queue's.

    Raises:
        ValueError: it is not of this form.
    """
    parts = text.split(",")
    if len(parts) != _PARTS or not parts[0]:
        raise ValueError(f"'{text}' is not of the form NAME,TOKENS,MAX_IN_FLIGHT,TIMEOUT")
    name, tokens, most, timeout = parts
    return Lane(
        name=name,
        min_prompt_tokens=int(tokens),
        max_in_flight=int(most),
        timeout=parse_duration(timeout) if timeout else None,
    )
