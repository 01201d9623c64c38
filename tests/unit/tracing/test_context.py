"""The context of a trace: what of a client's headers counts, and what a leg is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_router.tracing.context import Context, read, write

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{PARENT}-01"
_KEYS = st.text("abcxyz019_*/@-", min_size=1, max_size=12).map("k".__add__)
_VALUES = st.text([chr(code) for code in range(0x20, 0x7F) if chr(code) not in ",="], max_size=12).map(lambda text: f"{text}!")
_STATES = st.dictionaries(_KEYS, _VALUES, max_size=8)


def _ids(digits):
    return st.integers(1, 16**digits - 1).map(lambda number: f"{number:0{digits}x}")


def _read(parent, state=""):
    return read({b"traceparent": parent.encode(), b"tracestate": state.encode()})


@given(_ids(32), _ids(16), st.integers(0, 255), _STATES)
def test_a_context_that_keeps_the_rules_comes_out_as_it_came_in(trace, span, flags, members):
    state = ",".join(f"{name}={value}" for name, value in members.items())
    found = _read(f"00-{trace}-{span}-{flags:02x}", state)
    assert found == Context(trace_id=trace, span_id=span, flags=flags & 3, state=state)
    lines = write(found, span_id=span).decode()
    again = dict(line.encode().split(b": ", 1) for line in lines.split("\r\n") if line)
    assert read(again) == found


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_no_byte_of_a_header_that_breaks_the_rules_gets_through(parent, state):
    found = read({b"traceparent": parent, b"tracestate": state})
    if found is not None:
        lines = write(found, span_id=found.span_id)
        assert lines.count(b"\r\n") == lines.count(b"\r") == lines.count(b"\n") == (2 if found.state else 1)
        assert lines.isascii()


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "hello",
        GOOD.upper(),
        GOOD[:-1],
        GOOD + "0",
        GOOD + "-more",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{GOOD},{GOOD}",
        f"{GOOD}\r\nx: y",
    ],
)
def test_a_parent_that_breaks_the_rules_counts_for_nothing(parent):
    assert _read(parent, "a=b") is None


def test_a_later_version_is_read_as_far_as_it_is_known():
    found = _read(f"cc-{TRACE}-{PARENT}-01-what-the-future-brings")
    assert found is not None
    assert write(found, span_id="a" * 16) == f"traceparent: 00-{TRACE}-{'a' * 16}-01\r\n".encode()


@pytest.mark.parametrize(
    "state",
    [
        "novalue",
        "A=b",
        "a=b,a=c",
        "a=b\x00",
        "a=é",
        ",".join(f"k{number}=v" for number in range(33)),
        f"a={'x' * 256},b={'x' * 256}",
    ],
)
def test_members_that_break_the_rules_are_left_out_and_the_parent_stays(state):
    found = _read(GOOD, state)
    assert (found.trace_id, found.state) == (TRACE, "")


def test_empty_members_and_blanks_between_them_are_no_fault():
    assert _read(GOOD, "a=1 , ,\tb@c=2 ,").state == "a=1,b@c=2"


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("03", True), ("ff", True)])
def test_the_callers_decision_is_in_the_flags(flags, sampled):
    assert _read(f"00-{TRACE}-{PARENT}-{flags}").sampled is sampled
