"""The end of an answer whose worker did not stay for it: usage over the whole answer, and the closing event."""

from collections.abc import Mapping
from typing import Any

from tandem_router.requests.downstream import Downstream
from tandem_router.requests.sse import DONE
from tandem_router.resuming.frame import Frame

__all__ = ["settle"]


def settle(downstream: Downstream, frame: Frame, usage: Mapping[str, Any] | None, *, wants_usage: bool) -> None:
    """Write what follows the last token; `usage` is the continuation's own event, if there was one."""
    count = len(downstream.ids)
    downstream.prompt_tokens, downstream.output_tokens = len(downstream.prompt_ids), count
    if wants_usage:
        downstream.write(frame.usage(count, usage))
    downstream.write(DONE)
