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
_CANARY = _BLOCK + 1
"""Tokens of a canary's prompt."""
_FACTS = " ".join(f"Fact {n}: the sum of {n} and {n + 1} is {2 * n + 1}." for n in range(12))
QUESTIONS = ("Is water wet?", f"{_FACTS} Which fact is wrong?", f"{_FACTS} {_FACTS} Is that all?")


def _token_bytes(folder: Path) -> int:
    """KV cache of one token in bytes."""
    config = json.loads((folder / "config.json").read_text())
    width = config["hidden_size"] // config["num_attention_heads"]
    return int(2 * config["num_hidden_layers"] * config["num_key_value_heads"] * width * _NUMBER_BYTES)


def _kv(pair: Pair, role: Role = Role.DECODE) -> KVCounters:
    return pair.counted(role)[1]


def _between_canaries(pair: Pair) -> tuple[int, KVCounters]:
    """Return how many canaries the decode worker has had, and its engine's counters while none is on its way."""

    def look() -> tuple[int, KVCounters] | None:
        before, counted, after = _canaries(pair), _kv(pair), _canaries(pair)
        return (after[0], counted) if before == after and not after[1] else None

    return wait_for(look, what="a look between two canaries")


def _canaries(pair: Pair) -> tuple[int, bool]:
    """The decode worker's canaries so far, and whether one is on its way: they move KV cache too."""
    state = pair.sidecar(pair.pod(Role.DECODE)["metadata"]["name"])
    return state.canary_tokens // _CANARY, state.canary_running


def test_the_engines_count_the_kv_cache_of_every_prompt(pair: Pair, model_folder: Path) -> None:
    earlier, before = _between_canaries(pair)
    asked = [_prompt_tokens(pair, question) for question in QUESTIONS]

    def moved() -> tuple[list[int], KVCounters] | None:
        """Tokens of each prompt that was pulled meanwhile, canaries' too, once all of them are counted."""
        canaries, counted = _between_canaries(pair)
        prompts = asked + [_CANARY] * (canaries - earlier)
        return (prompts, counted) if (counted.transfers or 0) - (before.transfers or 0) >= len(prompts) else None

    prompts, after = wait_for(moved, what="every prompt's KV cache was counted")
    blocks = sum(-(-tokens // _BLOCK) for tokens in prompts)
    assert max(asked) > 2 * _BLOCK
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
