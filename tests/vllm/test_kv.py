"""KV cache really moves: the engines count it, and nobody computes a prompt twice."""

import json
from pathlib import Path

from support.deployed import condition, wait_for
from support.real_engines import CHAT, Pair, salted, send
from tandem_api.names import Role
from tandem_api.wire import KVCounters

_BLOCK = 128
"""Tokens of a block of KV cache on a CPU."""
_NUMBER_BYTES = 4
_ROUNDS = 8
_FACTS = " ".join(f"Fact {n}: the sum of {n} and {n + 1} is {2 * n + 1}." for n in range(12))
QUESTIONS = ("Is water wet?", f"{_FACTS} Which fact is wrong?", f"{_FACTS} {_FACTS} Is that all?")


def _token_bytes(folder: Path) -> int:
    """KV cache of one token in bytes."""
    config = json.loads((folder / "config.json").read_text())
    width = config["hidden_size"] // config["num_attention_heads"]
    return int(2 * config["num_hidden_layers"] * config["num_key_value_heads"] * width * _NUMBER_BYTES)


def _kv(pair: Pair, role: Role = Role.DECODE) -> KVCounters:
    return pair.counted(role)[1]


def _canaries(pair: Pair) -> tuple[int, bool]:
    """Tokens of the decode worker's canaries so far, and whether one is on its way: they move KV cache too."""
    state = pair.sidecar(pair.pod(Role.DECODE)["metadata"]["name"])
    return state.canary_tokens, state.canary_running


def _alone(pair: Pair) -> tuple[KVCounters, list[int], KVCounters]:
    """Ask all questions while no canary moves; counters before and after, and each prompt's tokens."""
    for _ in range(_ROUNDS):
        wait_for(lambda: not _canaries(pair)[1], what="no canary is on its way")
        canaries, before = _canaries(pair), _kv(pair)
        prompts = [_prompt_tokens(pair, question) for question in QUESTIONS]
        expected = (before.transfers or 0) + len(prompts)
        wait_for(lambda: (_kv(pair).transfers or 0) >= expected, what="every prompt's KV cache was counted")  # noqa: B023 - called here
        after = _kv(pair)
        if _canaries(pair) == canaries:
            return before, prompts, after
    raise AssertionError("canaries moved KV cache in every round")


def test_the_engines_count_the_kv_cache_of_every_prompt(pair: Pair, model_folder: Path) -> None:
    before, prompts, after = _alone(pair)

    blocks = sum(-(-tokens // _BLOCK) for tokens in prompts)
    assert max(prompts) > 2 * _BLOCK
    assert (after.transfers or 0) - (before.transfers or 0) == len(prompts)
    assert (after.external_tokens or 0) - (before.external_tokens or 0) == sum(prompts)
    assert (after.transferred_bytes or 0) - (before.transferred_bytes or 0) == blocks * _BLOCK * _token_bytes(model_folder)
    assert after.local_tokens == before.local_tokens


def test_nothing_fails_expires_or_takes_another_way(pair: Pair) -> None:
    expired, before = _kv(pair, Role.PREFILL).expired_leases, pair.signals()
    _prompt_tokens(pair, "Does it work?")

    assert _kv(pair, Role.PREFILL).expired_leases == expired
    assert not _kv(pair, Role.DECODE).failed_transfers
    signals = pair.signals()
    assert signals.fallbacks == before.fallbacks == {}
    assert (signals.failed, signals.refused) == (0, 0)
    assert signals.local_prefills == before.local_prefills
    wait_for(lambda: pair.counted(Role.PREFILL)[0].kv_usage == 0, what="the prefill engine holds no KV that was pulled")


def test_the_sidecar_says_what_the_engine_counts(pair: Pair) -> None:
    pod = pair.pod(Role.DECODE)["metadata"]["name"]

    def differ() -> tuple[KVCounters, KVCounters] | None:
        """Read both each time: a canary of the sidecar's own may move KV cache between two looks."""
        said, counted = pair.sidecar(pod).kv, _kv(pair)
        return None if said == counted else (said, counted)

    wait_for(lambda: differ() is None, what="the sidecar's counters are the engine's", words=lambda: str(differ()))


def test_the_condition_of_kv_transfer_tells_of_real_transfers(pair: Pair) -> None:
    _prompt_tokens(pair, "And the status?")

    wait_for(
        lambda: condition(pair.cluster, pair.namespace, pair.name, "KVTransferHealthy").get("status") == "True",
        what="KVTransferHealthy is True",
    )


def _prompt_tokens(pair: Pair, question: str) -> int:
    """Ask once with an empty prefix cache; return the tokens of the prompt, as the engine counts them."""
    body = {"model": pair.model, "messages": [{"role": "user", "content": question}], "max_tokens": 4, "temperature": 0}
    answer = send(pair.router, CHAT, salted(body))
    return int(answer.json["usage"]["prompt_tokens"])
