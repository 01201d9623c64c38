"""Serves the arrangements one after the other, finds a load that both can take, and lets it meet each of them.

They take turns, each time with fresh engines, so that a noisy neighbour and what a machine remembers meet all of them.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from bench.pd.cases import AGGREGATED, PD, Arrangement, Suite
from bench.pd.clients import Outcome, Service, chats_per_second, play
from bench.pd.load import Rates, chat, long, rates, schedule
from bench.pd.serving import Site

__all__ = ["Block", "Capacity", "Measured", "measure"]

_WARM_CHATS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What an arrangement takes of one thing alone: chats a second, and seconds to the first token of a long prompt."""

    arrangement: str
    chats: float
    long_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One load, with everything that its clients saw."""

    arrangement: str
    seed: int
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything that was seen in a run."""

    capacities: tuple[Capacity, ...]
    rates: Rates
    blocks: tuple[Block, ...]


def measure(site: Site, suite: Suite) -> Measured:
    """Do all of a run."""
    found = tuple(_capacity(site, suite, arrangement) for arrangement in (PD, AGGREGATED))
    alone = next(each.long_seconds for each in found if each.arrangement == AGGREGATED.name)
    load = rates(suite, chats=[each.chats for each in found], long_seconds=alone)
    _say(f"the load: {load.chats:.2f} chats/s, and a long prompt every {1 / load.longs:.1f} s")
    return Measured(capacities=found, rates=load, blocks=tuple(_blocks(site, suite, load)))


def _capacity(site: Site, suite: Suite, arrangement: Arrangement) -> Capacity:
    with site.serving(arrangement) as service:
        _warm(service, suite)
        longs = [_time(service, suite, number) for number in range(suite.longs)]
        chats = chats_per_second(service, suite, name=arrangement.name)
    _say(f"{arrangement.name}: {chats:.2f} chats/s alone; a long prompt alone takes {median(longs):.2f} s")
    return Capacity(arrangement=arrangement.name, chats=chats, long_seconds=median(longs))


def _blocks(site: Site, suite: Suite, load: Rates) -> Iterator[Block]:
    for seed in suite.seeds:
        arrivals = schedule(suite, load, seed=seed)
        for arrangement in suite.arrangements:
            with site.serving(arrangement) as service:
                _warm(service, suite)
                _say(f"{arrangement.name}, load {seed}: {len(arrivals)} requests in {suite.ramp + suite.seconds:.0f} s")
                outcomes = play(service, arrivals)
            yield Block(arrangement=arrangement.name, seed=seed, outcomes=tuple(outcomes))


def _time(service: Service, suite: Suite, number: int) -> float:
    seen = service.ask(long(suite, salt=f"alone-{number}"))
    if seen.ttft is None:
        raise RuntimeError(f"a long prompt failed while nothing else was asked: {seen.error}")
    return seen.ttft


def _warm(service: Service, suite: Suite) -> None:
    """Let every worker meet both kinds of requests; what comes of them is not counted."""
    arrivals = [*(chat(suite, salt=f"warm-{number}") for number in range(_WARM_CHATS)), long(suite, salt="warm-long-0")]
    play(service, [*arrivals, long(suite, salt="warm-long-1")])


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
