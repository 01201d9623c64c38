"""The service's own token: what router, workers and operator show each other, so that nobody else in the cluster may ask.

It is not an API key: clients never have it, and it opens what no API key opens. Probes need none, since a kubelet has none.
Only the agreement stands here; every program guards its own port.
"""

import hmac
from pathlib import Path

__all__ = ["REFUSAL", "bearer", "opens", "read_token"]

REFUSAL = {"error": "show the service's token: Authorization: Bearer TOKEN"}
"""The body of the 401 for everybody else."""
_OPEN = frozenset({"/healthz", "/readyz"})


def read_token(path: Path) -> str:
    """Read the token from its file.

    Raises:
        OSError: it cannot be read.
        ValueError: there is none in it.
    """
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ValueError(f"{path} holds no token")
    return token


def bearer(token: str | None) -> dict[str, str]:
    """The header that shows a token; none without one."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


def opens(path: str, shown: str, token: str) -> bool:
    """Whether a path may be asked for by who shows this `authorization`. The time it takes tells nothing of the token."""
    wanted = bearer(token)["authorization"].encode()
    return path in _OPEN or hmac.compare_digest(shown.encode("utf-8", "replace"), wanted)
