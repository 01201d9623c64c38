"""Rules on one role alone: numbers, times and counts that cannot work together."""

from collections.abc import Iterator

from tandem_api.inferenceservice import Autoscaling, Bounds, InferenceServiceSpec, ScalingMode
from tandem_api.names import Role
from tandem_operator.policies import replicas, roles
from tandem_operator.policies.problems import Problem

__all__ = ["errors", "warnings"]

_SHORTEST_STARTUP = 10


def errors(spec: InferenceServiceSpec, role: Role) -> Iterator[Problem]:
    """Yield what cannot work in one role."""
    own, path = roles.role_spec(spec, role), roles.field_path(role)
    numbers = roles.engine_numbers(spec, role)
    if numbers.batched_tokens < numbers.sequences:
        yield Problem(
            f"{path}.engine.maxBatchedTokens",
            f"{numbers.batched_tokens} tokens in a step are fewer than the {numbers.sequences} of `maxSequences`",
            "at least one token for each request",
        )
    if roles.seconds(own.startup) < _SHORTEST_STARTUP:
        yield Problem(f"{path}.startup", "no engine starts in so short a time", f"at least '{_SHORTEST_STARTUP}s'")
    if own.template and not isinstance(own.template.get("spec", {}), dict):
        yield Problem(f"{path}.template.spec", "must be an object", "a Kubernetes PodSpec")
    yield from _targets(spec, role)


def _targets(spec: InferenceServiceSpec, role: Role) -> Iterator[Problem]:
    if role is Role.PREFILL or spec.slo is None:
        return
    for name, target in (("ttft", spec.slo.ttft), ("tpot", spec.slo.tpot)):
        if target is not None and roles.seconds(target.target) == 0:
            yield Problem(f"spec.slo.{name}.target", "nothing takes no time", "greater than '0s'")


def warnings(spec: InferenceServiceSpec, role: Role) -> Iterator[Problem]:
    """Yield what works in one role and does not do what it says."""
    own, path = roles.role_spec(spec, role), roles.field_path(role)
    if own.parallelism.expert and own.parallelism.tensor == 1:
        yield Problem(f"{path}.parallelism.expert", "has no effect with `tensor` 1", "raise `tensor` or leave it out")
    if spec.rollout.max_surge == 0 and own.replicas == 1:
        yield Problem(
            "spec.rollout.maxSurge",
            f"0 with one worker in `{path}.replicas` is an outage as long as its start whenever it is replaced",
            "at least 1 where a GPU is to be had for that time",
        )
    bounds = replicas.bounds(spec, role)
    autoscaling = spec.autoscaling
    if autoscaling and bounds and own.replicas is not None and not bounds.min <= own.replicas <= bounds.max:
        yield _outside(path, own.replicas, bounds, autoscaling.mode)
    if role is not Role.PREFILL and autoscaling and _scales_nothing(autoscaling):
        yield Problem("spec.autoscaling", "scales nothing", "set `prefill` or `decode`")


def _scales_nothing(autoscaling: Autoscaling) -> bool:
    """Without bounds there is nothing to decide; `External` gives the counts away all the same."""
    return autoscaling.mode is not ScalingMode.EXTERNAL and not autoscaling.prefill and not autoscaling.decode


def _outside(path: str, count: int, bounds: Bounds, mode: ScalingMode) -> Problem:
    where = f"`spec.autoscaling` allows {bounds.min} to {bounds.max}"
    effect = "workers start within the bounds" if mode is ScalingMode.APPLY else f"mode '{mode.value}' leaves it"
    return Problem(f"{path}.replicas", f"is {count}, while {where}", effect)
