"""The measuring client of `tandem demo`: what it sends, what it measures, and how it says that an answer broke off."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tandem_cli.demo.chat import ask
from tandem_cli.errors import CommandError

PIECES = [
    *({"choices": [{"delta": {"content": text}}]} for text in ("one ", "two ", "three")),
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
]


@contextmanager
def _server(*, whole: bool) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that streams the pieces, and closes within a chunk where the answer is not to be whole."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for text in (*map(json.dumps, PIECES), "[DONE]"):
                data = f"data: {text}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n" if whole else b"ff\r\ndata:")
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


def test_further_members_of_the_request_are_sent_and_the_answer_is_measured():
    shown: list[str] = []
    with _server(whole=True) as (url, asked):
        answer = ask(url, "m", "count", max_tokens=3, show=shown.append, min_tokens=3, cache_salt="s")
    assert (asked[0]["max_tokens"], asked[0]["min_tokens"], asked[0]["cache_salt"]) == (3, 3, "s")
    assert "".join(shown) == answer.text == "one two three"
    assert (answer.prompt_tokens, answer.output_tokens) == (7, 3)
    assert answer.ttft > 0
    assert answer.tpot is not None


def test_an_answer_that_breaks_off_is_said_as_the_commands_error():
    with _server(whole=False) as (url, _), pytest.raises(CommandError, match=f"no answer from {url}"):
        ask(url, "m", "count", max_tokens=3, show=lambda _: None)
