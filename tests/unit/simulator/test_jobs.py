"""From requests to sequences: limits, KV parameters, choices."""

from typing import Any

import pytest

from tandem_simulator.engine.arguments import parse_arguments
from tandem_simulator.engine.config import EngineConfig
from tandem_simulator.engine.errors import APIError
from tandem_simulator.engine.jobs import Job, prepare, remote_blocks
from tandem_simulator.engine.prompts import answer_budget, render_chat
from tandem_simulator.engine.requests import ChatRequest, CompletionRequest
from tandem_simulator.engine.sequences import RemoteBlocks
from tandem_simulator.engine.tokens import decode

TRANSFER = ["--kv-transfer-config", '{"kv_connector": "NixlConnector", "kv_role": "kv_consumer"}']
PARAMS: dict[str, Any] = {
    "do_remote_prefill": True,
    "remote_engine_id": "e",
    "remote_request_id": "r",
    "remote_host": "10.0.0.1",
    "remote_port": 5600,
    "remote_block_ids": [[4, 5]],
    "something_new": 1,
}


def config(*arguments: str) -> EngineConfig:
    return parse_arguments(["--model", "m", "--max-model-len", "64", *arguments], {})


def job(request: ChatRequest | CompletionRequest, settings: EngineConfig | None = None) -> Job:
    return prepare(request, settings or config(), request_id="id", clock=lambda: 0.0)


@pytest.mark.parametrize(("prompt", "asked", "budget"), [(10, None, 54), (10, 5, 5), (10, 64, 54), (63, None, 1), (63, 64, 1)])
def test_an_answer_may_have_what_was_asked_for_and_what_the_context_leaves(prompt: int, asked: int | None, budget: int) -> None:
    assert answer_budget(prompt, asked, limit=64, name="max_tokens") == budget


@pytest.mark.parametrize(
    ("prompt", "asked", "param"),
    [(10, 65, "max_tokens"), (65, 1, "input_tokens"), (64, 1, "max_tokens"), (10, 0, "max_tokens")],
)
def test_a_prompt_or_an_answer_that_cannot_fit_is_refused(prompt: int, asked: int, param: str) -> None:
    with pytest.raises(APIError) as refused:
        answer_budget(prompt, asked, limit=64, name="max_tokens")
    assert (refused.value.status, refused.value.param) == (400, param)


def test_the_parameters_of_a_producer_name_a_place_and_unknown_keys_are_ignored() -> None:
    assert remote_blocks(PARAMS) == RemoteBlocks("e", "r", "10.0.0.1", 5600, (4, 5))


@pytest.mark.parametrize("params", [None, {}, {"do_remote_decode": True, "do_remote_prefill": False, "remote_host": None}])
def test_parameters_without_a_promise_name_no_place(params: dict[str, Any] | None) -> None:
    assert remote_blocks(params) is None


@pytest.mark.parametrize(
    "change",
    [
        {"remote_host": None},
        {"remote_block_ids": []},
        {"remote_block_ids": 4},
        {"remote_port": "http"},
        {"remote_engine_id": ""},
    ],
)
def test_a_promise_without_a_place_is_an_internal_error(change: dict[str, Any]) -> None:
    with pytest.raises(APIError) as failed:
        remote_blocks({**PARAMS, **change})
    assert failed.value.status == 500


def test_each_prompt_and_each_choice_is_a_sequence_of_its_own() -> None:
    made = job(CompletionRequest(prompt=["one", "two"], n=2))
    assert [sequence.index for sequence in made.sequences] == [0, 1, 2, 3]
    assert len({sequence.request_id for sequence in made.sequences}) == 4
    assert made.answer_id == "cmpl-id"


def test_kv_parameters_mean_nothing_without_a_connector() -> None:
    request = CompletionRequest(prompt="one", kv_transfer_params=PARAMS)
    assert job(request).sequences[0].remote is None
    assert job(request, config(*TRANSFER)).sequences[0].remote is not None


def test_the_newer_name_of_the_limit_wins_in_a_chat() -> None:
    messages = [{"role": "user", "content": "hi"}]
    made = job(ChatRequest(messages=messages, max_tokens=9, max_completion_tokens=3))
    assert made.sequences[0].sampling.max_tokens == 3


@pytest.mark.parametrize(
    "messages",
    [[], [{"content": "hi"}], [{"role": "user", "content": 5}], [{"role": "user", "content": [{"type": "image_url"}]}]],
)
def test_messages_that_are_none_are_refused(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(APIError):
        job(ChatRequest(messages=messages))


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": "required", "tools": [{"type": "function"}]},
        {"logprobs": True},
        {"response_format": {"type": "json_object"}},
        {"continue_final_message": True},
        {"stop": ""},
    ],
)
def test_what_the_simulator_cannot_do_is_refused_and_not_ignored(fields: dict[str, Any]) -> None:
    with pytest.raises(APIError) as refused:
        job(ChatRequest(messages=[{"role": "user", "content": "hi"}], **fields))
    assert refused.value.status == 400


def test_parts_and_strings_of_equal_text_are_the_same_prompt() -> None:
    def rendered(content: object) -> list[int]:
        messages = [{"role": "user", "content": content}]
        return render_chat(messages, add_generation_prompt=True, continue_final_message=False)

    assert rendered([{"type": "text", "text": "hi"}]) == rendered("hi")


def test_a_final_message_can_be_left_open() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Once upon"}]
    open_ended = render_chat(messages, add_generation_prompt=False, continue_final_message=True)
    assert decode(open_ended).endswith("Once upon")
