"""What can go wrong with a request, in three families by meaning.

ApiError       the client gets this answer; nothing more is tried
ClientFault    an engine refused the request itself (4xx): passed on as the engine wrote it
EngineFailure  a leg failed; the driver decides whether another attempt is made

Texts are for the people who call the API or run the service. None holds the content of a request.
"""

import json
from enum import StrEnum
from http import HTTPStatus

from tandem_router.http.messages import Headers

__all__ = ["ApiError", "ClientFault", "EngineFailure", "Kind", "error_body", "no_capacity", "out_of_attempts", "overloaded"]


class Kind(StrEnum):
    """How a leg failed; the second half of a fallback's reason, so the set is bounded."""

    REFUSED = "refused"
    CONNECT_TIMEOUT = "connect_timeout"
    STALE = "stale_connection"
    RESET = "reset"
    TIMEOUT = "timeout"
    STATUS = "status"
    BAD_ANSWER = "bad_answer"
    NO_PARAMETERS = "no_parameters"
    ERROR_EVENT = "error_event"
    ABORTED = "aborted"
    EMPTY = "empty"
    CUT = "cut"
    STALLED = "stalled"
    DRAINED = "drained"


class ApiError(Exception):
    """An OpenAI-style error answer."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: int | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self._headers = headers

    def headers(self) -> Headers:
        """The headers that belong to the answer, besides those of every answer."""
        wait: Headers = () if self.retry_after is None else ((b"retry-after", b"%d" % self.retry_after),)
        return wait + self._headers

    def body(self) -> bytes:
        """The JSON answer."""
        return error_body(self.status, self.message, code=self.code, param=self.param)


class ClientFault(Exception):  # noqa: N818 - it is the client's fault, no error of ours
    """An engine found the request itself wrong; `body` is its own explanation."""

    def __init__(self, status: int, content_type: bytes, body: bytes) -> None:
        super().__init__(f"the engine answered {status}")
        self.status = status
        self.content_type = content_type
        self.body = body


class EngineFailure(Exception):  # noqa: N818 - a failed leg is an expected event, most requests survive it
    """One leg failed. `reached` says whether any byte of the request may have reached the engine."""

    def __init__(self, kind: Kind, detail: str, *, reached: bool = True) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.reached = reached


def error_body(status: int, message: str, *, code: str, param: str | None = None) -> bytes:
    """An OpenAI-style error object, also the payload of an SSE error event."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        kind = "rate_limit_error"
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = "server_error"
    else:
        kind = "invalid_request_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}}).encode()


def no_capacity(missing: str, *, retry_after: int) -> ApiError:
    """No worker could take the request within the time a request may wait."""
    return ApiError(
        503, f"The service has no capacity right now: {missing}. Retry later.", code="no_capacity", retry_after=retry_after
    )


def overloaded(why: str, *, retry_after: int) -> ApiError:
    """The service is busy, and waiting would not help; told at arrival wherever it can be foreseen."""
    return ApiError(429, f"The service is busy: {why}. Retry later.", code="overloaded", retry_after=retry_after)


def out_of_attempts(leg: str, failure: EngineFailure, *, retry_after: int) -> ApiError:
    """Every permitted attempt failed; the last failure is named by its kind, its stage and nothing of its content."""
    return ApiError(
        503,
        f"The {leg} stage failed ({failure.kind.value}) and no further attempt was possible. Retry later.",
        code=f"{leg}_failed",
        retry_after=retry_after,
    )
