"""From a checked request to the sequences that answer it."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandem_simulator.engine import tokens
from tandem_simulator.engine.config import EngineConfig
from tandem_simulator.engine.errors import APIError, internal
from tandem_simulator.engine.oracle import BlockDigester
from tandem_simulator.engine.prompts import answer_budget, check_ids, render_chat
from tandem_simulator.engine.requests import ChatRequest, CompletionRequest, GenerationRequest
from tandem_simulator.engine.sequences import Delta, RemoteBlocks, Sampling, Sequence

__all__ = ["Job", "prepare", "remote_blocks"]

_log = logging.getLogger(__name__)
_REMOTE_FIELDS = ("remote_engine_id", "remote_request_id", "remote_host", "remote_port", "remote_block_ids")


@dataclass(frozen=True, slots=True)
class Job:
    """One request in work.

    Attributes:
        answer_id: `id` of the answer.
        created: Unix time, whole seconds.
        chat: Which of the two APIs it came through.
        sequences: One for each choice.
        sink: Where all their deltas arrive.
    """

    answer_id: str
    created: int
    chat: bool
    request: GenerationRequest
    sequences: tuple[Sequence, ...]
    sink: "asyncio.Queue[Delta]"


def prepare(
    request: ChatRequest | CompletionRequest, config: EngineConfig, *, request_id: str, clock: Callable[[], float]
) -> Job:
    """Sequences of one request.

    Raises:
        APIError: The prompt or its limits are wrong, or its KV parameters would hang the real engine.
    """
    request.check()
    chat = isinstance(request, ChatRequest)
    if isinstance(request, ChatRequest):
        request.check_chat()
    answer_id = f"{'chatcmpl' if chat else 'cmpl'}-{request_id}"
    prompts = [_chat_prompt(request)] if isinstance(request, ChatRequest) else _completion_prompts(request)
    samplings = [_sampling(request, len(prompt), config.max_model_len) for prompt in prompts]
    params = request.kv_transfer_params if config.kv_transfer else None
    remote = remote_blocks(params)
    sink: asyncio.Queue[Delta] = asyncio.Queue()
    choices = request.n or 1
    sequences = tuple(
        Sequence(
            request_id=_internal_id(answer_id, None if chat else at),
            index=at * choices + choice,
            prompt=prompt,
            sampling=samplings[at],
            sink=sink,
            digester=BlockDigester(config.block_size),
            arrived=clock(),
            salt=request.cache_salt or "",
            remote=remote,
            peer_cached=_peer_cached(params) if remote else None,
            export=bool(params and params.get("do_remote_decode")),
        )
        for at, prompt in enumerate(prompts)
        for choice in range(choices)
    )
    return Job(answer_id, int(time.time()), chat, request, sequences, sink)


def remote_blocks(params: dict[str, Any] | None) -> RemoteBlocks | None:
    """Where the KV parameters say that the prompt's KV cache is; None when they do not say so.

    Raises:
        APIError: They promise KV cache and do not say where. The real engine hangs on such a request or dies of it, so a
            500 is the kindest way to show the fault.
    """
    if not params or not params.get("do_remote_prefill"):
        return None
    missing = [name for name in _REMOTE_FIELDS if not params.get(name)]
    if missing:
        _log.error("kv_transfer_params promise KV cache without %s; the real engine would hang", ", ".join(missing))
        raise internal()
    groups = params["remote_block_ids"]
    try:
        return RemoteBlocks(
            engine_id=str(params["remote_engine_id"]),
            request_id=str(params["remote_request_id"]),
            host=str(params["remote_host"]),
            port=int(params["remote_port"]),
            block_ids=tuple(int(block) for block in groups[0]),
        )
    except (TypeError, ValueError, IndexError):
        _log.exception("kv_transfer_params are not what a producer answered")
        raise internal() from None


def _peer_cached(params: dict[str, Any] | None) -> int | None:
    cached = (params or {}).get("remote_prefill_cached_tokens")
    return cached if isinstance(cached, int) else None


def _chat_prompt(request: ChatRequest) -> list[int]:
    return render_chat(
        request.messages,
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=request.continue_final_message,
        tools=request.tools,
        template_arguments=request.chat_template_kwargs,
    )


def _completion_prompts(request: CompletionRequest) -> list[list[int]]:
    if request.echo:
        raise APIError("echo is not available in the simulated engine.", param="echo")
    prompts = [tokens.encode(prompt) if isinstance(prompt, str) else prompt for prompt in request.prompts()]
    for prompt in prompts:
        check_ids(prompt)
        if not prompt:
            raise APIError("The decoder prompt cannot be empty", param="prompt")
    return prompts


def _sampling(request: ChatRequest | CompletionRequest, prompt_tokens: int, limit: int) -> Sampling:
    asked, name = request.max_tokens, "max_tokens"
    if isinstance(request, ChatRequest) and request.max_completion_tokens is not None:
        asked, name = request.max_completion_tokens, "max_completion_tokens"
    budget = answer_budget(prompt_tokens, asked, limit=limit, name=name)
    if request.min_tokens > budget:
        raise APIError(f"min_tokens must be less than or equal to max_tokens={budget}, got {request.min_tokens}.")
    return Sampling(
        max_tokens=budget,
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        stop=request.stops,
        stop_token_ids=frozenset(request.stop_token_ids or ()),
        include_stop=request.include_stop_str_in_output,
        skip_special=request.skip_special_tokens,
    )


def _internal_id(answer_id: str, prompt_index: int | None) -> str:
    # Random, as in vLLM: two requests with the same X-Request-Id must not share their KV cache's name.
    parts = [answer_id, *([] if prompt_index is None else [str(prompt_index)]), secrets.token_hex(4)]
    return "-".join(parts)
