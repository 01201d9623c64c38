"""The token of a service, derived from the operator's key, so that the operator knows it without reading any Secret. Pure.

Whoever holds one service's token learns nothing of the key or of another's token.
"""

import hashlib
import hmac

__all__ = ["service_token"]


def service_token(key: bytes, *, namespace: str, name: str, uid: str) -> str:
    """Return the token of one InferenceService; another one of the same name, made later, has another."""
    return hmac.new(key, f"service-token/v1/{namespace}/{name}/{uid}".encode(), hashlib.sha256).hexdigest()
