"""Sees to it that each service has its token, before anything that shows or asks for it is made."""

from tandem_operator.cluster.access import Access
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.secrets import make_secret
from tandem_operator.cluster.store import ServiceKey
from tandem_operator.policies.tokens import service_token
from tandem_operator.render.context import Owner
from tandem_operator.render.token import render_token

__all__ = ["Tokens"]


class Tokens:
    """The tokens of all services. What was made is remembered, so that a pass in a steady state asks nothing."""

    def __init__(self, access: Access, key: bytes) -> None:
        """Derive tokens from `key`."""
        self._access = access
        self._key = key
        self._made: dict[ServiceKey, str] = {}

    def of(self, service: Observed) -> str:
        """Return the token that the routers of a service ask for."""
        return service_token(self._key, namespace=service.namespace, name=service.name, uid=service.uid)

    async def ensure(self, service: Observed) -> None:
        """Make the Secret with a service's token, once in the life of this process.

        Raises:
            ApiError: it could not be made.
        """
        where = (service.namespace, service.name)
        if self._made.get(where) == service.uid:
            return
        owner = Owner(service.name, service.namespace, service.uid)
        await make_secret(self._access, render_token(owner, self.of(service)))
        self._made[where] = service.uid

    def forget(self, where: ServiceKey) -> None:
        """A service is gone."""
        self._made.pop(where, None)
