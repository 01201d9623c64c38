"""The corpus of valid and invalid objects: one YAML file each, whose comments say why and what a refusal must name.

`valid` passes the API server and the operator, `invalid` is refused by the API server, `unaccepted` passes the API server and
is refused by the operator.
"""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Case", "cases"]

_FOLDER = Path(__file__).parents[1] / "data" / "corpus"
_EXPECT = "# expect: "


@dataclass(frozen=True, slots=True)
class Case:
    """One object of the corpus."""

    file: Path
    expected: str
    """What a refusal must say, mostly the path; empty for valid objects."""

    @property
    def text(self) -> str:
        """The manifest."""
        return self.file.read_text(encoding="utf-8")


def cases(kind: str) -> list[Case]:
    """Return the cases of one folder."""
    return [Case(file, _expected(file)) for file in sorted((_FOLDER / kind).glob("*.yaml"))]


def _expected(file: Path) -> str:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix(_EXPECT) for line in lines if line.startswith(_EXPECT)), "")
