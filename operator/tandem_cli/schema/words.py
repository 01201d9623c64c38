"""Pages about words that Tandem uses: reasons of conditions, decisions and advice, and the numbers behind each profile.

Made from the operator's own lists, so that a reason that can be written is documented.
"""

import ast
import inspect
from collections.abc import Iterator
from enum import StrEnum

from tandem_api.inferenceservice import Profile
from tandem_api.names import Role
from tandem_cli.schema.reference import HEADER
from tandem_operator.policies import profiles
from tandem_operator.policies.reasons import AdviceReason, ConditionType, Reason, ScalingReason

__all__ = ["conditions_page", "profiles_page"]

_TYPES = {
    ConditionType.READY: "Sums up: requests are served, or nothing is asked for on purpose. `Unknown` before the first look.",
    ConditionType.ACCEPTED: "The spec makes sense as a whole. `False` leaves what runs as it is.",
    ConditionType.PREFILL_AVAILABLE: "At least one prefill worker is ready.",
    ConditionType.DECODE_AVAILABLE: "At least one decode worker (or aggregated one) is ready.",
    ConditionType.ROUTER_AVAILABLE: "At least one router pod is ready.",
    ConditionType.KV_TRANSFER_HEALTHY: "KV cache moves, as requests and canaries show. `Unknown` until one was seen.",
    ConditionType.SCALING_ACTIVE: "The autoscaler reads the routers and decides.",
    ConditionType.PROGRESSING: "Workers are being made, replaced or removed.",
    ConditionType.DEGRADED: "Something is wrong; the message has the pod's own words. The only one whose `True` is bad.",
}


_CONDITIONS = """\
# Conditions and reasons

`kubectl get tsvc NAME -o yaml` shows them under `status`; each has a reason from the lists here and a message that says what
to do. Conditions are observations: a program should wait for a condition, never for a reason.

"""
_PROFILES = """\
# Profiles

A profile stands for a kind of traffic. It gives the numbers that a role has unless the spec says otherwise; they stand in the
engine's command line, and a running worker keeps those it was rendered with. Decode steps are kept short, because the length
of a step is the time per output token of every stream in it.

| profile | role | `maxBatchedTokens` | `maxSequences` |
|---|---|---|---|
"""


def conditions_page() -> str:
    """Return the page about conditions and reasons."""
    rows = "".join(f"| `{kind.value}` | {_TYPES[kind]} |\n" for kind in ConditionType)
    return (
        f"{HEADER}{_CONDITIONS}"
        f"## Conditions\n\n| type | meaning |\n|---|---|\n{rows}"
        f"\n## Reasons of conditions\n\n{_table(Reason)}"
        f"\n## Reasons of scaling decisions\n\nIn `status.scaling.reason` and in Events.\n\n{_table(ScalingReason)}"
        f"\n## Advice\n\nIn `status.advice`: legal, and probably not wanted.\n\n{_table(AdviceReason)}"
    )


def profiles_page() -> str:
    """Return the page about profiles."""
    rows = "".join(
        f"| `{profile.value}` | {role.value} | {numbers.batched_tokens} | {numbers.sequences} |\n"
        for profile in Profile
        for role in Role
        for numbers in [profiles.defaults(profile, role)]
    )
    return HEADER + _PROFILES + rows


def _table(reasons: type[StrEnum]) -> str:
    return "| reason | meaning |\n|---|---|\n" + "".join(f"| `{word}` | {text} |\n" for word, text in _documented(reasons))


def _documented(reasons: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """Yield each member with the text below it; Python keeps such texts in the source only."""
    for definition in ast.walk(ast.parse(inspect.getsource(reasons))):
        if not isinstance(definition, ast.ClassDef):
            continue
        for member, below in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
                text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
                yield reasons[member.targets[0].id].value, " ".join(str(text).split())
