"""A request that the engine would refuse is refused alike through the router."""

import http.client
import json
from typing import Any

import pytest

from support.deployed import wait_for
from support.real_engines import CHAT, TEXT, Pair, Reply, send
from tandem_api.names import Role
from tandem_sidecar.observations import Load

_MESSAGES = [{"role": "user", "content": "Hello"}]
BAD = {
    "a context that is too long": (TEXT, {"prompt": [10] * 3000}),
    "more tokens than fit": (CHAT, {"messages": _MESSAGES, "max_tokens": 5000}),
    "a negative temperature": (CHAT, {"messages": _MESSAGES, "temperature": -1}),
    "no tokens": (CHAT, {"messages": _MESSAGES, "max_tokens": 0}),
    "text for a number": (CHAT, {"messages": _MESSAGES, "max_tokens": "many"}),
    "no messages": (CHAT, {}),
    "an empty prompt": (TEXT, {"prompt": ""}),
    "a token that does not exist": (TEXT, {"prompt": [2**31 - 1]}),
    "another model": (CHAT, {"messages": _MESSAGES, "model": "nobody"}),
}


def _verdict(answer: Reply) -> int:
    """Status of a refusal; the engine writes some into a stream that began with 200."""
    if answer.status == http.client.OK:
        return int(json.loads(answer.body.removeprefix("data: ").split("\n\n")[0])["error"]["code"])
    return answer.status


def _both_refuse(pair: Pair, path: str, body: Any) -> None:
    through, alone = send(pair.router, path, body), pair.alone(Role.DECODE, path, body)

    assert 400 <= _verdict(alone) < 500
    assert through.status == _verdict(alone), through.body
    assert through.headers["content-type"].startswith("application/json")
    assert through.json["error"].keys() == {"message", "type", "param", "code"}
    assert through.json["error"]["message"]
    assert "Traceback" not in through.body


@pytest.mark.parametrize("way", [{"stream": False}, {"stream": True}], ids=["whole", "streamed"])
@pytest.mark.parametrize(("path", "body"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused_as_the_engine_refuses_it(
    pair: Pair, path: str, body: dict[str, Any], way: dict[str, bool]
) -> None:
    _both_refuse(pair, path, {"model": pair.model, **way, **body})


def test_what_is_no_json_is_refused(pair: Pair) -> None:
    _both_refuse(pair, CHAT, "{not json")


def test_bad_requests_leave_nothing_behind(pair: Pair) -> None:
    _both_refuse(pair, TEXT, {"model": pair.model, "prompt": [10] * 3000})

    wait_for(
        lambda: all(map(_is_at_rest, (pair.counted(role)[0] for role in (Role.PREFILL, Role.DECODE)))),
        what="both engines have nothing to do",
    )
    assert pair.signals().fallbacks == {}


def _is_at_rest(load: Load) -> bool:
    """Whether an engine has nothing to do at this moment: canaries come and go, what was left behind would stay."""
    return (load.running, load.waiting) == (0, 0)
