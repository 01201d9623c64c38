"""What is needed to go on with a broken stream: the request that continues it, its text so far, and the shape of its events."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tandem_router.requests.call import CHAT, COMPLETIONS, Call
from tandem_router.requests.downstream import Downstream
from tandem_router.requests.members import read, write
from tandem_router.resuming.engines import Engines
from tandem_router.resuming.frame import Frame
from tandem_router.resuming.wording import Wording, held_back

if TYPE_CHECKING:
    from array import array

__all__ = ["NotContinuableError", "Resumption", "continued", "prepare"]

PRIME = 8
"""Prompt tokens before the answer when its text is asked for: the first token's leading space depends on them."""
LONGEST_CHARACTER = 16
"""Tokens that one character, or one cluster of them that a tokeniser keeps together, may be spread over."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
DEFAULT_COMPLETION = 16
"""`max_tokens` of a completion that names none, in every engine of this API."""
_LEFT_OUT = frozenset(
    {
        "messages", "prompt", "suffix", "echo", "stop", "n", "best_of", "logprobs", "top_logprobs", "response_format",
        "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens", "min_tokens", "request_id",
        "stream_options", "add_generation_prompt", "continue_final_message", "add_special_tokens", "chat_template",
        "chat_template_kwargs", "documents", "reasoning_effort", "include_reasoning", "truncate_prompt_tokens",
        "truncation_side", "media_io_kwargs", "mm_processor_kwargs", "return_prompt_text",
    }
)  # fmt: skip
"""What speaks of the prompt, of the shape of the answer, or of limits that are counted anew."""


class NotContinuableError(Exception):
    """This stream cannot be continued; `reason` says why, from a bounded set."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """One continuation.

    `partial`: the last ids are the beginning of a character, so that the engine's own first text cannot be trusted.
    `text` is that of the answer's whole characters so far, `ids` those of the answer when it was cut.
    """

    call: Call
    frame: Frame
    wording: Wording
    partial: bool
    text: str
    prompt: "array[int]"
    ids: "array[int]"

    async def text_with(self, engines: Engines, ids: Sequence[int]) -> str:
        """The answer's text with further ids.

        Raises:
            EngineFailure: no engine says.
            NotContinuableError: it has another beginning than the answer so far.
        """
        text = await _answer_text(engines, self.prompt, [*self.ids, *ids])
        if not text.startswith(self.text):
            raise NotContinuableError("text_unknown")
        return text


async def prepare(engines: Engines, call: Call, downstream: Downstream) -> Resumption:
    """Find out where a broken stream stands.

    Raises:
        NotContinuableError: it cannot go on elsewhere.
        EngineFailure: no engine could be asked.
    """
    if call.fragile is not None:
        raise NotContinuableError(call.fragile)
    prompt, ids = downstream.prompt_ids, downstream.ids
    if not prompt or not ids or not downstream.latest:
        raise NotContinuableError("no_ids")
    frame = Frame(downstream.latest, prompt_tokens=len(prompt))
    if frame.reasoning:
        raise NotContinuableError("reasoning")
    whole, text = await _whole_characters(engines, prompt, ids)
    stops, include = _stops(call), bool(call.body.get("include_stop_str_in_output"))
    _compare(frame, text, partial=whole < len(ids), hold=held_back(stops, include_stop=include))
    least = _number(call.body.get("min_tokens")) or 0
    wording = Wording(stops, include_stop=include, min_tokens=least, text=text, count=len(ids))
    left = await _left(engines, call, len(prompt), len(ids))
    if left < 1:
        raise NotContinuableError("no_room")
    again = continued(call, [*prompt, *ids], max_tokens=left, min_tokens=max(least - len(ids), 0))
    partial = whole < len(ids)
    return Resumption(call=again, frame=frame, wording=wording, partial=partial, text=text, prompt=prompt[:], ids=ids[:])


def continued(call: Call, ids: list[int], *, max_tokens: int, min_tokens: int) -> Call:
    """The request that goes on after `ids`, the client's prompt and the answer so far."""
    own = {"prompt": ids, "max_tokens": max_tokens, "min_tokens": min_tokens, "stream": True}
    text = write(call.members, own, without=_LEFT_OUT).decode("utf-8", "surrogatepass")
    body, members = read(text, json.JSONDecoder())
    return replace(
        call,
        path=COMPLETIONS,
        body=body,
        members=members,
        wants_usage=True,
        wants_ids=True,
        keeps_ids=True,
        prompt_ids=len(ids),
        alone=None,
    )


async def _whole_characters(engines: Engines, prompt: Sequence[int], ids: Sequence[int]) -> tuple[int, str]:
    """How many ids end in a whole character, as the engine saw it, and their text."""
    for count in range(len(ids), max(len(ids) - LONGEST_CHARACTER, -1), -1):
        text = await _answer_text(engines, prompt, ids[:count]) if count else ""
        if not text.endswith(REPLACEMENT):
            return count, text
    raise NotContinuableError("text_unknown")


async def _answer_text(engines: Engines, prompt: Sequence[int], ids: Sequence[int]) -> str:
    prime = list(prompt[-PRIME:])
    before = await engines.text(prime)
    whole = await engines.text([*prime, *ids])
    if not whole.startswith(before):
        raise NotContinuableError("text_unknown")
    return whole[len(before) :]


def _compare(frame: Frame, text: str, *, partial: bool, hold: int) -> None:
    """What the client got last must be the end of what it should have got, or the text is not what these ids say."""
    sent = text[: max(0, len(text) - hold)]
    said = frame.text
    if not sent.endswith(said) or (not said and sent and not partial and not hold):
        raise NotContinuableError("text_unknown")


async def _left(engines: Engines, call: Call, prompt: int, produced: int) -> int:
    asked = _number(call.body.get("max_tokens"))
    if call.path == CHAT:
        newer = _number(call.body.get("max_completion_tokens"))
        asked = asked if newer is None else newer
    elif asked is None:
        asked = DEFAULT_COMPLETION
    if asked is not None:
        return asked - produced
    return await engines.context() - prompt - produced


def _stops(call: Call) -> tuple[str, ...]:
    stop = call.body.get("stop")
    return (stop,) if isinstance(stop, str) and stop else tuple(stop or ())


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
