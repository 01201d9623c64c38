"""Whether KV cache really moves between the roles, judged by requests and canaries and not by pods."""

from collections.abc import Sequence

from tandem_api.fields import Condition
from tandem_api.wire import PairHealth
from tandem_operator.policies.availability import condition
from tandem_operator.policies.reasons import ConditionType, Reason
from tandem_operator.policies.scaling.signals import Window

__all__ = ["transfer_condition"]

_FAILING_SHARE = 0.2
"""Share of requests that left the planned path from which the path counts as failing."""
_FAILING_LEAST = 5
"""Requests that must have left it, so that one restarted worker is no verdict."""

_NAMED = 4
"""Pairs named in one message."""


def transfer_condition(measured: Window | None, previous: Condition | None) -> Condition:
    """Return whether KV cache moves; what was last known stays known while neither request nor canary uses both roles."""
    kind = ConditionType.KV_TRANSFER_HEALTHY
    left = sum(measured.left_path.values()) if measured else 0
    moved = measured.handed_over if measured else 0
    if measured and measured.dead_pairs:
        return condition(kind, "False", *_of_dead_pairs(measured.dead_pairs))
    if measured and left >= _FAILING_LEAST and left >= _FAILING_SHARE * (left + moved):
        ways = ", ".join(sorted(measured.left_path))
        message = f"Requests leave the planned path: {ways}. See the logs of the kv-transfer containers and of the router."
        return condition(kind, "False", Reason.TRANSFER_FAILING, message)
    if moved or (measured and measured.proven_pairs):
        return condition(kind, "True", Reason.TRANSFERRING, "KV cache moves from prefill to decode workers.")
    if previous is not None:
        return previous
    message = (
        "No request has used both roles yet, and no canary was pulled; a request with a prompt of at least "
        "`kvTransfer.minPromptTokens` will use both."
    )
    return condition(kind, "Unknown", Reason.NO_TRANSFER_SEEN, message)


def _of_dead_pairs(pairs: Sequence[PairHealth]) -> tuple[Reason, str]:
    """Engines that differ come first: no waiting mends them."""
    differing = [pair for pair in pairs if pair.differs]
    failing = [pair for pair in pairs if not pair.differs]
    if not differing:
        return Reason.PAIR_FAILING, _of_failing(failing)
    return Reason.FINGERPRINT_MISMATCH, " ".join([_of_differing(differing), *([_of_failing(failing)] if failing else [])])


def _of_differing(pairs: Sequence[PairHealth]) -> str:
    named = "; ".join(
        f"'{pair.prefill}' and '{pair.decode}': "
        + ", ".join(f"{name} is '{ours}' and '{theirs}'" for name, (ours, theirs) in sorted(pair.differs.items()))
        for pair in pairs[:_NAMED]
    )
    return (
        f"Engines of one KV group differ and are not paired. {named}{_more(pairs)}. Was the image's tag or the model's branch "
        "moved? Name the image by digest and the model's revision by commit, or delete the older pods."
    )


def _more(pairs: Sequence[PairHealth]) -> str:
    return f" and {len(pairs) - _NAMED} more" if len(pairs) > _NAMED else ""


def _of_failing(pairs: Sequence[PairHealth]) -> str:
    named = ", ".join(f"from '{pair.prefill}' to '{pair.decode}' ({pair.reason})" for pair in pairs[:_NAMED])
    more = _more(pairs)
    way = "Requests take other pairs." if all(pair.left_out for pair in pairs) else "There is no other pair for all requests."
    return f"KV cache does not move {named}{more}. {way} See the logs of the kv-transfer containers of both pods."
