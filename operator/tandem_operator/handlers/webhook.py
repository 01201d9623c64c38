"""The optional admission webhook: refuses at `kubectl apply` what the operator would refuse afterwards, in the same words.

It only says sooner what the condition `Accepted` says; nothing relies on it. Whatever does not change a spec passes, so that
an object that an older version accepted can be labelled, scaled and deleted.
"""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tandem_operator.cluster import errors
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.webhook_certificate import Certificate, CertificatePlace, mounted, serving_certificate
from tandem_operator.cluster.webhook_trust import trust
from tandem_operator.handlers.serving import serving
from tandem_operator.reconcile.specs import judge
from tandem_operator.render.context import Settings

__all__ = ["PATH", "answer", "serve_webhook"]

PATH = "/validate"
"""Where reviews are answered; the chart's configuration names it."""
_LARGEST = 8 * 2**20
"""Bytes of a review, which holds the object twice; the API server stores none above 1.5 MiB."""
_BETWEEN_LOOKS = 10.0
_UNPROCESSABLE = 422
_logger = logging.getLogger(__name__)


def answer(review: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the AdmissionReview that answers another.

    Raises:
        KeyError: it is no AdmissionReview of an InferenceService.
        TypeError: likewise.
    """
    request = review["request"]
    response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
    after, before = request.get("object"), request.get("oldObject")
    if after is not None:
        _, verdict = judge(after["spec"], settings)
        if not verdict.accepted and (before is None or before["spec"] != after["spec"]):
            response |= {"allowed": False, "status": {"code": _UNPROCESSABLE, "message": verdict.message}}
        elif verdict.warnings:
            response["warnings"] = [warning.line for warning in verdict.warnings]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


@asynccontextmanager
async def serve_webhook(
    access: Access,
    place: CertificatePlace,
    *,
    configuration: str,
    settings: Settings,
    host: str | None,
    port: int,
    waiting: Callable[[str], None],
) -> AsyncIterator[None]:
    """Answer reviews over HTTPS, and keep the API server's trust in the certificate, as long as the context lasts.

    Args:
        access: The API server.
        place: Where the certificate is kept.
        configuration: Name of the ValidatingWebhookConfiguration that the chart made.
        settings: What the installation configured.
        host: Address to listen on; None for all.
        port: Port to listen on.
        waiting: Told why it takes longer until there is a certificate.
    """
    certificate = await serving_certificate(access, place, waiting=waiting)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, certificate)
    app = web.Application(client_max_size=_LARGEST)
    app.router.add_post(PATH, _handler(settings))
    async with serving(app, host, port, tls=context), asyncio.TaskGroup() as group:
        # In a group, because its unexpected end must end the operator: nobody would notice otherwise.
        keeping = group.create_task(_keep(access, place.folder, configuration, context, certificate))
        yield
        keeping.cancel()


def _handler(settings: Settings) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def validate(request: web.Request) -> web.StreamResponse:
        try:
            return web.json_response(answer(await request.json(), settings))
        except (ValueError, KeyError, TypeError) as error:
            return web.Response(status=400, text=f"this is no review of an InferenceService: {error!r}")

    return validate


async def _keep(access: Access, folder: Path, configuration: str, context: ssl.SSLContext, certificate: Certificate) -> None:
    """Load what is mounted when it changes, and have the API server trust it; what fails is tried again."""
    said = ""
    while True:
        problem = ""
        try:
            found = mounted(folder) or certificate
            if found != certificate:
                _load(context, found)
                certificate = found
                _logger.info("The webhook's certificate was renewed")
            await trust(access, configuration, certificate.authority)
        except (errors.ApiError, OSError) as error:
            problem = str(error)
        if problem and problem != said:
            _logger.warning("The webhook is not trusted by the API server yet", extra={"problem": problem})
        said = problem
        await asyncio.sleep(_BETWEEN_LOOKS)


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Use a certificate for connections from now on; OpenSSL reads it from files only.

    Raises:
        OSError: it cannot be used; `ssl.SSLError` is one.
    """
    with tempfile.TemporaryDirectory() as folder:
        chain, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        chain.write_bytes(certificate.chain)
        key.write_bytes(certificate.key)
        context.load_cert_chain(chain, key)
