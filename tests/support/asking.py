"""Clients of a running service: one question, and a load whose every answer is recorded and compared."""

import asyncio
import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

import aiohttp

__all__ = ["Answer", "LoadGenerator", "ask", "asked"]

_SECONDS = 120.0
_REFUSED_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client saw of one request; an answer is whole only with status 200, no error and a finish reason."""

    prompt: str
    stream: bool
    status: int = 0
    text: str = ""
    finish: str = ""
    error: str = ""
    """The error of the answer or of the connection; for a stream that broke, its error event."""
    prefill: str = ""
    decode: str = ""
    """Pods of the last attempt, as the router names them."""
    usage: Mapping[str, Any] | None = None

    @property
    def whole(self) -> bool:
        """Whether the client got everything."""
        return self.status == 200 and not self.error and bool(self.finish)


async def ask(
    url: str,
    *,
    model: str,
    prompt: str,
    max_tokens: int = 24,
    stream: bool = True,
    session: aiohttp.ClientSession | None = None,
    **body: Any,
) -> Answer:
    """Ask one chat question at temperature 0 and return what came; failures are in the answer, nothing is raised."""
    asking = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": stream,
        **({"stream_options": {"include_usage": True}} if stream else {}),
        **body,
    }
    if session is not None:
        return await _ask(session, url, asking, prompt)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as own:
        return await _ask(own, url, asking, prompt)


def asked(url: str, **arguments: Any) -> Answer:
    """Ask as `ask` does, from a test that is not a coroutine."""
    return asyncio.run(ask(url, **arguments))


async def _ask(session: aiohttp.ClientSession, url: str, asking: dict[str, Any], prompt: str) -> Answer:
    seen: dict[str, Any] = {"prompt": prompt, "stream": asking["stream"]}
    try:
        async with session.post(f"{url}/v1/chat/completions", json=asking) as response:
            seen |= {"status": response.status} | {
                role: response.headers.get(f"x-tandem-{role}", "") for role in ("prefill", "decode")
            }
            if response.status != 200:
                seen["error"] = await response.text()
            elif asking["stream"]:
                await _read_stream(response, seen)
            else:
                _read_whole(await response.json(), seen)
    except (aiohttp.ClientError, TimeoutError, ConnectionError, ValueError) as error:
        seen["error"] = f"{type(error).__name__}: {error}"
    return Answer(**seen)


def _read_whole(content: dict[str, Any], seen: dict[str, Any]) -> None:
    choice = content["choices"][0]
    seen |= {"text": choice["message"]["content"], "finish": choice["finish_reason"] or "", "usage": content.get("usage")}


async def _read_stream(response: aiohttp.ClientResponse, seen: dict[str, Any]) -> None:
    ended = False
    seen["text"] = ""
    async for line in response.content:
        data = line.strip().removeprefix(b"data: ")
        if not line.startswith(b"data: "):
            continue
        ended = data == b"[DONE]"
        if not ended:
            _read_event(json.loads(data), seen)
    if not ended and "error" not in seen:
        seen["error"] = "the stream ended without [DONE]"


def _read_event(event: dict[str, Any], seen: dict[str, Any]) -> None:
    if "error" in event:
        seen["error"] = json.dumps(event["error"])
    seen["usage"] = event.get("usage") or seen.get("usage")
    for choice in event.get("choices", ()):
        seen["text"] += choice["delta"].get("content") or ""
        seen["finish"] = choice.get("finish_reason") or seen.get("finish", "")


class LoadGenerator:
    """Clients that ask without a pause, in a thread of their own, from `with` to its end; requests then end by themselves.

    Streamed and whole answers take turns. `answers` holds everything that came; `lost` what a client did not get whole;
    `refused` those of them for which the service was too busy: their clients wait a little before they ask again;
    `wrong` the whole answers whose text differs from the one that `expected` holds for the prompt.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        prompts: Sequence[str],
        clients: int = 4,
        max_tokens: int = 24,
        expected: Mapping[str, str] | None = None,
    ) -> None:
        """Ask `prompts` in turn; without `expected`, each is first asked alone, and that text is the right one."""
        self._url = url
        self._asking: dict[str, Any] = {"model": model, "max_tokens": max_tokens}
        self._turns = zip(itertools.cycle(prompts), itertools.cycle((True, False, True)), strict=False)
        self._clients = clients
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="load", daemon=True)
        self.expected = dict(expected) if expected is not None else {prompt: self._alone(prompt) for prompt in prompts}
        self.answers: list[Answer] = []

    @property
    def lost(self) -> list[Answer]:
        """Answers that a client did not get whole."""
        return [answer for answer in self.answers if not answer.whole]

    @property
    def refused(self) -> list[Answer]:
        """Answers that say that the service is too busy."""
        return [answer for answer in self.answers if answer.status == HTTPStatus.TOO_MANY_REQUESTS]

    @property
    def wrong(self) -> list[Answer]:
        """Whole answers with another text than the prompt's own."""
        return [answer for answer in self.answers if answer.whole and answer.text != self.expected[answer.prompt]]

    def _alone(self, prompt: str) -> str:
        answer = asked(self._url, prompt=prompt, stream=False, **self._asking)
        assert answer.whole, f"the service does not answer: {answer}"
        return answer.text

    async def _run(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as session:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._clients):
                    group.create_task(self._client(session))

    async def _client(self, session: aiohttp.ClientSession) -> None:
        while not self._stop.is_set():
            prompt, stream = next(self._turns)
            answer = await ask(self._url, prompt=prompt, stream=stream, session=session, **self._asking)
            self.answers.append(answer)
            if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
                await asyncio.sleep(_REFUSED_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
