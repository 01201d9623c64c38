"""The one error that set-up shows to a user."""

from pathlib import Path

from tandem_local.errors import log_tail

__all__ = ["SetupError", "StepError"]


class SetupError(Exception):
    """Set-up cannot go on; the message says what happened, where, and what to do."""


class StepError(SetupError):
    """A program that set-up started failed; the message ends with the last lines of its log."""

    def __init__(self, what: str, *, status: int, log: Path) -> None:
        super().__init__(f"{what} ended with status {status}; the last lines of {log}:\n{log_tail(log, lines=20)}")
