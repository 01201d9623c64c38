"""What is measured: streams at a fixed token rate, short whole answers, and many open streams in a fresh process."""

from dataclasses import dataclass, replace

__all__ = ["FULL", "QUICK", "Case", "Suite"]

SMALL, MEDIUM, LARGE = 100, 32 * 1024, 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One load; times in seconds, `prompt` in bytes.

    `fresh` asks for a proxy that has served nothing, since memory once used is not given back. `only` names proxies.
    """

    name: str
    clients: int
    prompt: int = SMALL
    stream: bool = True
    chunks: int = 200
    gap: float = 0.01
    ramp: float = 0.0
    lasts: float = 6.0
    fresh: bool = False
    tls: bool = False
    only: tuple[str, ...] = ()

    @property
    def tokens_per_second(self) -> float:
        """Of all streams together, as the engine sends them."""
        return self.clients / self.gap if self.stream else 0.0


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases, and how often each is repeated."""

    cases: tuple[Case, ...]
    repetitions: int

    def within(self, most: int) -> "Suite":
        """The same where no more clients than `most` may be connected: streams that are only held open are fewer then."""
        return replace(self, cases=tuple(_held(most, case) if case.clients > most else case for case in self.cases))


def _size(prompt: int) -> str:
    return {SMALL: "100 B", MEDIUM: "32 KB", LARGE: "1 MB"}[prompt]


def _one(prompt: int) -> Case:
    return Case(name=f"1 stream, {_size(prompt)}", clients=1, prompt=prompt, chunks=50)


def _many(prompt: int, *, lasts: float = 6.0) -> Case:
    return Case(name=f"64 streams, {_size(prompt)}", clients=64, prompt=prompt, ramp=2.0, lasts=lasts)


def _crowd(prompt: int) -> Case:
    """A thousand streams at 10 tokens a second each; long prompts arrive more slowly, as no core parses 1 GB in 5 s."""
    slow = prompt == LARGE
    return Case(
        name=f"1,024 streams, {_size(prompt)}",
        clients=1024,
        prompt=prompt,
        chunks=80 if slow else 60,
        gap=0.5 if slow else 0.1,
        ramp=40.0 if slow else 6.0,
        lasts=0.0 if slow else 8.0,
    )


def _short(lasts: float) -> Case:
    return Case(name="short answers, 64 clients", clients=64, stream=False, chunks=8, lasts=lasts)


def _held(clients: int, case: Case) -> Case:
    return replace(case, clients=clients, name=f"{clients:,} open streams, all that the limit of open files allows")


def _open(clients: int, *, ramp: float, chunks: int, only: tuple[str, ...] = ()) -> Case:
    return Case(
        name=f"{clients:,} open streams",
        clients=clients,
        gap=1.0,
        chunks=chunks,
        ramp=ramp,
        lasts=0.0,
        fresh=True,
        only=only,
    )


def _secure(case: Case) -> Case:
    return replace(case, name=f"{case.name}, TLS", tls=True, fresh=True, only=("direct", "tandem", "envoy"))


SIZES = (SMALL, MEDIUM, LARGE)
FULL = Suite(
    (
        *map(_one, SIZES),
        *map(_many, SIZES),
        *map(_crowd, SIZES),
        _short(5.0),
        _secure(_many(SMALL)),
        _secure(_short(5.0)),
        _open(1024, ramp=5.0, chunks=10),
        _open(10_000, ramp=30.0, chunks=45, only=("tandem",)),
    ),
    repetitions=3,
)
QUICK = Suite(
    (_one(SMALL), _many(SMALL, lasts=3.0), _short(2.0), _secure(_many(SMALL, lasts=2.0)), _open(256, ramp=1.0, chunks=4)),
    repetitions=1,
)
