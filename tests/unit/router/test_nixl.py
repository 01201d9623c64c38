"""Bodies of both legs as vLLM's NIXL connector wants them, and KV parameters that are used once."""

import json

import pytest

from tandem_router.errors import EngineFailure, Kind
from tandem_router.protocols import nixl
from tandem_router.protocols.nixl import Handover
from tandem_router.requests.call import CHAT, parse
from tandem_router.requests.prefill_leg import Prefilled

FULL = {
    "model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True,
    "stream_options": {"include_usage": False, "x": 1},
    "max_tokens": 100, "max_completion_tokens": 90, "min_tokens": 10, "temperature": 0.5, "stop": ["x"], "cache_salt": "s",
    "new": 1, "return_token_ids": True,
}  # fmt: skip


def call(**changes):
    body = {name: value for name, value in {**FULL, **changes}.items() if value is not ...}
    return parse(CHAT, json.dumps(body).encode(), "m")


def test_the_prefill_leg_asks_for_one_token_and_keeps_its_blocks():
    body = json.loads(nixl.prefill_body(call()))
    assert (body["max_tokens"], body["max_completion_tokens"], body["min_tokens"], body["stream"]) == (1, 1, 1, False)
    assert body["kv_transfer_params"] == {
        "do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None,
        "remote_host": None, "remote_port": None,
    }  # fmt: skip
    assert "stream_options" not in body
    assert "return_token_ids" not in body


def test_the_prefill_leg_changes_nothing_that_shapes_the_prompt():
    original = call()
    body = json.loads(nixl.prefill_body(original))
    for name in ("messages", "temperature", "stop", "cache_salt", "new"):
        assert body[name] == FULL[name]
    assert original.body["max_tokens"] == 100


def test_a_client_without_limits_gets_none_on_the_decode_leg():
    body = json.loads(nixl.decode_body(call(max_tokens=..., max_completion_tokens=..., min_tokens=...), {"a": 1}))
    assert not {"max_tokens", "max_completion_tokens", "min_tokens"} & body.keys()
    assert "max_completion_tokens" not in json.loads(nixl.prefill_body(call(max_completion_tokens=...)))


def test_the_decode_leg_is_the_clients_request_with_the_parameters_verbatim():
    parameters = {"do_remote_prefill": True, "remote_block_ids": [[1], [2]], "unknown": {"later": None}}
    body = json.loads(nixl.decode_body(call(return_token_ids=...), parameters))
    assert body["kv_transfer_params"] == parameters
    assert body["max_tokens"] == 100
    assert body["stream_options"] == {"include_usage": True, "x": 1}
    assert body["return_token_ids"] is True


def test_an_answer_that_is_not_streamed_is_asked_for_nothing_more():
    body = json.loads(nixl.decode_body(call(stream=False, stream_options=..., return_token_ids=...), {}))
    assert "stream_options" not in body
    assert "return_token_ids" not in body


def test_ids_are_not_asked_of_a_request_that_one_worker_serves():
    body = json.loads(nixl.local_body(call(n=2, return_token_ids=...)))
    assert "return_token_ids" not in body
    assert "kv_transfer_params" not in body
    assert body["stream_options"]["include_usage"] is True


def test_parameters_can_be_taken_once():
    handover = nixl.parameters({"kv_transfer_params": {"do_remote_prefill": True}})
    assert handover.unused
    assert handover.take() == {"do_remote_prefill": True}
    assert not handover.unused
    with pytest.raises(ValueError, match="single-use"):
        handover.take()


@pytest.mark.parametrize(
    "answer",
    [{}, {"kv_transfer_params": None}, {"kv_transfer_params": {}}, {"kv_transfer_params": {"do_remote_prefill": False}}],
)
def test_an_answer_without_usable_parameters_is_a_failure(answer):
    with pytest.raises(EngineFailure) as caught:
        nixl.parameters(answer)
    assert caught.value.kind is Kind.NO_PARAMETERS


@pytest.mark.parametrize(("said", "cached"), [(48, 48), (0, 0), (None, None), (-1, None), ("many", None)])
def test_what_a_prefill_worker_had_in_its_cache_is_read_where_it_says_so(said, cached):
    assert Handover({"do_remote_prefill": True, "remote_prefill_cached_tokens": said}).cached == cached


def test_the_share_of_a_prompt_in_the_cache_is_known_only_with_both_counts():
    handover = Handover({"remote_prefill_cached_tokens": 50})
    assert Prefilled(handover, 200).held == 0.25
    assert Prefilled(handover, 0).held is None
    assert Prefilled(Handover({}), 200).held is None
