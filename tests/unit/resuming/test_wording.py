"""Whatever the cut, what a continuation says equals what one engine would have said: text, stop strings, held-back ends."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_router.resuming.wording import Wording, held_back
from tandem_simulator.engine.detokenizing import Detokenizer

TEXTS = st.text(alphabet="ab \u00e9\U0001f600", min_size=1, max_size=40)
STOPS = st.lists(st.text(alphabet="ab \u00e9", min_size=1, max_size=4), max_size=3)


def undisturbed(ids, stops, *, include, least):
    """Text of each step of one engine, and the stop string that ended it, if any."""
    engine = Detokenizer(stops, include_stop=include, min_tokens=least, skip_special=True)
    pieces = []
    for token in ids:
        stop = engine.push(token, silent=False)
        pieces.append(engine.take(finished=stop is not None))
        if stop is not None:
            return pieces, stop, engine.text
    return pieces, None, engine.text


@settings(deadline=None, max_examples=300)
@given(text=TEXTS, stops=STOPS, include=st.booleans(), data=st.data())
def test_any_cut_of_any_text_goes_on_as_one_engine_would_have(text, stops, include, data):
    ids = list(text.encode())
    least = data.draw(st.integers(0, 12))
    pieces, stop, whole = undisturbed(ids, stops, include=include, least=least)
    ended = len(pieces)
    cut = data.draw(st.integers(0, max(0, ended - (stop is not None))))
    sent = "".join(pieces[:cut])
    known = Detokenizer((), include_stop=False, min_tokens=0, skip_special=True)
    for token in ids[:cut]:
        known.push(token, silent=False)
    wording = Wording(stops, include_stop=include, min_tokens=least, text=known.text, count=cut)
    said, found = [], None
    for token in ids[cut:]:
        before = len(known.text)
        known.push(token, silent=False)
        found = wording.push(known.text[before:], 1)
        said.append(wording.take(finished=found is not None))
        if found is not None:
            break
    assert said == pieces[cut:]
    assert found == stop
    assert sent + "".join(said) + wording.take(finished=True) == whole


@given(STOPS, st.booleans())
def test_as_much_is_held_back_as_the_longest_stop_string_could_hide(stops, include):
    longest = max(map(len, stops), default=1)
    assert held_back(stops, include_stop=include) == (0 if include else longest - 1)


def test_the_stop_string_that_ends_first_counts_and_the_first_named_of_equals():
    wording = Wording(("bc", "abc", "b"), include_stop=False, min_tokens=0, text="", count=0)
    assert wording.push("abcd", 1) == "b"
    assert wording.take(finished=True) == "a"
    wording = Wording(("bc", "abc"), include_stop=False, min_tokens=0, text="", count=0)
    assert wording.push("abcd", 1) == "bc"


def test_a_stop_string_over_the_cut_is_found_and_none_before_the_least_number_of_tokens():
    wording = Wording(("END",), include_stop=False, min_tokens=0, text="so EN", count=5)
    assert wording.push("D.", 1) == "END"
    assert wording.take(finished=True) == "EN"[:0]
    early = Wording(("END",), include_stop=False, min_tokens=6, text="so EN", count=5)
    assert early.push("D.", 1) is None
