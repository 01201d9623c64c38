"""The members of a JSON object, read and kept as they were written, so that a long prompt is never written anew.

Each leg's body is the client's own text with a few members of the router's in place of the client's. Numbers keep their
spelling, and of a repeated member the last counts, for the router and for the engines alike.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]  # the stubs leave it out
from typing import Any

from pydantic_core import to_json

__all__ = ["read", "write"]

_SPACE = re.compile(r"[ \t\n\r]*")


def read(text: str, decoder: json.JSONDecoder) -> tuple[Any, dict[str, str]]:
    """Read a JSON document; return its value, and where it is an object the text of each member, name included.

    Raises:
        ValueError: it is not JSON, or holds what the decoder refuses.
        RecursionError: it is nested too deeply.
    """
    try:
        return _walk(text, decoder.scan_once)  # type: ignore[attr-defined]  # the stubs leave it out
    except (IndexError, StopIteration):
        # No object, or no JSON: the decoder knows which, and explains it.
        value = decoder.decode(text)
    return value, {name: json.dumps({name: member})[1:-1] for name, member in value.items()} if isinstance(value, dict) else {}


def write(members: Mapping[str, str], own: Mapping[str, Any], *, without: Collection[str] = ()) -> bytes:
    """Write an object of these members less those named; each in `own` comes in place of one of its name, at the end."""
    parts = [text for name, text in members.items() if name not in own and name not in without]
    if own:
        parts.append(to_json(own)[1:-1].decode())
    return f"{{{', '.join(parts)}}}".encode("utf-8", "surrogatepass")


def _walk(text: str, scan: Callable[[str, int], tuple[Any, int]]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    members: dict[str, str] = {}
    begin = _after(text, _skip(text, 0), "{")
    more = text[begin] != "}"
    end = begin
    while more:
        name, at = scanstring(text, _quote(text, begin), True)  # noqa: FBT003 - C takes no names; it means strict
        values[name], end = scan(text, _after(text, _skip(text, at), ":"))
        members[name] = text[begin:end]
        end = _skip(text, end)
        more = text[end] == ","
        begin = _skip(text, end + 1)
    if text[end] != "}" or _skip(text, end + 1) != len(text):
        raise StopIteration(end)
    return values, members


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _quote(text: str, at: int) -> int:
    if text[at] != '"':
        raise StopIteration(at)
    return at + 1


def _after(text: str, at: int, mark: str) -> int:
    if text[at] != mark:
        raise StopIteration(at)
    return _skip(text, at + 1)
