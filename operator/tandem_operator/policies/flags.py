"""Reads a list of engine arguments as the engine's parser does: which flags does it set?

Spellings that mean the same flag (`--max_num_seqs`, `--max-num-seqs=4`, `--no-enable-prefix-caching`,
`--kv-transfer-config.kv_role`) become one name, so that none slips past a check.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tandem_operator.policies.ownership import KV_SHAPING_FLAGS, OWNED_FLAGS

__all__ = ["Flag", "flags", "kv_shaping", "owner_of"]

_SHORTEST_ABBREVIATION = 4
"""Characters with the dashes; anything shorter abbreviates nearly every flag."""
_NO_ABBREVIATION = frozenset({"--tokenizer"})
"""Flags of the engine whose whole name begins an owned one."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag in a list of arguments."""

    index: int
    """Of the argument that names it."""
    name: str
    """Canonical: dashes, no value, no dotted part, no negation."""
    words: tuple[str, ...]
    """The argument and the values that follow it."""
    dotted: str
    """Part of a JSON value that a dotted flag sets; empty otherwise."""


def flags(args: Sequence[str]) -> Iterator[Flag]:
    """Yield every flag of a list of arguments, in order."""
    starts = [index for index, word in enumerate(args) if _is_flag(word)]
    for start, end in zip(starts, [*starts[1:], len(args)], strict=False):
        name, _, dotted = args[start].split("=", 1)[0].partition(".")
        yield Flag(start, _canonical(name), tuple(args[start:end]), dotted.rstrip("+"))


def owner_of(name: str) -> str | None:
    """Return why a canonical flag may not be set by the user, None when it may.

    An abbreviation counts as the flag that it begins, because argparse accepts it.
    """
    if name in OWNED_FLAGS:
        return OWNED_FLAGS[name]
    if not name.startswith("--") or len(name) < _SHORTEST_ABBREVIATION or name in _NO_ABBREVIATION:
        return None
    return next((f"abbreviates `{owned}`: {why}" for owned, why in OWNED_FLAGS.items() if owned.startswith(name)), None)


def kv_shaping(args: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the arguments that shape the KV cache, sorted, so that their order means nothing."""
    return sorted(flag.words for flag in flags(args) if flag.name in KV_SHAPING_FLAGS)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."


def _canonical(name: str) -> str:
    if not name.startswith("--"):
        return name
    name = name.replace("_", "-")
    return "--" + name.removeprefix("--no-") if name.startswith("--no-") else name
