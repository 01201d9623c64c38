"""Text leaves the engine in whole characters, and a stop string never leaves it."""

from tandem_simulator.engine import tokens
from tandem_simulator.engine.detokenizing import Detokenizer


def run(detokenizer: Detokenizer, ids: list[int]) -> tuple[list[str], str | None]:
    """Text of each step, and the stop string that ended it."""
    pieces = []
    for token in ids:
        stop = detokenizer.push(token, silent=False)
        pieces.append(detokenizer.take(finished=stop is not None))
        if stop is not None:
            return pieces, stop
    pieces.append(detokenizer.take(finished=True))
    return pieces, None


def new(*stop: str, include: bool = False, min_tokens: int = 0) -> Detokenizer:
    return Detokenizer(stop, include_stop=include, min_tokens=min_tokens, skip_special=True)


def test_a_character_waits_for_its_last_byte() -> None:
    pieces, _ = run(new(), [*"é".encode(), *"😀".encode(), ord("!")])
    assert pieces == ["", "é", "", "", "", "😀", "!", ""]


def test_a_stop_string_over_two_tokens_is_found_and_left_out() -> None:
    pieces, stop = run(new("END"), [ord(letter) for letter in "abENDc"])
    assert ("".join(pieces), stop) == ("ab", "END")


def test_text_that_could_begin_a_stop_string_is_held_back_until_it_is_none() -> None:
    pieces, stop = run(new("END"), [ord(letter) for letter in "aENxyz"])
    assert pieces[2] == "a"
    assert ("".join(pieces), stop) == ("aENxyz", None)


def test_a_stop_string_can_stay_in_the_text() -> None:
    pieces, stop = run(new("END", include=True), [ord(letter) for letter in "abENDc"])
    assert ("".join(pieces), stop) == ("abEND", "END")


def test_no_stop_string_counts_before_the_least_number_of_tokens() -> None:
    pieces, stop = run(new("b", min_tokens=3), [ord(letter) for letter in "abcdbe"])
    assert ("".join(pieces), stop) == ("abcd", "b")


def test_after_a_prompt_that_ends_within_a_character_the_first_text_is_spoilt() -> None:
    """As real decoders have it: the prompt comes again, with the character whole."""
    prompt = [*b"Hi ", *"😀".encode()[:2]]
    detokenizer = Detokenizer((), include_stop=False, min_tokens=0, skip_special=True, prompt=prompt)
    pieces, _ = run(detokenizer, [*"😀".encode()[2:], ord("!")])
    assert pieces == ["", "Hi 😀", "!", ""]


def test_the_end_token_has_no_text() -> None:
    detokenizer = new()
    assert detokenizer.push(tokens.EOS, silent=True) is None
    assert detokenizer.take(finished=True) == ""
