"""One finding about a manifest."""

from dataclasses import dataclass

__all__ = ["Problem", "join"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where."""

    path: str
    """Such as `spec.decode.resources.gpus`; empty for the whole object."""
    message: str
    """What is wrong and what is allowed."""

    @property
    def line(self) -> str:
        """Both in one line."""
        return f"{self.path}: {self.message}" if self.path else self.message


def join(path: str, key: str | int) -> str:
    """Return the path of a property or, for a number, of a list's item."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key
