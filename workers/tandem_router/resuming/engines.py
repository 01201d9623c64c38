"""What a resumption has to ask an engine, any engine of the model: the text of ids, the length of the context, its health."""

import json
from collections.abc import Sequence
from typing import Any

from tandem_router.errors import ClientFault, EngineFailure, Kind
from tandem_router.http.client import Pool
from tandem_router.http.fetch import fetch
from tandem_router.http.messages import engine_request
from tandem_router.membership.registry import Registry
from tandem_router.requests.answers import check, read_json

__all__ = ["Engines"]

ASK_SECONDS = 5.0
HEALTH_SECONDS = 1.0


class Engines:
    """The routable engines, whoever of them answers."""

    def __init__(self, pool: Pool, registry: Registry, model: str) -> None:
        self._pool = pool
        self._registry = registry
        self._model = model
        self._context: int | None = None

    async def text(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens written out.

        Raises:
            EngineFailure: no engine says.
        """
        body = json.dumps({"model": self._model, "tokens": list(ids)}).encode()
        found = await self._ask(lambda host: engine_request(path="/detokenize", host=host, request_id="text", body=body))
        text = found.get("prompt")
        if not isinstance(text, str):
            raise EngineFailure(Kind.BAD_ANSWER, "the engine gave no text for ids")
        return text

    async def context(self) -> int:
        """Tokens that prompt and answer may have together.

        Raises:
            EngineFailure: no engine says.
        """
        if self._context is None:
            found = await self._ask(lambda host: _get("/v1/models", host))
            models = found.get("data")
            length = models[0].get("max_model_len") if isinstance(models, list) and models else None
            if not isinstance(length, int):
                raise EngineFailure(Kind.BAD_ANSWER, "the engine does not say how long its context is")
            self._context = length
        return self._context

    async def died(self, address: str) -> bool:
        """Whether an engine is gone or says that it is broken. One that does not answer at all may only be slow."""
        try:
            connection = await self._pool.acquire(address)
            answer = await fetch(connection, _get("/health", address), timeout_s=HEALTH_SECONDS)
        except EngineFailure as failure:
            return failure.kind in {Kind.REFUSED, Kind.RESET}
        return answer.status >= 500  # noqa: PLR2004 - every status of a broken server

    async def _ask(self, request: Any) -> dict[str, Any]:
        failure = EngineFailure(Kind.REFUSED, "no engine is routable", reached=False)
        load = self._registry.load
        for worker in sorted(self._registry.routable, key=lambda worker: load.get(worker.address, 0)):
            try:
                connection = await self._pool.acquire(worker.address)
                answer = await fetch(connection, request(worker.address), timeout_s=ASK_SECONDS)
                check(answer)
                return read_json(answer)
            except EngineFailure as error:
                failure = error
            except ClientFault as error:
                failure = EngineFailure(Kind.STATUS, f"the engine answered {error.status}")
        raise failure


def _get(path: str, host: str) -> bytes:
    return b"GET %b HTTP/1.1\r\nhost: %b\r\n\r\n" % (path.encode(), host.encode())
