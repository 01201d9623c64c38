"""The Secret with a service's token."""

import base64
from typing import Any

from tandem_api import names
from tandem_operator.render import labels, templating
from tandem_operator.render.context import Owner

__all__ = ["render_token"]


def render_token(owner: Owner, token: str) -> dict[str, Any]:
    """Return the Secret, to be made once: it is immutable, and the operator may not read it."""
    return templating.render(
        "token-secret",
        {
            "name": names.token_secret(owner.name, owner.uid),
            "namespace": owner.namespace,
            "owner": owner.reference(),
            "labels": labels.metadata_labels(owner.name, labels.ROUTER),
            "token": base64.b64encode(token.encode()).decode(),
        },
    )
