"""Whether KV cache really moves between the roles, judged by requests and not by pods."""

from tandem_api.fields import Condition
from tandem_operator.policies.availability import condition
from tandem_operator.policies.reasons import ConditionType, Reason
from tandem_operator.policies.scaling.signals import Window

__all__ = ["transfer_condition"]

_FAILING_SHARE = 0.2
"""Share of requests that left the planned path from which the path counts as failing."""
_FAILING_LEAST = 5
"""Requests that must have left it, so that one restarted worker is no verdict."""


def transfer_condition(measured: Window | None, previous: Condition | None) -> Condition:
    """Return whether KV cache moves; what was last known stays known while no request uses both roles."""
    kind = ConditionType.KV_TRANSFER_HEALTHY
    left = sum(measured.left_path.values()) if measured else 0
    moved = measured.handed_over if measured else 0
    if measured and left >= _FAILING_LEAST and left >= _FAILING_SHARE * (left + moved):
        ways = ", ".join(sorted(measured.left_path))
        message = f"Requests leave the planned path: {ways}. See the logs of the kv-transfer containers and of the router."
        return condition(kind, "False", Reason.TRANSFER_FAILING, message)
    if moved:
        return condition(kind, "True", Reason.TRANSFERRING, "KV cache moves from prefill to decode workers.")
    if previous is not None:
        return previous
    message = "No request has used both roles yet; one with a prompt of at least `kvTransfer.minPromptTokens` will."
    return condition(kind, "Unknown", Reason.NO_TRANSFER_SEEN, message)
