"""Two set-ups never write at the same time, and the one that waits says so."""

import os
import threading
from pathlib import Path

from tandem_local.setup.locking import exclusive


def test_a_second_set_up_says_whom_it_waits_for_and_then_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "setup.lock"
    said: list[str] = []
    waiting, entered = threading.Event(), threading.Event()

    def say(text: str) -> None:
        said.append(text)
        waiting.set()

    def second() -> None:
        with exclusive(path, say=say):
            entered.set()

    with exclusive(path, say=said.append):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(30)
        assert not entered.is_set()
    thread.join(30)

    assert entered.is_set()
    assert said == [f"another set-up (process {os.getpid()}) is at work; waiting for it to end"]


def test_a_free_lock_is_taken_without_a_word(tmp_path: Path) -> None:
    said: list[str] = []

    with exclusive(tmp_path / "lock", say=said.append):
        pass

    assert said == []
