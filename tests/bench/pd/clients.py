"""Clients of one service: those that come when the schedule says, however busy it is, and those that ask without a pause.

What they see is measured by the client of `tandem demo`, with the router's own rule: TPOT is the time from the first to the
last token, divided by the tokens after the first.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from bench.pd.cases import Suite
from bench.pd.load import Arrival, Kind, chat
from tandem_cli.demo.chat import Answer, ask
from tandem_cli.errors import CommandError

__all__ = ["Outcome", "Service", "chats_per_second", "outcome", "play", "steady_rate"]

_SECONDS = 300.0
"""Without a byte for so long, a request has failed."""
_LEAST = 2
"""Answers between which there is a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a client saw of one request; times are seconds.

    Attributes:
        kind: Of the request.
        at: When it was to come.
        late: By how much later the client sent it.
        ttft: To the first token.
        tpot: Per token after the first.
        pause: The longest time between two pieces of text.
        prompt_tokens: As the engine counted.
        output_tokens: The same.
        disaggregated: Whether a prefill worker computed the prompt.
        error: Why it failed; empty if it did not.
    """

    kind: Kind
    at: float
    late: float
    ttft: float | None = None
    tpot: float | None = None
    pause: float | None = None
    prompt_tokens: int = 0
    output_tokens: int = 0
    disaggregated: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where a service answers, and the name of its model."""

    url: str
    model: str

    def ask(self, arrival: Arrival, *, late: float = 0.0) -> Outcome:
        """Send one request and read its stream to the end; a failure is in the outcome."""
        moments: list[float] = []
        try:
            answer = ask(
                self.url,
                self.model,
                arrival.prompt,
                max_tokens=arrival.output,
                min_tokens=arrival.output,
                cache_salt=arrival.salt,
                show=lambda _: moments.append(time.monotonic()),
                timeout=_SECONDS,
            )
        except CommandError as error:
            return Outcome(kind=arrival.kind, at=arrival.at, late=late, error=str(error))
        return outcome(arrival, answer, moments, late=late)


def outcome(arrival: Arrival, answer: Answer, moments: Sequence[float], *, late: float) -> Outcome:
    """Judge an answer whose pieces came at these moments: one that is not whole has failed and has no figures."""
    if not moments or answer.output_tokens != arrival.output:
        error = f"{answer.output_tokens} of {arrival.output} tokens came, in {len(moments)} pieces"
        return Outcome(kind=arrival.kind, at=arrival.at, late=late, error=error)
    pauses = [after - before for before, after in pairwise(moments)]
    return Outcome(
        kind=arrival.kind,
        at=arrival.at,
        late=late,
        ttft=answer.ttft,
        tpot=answer.tpot,
        pause=max(pauses, default=None),
        prompt_tokens=answer.prompt_tokens,
        output_tokens=answer.output_tokens,
        disaggregated=bool(answer.prefill),
    )


def play(service: Service, arrivals: Sequence[Arrival]) -> list[Outcome]:
    """Send each request when it is due, whether or not earlier ones have been answered, and wait for all."""
    began = time.monotonic()

    def send(arrival: Arrival) -> Outcome:
        return service.ask(arrival, late=time.monotonic() - began - arrival.at)

    with ThreadPoolExecutor(max(1, len(arrivals))) as clients:
        sent = []
        for arrival in arrivals:
            time.sleep(max(0.0, began + arrival.at - time.monotonic()))
            sent.append(clients.submit(send, arrival))
        return [each.result() for each in sent]


def chats_per_second(service: Service, suite: Suite, *, name: str) -> float:
    """Return how many chats a service answers while clients ask without a pause, each until it has two answers at least.

    Raises:
        RuntimeError: a chat failed.
    """
    end = time.monotonic() + suite.capacity

    def client(number: int) -> list[float]:
        moments: list[float] = []
        while len(moments) < _LEAST or moments[-1] < end:
            seen = service.ask(chat(suite, salt=f"capacity-{name}-{number}-{len(moments)}"))
            if seen.error:
                raise RuntimeError(f"{name}: a chat failed while its capacity was measured: {seen.error}")
            moments.append(time.monotonic())
        return moments

    with ThreadPoolExecutor(suite.clients) as clients:
        return steady_rate(list(clients.map(client, range(suite.clients))))


def steady_rate(answered: Sequence[Sequence[float]]) -> float:
    """Return the answers a second of all clients, each counted from its first answer to its last one."""
    return sum((len(moments) - 1) / (moments[-1] - moments[0]) for moments in answered)
