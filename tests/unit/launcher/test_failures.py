"""Failures are one line, in the termination message and on stderr, with an exit code of the documented family."""

from pathlib import Path

import pytest

from tandem_launcher.failures import Failure, Reason, report


def test_a_failure_is_one_line_that_begins_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "termination-log"
    log.write_text("left by an earlier container, and longer than what follows; it must be gone afterwards entirely")

    code = report(Failure(Reason.PORT_TAKEN, "port 8000\nis taken"), {"TERMINATION_LOG": str(log)})

    assert log.read_text() == "PortTaken: port 8000 is taken\n"
    assert capsys.readouterr().err == "PortTaken: port 8000 is taken\n"
    assert code == 75


def test_a_termination_message_that_cannot_be_written_is_said_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(Failure(Reason.BAD_ROLE, "PHASE"), {"TERMINATION_LOG": "/nonexistent/log"}) == 78
    assert "could not be written to /nonexistent/log" in capsys.readouterr().err


@pytest.mark.parametrize("reason", Reason)
def test_every_exit_code_is_in_the_documented_family(reason: Reason) -> None:
    assert 64 <= reason.exit_code <= 78


def test_a_long_line_stays_within_what_kubernetes_keeps() -> None:
    assert len(Failure(Reason.BAD_ARGUMENT, "x" * 10_000).line.encode()) < 4096
