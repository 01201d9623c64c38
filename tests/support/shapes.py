"""Shape of an engine's answer: keys in order and types of values, without texts, tokens, ids and times.

Of errors kind, field and code are kept too, and of answers why each choice ended.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any

__all__ = ["body_shape", "stream_shapes"]


def stream_shapes(body: str) -> list[Any]:
    """Shape of each event; a run of equal ones counts once, because the number of tokens is not compared."""
    return [shape for shape, _ in itertools.groupby(_event_shapes(body))]


def _event_shapes(body: str) -> Iterator[Any]:
    """Shapes in order; anything that is not `data: ...` and an empty line is itself."""
    assert body.endswith("\n\n")
    for event in body.removesuffix("\n\n").split("\n\n"):
        if event == "data: [DONE]" or not event.startswith("data: "):
            yield event
            continue
        text = event.removeprefix("data: ")
        yield (json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) == text, body_shape(text))


def body_shape(text: str) -> Any:
    """Shape of a JSON text; an error's kind, field and code are kept."""
    body = json.loads(text)
    known = body.get("error", {})
    return _shape(body), [known.get(key) for key in ("type", "param", "code")], _finish_reasons(body)


def _finish_reasons(body: dict[str, Any]) -> list[str | None]:
    return [choice["finish_reason"] for choice in body.get("choices", [])]


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, _shape(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [_shape(item) for item in value[:1]]
    return type(value).__name__
