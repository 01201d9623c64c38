"""A request on its way through the fleet, and what became of it. It decides nothing."""

from dataclasses import dataclass

from tandem_simulator.fleet.traces import Request

__all__ = ["Job", "Route"]


@dataclass(frozen=True, slots=True)
class Route:
    """Addresses of the workers that serve a request; without `prefill`, decode computes the prompt itself."""

    decode: str
    prefill: str | None


@dataclass(slots=True, eq=False)
class Job:
    """One request; times are seconds of the simulation and None before they have come.

    Attributes:
        request: What was asked.
        number: Its place in the load.
        route: Where it was sent.
        cached: Prompt tokens that the worker which computed the prompt had in its cache.
        sent: When it was sent there.
        computed: When its prompt was computed.
        first: When its first token came.
        ended: When its last token came.
        refused: When it was refused.
    """

    request: Request
    number: int
    route: Route | None = None
    cached: int = 0
    sent: float | None = None
    computed: float | None = None
    first: float | None = None
    ended: float | None = None
    refused: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.ended is not None or self.refused is not None

    @property
    def ttft(self) -> float | None:
        """Seconds from its arrival to its first token."""
        return None if self.first is None else self.first - self.request.at

    @property
    def tpot(self) -> float | None:
        """Seconds for each token after the first; None for an answer of one token."""
        if self.first is None or self.ended is None or self.request.output == 1:
            return None
        return (self.ended - self.first) / (self.request.output - 1)
