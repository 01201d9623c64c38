"""Bodies whose members stay as the client wrote them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_router.requests.members import read, write

DECODER = json.JSONDecoder()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES), st.dictionaries(st.text(), VALUES, max_size=2), st.sampled_from([None, 1]))
def test_what_is_written_is_what_was_read_with_the_routers_members_in_place(body, own, indent):
    value, members = read(json.dumps(body, indent=indent), DECODER)
    assert value == body
    assert json.loads(write(members, own)) == {**body, **own}


def test_numbers_and_unknown_members_keep_their_spelling():
    text = '{ "a" : 1.50 , "b":123456789012345678901234567890, "c":"\\u00e9\\ud83d" }'
    _, members = read(text, DECODER)
    assert write(members, {}) == b'{"a" : 1.50, "b":123456789012345678901234567890, "c":"\\u00e9\\ud83d"}'


def test_of_a_repeated_member_only_the_last_goes_on():
    value, members = read('{"stream":true,"a":1,"stream":false}', DECODER)
    assert value == {"stream": False, "a": 1}
    assert write(members, {}) == b'{"stream":false, "a":1}'


def test_a_member_is_found_however_its_name_is_spelled():
    _, members = read('{"str\\u0065am":true,"kv_\\u0074ransfer_params":{}}', DECODER)
    assert write(members, {"stream": 1}, without={"kv_transfer_params"}) == b'{"stream":1}'


@pytest.mark.parametrize(
    "text",
    ["", "{", "{}x", '{"a":1', '{"a":1,}', '{"a" 1}', "{a:1}", '{"a":}', '{,"a":1}', '{"a":1 "b":2}', "nul", '{"a":"', "[1"],
)
def test_what_is_no_json_is_refused_as_json_refuses_it(text):
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError, match="^" + str(expected.value.msg)):
        read(text, DECODER)


@pytest.mark.parametrize("text", ["[1]", "3", '"a"', "null"])
def test_what_is_no_object_has_no_members(text):
    assert read(text, DECODER) == (json.loads(text), {})


def test_an_empty_object_is_one():
    assert read(" { } ", DECODER) == ({}, {})
    assert write({}, {}) == b"{}"
