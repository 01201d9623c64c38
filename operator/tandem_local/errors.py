"""Errors that reach a user of the local cluster: each names the failing component and what to do about it."""

from pathlib import Path

__all__ = ["ComponentError", "LocalClusterError", "log_tail"]


class LocalClusterError(Exception):
    """The local cluster cannot do what was asked; the message says what happened, where, and what to do."""


class ComponentError(LocalClusterError):
    """A component ended or did not become ready; the message ends with the last lines of its log."""

    def __init__(self, component: str, reason: str, log: Path) -> None:
        self.component = component
        super().__init__(f"{component} {reason}; the last lines of its log ({log}):\n{log_tail(log)}")


def log_tail(path: Path, *, lines: int = 12) -> str:
    """Return the last lines of a log file, indented for a message; a missing or empty file is said in words."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 16384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return "  (no log was written)"
    kept = [f"  {line[:400]}" for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(kept) or "  (the log is empty)"
