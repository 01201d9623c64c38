"""Bodies of answers in vLLM's shape: the same keys in the same order, whole and as server-sent events."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tandem_simulator.engine.config import VERSION, EngineConfig
from tandem_simulator.engine.errors import APIError
from tandem_simulator.engine.jobs import Job
from tandem_simulator.engine.own_times import own_times
from tandem_simulator.engine.sequences import Delta, Sequence

__all__ = ["DONE", "Stream", "Whole", "error_event"]

DONE = b"data: [DONE]\n\n"


def error_event(error: APIError) -> bytes:
    """An error within a stream that has already begun with status 200."""
    return b"data: " + json.dumps(error.body()).encode() + b"\n\n"


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _fingerprint(config: EngineConfig) -> str:
    return f"vllm-{VERSION}-{config.compatibility[:8]}"


def _usage(job: Job, generated: int) -> dict[str, Any]:
    # The choices of one prompt share it.
    prompt = sum(len(sequence.prompt) for sequence in job.sequences) // (job.request.n or 1)
    return {"prompt_tokens": prompt, "total_tokens": prompt + generated, "completion_tokens": generated}


def _prompt_details(job: Job, cached: int, config: EngineConfig) -> dict[str, Any]:
    """Cached tokens, and in a chat also those that this request put into the prefix cache."""
    details: dict[str, Any] = {"cached_tokens": cached}
    if job.chat:
        first = job.sequences[0]
        kept = len(first.prompt) // config.block_size * config.block_size if config.prefix_caching else 0
        details["created_cache_tokens"] = max(0, kept - first.cached_local - first.cached_remote)
    return details


@dataclass(slots=True)
class _Choice:
    text: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    last: Delta | None = None


class Whole:
    """An answer in one piece.

    Args:
        job: The request.
        config: Served name and what usage tells.
    """

    def __init__(self, job: Job, config: EngineConfig) -> None:
        self._job = job
        self._config = config
        self._choices = [_Choice() for _ in job.sequences]

    def add(self, delta: Delta) -> None:
        """Take one delta."""
        choice = self._choices[delta.index]
        choice.text.append(delta.text)
        choice.ids.extend(delta.token_ids)
        choice.last = delta

    def body(self) -> dict[str, Any]:
        """The JSON body; every delta must have been added."""
        job = self._job
        first = self._choices[0].last
        params = first.kv_transfer_params if first else None
        generated = sum(len(choice.ids) for choice in self._choices)
        details = None
        if first and self._config.prompt_details:
            details = {"cached_tokens": 0, "created_cache_tokens": None, "multimodal_tokens": None}
            details |= _prompt_details(job, first.cached_tokens, self._config)
        usage = {**_usage(job, generated), "prompt_tokens_details": details, "completion_tokens_details": None}
        chat = job.chat
        body: dict[str, Any] = {
            "id": job.answer_id,
            "object": "chat.completion" if chat else "text_completion",
            "created": job.created,
            "model": self._config.served_names[0],
            "choices": [self._choice(at, sequence) for at, sequence in enumerate(job.sequences)],
            "service_tier": None,
            "system_fingerprint": _fingerprint(self._config),
            "usage": usage,
        }
        if chat:
            body |= {"prompt_logprobs": None, "prompt_token_ids": self._prompt_ids(job.sequences[0]), "prompt_text": None}
        metrics = own_times(job) if self._config.request_metrics else None
        return body | {"kv_transfer_params": params, "ec_transfer_params": None, "metrics": metrics}

    def _choice(self, index: int, sequence: Sequence) -> dict[str, Any]:
        choice = self._choices[index]
        assert choice.last is not None  # noqa: S101 - the caller adds every delta first
        ids = choice.ids if self._job.request.return_token_ids else None
        end = {"logprobs": None, "finish_reason": choice.last.finish, "stop_reason": choice.last.stop_reason, "token_ids": ids}
        text = "".join(choice.text)
        if self._job.chat:
            return {"index": index, "message": _message(text), **end, "routed_experts": None}
        prompt = {"prompt_logprobs": None, "prompt_token_ids": self._prompt_ids(sequence), "routed_experts": None}
        return {"index": index, "text": text, **end, **prompt}

    def _prompt_ids(self, sequence: Sequence) -> list[int] | None:
        return sequence.prompt if self._job.request.return_token_ids else None


def _message(text: str) -> dict[str, Any]:
    rest = {"refusal": None, "annotations": None, "audio": None, "function_call": None, "reasoning": None}
    return {"role": "assistant", "content": text, **rest}


class Stream:
    """An answer as events.

    Args:
        job: The request.
        config: Served name and what usage tells.
    """

    def __init__(self, job: Job, config: EngineConfig) -> None:
        self._job = job
        self._config = config
        options = job.request.stream_options
        self._usage = bool(options and options.include_usage)
        self._continuous = self._usage and bool(options and options.continuous_usage_stats)
        self._generated = [0] * len(job.sequences)
        self._begun = False
        self._cached = 0

    def begin(self) -> bytes:
        """What precedes the first delta, be it an error: in a chat each choice gets its role. Empty when called again."""
        begun, self._begun = self._begun, True
        if begun or not self._job.chat:
            return b""
        return b"".join(self._role(sequence) for sequence in self._job.sequences)

    def event(self, delta: Delta) -> bytes:
        """The event for one delta."""
        self._cached = delta.cached_tokens
        first = self._generated[delta.index] == 0
        self._generated[delta.index] += len(delta.token_ids)
        return self._chunk(self._chat_choice(delta) if self._job.chat else self._completion_choice(delta, first=first), delta)

    def end(self) -> Iterable[bytes]:
        """What follows the last delta."""
        if self._usage:
            usage = _usage(self._job, sum(self._generated))
            if self._config.prompt_details:
                usage["prompt_tokens_details"] = _prompt_details(self._job, self._cached, self._config)
            body = {**self._head(), "choices": [], "usage": usage, "system_fingerprint": _fingerprint(self._config)}
            if self._config.request_metrics and (metrics := own_times(self._job)) is not None:
                body["metrics"] = {name: value for name, value in metrics.items() if value is not None}
            yield _event(body)
        yield DONE

    def _head(self) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self._job.chat else "text_completion"
        return {"id": self._job.answer_id, "object": kind, "created": self._job.created, "model": self._config.served_names[0]}

    def _running_usage(self, generated: int) -> dict[str, Any]:
        usage = _usage(self._job, generated)
        return usage | {"completion_tokens_details": None} if self._job.chat else usage

    def _role(self, sequence: Sequence) -> bytes:
        delta = {"role": "assistant", "content": ""}
        choice = {"index": sequence.index, "delta": delta, "logprobs": None, "finish_reason": None}
        body = {**self._head(), "choices": [choice]}
        if self._continuous:
            body["usage"] = self._running_usage(0)
        ids = sequence.prompt if self._job.request.return_token_ids else None
        return _event({**body, "prompt_token_ids": ids, "prompt_text": None})

    def _chat_choice(self, delta: Delta) -> dict[str, Any]:
        choice = {"index": delta.index, "delta": {"content": delta.text}, "logprobs": None, "finish_reason": delta.finish}
        if delta.finish is not None:
            choice["stop_reason"] = delta.stop_reason
        return choice | {"token_ids": self._ids(delta)}

    def _completion_choice(self, delta: Delta, *, first: bool) -> dict[str, Any]:
        wanted = first and self._job.request.return_token_ids
        prompt = self._job.sequences[delta.index].prompt if wanted else None
        end = {"logprobs": None, "finish_reason": delta.finish, "stop_reason": delta.stop_reason}
        return {"index": delta.index, "text": delta.text, **end, "prompt_token_ids": prompt, "token_ids": self._ids(delta)}

    def _ids(self, delta: Delta) -> list[int] | None:
        return list(delta.token_ids) if self._job.request.return_token_ids else None

    def _chunk(self, choice: dict[str, Any], delta: Delta) -> bytes:
        body = {**self._head(), "choices": [choice]}
        if self._continuous:
            body["usage"] = self._running_usage(self._generated[delta.index])
        if delta.finish is not None and not self._usage:
            body["system_fingerprint"] = _fingerprint(self._config)
        return _event(body)
