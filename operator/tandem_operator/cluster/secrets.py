"""Makes Secrets, which is all that the operator may do with them: it reads, changes and lists none."""

from typing import Any

from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.access import Access, Call

__all__ = ["make_secret"]


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
