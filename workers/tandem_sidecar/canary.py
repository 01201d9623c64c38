"""One canary: a prompt of one block is computed at a peer and pulled by the own engine. It proves the path, not the pods.

Its cache salt is its own, so neither side can have it in a prefix cache. An engine that recomputes where it could not pull
answers all the same; the engine's counters of tokens that came from another worker and of failed transfers tell. Other
requests move both too, so whoever reads them has to see both before and after.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp

from tandem_api.nixl import ASK_TO_EXPORT
from tandem_api.servicetoken import bearer

__all__ = ["CanaryCount", "CanaryFailure", "Engines", "block_prompt"]

_TIMEOUT = 20.0
"""Seconds for one leg: a busy engine queues it behind its requests."""
_FIRST_ID = 100
"""Above the ids that most vocabularies reserve."""


class CanaryFailure(Exception):  # noqa: N818 - a path that does not work is what a canary is there to find
    """The canary was not pulled; `leg` is `peer` or `own`, `reason` one of few words."""

    def __init__(self, leg: str, reason: str) -> None:
        super().__init__(f"{leg}: {reason}")
        self.leg = leg
        self.reason = reason


@dataclass(slots=True)
class CanaryCount:
    """Canaries that the own engine had: prompt tokens that it served, those that it did not pull, and one that it has now."""

    tokens: int = 0
    failures: int = 0
    running: bool = False


def block_prompt(block_size: int) -> list[int]:
    """Return token ids that fill one block, and one more: the last token of a prompt is never pulled."""
    return [_FIRST_ID + index % 64 for index in range(block_size + 1)]


class Engines:
    """Asks engines for canaries; `token` is what they ask for."""

    def __init__(self, session: aiohttp.ClientSession, *, model: str, token: str | None) -> None:
        self._session = session
        self._model = model
        self._headers = bearer(token)

    async def prefill(self, url: str, *, prompt: list[int], salt: str) -> Mapping[str, Any]:
        """Have a peer compute the prompt; return the reference to its KV cache.

        Raises:
            CanaryFailure: it did not.
        """
        answer = await self._ask("peer", url, prompt, salt, ASK_TO_EXPORT)
        found = answer.get("kv_transfer_params")
        if not isinstance(found, dict) or found.get("do_remote_prefill") is not True:
            raise CanaryFailure("peer", "no_parameters")
        return found

    async def pull(self, url: str, *, prompt: list[int], salt: str, parameters: Mapping[str, Any]) -> None:
        """Have the own engine pull it.

        Raises:
            CanaryFailure: it did not answer, or with an error.
        """
        await self._ask("own", url, prompt, salt, parameters)

    async def _ask(self, leg: str, url: str, prompt: list[int], salt: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        body = {"model": self._model, "prompt": prompt, "max_tokens": 1, "min_tokens": 1, "temperature": 0, "cache_salt": salt}
        body["kv_transfer_params"] = parameters
        timeout = aiohttp.ClientTimeout(_TIMEOUT)
        try:
            async with self._session.post(
                f"{url}/v1/completions", json=body, headers=self._headers, timeout=timeout
            ) as response:
                if response.status != HTTPStatus.OK:
                    raise CanaryFailure(leg, f"status_{response.status}")
                answer = await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise CanaryFailure(leg, "timeout" if isinstance(error, TimeoutError) else "unreachable") from error
        if not isinstance(answer, dict) or any(_aborted(choice) for choice in answer.get("choices") or ()):
            raise CanaryFailure(leg, "aborted")
        return answer


def _aborted(choice: Any) -> bool:
    return not isinstance(choice, dict) or choice.get("finish_reason") in {"abort", "error"}
