"""Tells the API server which authority vouches for the webhook, in the configuration that the chart made."""

import base64

from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access, Call
from tandem_operator.cluster.managers import CHILDREN

__all__ = ["trust"]

_JSON_PATCH = "application/json-patch+json"


async def trust(access: Access, configuration: str, authority: bytes) -> bool:
    """Write the authority into every webhook of a configuration that has another one; return whether there was any.

    Raises:
        ApiError: the configuration cannot be read or written.
    """
    wanted, kind = base64.b64encode(authority).decode(), kinds.VALIDATING_WEBHOOK_CONFIGURATION
    found = await access.call(Call("get", kind, name=configuration))
    changes = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": wanted}
        for index, webhook in enumerate(found.get("webhooks") or ())
        if webhook["clientConfig"].get("caBundle") != wanted
    ]
    if not changes:
        return False
    # The list must still be the one that was read.
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]}
    call = Call("patch", kind, name=configuration, query={"fieldManager": CHILDREN})
    await access.call(call, body=[same, *changes], content_type=_JSON_PATCH)
    return True
