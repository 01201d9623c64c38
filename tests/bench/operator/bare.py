"""The bare loop: applies the same objects through the same transport, and does nothing else.

It knows nothing of what is there, renders before the clock starts, writes no status and answers nobody. What the operator
takes beyond it is the price of deciding.
"""

import time
from typing import Any

from bench.operator import children
from bench.operator.cases import Suite, services
from bench.operator.crowd import for_each
from bench.operator.plane import Plane, transport
from tandem_operator.cluster import kinds, managers
from tandem_operator.cluster.access import APPLY, Access, Call
from tandem_operator.cluster.secrets import make_secret

__all__ = ["apply_all"]

_QUERY = {"fieldManager": managers.CHILDREN, "force": "true"}


async def apply_all(plane: Plane, suite: Suite) -> float:
    """Create all services and, as the operator's account, apply their children; return the seconds from first to last."""
    prepared = [(tree, list(children.applied(tree, "uid")), children.token(tree, "uid")) for tree in services(suite.services)]
    async with transport(plane.admin) as user, transport(plane.account) as access:

        async def bring(item: tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]) -> None:
            tree, applied, token = item
            made = await user.call(Call("create", kinds.INFERENCE_SERVICE, tree["metadata"]["namespace"]), body=tree)
            await make_secret(access, _owned(token, made["metadata"]["uid"]))
            for child in applied:
                await _apply(access, _owned(child, made["metadata"]["uid"]))

        began = time.monotonic()
        await for_each(prepared, bring, at_once=suite.at_once)
        return time.monotonic() - began


def _owned(tree: dict[str, Any], uid: str) -> dict[str, Any]:
    for owner in tree["metadata"]["ownerReferences"]:
        owner["uid"] = uid
    return tree


async def _apply(access: Access, tree: dict[str, Any]) -> None:
    metadata = tree["metadata"]
    call = Call("patch", kinds.of(tree), metadata["namespace"], metadata["name"], query=_QUERY)
    await access.call(call, body=tree, content_type=APPLY)
