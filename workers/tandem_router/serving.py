"""The public port: which path means what, and how a request becomes a run. Nothing here waits for an engine."""

import json
import logging
import re
from typing import Protocol

from tandem_router.edge.guard import ANYONE
from tandem_router.errors import ApiError
from tandem_router.http.exchange import Exchange
from tandem_router.http.messages import Headers
from tandem_router.passing import passed_call
from tandem_router.passing.passing import Passing
from tandem_router.requests import call as calls
from tandem_router.requests.request import JSON, Run, Tools

__all__ = ["Serving"]

_LOG = logging.getLogger("tandem_router.request")
_SAFE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_GENERATE = (calls.CHAT, calls.COMPLETIONS)
_MODELS = "/v1/models"
_OPEN = "/healthz"
"""Answered without a key."""
_METHODS = dict.fromkeys((*_GENERATE, *passed_call.PASSED), "POST") | {_MODELS: "GET", _OPEN: "GET"}


class _Work(Protocol):
    async def serve(self) -> None:
        """Answer the client."""


class Serving:
    """The handler of client connections."""

    def __init__(self, tools: Tools, *, started: float) -> None:
        self._tools = tools
        self._started = int(started)

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        # No name is kept for the request here: its body may be let go of while it is served.
        request_id = self._request_id(exchange.request.headers)
        headers: Headers = ((b"x-request-id", request_id.encode()),)
        key = ANYONE
        try:
            path = self._path(exchange.request.path)
            if path != _OPEN:
                key = self._tools.guard.admit(exchange.request.headers)
            self._check_route(exchange.request.method, path)
            work = self._work(exchange, path, request_id=request_id, headers=headers, key=key)
        except ApiError as error:
            self._refuse(exchange, error, headers, key=key)
            return
        if work is not None:
            await work.serve()
        elif path == _OPEN:
            exchange.respond(200, ((b"content-type", b"text/plain"), *headers), b"ok\n")
        else:
            exchange.respond(200, JSON + headers, json.dumps(self._models(path)).encode())

    def _work(self, exchange: Exchange, path: str, *, request_id: str, headers: Headers, key: str) -> _Work | None:
        """Return what an engine has to do for a request; None if the router answers it itself.

        Raises:
            ApiError: the request is wrong, or its key has used up its rate.
        """
        tools, model, raw = self._tools, self._tools.options.model, exchange.request.body
        guard = tools.guard
        if path in _GENERATE:
            call = calls.parse(path, raw, model)
            tokens = tools.ratio.estimate(call.text_bytes) if call.prompt_ids is None else call.prompt_ids
            charge = guard.charge(key, tokens)
            told = headers + guard.rates.headers(key)
            return Run(tools, exchange, call, request_id=request_id, headers=told, charge=charge)
        if path in passed_call.PASSED:
            passed = passed_call.parse(path, raw, model)
            guard.charge(key, tools.ratio.estimate(passed.text_bytes) if passed.reason else 0)
            told = headers + guard.rates.headers(key)
            return Passing(tools, exchange, passed, request_id=request_id, headers=told, key=key)
        return None

    def _path(self, path: str) -> str:
        """The path as it is known here; one model has a page of its own."""
        return path if path != f"{_MODELS}/{self._tools.options.model}" else _MODELS + "/"

    def _request_id(self, headers: dict[bytes, bytes]) -> str:
        """The client's id where it is harmless, else one of ours; engines only ever get ids of ours."""
        sent = headers.get(b"x-request-id", b"")
        return sent.decode() if _SAFE_ID.fullmatch(sent) else self._tools.ids()

    def _check_route(self, method: str, path: str) -> None:
        wanted = _METHODS.get(path.removesuffix("/") if path == _MODELS + "/" else path)
        if wanted is None:
            served = ", ".join(_METHODS)
            raise ApiError(404, f"There is nothing at this path; served are {served}.", code="not_found")
        if method != wanted and not (wanted == "GET" and method == "HEAD"):
            allow = ((b"allow", wanted.encode()),)
            raise ApiError(405, f"{path} takes {wanted} only.", code="method_not_allowed", headers=allow)

    def _refuse(self, exchange: Exchange, error: ApiError, headers: Headers, *, key: str) -> None:
        self._tools.signals.rejected += 1
        exchange.respond(error.status, JSON + headers + error.headers(), error.body())
        named = {"key": key} if key else {}
        fields = {
            "request": headers[0][1].decode(),
            **named,
            "outcome": "client_error",
            "status": error.status,
            "code": error.code,
        }
        _LOG.info("Request was refused", extra={"fields": fields})

    def _models(self, path: str) -> dict[str, object]:
        model = {"id": self._tools.options.model, "object": "model", "created": self._started, "owned_by": "tandem"}
        return {"object": "list", "data": [model]} if path == _MODELS else model
