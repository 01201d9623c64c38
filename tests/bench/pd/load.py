"""The load: chats that come all the time, and long prompts among them. Pure: the same seed gives the same requests."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from bench.pd.cases import Suite

__all__ = ["Arrival", "Kind", "Rates", "chat", "long", "rates", "schedule"]

_VOCABULARY = (
    "time year people way day man life children world school state family country hand part place night point home water "
    "mother money story river road book eye house father word animal body boy car city door earth face feet fire fish food "
    "friend girl gold ground head horse hour idea island king land letter light line list mile moon morning mountain music "
    "name north number page paper picture plant rock room sand sea sentence ship song sound star sun table town tree voice "
    "war wind wood work"
)
"""Common words, each of which is one token to most tokenizers, the simulator's among them."""
_WORDS = _VOCABULARY.split()
_ASK = "Tell a story with these words."


class Kind(StrEnum):
    """What a request is."""

    CHAT = "chat"
    LONG = "long prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A request that comes `at` so many seconds after the start; `salt` keeps its KV cache apart from all others'."""

    at: float
    kind: Kind
    prompt: str
    salt: str
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Requests a second."""

    chats: float
    longs: float


def rates(suite: Suite, *, chats: list[float], long_seconds: float) -> Rates:
    """Return a load that all arrangements can keep up with.

    Args:
        suite: The shares.
        chats: Chats a second that each arrangement takes alone.
        long_seconds: What one long prompt takes one core.
    """
    return Rates(chats=suite.chat_share * min(chats), longs=suite.long_share / long_seconds)


def schedule(suite: Suite, at: Rates, *, seed: int) -> list[Arrival]:
    """Return the requests of one load in the order in which they come, both kinds at random times."""
    random = Random(seed)  # noqa: S311 - a load, no secret
    end = suite.ramp + suite.seconds
    chats = [
        chat(suite, salt=f"chat-{seed}-{number}", at=moment) for number, moment in enumerate(_moments(random, at.chats, end))
    ]
    longs = [
        long(suite, salt=f"long-{seed}-{number}", at=moment) for number, moment in enumerate(_moments(random, at.longs, end))
    ]
    return sorted([*chats, *longs], key=lambda each: each.at)


def chat(suite: Suite, *, salt: str, at: float = 0.0) -> Arrival:
    """Return a short question with a longer answer."""
    prompt = _prompt(salt, suite.chat_words)
    return Arrival(at=at, kind=Kind.CHAT, prompt=prompt, salt=salt, output=suite.chat_tokens)


def long(suite: Suite, *, salt: str, at: float = 0.0) -> Arrival:
    """Return a long prompt with a short answer."""
    prompt = _prompt(salt, suite.long_words)
    return Arrival(at=at, kind=Kind.LONG, prompt=prompt, salt=salt, output=suite.long_tokens)


def _moments(random: Random, rate: float, end: float) -> Iterator[float]:
    moment = random.expovariate(rate)
    while moment < end:
        yield moment
        moment += random.expovariate(rate)


def _prompt(salt: str, words: int) -> str:
    # The words differ from the first one on, so routers take no two requests for one conversation.
    return f"{' '.join(Random(salt).choices(_WORDS, k=words))}. {_ASK}"  # noqa: S311 - a load, no secret
