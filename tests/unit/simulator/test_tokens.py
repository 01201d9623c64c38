"""The toy tokenizer: reversible for every text, and no denser than real ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_simulator.engine import tokens


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_comes_back_from_its_tokens(text: str) -> None:
    assert tokens.decode(tokens.encode(text), skip_special=False) == text


@given(st.lists(st.integers(0, tokens.VOCABULARY - 1)))
def test_every_id_of_the_vocabulary_has_a_text(ids: list[int]) -> None:
    assert isinstance(tokens.decode(ids), str)


def test_a_common_word_is_one_token_and_a_rare_one_is_several() -> None:
    assert len(tokens.encode(" water")) == 1
    assert len(tokens.encode(" disaggregation")) == 5


def test_english_has_two_to_four_characters_for_each_token() -> None:
    text = "The router asks both engines and the client gets one answer, even when a worker is taken away in the middle of it."
    assert 2 <= len(text) / len(tokens.encode(text)) <= 5


def test_special_tokens_are_one_token_each_and_have_no_text() -> None:
    ids = tokens.encode("<|im_start|>user<|im_end|>")
    assert (ids[0], ids[-1]) == (tokens.IM_START, tokens.EOS)
    assert tokens.decode(ids) == "user"


def test_a_lone_surrogate_does_not_break_a_prompt() -> None:
    assert tokens.decode(tokens.encode("a\ud800b")) == "a?b"


def test_the_words_of_the_model_are_all_different() -> None:
    words = {tokens.decode([tokens.word(index)]) for index in range(tokens.ANSWER_WORDS)}
    assert len(words) == tokens.ANSWER_WORDS


@pytest.mark.parametrize("index", [0, 17, tokens.ANSWER_WORDS - 1])
def test_a_word_written_out_is_the_same_token_again(index: int) -> None:
    token = tokens.word(index)
    assert tokens.encode(tokens.decode([token])) == [token]
