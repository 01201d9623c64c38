"""The corpus of valid and invalid objects, each with its verdict.

`valid` passes the API server and the operator, `invalid` is refused by the API server, `unaccepted` passes the API server and
is refused by the operator. Those written by hand are a YAML file each, whose comments say why and what a refusal must name;
those that `mutations` makes have a line in one file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import schemas
from tandem_cli.checks import verdict
from tandem_cli.schema import crd

__all__ = ["KINDS", "Case", "Judged", "cases", "generated", "offline"]

_RULES = {
    rule["message"]
    for _, node in schemas.every_node(schemas.openapi(crd.inference_service()))
    for rule in node.get("x-kubernetes-validations", ())
}

KINDS = ("valid", "unaccepted", "invalid")
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


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one generated object."""

    kind: str
    said: str
    """What a refusal must say: the path of a field, or the message of a rule; empty for valid objects."""

    def line(self, name: str) -> str:
        """Return the verdict as it stands in the file of verdicts."""
        return f"{name} | {self.kind} | {self.said}".rstrip(" |")


def offline(tree: dict[str, Any]) -> Judged:
    """Return the verdict that `tandem validate` gives, without an installation that allows anything."""
    found = verdict.judge(tree, verdict.Installation())
    if not found.errors:
        return Judged("valid", "")
    first = found.errors[0]
    if found.spec is not None:
        return Judged("unaccepted", first.path)
    return Judged("invalid", first.message if first.message in _RULES else first.path)


def generated(file: Path) -> dict[str, Judged]:
    """Return the verdicts that a file holds, by the name of the object."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        name, kind, said = (*line.split(" | ", 2), "")[:3]
        found[name] = Judged(kind, said)
    return found


def cases(kind: str) -> list[Case]:
    """Return the cases of one folder."""
    return [Case(file, _expected(file)) for file in sorted((_FOLDER / kind).glob("*.yaml"))]


def _expected(file: Path) -> str:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix(_EXPECT) for line in lines if line.startswith(_EXPECT)), "")
