"""Answers are a pure function of the tokens before them, and of wrong KV cache."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tandem_simulator.engine import tokens
from tandem_simulator.engine.oracle import BlockDigester, Oracle, mix_taint

PROMPT = tokens.encode("Tell me about rivers and the sea")
prompts = st.lists(st.integers(0, tokens.VOCABULARY - 1), min_size=1, max_size=40)


def answer(prompt: Sequence[int], count: int, taint: bytes | None = None, *, mean_length: int = 1000) -> list[int]:
    oracle = Oracle(prompt, taint, mean_length)
    return [oracle.next(may_end=False) for _ in range(count)]


@given(prompts, st.integers(0, 30))
def test_going_on_from_prompt_and_answer_gives_the_rest_of_the_answer(prompt: list[int], cut: int) -> None:
    whole = answer(prompt, 40)
    assert answer([*prompt, *whole[:cut]], 40 - cut) == whole[cut:]


def test_two_prompts_have_two_answers() -> None:
    assert answer(PROMPT, 8) != answer([*PROMPT[:-1], PROMPT[-1] + 1], 8)


def test_wrong_kv_cache_gives_another_answer_and_the_same_one_each_time() -> None:
    taint = mix_taint(b"engine", b"request")
    assert answer(PROMPT, 8, taint) == answer(PROMPT, 8, taint)
    assert answer(PROMPT, 8, taint) != answer(PROMPT, 8)
    assert answer(PROMPT, 8, taint) != answer(PROMPT, 8, mix_taint(b"engine", b"other"))


def test_an_answer_ends_where_it_may_and_never_where_it_may_not() -> None:
    oracle = Oracle(PROMPT, None, 20)
    ended = [oracle.next(may_end=True) == tokens.EOS for _ in range(400)]
    assert 5 <= sum(ended) <= 60
    assert tokens.EOS not in answer(PROMPT, 400, mean_length=20)


def test_some_characters_are_spread_over_tokens_and_all_are_complete() -> None:
    ids = answer(PROMPT, 600)
    assert any(token < tokens.BYTES for token in ids)
    text = tokens.decode(ids[: len(ids) - 4])
    assert "\ufffd" not in text.rstrip("\ufffd")
    assert "😀" in text


@given(st.lists(st.integers(0, tokens.VOCABULARY - 1), max_size=50), st.integers(1, 50))
def test_block_digests_do_not_depend_on_how_the_tokens_came(ids: list[int], cut: int) -> None:
    at_once, in_parts = BlockDigester(4), BlockDigester(4)
    at_once.push(ids)
    in_parts.push(ids[:cut])
    in_parts.push(ids[cut:])
    assert at_once.all() == in_parts.all()
    assert len(at_once.full) == len(ids) // 4
    assert len(at_once.all()) == -(-len(ids) // 4)


def test_a_block_digest_covers_everything_before_it() -> None:
    left, right = BlockDigester(2), BlockDigester(2)
    left.push([1, 2, 3, 4])
    right.push([9, 2, 3, 4])
    assert left.full[1] != right.full[1]
