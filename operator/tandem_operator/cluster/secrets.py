"""Makes Secrets, which is all that the operator may do with them: it reads, changes and lists none."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.access import Access, Call

__all__ = ["make_secret", "mounted_or_made"]

Held = TypeVar("Held")
_PAUSE = 2.0
_logger = logging.getLogger(__name__)


async def make_secret(access: Access, tree: dict[str, Any]) -> bool:
    """Make a Secret unless there is one of its name; return whether this call made it.

    Raises:
        ApiError: it could not be made.
    """
    metadata = tree["metadata"]
    try:
        await access.call(Call("create", kinds.SECRET, metadata["namespace"], metadata["name"]), body=tree)
    except errors.ConflictError:
        return False
    return True


async def mounted_or_made(
    access: Access,
    what: str,
    *,
    mounted: Callable[[], Held | None],
    make: Callable[[], Held],
    tree: Callable[[Held], dict[str, Any]],
    waiting: Callable[[str], None],
) -> Held:
    """Return what a Secret holds, as the kubelet mounted it; make the Secret if there is none.

    Args:
        access: The API server.
        what: What it is, for messages.
        mounted: Reads what is mounted; None if nothing is. An `OSError` is waited out.
        make: Makes a new one.
        tree: The Secret that holds it.
        waiting: Told why it takes longer, such as until what another process made is mounted.
    """
    while True:
        try:
            if (found := mounted()) is not None:
                return found
            made = make()
            secret = tree(made)
            name, namespace = secret["metadata"]["name"], secret["metadata"]["namespace"]
            if await make_secret(access, secret):
                _logger.info("A Secret was made", extra={"what": what, "namespace": namespace, "secret": name})
                return made
            waiting(f"Secret '{name}' exists and was not mounted yet")
        except (errors.ApiError, OSError) as error:
            waiting(f"{what} could neither be read nor made: {error}")
        await asyncio.sleep(_PAUSE)
