"""The usual read of a stream: an HTTP chunk that is one event with the text of one token, told apart in one search.

A member such as `,"token_ids":[` cannot occur inside a JSON string, because a quote inside a string is escaped; so the
search finds members only, never the text of an answer. What is not of this form is no error: it takes the long way,
through the parser of HTTP and the splitter of events, which can tell everything apart.
"""

import re

__all__ = ["find"]

_CHUNK = re.compile(
    rb"([0-9a-f]{1,7})\r\n"  # its size
    rb'(data: [^\n]*"finish_reason":null[^\n]*),"token_ids":\[(\d{1,9})\]([^\n]*\n\n)'
    rb"\r\n"
).match


def find(data: bytes, at: int) -> tuple[int, bytes, int] | None:
    """Look for such a chunk at a place in a read, which has to be one between two chunks.

    Return the token's id, the event without it, and where the chunk ends; None if there is none.
    """
    found = _CHUNK(data, at)
    if found is None:
        return None
    size, before, token, after = found.groups()
    end = found.end()
    if int(size, 16) != end - at - len(size) - 4:
        return None
    return int(token), before + after, end
