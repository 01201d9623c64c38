"""When each watch was last answered. A task that runs proves nothing; an answer of the API server does.

A watch is renewed every few minutes at the latest, also when nothing happens: one that is not has been lost, whatever
became of its task.
"""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import aiohttp

__all__ = ["Heartbeats"]


class Heartbeats:
    """The watches of one process, by the path of what they watch."""

    def __init__(self, paths: Iterable[str], *, monotonic: Callable[[], float]) -> None:
        """Expect a watch of each path once `start` was called."""
        self._paths = tuple(paths)
        self._monotonic = monotonic
        self._answered: dict[str, float] = {}

    def start(self) -> None:
        """The watches begin now."""
        now = self._monotonic()
        self._answered = dict.fromkeys(self._paths, now)

    def trace(self) -> aiohttp.TraceConfig:
        """Return what a session must be made with for its watches to be seen."""
        config = aiohttp.TraceConfig()
        config.on_request_end.append(self._on_request_end)
        config.freeze()
        return config

    def silent(self, longest: float) -> dict[str, float]:
        """Return the seconds since the last answer of each watch that has had none for more than `longest` seconds."""
        now = self._monotonic()
        return {path: now - last for path, last in self._answered.items() if now - last > longest}

    async def _on_request_end(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        if params.url.query.get("watch") == "true" and params.response.ok:
            # Before the path may stand one of a proxy's own.
            self._answered |= {path: self._monotonic() for path in self._answered if params.url.path.endswith(path)}
