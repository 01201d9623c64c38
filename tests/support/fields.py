"""The table in docs/reference/fields.md: what each field of the API reaches."""

import re
from pathlib import Path

__all__ = ["REACHES", "reached"]

REACHES = {"-", "flag", "pod", "object", "decision"}
_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "fields.md"
_ROW = re.compile(r"^\| `(?P<field>spec[^`]*)` \| (?P<reaches>\S+) \| (?P<where>.+) \|$")


def reached(kind: str) -> list[tuple[str, str, str]]:
    """Return (field, what it reaches, where) of one kind, once for each role that `<role>` stands for."""
    section = _PAGE.read_text(encoding="utf-8").split(f"\n## {kind}\n")[1].split("\n## ")[0]
    rows = [match for line in section.splitlines() if (match := _ROW.match(line))]
    return [(field, row["reaches"], row["where"]) for row in rows for field in _fields(row["field"])]


def _fields(written: str) -> list[str]:
    return [written.replace("<role>", role) for role in ("prefill", "decode")] if "<role>" in written else [written]
