"""The check that every request passes first: is its key known? Counts by key, without ever holding one."""

from collections import Counter
from collections.abc import Mapping

from tandem_router.edge.keys import KeyRing
from tandem_router.edge.rates import Charge, Rates
from tandem_router.errors import ApiError

__all__ = ["ANYONE", "Guard"]

ANYONE = ""
"""The id of clients where no keys are asked for."""


class Guard:
    """Who may ask. `ring` is None where everyone may."""

    def __init__(self, ring: KeyRing | None, rates: Rates) -> None:
        self._ring = ring
        self.rates = rates
        self.limited: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.unauthorized: Counter[str] = Counter()
        self.reloads: Counter[tuple[str, str]] = Counter()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the keys that are known now."""
        return () if self._ring is None else self._ring.ids

    def admit(self, headers: Mapping[bytes, bytes]) -> str:
        """Return the id of the client's key.

        Raises:
            ApiError: 401, there is none or it is not known.
        """
        if self._ring is None:
            return ANYONE
        authorization = headers.get(b"authorization", b"")
        key = self._ring.identify(authorization)
        if key is None:
            self.unauthorized["unknown" if authorization else "missing"] += 1
            raise _refusal(given=bool(authorization))
        self.requests[key] += 1
        return key

    def charge(self, key: str, tokens: int) -> Charge:
        """Charge a request of about so many tokens to its key.

        Raises:
            ApiError: 429, the key has used up its rate.
        """
        try:
            return self.rates.take(key, tokens)
        except ApiError:
            self.limited[key] += 1
            raise


def _refusal(*, given: bool) -> ApiError:
    challenge = ((b"www-authenticate", b"Bearer"),)
    if given:
        message = "Incorrect API key provided: ask who runs this service for a key."
        return ApiError(401, message, code="invalid_api_key", headers=challenge)
    message = "You didn't provide an API key: send it in the header 'Authorization: Bearer KEY'."
    return ApiError(401, message, code="missing_api_key", headers=challenge)
