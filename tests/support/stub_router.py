"""A router's admin port that reports what a test says clients measured."""

import http.server
import itertools
import os
import threading
import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

from typing_extensions import override

from tandem_api import ports
from tandem_api.names import Role
from tandem_api.wire import LATENCY_BOUNDS, Histogram, RecentRequests, RoleLoad, RouterSignals, StageSeconds, WorkerLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["StubRouter", "StubSignals"]

_addresses = itertools.count(1)
_process = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
"""Number of this process among those that share the tests: each has addresses of its own."""
_EACH_TIME = 50
"""Requests that a reading adds to the counters."""
_ON_EACH = 10
"""Requests that it adds to those of each worker."""


class StubSignals:
    """What a router says; each reading adds 50 requests."""

    def __init__(self, name: str = "stub") -> None:
        self.name = name
        self.ttft_ratio = 0.5
        """Time to first token over its target, of every request from now on."""
        self.in_flight = 4
        """Requests open on each role."""
        self.routable = {Role.PREFILL: 1, Role.DECODE: 1}
        self.answers = True
        """Whether it says anything but that it cannot."""
        self.pods: Callable[[], Iterable[str]] = tuple
        """Names of the pods that it sends requests to."""
        self.fails: Callable[[str], bool] = lambda _pod: False
        """Whether a pod fails what is sent to it, from now on."""
        self._served: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self.recent: RecentRequests | None = None
        """What it completed lately; None as an older router, which keeps no sample."""
        self.offered_prompt_tokens: int | None = None
        """Tokens that every reading adds to those offered; None as an older router, which does not count them."""
        self._offered_tokens = 0
        self._ratios = [0] * (len(LATENCY_BOUNDS) + 1)
        self._started = time.time()
        self._requests = 0

    def signals(self) -> RouterSignals:
        """Return one reading."""
        self._requests += _EACH_TIME
        bucket = next((place for place, bound in enumerate(LATENCY_BOUNDS) if self.ttft_ratio <= bound), len(LATENCY_BOUNDS))
        self._ratios[bucket] += _EACH_TIME
        pods = tuple(self.pods())
        for pod in pods:
            (self._failed if self.fails(pod) else self._served)[pod] += _ON_EACH
        self._offered_tokens += self.offered_prompt_tokens or 0
        ratios = Histogram(counts=tuple(self._ratios), sum=self.ttft_ratio * self._requests)
        return RouterSignals(
            router=self.name,
            started=self._started,
            now=time.time(),
            requests=self._requests,
            completed=self._requests,
            offered_prompt_tokens=None if self.offered_prompt_tokens is None else self._offered_tokens,
            recent=self.recent,
            ttft=ratios,
            ttft_ratio=ratios,
            stages=StageSeconds(prefill=ratios),
            workers=tuple(self._worker(pod) for pod in pods),
            roles={role: RoleLoad(routable=count, in_flight=self.in_flight) for role, count in self.routable.items()},
        )

    def _worker(self, pod: str) -> WorkerLoad:
        return WorkerLoad(
            pod=pod,
            address="127.0.0.1:8000",
            role=Role.DECODE,
            kv_group="",
            ready=True,
            served=self._served[pod],
            failed=self._failed[pod],
        )


class StubRouter(StubSignals):
    """Answers `/signals` on the routers' port of a loopback address of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.address = f"127.83.{_process}.{next(_addresses)}"
        self._server = http.server.ThreadingHTTPServer((self.address, ports.ROUTER_ADMIN), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the base class's name
                body = stub.signals().model_dump_json().encode()
                self.send_response(200 if stub.answers else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            @override
            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
