"""Tandem's own policy as it is shipped, as one more autoscaler. It is told the targets and the bounds, as a user tells them."""

from bench.scaling.readings import reading
from bench.scaling.simulation.observation import Autoscaler, Observation
from bench.scaling.simulation.records import DECODE, PREFILL
from bench.scaling.simulation.settings import Setting
from support.specs import disaggregated, read
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.policies.scaling.decision import Counts, History, ScalingPolicy, WorkerCount, decide, remember

__all__ = ["service", "tandem"]


def service(setting: Setting) -> InferenceServiceSpec:
    """What a user would write."""
    terms = setting.terms
    bounds = [{"min": 1, "max": most} for most in setting.most]
    return read(
        disaggregated()
        | {
            "slo": {
                "objective": terms.objective,
                "ttft": {"target": _milliseconds(terms.ttft), "perThousandTokens": _milliseconds(terms.ttft_thousand)},
                "tpot": {"target": _milliseconds(terms.tpot)},
            },
            "autoscaling": {"prefill": bounds[PREFILL], "decode": bounds[DECODE]},
        }
    )


def tandem(setting: Setting) -> Autoscaler:
    """A policy without memory of anything before the run."""
    spec, policy = service(setting), ScalingPolicy(interval=setting.interval)
    history = History()

    def decide_once(seen: Observation) -> tuple[int, int]:
        nonlocal history
        found = reading(seen)
        # How long its own pods take to start, the operator sees.
        counts = [
            WorkerCount(desired=seen.desired[role], ready=seen.ready[role], start=setting.start) for role in (PREFILL, DECODE)
        ]
        current = Counts(prefill=counts[PREFILL], decode=counts[DECODE])
        decision = decide(history=history, signals=found, spec=spec, current=current, now=seen.now, policy=policy)
        history = remember(history=history, signals=found, decision=decision, now=seen.now, policy=policy)
        if decision.prefill is None or decision.decode is None:
            raise ValueError("both roles have bounds, and the policy decided on one of them only")
        return decision.prefill.replicas, decision.decode.replicas

    return decide_once


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
