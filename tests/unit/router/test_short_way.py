"""The short way of plain events through a chunked response gives the same bytes as the long one, however they are cut."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_router.http.client import EngineConnection, Pool
from tandem_router.http.exchange import Exchange
from tandem_router.http.messages import Request
from tandem_router.requests.call import COMPLETIONS, parse
from tandem_router.requests.downstream import Downstream
from tandem_router.requests.relay import Relay

if TYPE_CHECKING:
    from array import array

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
BODY = b'{"model":"m","stream":true,"max_tokens":9,"prompt":"hi"}'


class _Socket:
    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def _event(text: str, ids: str, finish: str) -> bytes:
    tail = f',"token_ids":[{ids}]' if ids != "none" else ""
    return f'data: {{"choices":[{{"index":0,"text":"{text}","finish_reason":{finish}{tail}}}]}}\n\n'.encode()


EVENTS = st.lists(
    st.builds(
        _event,
        st.sampled_from([" a", '\\"token_ids\\":[5]', "\\n\\n", 'x,\\"finish_reason\\":\\"stop\\"']),
        st.sampled_from(["7", "8,9", "", "none", "100000"]),
        st.sampled_from(["null", "null", "null", '"stop"']),
    ),
    min_size=1,
    max_size=8,
)
DONE = b"data: [DONE]\n\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _relayed(reads: list[bytes], *, short: bool) -> "tuple[bytes, array[int], bool]":
    call = parse(COMPLETIONS, BODY, "m")
    request = Request(method="POST", path=COMPLETIONS, headers={}, body=BODY, http_1_1=False, keep_alive=True, received=0.0)
    client: Any = _Socket()
    down = Downstream(Exchange(request, client, close_after=False), ())
    engine = EngineConnection(Pool(1.0), "engine:1")
    socket: Any = _Socket()
    engine.connection_made(socket)
    relay = Relay(down, call, engine, role_after=9.0, clock=time.monotonic)
    engine.ask(b"x", relay, plain=relay.plain if short else None)
    for read in reads:
        engine.data_received(read)
    ended = relay.done.done() and relay.done.exception() is None
    relay.detach()
    return client.written.partition(b"\r\n\r\n")[2], down.ids, ended


@settings(deadline=None)
@given(EVENTS, st.data())
def test_the_short_way_gives_the_same_bytes_and_ids(events, data):
    chunks = [_chunk(event) for event in [*events, DONE]] + [b"0\r\n\r\n"]
    stream = HEAD + b"".join(chunks)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    wanted = asyncio.run(_relayed([stream], short=False))
    assert wanted[2]
    assert asyncio.run(_relayed([HEAD, *chunks], short=True)) == wanted
    assert asyncio.run(_relayed([piece for piece in pieces if piece], short=True)) == wanted


async def test_chunks_that_hold_half_an_event_or_two_are_read_as_well():
    one, two = _event(" a", "1", "null"), _event(" b", "2", "null")
    for parts in ([one + two, DONE], [one, two[:20], two[20:], DONE], [one, b"\n\n" + two, DONE], [one, two + DONE]):
        text, ids, ended = await _relayed([HEAD, *(_chunk(part) for part in parts), b"0\r\n\r\n"], short=True)
        assert ids.tolist() == [1, 2]
        assert ended
        assert text.count(b'"text"') == 2
        assert b"token_ids" not in text


async def test_a_size_that_does_not_fit_is_the_parsers_to_judge():
    text, ids, ended = await _relayed([HEAD, _chunk(_event(" a", "1", "null")), b"zz\r\n" + DONE + b"\r\n"], short=True)
    assert (ids.tolist(), ended) == ([1], False)
    assert b"DONE" not in text
