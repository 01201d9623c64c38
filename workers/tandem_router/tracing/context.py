"""W3C Trace Context: `traceparent` and `tracestate` as a client sent them and as a leg gets them. Pure text.

What comes out is made of checked parts only, so no byte of a client's that has no place in these headers reaches an engine.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["RANDOM", "SAMPLED", "Context", "read", "write"]

SAMPLED = 0x01
RANDOM = 0x02
"""The trace's id is random, so that every part of a system can sample by it alike."""
MEMBERS = 32
STATE_BYTES = 512
"""Longest list of members that is passed on; no less may be dropped."""
_PARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER = re.compile(rb"[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where in which trace a caller is: ids in lower-case hex, the flags that may be passed on, the members of vendors."""

    trace_id: str
    span_id: str
    flags: int
    state: str = ""

    @property
    def sampled(self) -> bool:
        """Whether the caller records this trace."""
        return bool(self.flags & SAMPLED)


def read(headers: Mapping[bytes, bytes]) -> Context | None:
    """Read a request's headers, names in lower case; None if there is no context, or one that breaks the rules.

    Members that break the rules are left out all together, and the context stays.
    """
    sent = headers.get(b"traceparent")
    found = None if sent is None else _PARENT.fullmatch(sent.strip())
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == b"ff" or (version == b"00" and more is not None) or not trace_id.strip(b"0") or not span_id.strip(b"0"):
        return None
    return Context(
        trace_id=trace_id.decode(),
        span_id=span_id.decode(),
        flags=int(flags, 16) & (SAMPLED | RANDOM),
        state=_members(headers.get(b"tracestate", b"")),
    )


def write(context: Context, *, span_id: str) -> bytes:
    """The header lines for a call that `span_id` stands for, each with its end."""
    parent = f"traceparent: 00-{context.trace_id}-{span_id}-{context.flags:02x}\r\n"
    return (f"{parent}tracestate: {context.state}\r\n" if context.state else parent).encode()


def _members(sent: bytes) -> str:
    found = [member for each in sent.split(b",") if (member := each.strip(b" \t"))]
    names = {member.split(b"=", 1)[0] for member in found}
    if len(names) < len(found) or len(found) > MEMBERS or not all(map(_MEMBER.fullmatch, found)):
        return ""
    state = b",".join(found)
    return state.decode() if len(state) <= STATE_BYTES else ""
