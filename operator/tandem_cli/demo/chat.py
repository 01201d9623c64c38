"""A streaming chat client that measures what a client sees: time to first token and time per output token."""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tandem_cli.errors import CommandError

__all__ = ["Answer", "ask"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One streamed answer. Times are seconds."""

    text: str
    ttft: float
    tpot: float | None
    prompt_tokens: int
    output_tokens: int
    prefill: str
    decode: str

    @property
    def figures(self) -> str:
        """What was measured, in one line."""
        tpot = "one token" if self.tpot is None else f"TPOT {self.tpot * 1000:.0f} ms"
        return (
            f"TTFT {self.ttft * 1000:.0f} ms, {tpot}, {self.prompt_tokens} prompt and {self.output_tokens} output tokens, "
            f"{self.prefill} -> {self.decode}"
        )


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        data = line.strip().removeprefix(b"data: ")
        if not line.startswith(b"data: ") or data == b"[DONE]":
            continue
        event = json.loads(data)
        if "error" in event:
            raise CommandError(f"the stream ended with an error: {event['error']}")
        yield event


def _read(response: http.client.HTTPResponse, started: float, show: Callable[[str], None]) -> Answer:
    pieces: list[str] = []
    first = last = started
    usage: dict[str, int] = {}
    for event in _events(response):
        usage = event.get("usage") or usage
        for choice in event.get("choices", []):
            piece = choice.get("delta", {}).get("content")
            if piece:
                last = time.monotonic()
                first = last if not pieces else first
                pieces.append(piece)
                show(piece)
    output = usage.get("completion_tokens", len(pieces))
    return Answer(
        text="".join(pieces),
        ttft=first - started,
        tpot=(last - first) / (output - 1) if output > 1 else None,
        prompt_tokens=usage.get("prompt_tokens", 0),
        output_tokens=output,
        prefill=response.headers.get("x-tandem-prefill", ""),
        decode=response.headers.get("x-tandem-decode", ""),
    )


def ask(
    url: str, model: str, question: str, *, max_tokens: int, show: Callable[[str], None], timeout: float = 180, **more: Any
) -> Answer:
    """Ask one question with streaming at temperature 0 and return the measured answer; `more` are members of the request.

    Raises:
        CommandError: the service answered with an error, or ended the stream with one.
    """
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=timeout)
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **more,
    }
    started = time.monotonic()
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            raise CommandError(f"HTTP {response.status}: {response.read(2048).decode(errors='replace')}")
        return _read(response, started, show)
    except (OSError, http.client.HTTPException) as error:
        raise CommandError(f"no answer from {url}: {error}") from error
    finally:
        connection.close()
