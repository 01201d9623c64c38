"""One finding about a spec, and where it is."""

from dataclasses import dataclass

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or a warning."""

    path: str
    """Where, such as `spec.prefill.engine.args[2]`."""
    message: str
    """What is wrong, in one sentence without the path."""
    allowed: str = ""
    """What to write instead."""

    @property
    def line(self) -> str:
        """Path, message and what is allowed, in one line."""
        return f"{self.path}: {self.message}" + (f" ({self.allowed})" if self.allowed else "")
