"""Log lines, which must never hold a request back."""

import logging
import threading

from tandem_router.reporting.logs import Background


def _record(text: str) -> logging.LogRecord:
    return logging.LogRecord("t", logging.INFO, __file__, 1, text, None, None)


def test_a_reader_that_takes_nothing_holds_nobody_back_and_what_was_lost_is_said():
    blocked, taken = threading.Event(), []

    def write(text: str) -> None:
        blocked.wait(60)
        taken.append(text)

    logs = Background(write, kept=3)
    for number in range(100):
        logs.emit(_record(f"line {number}"))
    blocked.set()
    logs.finish(60)
    lines = "".join(taken).splitlines()
    assert lines[0] == "line 0"
    kept = [line for line in lines if line.startswith("line ")]
    assert kept == [f"line {number}" for number in range(len(kept))]
    assert f'"lines":{100 - len(kept)}' in lines[-1]


def test_what_was_logged_is_written_before_the_end():
    taken: list[str] = []
    logs = Background(taken.append)
    for number in range(1000):
        logs.emit(_record(str(number)))
    logs.finish(60)
    assert "".join(taken).split() == [str(number) for number in range(1000)]


def test_a_standard_error_that_is_gone_does_not_end_the_writing():
    taken: list[str] = []

    def write(text: str) -> None:
        if not taken:
            taken.append("")
            raise OSError("gone")
        taken.append(text)

    logs = Background(write)
    logs.emit(_record("lost"))
    while not taken:
        pass
    logs.emit(_record("kept"))
    logs.finish(60)
    assert "kept\n" in "".join(taken)
    assert '"lines":1' in "".join(taken)
