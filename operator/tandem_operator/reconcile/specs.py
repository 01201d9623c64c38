"""From the stored object to the typed spec, at the border: what the API server let pass may still be from another version."""

from collections.abc import Mapping
from typing import Any

import pydantic

from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus
from tandem_operator.cluster.observed import Observed
from tandem_operator.policies.acceptance import Problem, Verdict, accept
from tandem_operator.render.context import Settings

__all__ = ["judge", "previous_status", "read_spec"]


def read_spec(service: Observed, settings: Settings) -> tuple[InferenceServiceSpec | None, Verdict]:
    """Return the spec of a stored service, None if it cannot be read, and what is wrong with it."""
    return judge(service.body["spec"], settings)


def judge(tree: Mapping[str, Any], settings: Settings) -> tuple[InferenceServiceSpec | None, Verdict]:
    """Return the spec that a tree holds, None if it cannot be read, and what is wrong with it."""
    try:
        spec = InferenceServiceSpec.model_validate(tree)
    except pydantic.ValidationError as error:
        return None, Verdict(errors=_problems(error), warnings=())
    return spec, accept(spec, settings)


def previous_status(service: Observed) -> InferenceServiceStatus | None:
    """Return the status as it stands; None if there is none, or one of another version that this operator will replace."""
    status = service.body["status"]
    try:
        return InferenceServiceStatus.model_validate(status) if status else None
    except pydantic.ValidationError:
        return None


def _problems(error: pydantic.ValidationError) -> tuple[Problem, ...]:
    return tuple(
        Problem(path=".".join(("spec", *(str(step) for step in each["loc"]))), message=each["msg"])
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    )
