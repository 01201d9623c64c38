"""The public port: which path means what, and how a request becomes a run. Nothing here waits for an engine."""

import json
import logging
import re
from http import HTTPStatus

from tandem_router import call as calls
from tandem_router.errors import ApiError
from tandem_router.http.exchange import Exchange
from tandem_router.http.messages import Headers
from tandem_router.request import JSON, Run, Tools

__all__ = ["Serving"]

_LOG = logging.getLogger("tandem_router.request")
_SAFE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_GENERATE = (calls.CHAT, calls.COMPLETIONS)
_METHODS = {calls.CHAT: "POST", calls.COMPLETIONS: "POST", "/v1/models": "GET", "/healthz": "GET"}


class Serving:
    """The handler of client connections."""

    def __init__(self, tools: Tools, *, started: float) -> None:
        self._tools = tools
        self._started = int(started)

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        request_id = self._request_id(request.headers)
        headers: Headers = ((b"x-request-id", request_id.encode()),)
        try:
            self._check_route(request.method, request.path)
            if request.path in _GENERATE:
                call = calls.parse(request.path, request.body, self._tools.options.model)
        except ApiError as error:
            self._refuse(exchange, error, headers)
            return
        if request.path in _GENERATE:
            await Run(self._tools, exchange, call, request_id=request_id, headers=headers).serve()
        elif request.path == "/v1/models":
            exchange.respond(200, JSON + headers, self._models())
        else:
            exchange.respond(200, ((b"content-type", b"text/plain"), *headers), b"ok\n")

    def _request_id(self, headers: dict[bytes, bytes]) -> str:
        """The client's id where it is harmless, else one of ours; engines only ever get ids of ours."""
        sent = headers.get(b"x-request-id", b"")
        return sent.decode() if _SAFE_ID.fullmatch(sent) else self._tools.ids()

    def _check_route(self, method: str, path: str) -> None:
        wanted = _METHODS.get(path)
        if wanted is None:
            served = ", ".join(_METHODS)
            raise ApiError(404, f"There is nothing at this path; served are {served}.", code="not_found")
        if method != wanted and not (wanted == "GET" and method == "HEAD"):
            raise ApiError(405, f"{path} takes {wanted} only.", code="method_not_allowed")

    def _refuse(self, exchange: Exchange, error: ApiError, headers: Headers) -> None:
        self._tools.signals.rejected += 1
        wrong_method = error.status == HTTPStatus.METHOD_NOT_ALLOWED
        extra: Headers = ((b"allow", _METHODS[exchange.request.path].encode()),) if wrong_method else ()
        exchange.respond(error.status, JSON + headers + extra, error.body())
        fields = {"request": headers[0][1].decode(), "outcome": "client_error", "status": error.status, "code": error.code}
        _LOG.info("Request was refused", extra={"fields": fields})

    def _models(self) -> bytes:
        model = {"id": self._tools.options.model, "object": "model", "created": self._started, "owned_by": "tandem"}
        return json.dumps({"object": "list", "data": [model]}).encode()
