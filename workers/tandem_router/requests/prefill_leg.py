"""The prefill leg: one token, computed where prompts are computed, and a reference to the KV blocks it left there."""

from dataclasses import dataclass

from tandem_router.http.client import Pool
from tandem_router.http.fetch import fetch
from tandem_router.http.messages import engine_request
from tandem_router.membership.registry import Worker
from tandem_router.protocols import nixl
from tandem_router.requests.answers import check, compute_seconds, read_json, usage_count
from tandem_router.requests.call import Call

__all__ = ["Prefilled", "run"]


@dataclass(frozen=True, slots=True)
class Prefilled:
    """What a prefill worker left behind; `compute` is the engine's own time for the prompt, None where it does not say."""

    handover: nixl.Handover
    prompt_tokens: int
    compute: float | None = None

    @property
    def held(self) -> float | None:
        """Share of the prompt that was in the worker's cache, 0 to 1; None where it does not say."""
        cached = self.handover.cached
        return None if cached is None or not self.prompt_tokens else min(cached / self.prompt_tokens, 1.0)

    @property
    def withheld(self) -> int:
        """Tokens of the prompt whose KV is not offered, so that decode computes them again."""
        offered = self.handover.offered
        return 0 if offered is None else max(self.prompt_tokens - offered, 0)


async def run(pool: Pool, worker: Worker, call: Call, *, request_id: str, trace: bytes, timeout_s: float) -> Prefilled:
    """Run the leg on a worker.

    Raises:
        EngineFailure: no KV came of it.
        ClientFault: the engine found the request itself wrong.
    """
    connection = await pool.acquire(worker.address)
    body = nixl.prefill_body(call)
    request = engine_request(path=call.path, host=worker.address, request_id=request_id, body=body, trace=trace)
    answer = await fetch(connection, request, timeout_s=timeout_s)
    check(answer)
    content = read_json(answer)
    handover = nixl.parameters(content)
    return Prefilled(handover, usage_count(content, "prompt_tokens"), compute_seconds(content))
