"""What is legal but probably not wanted, said in the status before it costs money."""

import re
from collections.abc import Iterator

from tandem_api.inferenceservice import Advice, InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies import replicas, roles
from tandem_operator.policies.reasons import AdviceReason

__all__ = ["advise"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHORT_CONTEXT = 2048
"""Tokens of prompt and answer below which one worker computes a prompt in a fraction of a step of decode."""


def advise(spec: InferenceServiceSpec) -> tuple[Advice, ...]:
    """Return advice on an accepted spec, at most 8 entries, the weightiest first."""
    found = [*_disaggregation(spec), *_model(spec), *_router(spec)]
    return tuple(Advice(reason=reason.value, message=message) for reason, message in found)


def _disaggregation(spec: InferenceServiceSpec) -> Iterator[tuple[AdviceReason, str]]:
    if spec.prefill is None:
        return
    longest = roles.engine_numbers(spec, Role.DECODE).max_model_len
    least = roles.kv_transfer(spec).min_prompt_tokens
    if longest is not None and least >= longest:
        yield (
            AdviceReason.PREFILL_UNUSED,
            (
                f"`kvTransfer.minPromptTokens` is {least} and no prompt is longer than `maxModelLen`, {longest}: the prefill "
                "workers never get work. Lower the one, raise the other, or leave `prefill` out."
            ),
        )
    elif longest is not None and longest <= _SHORT_CONTEXT:
        yield (
            AdviceReason.SHORT_PROMPTS,
            (
                f"With `maxModelLen` {longest} prompts are short: moving their KV cache costs more than computing them "
                "beside decode. Leave `prefill` out, and give the GPUs to one aggregated pool."
            ),
        )
    if _one_small_pair(spec):
        yield (
            AdviceReason.DISAGGREGATION_UNNEEDED,
            (
                "One prefill and one decode worker of one device each: an aggregated pool of two does the same work, and goes "
                "on when one is lost. Prefill and decode apart pay with larger pools or larger workers."
            ),
        )


def _one_small_pair(spec: InferenceServiceSpec) -> bool:
    def small(role: Role) -> bool:
        limits = replicas.bounds(spec, role)
        largest = limits.max if limits and replicas.scaled(spec, role) else replicas.start(spec, role)
        return largest == 1 and roles.world_size(roles.role_spec(spec, role)) == 1

    # What is counted by somebody else may grow: nothing here says how far.
    return not replicas.external(spec) and all(small(role) for role in roles.roles(spec))


def _model(spec: InferenceServiceSpec) -> Iterator[tuple[AdviceReason, str]]:
    if not spec.model.uri.startswith("hf://"):
        return
    if not _COMMIT.fullmatch(spec.model.revision or ""):
        given = f"'{spec.model.revision}' is not a commit" if spec.model.revision else "No `model.revision` is set"
        yield (
            AdviceReason.REVISION_NOT_PINNED,
            f"{given}: two workers may load different weights when the branch moves. Set the commit's 40 hexadecimal digits.",
        )
    if spec.model.cache is None:
        yield (
            AdviceReason.NO_CACHE,
            "Each start of a worker downloads the model again. Set `model.cache.claimName` to keep it.",
        )


def _router(spec: InferenceServiceSpec) -> Iterator[tuple[AdviceReason, str]]:
    if spec.router.replicas == 1:
        yield (
            AdviceReason.SINGLE_ROUTER,
            "With one router, losing its node interrupts the service until another has started. Set `router.replicas` to 2.",
        )
