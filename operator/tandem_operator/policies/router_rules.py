"""Rules on the router: bounds that nothing ever reaches, and limits that hold for others than one might think."""

from collections.abc import Iterator

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.policies import roles
from tandem_operator.policies.problems import Problem

__all__ = ["warnings"]


def warnings(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """Yield what the router takes and what does not do what it says."""
    yield from _lanes(spec)
    if spec.router.rate_limits and spec.router.auth is None:
        message = "without `spec.router.auth` all clients share it, so that one of them can use it up"
        yield Problem("spec.router.rateLimits", message, "set `auth` to give each API key its own")


def _lanes(spec: InferenceServiceSpec) -> Iterator[Problem]:
    longest = roles.engine_numbers(spec, roles.roles(spec)[-1]).max_model_len
    begins: dict[int, str] = {}
    for index, lane in enumerate(spec.router.lanes):
        where = f"spec.router.lanes[{index}].minPromptTokens"
        least = lane.min_prompt_tokens
        if longest is not None and least >= longest:
            message = (
                f"is {least}, and no prompt is as long with a `maxModelLen` of {longest}: lane '{lane.name}' is never used"
            )
            yield Problem(where, message, "lower it, or leave the lane out")
        elif least in begins:
            message = f"is {least} as of lane '{begins[least]}', and a request is in one lane: lane '{lane.name}' is never used"
            yield Problem(where, message, "another number, or one lane")
        begins.setdefault(least, lane.name)
