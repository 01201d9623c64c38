"""The service's token, from a file to where the engine looks for it: an environment that only this process has.

A container's environment would show it to whoever may read pods; the argument line would show it to the whole node.
"""

from pathlib import Path

from tandem_launcher.failures import Failure, Reason

__all__ = ["API_KEY", "read_token"]

API_KEY = "VLLM_API_KEY"
"""With this variable vLLM asks for a bearer token on every path under /v1."""


def read_token(path: Path) -> str:
    """Return the token.

    Raises:
        Failure: the file cannot be read or is empty.
    """
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise Failure(
            Reason.NO_TOKEN, f"the service's token cannot be read ({error}): restart the operator, which makes it"
        ) from error
    if not token:
        raise Failure(Reason.NO_TOKEN, f"{path} holds no token: delete its Secret and restart the operator, which makes it")
    return token
