"""The preStop hook never fails, never hangs, and always says how the drain ended."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from support.launcher import FakeImage, Result, free_port
from tandem_launcher.cli import seconds
from tandem_launcher.drain import log


class Sidecar(ThreadingHTTPServer):
    """Answers every POST alike, and remembers the paths."""

    daemon_threads = True

    def __init__(self, *, status: int = 200, body: bytes = b"", hang: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status, self.body, self.hang = status, body, hang
        self.paths: list[str] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    """One request to the fake sidecar."""

    server: Sidecar

    def do_POST(self) -> None:
        """Answer as the server was told."""
        self.server.paths.append(self.path)
        if self.server.hang:
            self.server.over.wait(60)
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    @override
    def log_message(self, *_arguments: object) -> None:
        """Keep the tests' output clean."""


@contextmanager
def serving(sidecar: Sidecar) -> Iterator[Sidecar]:
    thread = threading.Thread(target=sidecar.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield sidecar
    finally:
        sidecar.over.set()
        sidecar.shutdown()
        sidecar.server_close()
        thread.join()


def drain(tmp_path: Path, url: str, timeout: str = "20") -> Result:
    # Outside a container /proc/1/fd/1 belongs to the machine's init, so the line is caught before it goes there.
    image = FakeImage(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(image.launcher)!r}); import tandem_launcher.cli as c;"
        f" c.log = print; sys.exit(c.main(['drain', '--sidecar', {url!r}, '--timeout', {timeout!r}]))"
    )
    environment = {"http_proxy": "http://127.0.0.1:9", "PATH": ""}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return Result(code=done.returncode, stdout=done.stdout, stderr=done.stderr, termination="")


@pytest.mark.parametrize(
    ("drained", "word"),
    [(True, "drained: nothing is held"), (False, "not drained: nothing is held")],
)
def test_the_sidecars_answer_is_said(tmp_path: Path, drained: bool, word: str) -> None:  # noqa: FBT001 -- a table's column
    body = json.dumps({"drained": drained, "reason": "nothing is held"}).encode()
    with serving(Sidecar(body=body)) as sidecar:
        result = drain(tmp_path, sidecar.url)
    assert result.code == 0, result.stderr
    assert result.stdout.rstrip().endswith(word)
    assert sidecar.paths == ["/drain?timeout=18.000"], "the sidecar answers before the hook gives up"


@pytest.mark.parametrize(
    ("sidecar", "said"),
    [
        ({"status": 500, "body": b"{}"}, "cannot be asked (status 500); going on"),
        ({"body": b"<html>"}, "cannot be asked (Expecting value"),
        ({"body": b"[]"}, "gave an answer that is not understood ([]); going on"),
    ],
)
def test_an_answer_that_is_none_is_said_and_the_pod_goes_on(tmp_path: Path, sidecar: dict[str, object], said: str) -> None:
    with serving(Sidecar(**sidecar)) as server:  # type: ignore[arg-type]
        result = drain(tmp_path, server.url)
    assert (result.code, result.stderr) == (0, "")
    assert said in result.stdout


def test_a_dead_sidecar_is_said_and_the_pod_goes_on(tmp_path: Path) -> None:
    result = drain(tmp_path, f"http://127.0.0.1:{free_port()}")
    assert (result.code, result.stderr) == (0, "")
    assert "Connection refused" in result.stdout
    assert "going on without waiting" in result.stdout


def test_a_sidecar_that_never_answers_cannot_hold_the_pod(tmp_path: Path) -> None:
    with serving(Sidecar(hang=True)) as sidecar:
        result = drain(tmp_path, sidecar.url, "500ms")
    assert (result.code, result.stderr) == (0, "")
    assert "did not answer within 0.5 s; going on" in result.stdout


def test_the_line_goes_to_the_pods_log_or_else_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text("the engine's lines\n")
    log("Drain after 1.0 s: drained", tmp_path / "log")
    assert (tmp_path / "log").read_text() == "the engine's lines\nDrain after 1.0 s: drained\n"
    log("Drain", tmp_path / "absent" / "log")
    assert capsys.readouterr().out == "Drain\n"


@pytest.mark.parametrize(("text", "expected"), [("60", 60), ("2.5", 2.5), ("60s", 60), ("1m30s", 90), ("500ms", 0.5)])
def test_a_timeout_is_seconds_or_a_duration(text: str, expected: float) -> None:
    assert seconds(text) == expected
