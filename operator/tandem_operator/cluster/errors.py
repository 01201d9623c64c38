"""What can go wrong on the way to the API server, by what the caller should do about it.

    ApiError                   try again with back-off
    +-- NotFoundError          the object is gone
    +-- ConflictError          read again, then try again
    +-- InvalidError           the object is refused: the message says which field; the same object is refused again
    +-- ForbiddenError         a permission or quota is missing: the message names it
    +-- GoneError              the list is too old: list again
    +-- TooManyRequestsError   wait for `retry_after` seconds
    +-- NotLeadingError        not sent: this process does not hold the Lease, or no longer
    +-- UnavailableError       no or no usable answer: the API server, or the way to it
    NameTakenError             an object of that name belongs to someone else

The message is the API server's own, which names the object and the field; request bodies are never in it.
"""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ApiError",
    "ConflictError",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "NameTakenError",
    "NotFoundError",
    "NotLeadingError",
    "TooManyRequestsError",
    "UnavailableError",
    "from_status",
]

_LONGEST_WAIT = 60.0


class ApiError(Exception):
    """The API server did not do what was asked."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the API server asked to wait, if it did."""


class NotFoundError(ApiError):
    """No such object."""


class ConflictError(ApiError):
    """The object changed meanwhile, or a precondition does not hold."""


class InvalidError(ApiError):
    """The object is refused as it is."""


class ForbiddenError(ApiError):
    """A permission is missing."""


class GoneError(ApiError):
    """The list's continuation or the watch's version is too old."""


class TooManyRequestsError(ApiError):
    """The API server asks to come back later."""


class NotLeadingError(ApiError):
    """A write was not sent, because another process may lead by now."""


class UnavailableError(ApiError):
    """No answer, or one that says the server cannot answer now."""


class NameTakenError(Exception):
    """A child cannot be made, because an object of its name belongs to someone else."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidError,
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def from_status(status: int, body: Any, *, what: str, retry_after: str | None) -> ApiError:
    """Return the error for an HTTP status.

    Args:
        status: HTTP status, 400 or above.
        body: parsed body; its `message` is used if it is a Kubernetes Status.
        what: the call, as `patch apps/deployments ns/name`.
        retry_after: the header of that name.
    """
    known = isinstance(body, Mapping) and body.get("kind") == "Status"
    message = str(body.get("message", "")) if known else ""
    kind = _BY_STATUS.get(status, UnavailableError if status >= 500 else ApiError)  # noqa: PLR2004  # HTTP's server errors
    return kind(f"{what}: HTTP {status} {message}".rstrip(), retry_after=_seconds(retry_after))


def _seconds(retry_after: str | None) -> float | None:
    if retry_after is None or not retry_after.isdecimal():
        return None
    return min(float(retry_after), _LONGEST_WAIT)
