"""HTTP in front of the engine: vLLM's routes, statuses and server-sent events."""

import json
import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from tandem_simulator.engine import tokens
from tandem_simulator.engine.answers import DONE, Stream, Whole, error_event
from tandem_simulator.engine.config import VERSION, EngineConfig
from tandem_simulator.engine.core import EngineCore
from tandem_simulator.engine.errors import APIError, internal, invalid_request, not_json, shutting_down, unknown_model
from tandem_simulator.engine.faults import Fault, FaultRequest, Faults
from tandem_simulator.engine.jobs import Job, prepare, remote_blocks
from tandem_simulator.engine.metrics import Metrics
from tandem_simulator.engine.prompts import render_chat
from tandem_simulator.engine.requests import ChatRequest, CompletionRequest, DetokenizeRequest, TokenizeRequest
from tandem_simulator.engine.sequences import Finish
from tandem_simulator.engine.tampering import Tampering

__all__ = ["Server"]

_Model = TypeVar("_Model", bound=BaseModel)
_BODY_LIMIT = 64 * 1024 * 1024


class Server:
    """The web application of one engine.

    Args:
        config: The engine's settings.
        core: The engine.
        metrics: Rendered at /metrics.
        faults: What goes wrong on purpose.
        clock: Seconds, monotonic.
        die: Ends the process as SIGKILL would.
        api_key: What every path under /v1 asks for; None asks for nothing.
    """

    def __init__(
        self,
        config: EngineConfig,
        core: EngineCore,
        *,
        metrics: Metrics,
        faults: Faults,
        clock: Callable[[], float],
        die: Callable[[], None],
        api_key: str | None = None,
    ) -> None:
        self._config = config
        self._core = core
        self._metrics = metrics
        self._faults = faults
        self._clock = clock
        self._die = die
        self._api_key = api_key
        self._ready_at = clock() + config.startup
        self.closing = False

    def application(self) -> web.Application:
        """Routes and error handling."""
        application = web.Application(client_max_size=_BODY_LIMIT, middlewares=[_answer_errors, self._check_key])
        router = application.router
        router.add_get("/health", self._health)
        router.add_get("/metrics", self._show_metrics)
        router.add_get("/version", self._version)
        router.add_get("/v1/models", self._models)
        router.add_post("/v1/chat/completions", self._chat)
        router.add_post("/v1/completions", self._completion)
        router.add_post("/tokenize", self._tokenize)
        router.add_post("/detokenize", self._detokenize)
        if self._config.admin:
            router.add_get("/sim/faults", self._show_faults)
            router.add_post("/sim/faults", self._add_fault)
            router.add_delete("/sim/faults", self._clear_faults)
        return application

    @web.middleware
    async def _check_key(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        shown = request.headers.get("authorization", "")
        if self._api_key is not None and request.path.startswith("/v1") and shown != f"Bearer {self._api_key}":
            return _json({"error": "Unauthorized"}, HTTPStatus.UNAUTHORIZED)
        return await handler(request)

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(status=HTTPStatus.OK if self._ready() else HTTPStatus.SERVICE_UNAVAILABLE)

    def _ready(self) -> bool:
        now = self._clock()
        return now >= self._ready_at and not self._faults.on(Fault.SLOW_START, now)

    async def _show_metrics(self, _: web.Request) -> web.Response:
        self._metrics.observe_load(self._core.load())
        return web.Response(body=self._metrics.render(), headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"})

    async def _version(self, _: web.Request) -> web.Response:
        return _json({"version": VERSION})

    async def _models(self, _: web.Request) -> web.Response:
        return _json({"object": "list", "data": [_model_card(name, self._config) for name in self._config.served_names]})

    async def _tokenize(self, raw: web.Request) -> web.Response:
        request = await self._parse(raw, TokenizeRequest)
        ids = tokens.encode(request.prompt or "")
        if request.messages is not None:
            ids = render_chat(
                request.messages,
                add_generation_prompt=request.add_generation_prompt,
                continue_final_message=request.continue_final_message,
            )
        strings = [tokens.decode([token], skip_special=False) for token in ids] if request.return_token_strs else None
        return _json({"count": len(ids), "max_model_len": self._config.max_model_len, "tokens": ids, "token_strs": strings})

    async def _detokenize(self, raw: web.Request) -> web.Response:
        request = await self._parse(raw, DetokenizeRequest)
        if any(token >= tokens.VOCABULARY for token in request.tokens):
            raise APIError(f"Token id {max(request.tokens)} is out of vocabulary", param="tokens")
        return _json({"prompt": tokens.decode(request.tokens, skip_special=False)})

    async def _chat(self, raw: web.Request) -> web.StreamResponse:
        return await self._generate(raw, await self._parse(raw, ChatRequest))

    async def _completion(self, raw: web.Request) -> web.StreamResponse:
        return await self._generate(raw, await self._parse(raw, CompletionRequest))

    async def _parse(self, raw: web.Request, model: type[_Model]) -> _Model:
        if raw.content_type != "application/json":
            raise APIError("Unsupported Media Type: Only 'application/json' is allowed", kind=HTTPStatus.BAD_REQUEST.phrase)
        try:
            body = json.loads(await raw.read())
        except ValueError as error:
            raise not_json(error) from None
        try:
            request = model.model_validate(body)
        except ValidationError as error:
            self._drop_remote(body)
            raise invalid_request(error) from None
        name = getattr(request, "model", None)
        if name and name not in self._config.served_names:
            self._drop_remote(body)
            raise unknown_model(name, self._config.served_names)
        return request

    async def _generate(self, raw: web.Request, request: ChatRequest | CompletionRequest) -> web.StreamResponse:
        if self.closing:
            self._drop_remote(request.model_dump())
            raise shutting_down()
        now = self._clock()
        if not self._ready() or self._faults.strikes(Fault.REFUSE, now):
            raise _busy()
        request_id = raw.headers.get("X-Request-Id") or request.request_id or secrets.token_hex(8)
        try:
            job = prepare(request, self._config, request_id=request_id, clock=self._clock)
        except APIError:
            self._drop_remote(request.model_dump())
            raise
        tampering = Tampering(self._faults, now=now, die=self._die)
        tampering.check_prompt(job)
        return await self._answer(raw, job, tampering)

    async def _answer(self, raw: web.Request, job: Job, tampering: Tampering) -> web.StreamResponse:
        for sequence in job.sequences:
            self._core.submit(sequence)
        try:
            if job.request.stream:
                return await self._stream(raw, job, tampering)
            return _json(await self._whole(job, tampering))
        finally:
            for sequence in job.sequences:
                self._core.abort(sequence)

    async def _whole(self, job: Job, tampering: Tampering) -> dict[str, Any]:
        answer = Whole(job, self._config)
        open_choices = len(job.sequences)
        while open_choices:
            delta = await job.sink.get()
            tampering.check_delta(delta)
            if delta.finish is Finish.ERROR:
                raise internal()
            answer.add(delta)
            open_choices -= delta.finish is not None
        return answer.body()

    async def _stream(self, raw: web.Request, job: Job, tampering: Tampering) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(raw)
        stream = Stream(job, self._config)
        open_choices = len(job.sequences)
        try:
            while open_choices:
                delta = await job.sink.get()
                if tampering.cuts(delta):
                    _cut(raw)
                    return response
                await response.write(stream.begin())
                tampering.check_delta(delta)
                if delta.finish is Finish.ERROR:
                    raise internal()
                await response.write(stream.event(delta))
                open_choices -= delta.finish is not None
            await response.write(b"".join(stream.end()))
        except APIError as error:
            await response.write(error_event(error) + DONE)
        await response.write_eof()
        return response

    def _drop_remote(self, body: Any) -> None:
        params = body.get("kv_transfer_params") if isinstance(body, dict) and self._config.kv_transfer else None
        try:
            remote = remote_blocks(params if isinstance(params, dict) else None)
        except APIError:
            return
        if remote is not None:
            self._core.reject(remote)

    async def _show_faults(self, _: web.Request) -> web.Response:
        return _json({"faults": self._faults.listing(self._clock())})

    async def _add_fault(self, raw: web.Request) -> web.Response:
        request = await self._parse(raw, FaultRequest)
        if request.fault is Fault.EXPIRE_LEASES:
            if self._core.producer is not None:
                self._core.producer.expire(everything=True)
        elif request.fault is Fault.DIE and request.after_tokens == 0 and request.count is None:
            self._die()
        else:
            self._faults.add(request, self._clock())
        return await self._show_faults(raw)

    async def _clear_faults(self, raw: web.Request) -> web.Response:
        self._faults.clear()
        return await self._show_faults(raw)


def _cut(raw: web.Request) -> None:
    if raw.transport is not None:
        raw.transport.abort()


def _busy() -> APIError:
    message = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
    return APIError(message, kind=HTTPStatus.SERVICE_UNAVAILABLE.phrase, status=503)


def _json(body: dict[str, Any], status: int = 200) -> web.Response:
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return web.Response(body=data, status=status, content_type="application/json")


def _model_card(name: str, config: EngineConfig) -> dict[str, Any]:
    permission = {
        "id": f"modelperm-{secrets.token_hex(8)}",
        "object": "model_permission",
        "created": 0,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "vllm",
        "root": config.model,
        "parent": None,
        "max_model_len": config.max_model_len,
        "permission": [permission],
    }


@web.middleware
async def _answer_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except APIError as error:
        return _json(error.body(), error.status)
    except web.HTTPException as error:
        return _json({"detail": error.reason}, error.status)
