"""Rules on `engine.args`: no flag that Tandem owns, none twice, and what shapes the KV cache for both roles alike."""

from collections.abc import Iterator, Sequence

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.policies import roles
from tandem_operator.policies.flags import flags, owner_of
from tandem_operator.policies.ownership import KV_SHAPING_FLAGS
from tandem_operator.policies.problems import Problem

__all__ = ["errors"]

_SHARED = "spec.engine.args"
_REPEATABLE = frozenset({"--middleware"})
"""Flags whose values the engine collects."""


def errors(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """Yield what is wrong with the further arguments of the engine, shared and of each role."""
    shared = _first_uses(spec.engine.args, _SHARED)
    yield from _list_problems(spec.engine.args, _SHARED, {})
    for role in roles.roles(spec):
        args = roles.role_spec(spec, role).engine.args
        path = f"{roles.field_path(role)}.engine.args"
        yield from _list_problems(args, path, shared)
        if spec.prefill is not None:
            yield from _kv_shaping(args, path)


def _first_uses(args: Sequence[str], path: str) -> dict[tuple[str, str], str]:
    return {(flag.name, flag.dotted): f"{path}[{flag.index}]" for flag in flags(args)}


def _list_problems(args: Sequence[str], path: str, elsewhere: dict[tuple[str, str], str]) -> Iterator[Problem]:
    found = list(flags(args))
    if args and (not found or found[0].index > 0):
        yield Problem(
            f"{path}[0]", f"'{args[0].partition('=')[0]}' is not a flag", "begin with a flag such as '--enable-log-requests'"
        )
    seen = dict(elsewhere)
    for flag in found:
        where = f"{path}[{flag.index}]"
        if flag.name == "--":
            yield Problem(where, "'--' would end the engine's flags", "leave it out")
        elif (why := owner_of(flag.name)) is not None:
            # Without the value: who writes a key here must not read it again in the status and its Events.
            yield Problem(where, f"'{args[flag.index].partition('=')[0]}' belongs to Tandem", why)
        elif (flag.name, flag.dotted) in seen and flag.name not in _REPEATABLE:
            yield Problem(where, f"`{flag.name}` is already set at `{seen[flag.name, flag.dotted]}`", "set it once")
        seen.setdefault((flag.name, flag.dotted), where)


def _kv_shaping(args: Sequence[str], path: str) -> Iterator[Problem]:
    for flag in flags(args):
        if flag.name in KV_SHAPING_FLAGS:
            message = f"`{flag.name}` shapes the KV cache, which both roles must share"
            yield Problem(f"{path}[{flag.index}]", message, f"set it in `{_SHARED}`")
