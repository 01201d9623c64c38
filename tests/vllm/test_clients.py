"""A client that leaves takes its work with it."""

import http.client
import json
from urllib.parse import urlsplit

from support.deployed import wait_for
from support.real_engines import CHAT, Pair
from tandem_api.names import Role


def _open_stream(pair: Pair) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(pair.router).netloc, timeout=120)
    body = {
        "model": pair.model,
        "messages": [{"role": "user", "content": "Write a very long story about a ship."}],
        "max_tokens": 1500,
        "ignore_eos": True,
        "stream": True,
    }
    connection.request("POST", CHAT, json.dumps(body), {"content-type": "application/json"})
    return connection, connection.getresponse()


def test_a_client_that_leaves_within_its_answer_frees_both_engines(pair: Pair) -> None:
    connection, response = _open_stream(pair)
    while b'"content":"' not in response.readline():
        pass
    wait_for(lambda: pair.counted(Role.DECODE)[0].running == 1, what="the decode engine runs the request")
    cancelled = pair.signals().cancelled

    connection.close()
    response.close()

    wait_for(lambda: pair.counted(Role.DECODE)[0].idle, what="the decode engine is idle")
    wait_for(lambda: pair.counted(Role.PREFILL)[0].idle, what="the prefill engine is idle")
    wait_for(lambda: pair.signals().cancelled == cancelled + 1, what="the router counts a client that left")
