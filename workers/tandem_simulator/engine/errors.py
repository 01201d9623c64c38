"""Errors as vLLM answers them: an OpenAI-style body with message, type, param and the status once more."""

import json
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

__all__ = ["APIError", "context_exceeded", "internal", "invalid_request", "not_json", "shutting_down", "unknown_model"]


class APIError(Exception):
    """A request that is answered with an error.

    Attributes:
        status: HTTP status; also the body's `code`.
    """

    def __init__(self, message: str, *, kind: str = "BadRequestError", status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.param = param

    def body(self) -> dict[str, Any]:
        """The JSON body."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.status}}


def internal() -> APIError:
    """An internal error of one request, which may be tried again."""
    return APIError("Internal server error", kind="InternalServerError", status=500)


def shutting_down() -> APIError:
    """A request that comes after SIGTERM; vLLM 0.32 answers it with this, while /health stays 200."""
    return APIError("cannot schedule new futures after shutdown", kind="InternalServerError", status=500)


def unknown_model(name: str, served: tuple[str, ...]) -> APIError:
    """A model name that is not served."""
    message = f"The model `{name}` does not exist. Valid aliases: {', '.join(served)}."
    return APIError(message, kind="NotFoundError", status=404, param="model")


def context_exceeded(prompt_tokens: int, limit: int, *, param: str = "input_tokens") -> APIError:
    """A prompt that leaves no room for an answer."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your prompt contains {prompt_tokens} input tokens,"
        " which exceeds this limit even without any output tokens. Please reduce the length of the input prompt."
    )
    return APIError(f"{message} (parameter={param}, value={prompt_tokens})", param=param)


def invalid_request(error: ValidationError) -> APIError:
    """A body that does not fit the request's schema."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [str({**problem, "loc": _path(problem["loc"])}) for problem in problems[:10]]
    plural = "error" if len(problems) == 1 else "errors"
    message = f"{len(problems)} validation {plural}:\n  " + "\n  ".join(lines)
    return APIError(message, kind=HTTPStatus.BAD_REQUEST.phrase, param=_path(problems[0]["loc"]))


def not_json(error: ValueError) -> APIError:
    """A body that cannot be read at all."""
    at = error.pos if isinstance(error, json.JSONDecodeError) else 0
    message = f"1 validation error:\n  {{'type': 'json_invalid', 'loc': 'body.{at}', 'msg': 'JSON decode error: {error}'}}"
    return APIError(message, kind=HTTPStatus.BAD_REQUEST.phrase, param=f"body.{at}")


def _path(location: tuple[int | str, ...]) -> str:
    # pydantic names the branches of a union within the path; they are no fields.
    return ".".join(["body", *(str(part) for part in location if "[" not in str(part) and part not in ("str", "int"))])
