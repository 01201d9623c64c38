"""What an engine's whole answer means: served, the client's own fault, or a failure of the engine. No I/O."""

import json
import math
from http import HTTPStatus
from typing import Any

from tandem_router.errors import ClientFault, EngineFailure, Kind
from tandem_router.http.fetch import Answer

__all__ = ["FAILED_REASONS", "cached_tokens", "check", "compute_seconds", "read_json", "usage_count"]

CLIENT_FAULTS = frozenset({400, 413, 422})
"""Refusals that speak of the request; any other status speaks of the engine or of how the service is set up."""
FAILED_REASONS = ("abort", "error")
"""Finish reasons of a generation that did not come to its end."""


def check(answer: Answer) -> None:
    """Tell an engine's failure from a client's fault.

    Raises:
        EngineFailure: the engine could not serve.
        ClientFault: the engine would not serve this request, nor would another.
    """
    if answer.status == HTTPStatus.OK:
        return
    if answer.status in CLIENT_FAULTS:
        raise ClientFault(answer.status, answer.content_type, answer.body)
    raise EngineFailure(Kind.STATUS, f"the engine answered {answer.status}")


def read_json(answer: Answer) -> dict[str, Any]:
    """Read a 200's JSON object, and find what makes it a failure all the same.

    Raises:
        EngineFailure: not an object, an error object, or a generation that the engine aborted.
    """
    try:
        content = json.loads(answer.body)
    except ValueError as error:
        raise EngineFailure(Kind.BAD_ANSWER, "the engine's answer is not JSON") from error
    if not isinstance(content, dict):
        raise EngineFailure(Kind.BAD_ANSWER, "the engine's answer is not a JSON object")
    if content.get("error"):
        raise EngineFailure(Kind.ERROR_EVENT, "the engine answered 200 with an error")
    for choice in content.get("choices") or ():
        if isinstance(choice, dict) and choice.get("finish_reason") in FAILED_REASONS:
            raise EngineFailure(Kind.ABORTED, "the engine aborted the generation")
    return content


def usage_count(content: dict[str, Any], name: str) -> int:
    """A count from the answer's usage; 0 if the engine reported none."""
    usage = content.get("usage")
    tokens = usage.get(name) if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) else 0


def cached_tokens(content: dict[str, Any]) -> int | None:
    """Prompt tokens that the engine found in its cache; None if it does not say."""
    usage = content.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    tokens = details.get("cached_tokens") if isinstance(details, dict) else None
    return tokens if isinstance(tokens, int) else None


def compute_seconds(content: dict[str, Any]) -> float | None:
    """Seconds from the moment in which the engine began with the prompt to its first token; None if it does not say."""
    metrics = content.get("metrics")
    took = metrics.get("time_to_first_token_ms") if isinstance(metrics, dict) else None
    if not isinstance(took, int | float) or isinstance(took, bool):
        return None
    return took / 1000 if math.isfinite(took) and took >= 0 else None
