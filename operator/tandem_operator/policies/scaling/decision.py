"""Decides the number of workers of each role from what routers measured.

The time to first token drives prefill, the time per output token drives decode; an aggregated pool follows both. What is
not known holds the count and is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tandem_api.inferenceservice import Bounds, InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies.reasons import ScalingReason
from tandem_operator.policies.scaling import report, signals
from tandem_operator.policies.scaling.feedback import LEAST_DECODE, LEAST_PREFILL, Correction, Outcome, corrected
from tandem_operator.policies.scaling.goals import Goals, goals
from tandem_operator.policies.scaling.judging import Judgement, judge, lost_in
from tandem_operator.policies.scaling.learning import Learned, observed
from tandem_operator.policies.scaling.model import (
    Counts,
    Decision,
    History,
    RoleDecision,
    ScalingPolicy,
    Wish,
    WorkerCount,
)
from tandem_operator.policies.scaling.planning import Plan, planned
from tandem_operator.policies.scaling.signals import Reading

__all__ = [
    "Counts",
    "Decision",
    "History",
    "RoleDecision",
    "ScalingPolicy",
    "Wish",
    "WorkerCount",
    "decide",
    "remember",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Everything that the decision on one role looks at."""

    role: Role
    count: WorkerCount
    bounds: Bounds
    goals: Goals
    readings: Sequence[Reading]
    """With the newest."""
    hold: report.Hold | None
    wishes: Sequence[tuple[float, int | None]]
    learned: Learned
    now: float
    policy: ScalingPolicy


def decide(
    *,
    history: History,
    signals: Reading | None,
    spec: InferenceServiceSpec,
    current: Counts,
    now: float,
    policy: ScalingPolicy,
) -> Decision:
    """Decide the counts of both roles.

    Args:
        history: Earlier readings and wishes.
        signals: The newest reading; None when no round could be made.
        spec: The service.
        current: Workers as they are.
        now: Seconds of the clock that `Reading.time` uses.
        policy: Constants.
    """
    goal, learned = goals(spec), _learned(history, signals, policy)
    before = history.readings[-1] if history.readings else None

    def decided(role: Role, count: WorkerCount | None, bounds: Bounds | None) -> RoleDecision | None:
        if count is None or bounds is None:
            return None
        wishes = [(wish.time, wish.prefill if role is Role.PREFILL else wish.decode) for wish in history.wishes]
        return _decide_role(
            _Case(
                role=role,
                count=count,
                bounds=bounds,
                goals=goal,
                readings=(*history.readings, *((signals,) if signals else ())),
                hold=report.hold(signals, before, now=now, policy=policy),
                wishes=wishes,
                learned=learned,
                now=now,
                policy=policy,
            )
        )

    return Decision(
        prefill=decided(Role.PREFILL, current.prefill, goal.prefill),
        decode=decided(Role.AGGREGATED if goal.aggregated else Role.DECODE, current.decode, goal.decode),
    )


def remember(*, history: History, signals: Reading | None, decision: Decision, now: float, policy: ScalingPolicy) -> History:
    """Return the history with this round added and everything too old to matter dropped."""
    wish = Wish(
        time=now,
        prefill=decision.prefill.wanted if decision.prefill else None,
        decode=decision.decode.wanted if decision.decode else None,
    )
    learned = _corrected(_learned(history, signals, policy), history, signals, decision)
    oldest_reading = now - policy.window - policy.interval
    oldest_wish = now - max(policy.up_stabilisation, policy.down_stabilisation) - policy.interval
    readings = (*history.readings, *((_without_rows(signals),) if signals and signals.routers else ()))
    return History(
        readings=tuple(reading for reading in readings if reading.time >= oldest_reading),
        wishes=tuple(found for found in (*history.wishes, wish) if found.time >= oldest_wish),
        learned=learned,
    )


def _without_rows(reading: Reading) -> Reading:
    """What was learned of the rows is kept; nobody reads them again, and they are most of a reading."""
    return replace(reading, routers=tuple(router.model_copy(update={"recent": None}) for router in reading.routers))


def _learned(history: History, newest: Reading | None, policy: ScalingPolicy) -> Learned:
    if newest is None or not newest.routers:
        return history.learned
    earlier = history.readings[-1] if history.readings else None
    return observed(history.learned, earlier, newest, spell=policy.spell)


def _corrected(learned: Learned, history: History, newest: Reading | None, decision: Decision) -> Learned:
    """Let what clients got since the last reading correct the model of both roles."""
    if newest is None or not history.readings or signals.flaw(newest) or newest.unreadable:
        return learned
    window = signals.window([history.readings[-1], newest])
    late = window.completed - window.ttft_met
    # A time to first token that was lost on decode workers says nothing of prefill workers, and all of decode workers.
    prefill, decode = (late, 0) if lost_in(window) == "prefill" else (0, late)
    slow = window.completed - window.tpot_met
    return replace(
        learned,
        prefill=_correction(learned.prefill, decision.prefill, window.completed, prefill, LEAST_PREFILL),
        decode=_correction(learned.decode, decision.decode, window.completed, max(decode, slow), LEAST_DECODE),
    )


def _correction(before: Correction, decided: RoleDecision | None, completed: int, missed: int, least: float) -> Correction:
    if decided is None or "allowed" not in decided.inputs:
        return before
    return corrected(
        before,
        Outcome(requests=completed, missed=missed, allowed=decided.inputs["allowed"]),
        # Fewer workers than the model asked for explain every miss: it was right, and they came too late.
        rests=decided.reason not in _RESTS_ON_THE_MODEL or decided.inputs["workers"] < decided.inputs["planned"],
        spare=decided.reason in {ScalingReason.WITHIN_TARGETS, ScalingReason.LOAD_FITS_FEWER},
        least=least,
    )


def _decide_role(case: _Case) -> RoleDecision:
    outside = _outside_bounds(case)
    if outside is not None:
        return outside
    judged = _judge(case)
    if judged.wanted is None:
        return _decision(judged, case.count.desired, None)
    wanted = max(case.bounds.min, min(case.bounds.max, judged.wanted))
    if judged.wanted > case.count.desired:
        return _up(case, judged, wanted)
    if wanted < case.count.desired:
        return _down(case, judged, wanted)
    if judged.wanted > case.count.ready and judged.reason in _UP:
        message = f"{judged.message}; {case.count.desired - case.count.ready} already asked for are not ready yet"
        return _decision(replace(judged, reason=_awaited(case), message=message), case.count.desired, case.count.desired)
    return _decision(judged, case.count.desired, case.count.desired)


_UP = {
    ScalingReason.TTFT_ABOVE_TARGET,
    ScalingReason.TPOT_ABOVE_TARGET,
    ScalingReason.DECODE_DELAYS_FIRST_TOKEN,
    ScalingReason.LOAD_NEEDS_MORE,
}
_NAMED = {ScalingReason.TRANSFER_SLOW, ScalingReason.DECODE_DELAYS_FIRST_TOKEN}
"""Misses that more of this role do not mend: while they last nothing is taken away either."""
_RESTS_ON_THE_MODEL = {
    ScalingReason.TTFT_ABOVE_TARGET,
    ScalingReason.TPOT_ABOVE_TARGET,
    ScalingReason.LOAD_NEEDS_MORE,
    ScalingReason.LOAD_FITS_FEWER,
    ScalingReason.WITHIN_TARGETS,
    ScalingReason.STABILISING,
}


def _outside_bounds(case: _Case) -> RoleDecision | None:
    """Bounds hold whatever is known of the load."""
    desired, bounds = case.count.desired, case.bounds
    if bounds.min <= desired <= bounds.max:
        return None
    target = bounds.min if desired < bounds.min else bounds.max
    reason = ScalingReason.BELOW_MINIMUM if desired < bounds.min else ScalingReason.ABOVE_MAXIMUM
    message = f"{desired} workers are outside of {bounds.min} to {bounds.max}: now {target}"
    return RoleDecision(replicas=target, wanted=target, reason=reason, message=message)


def _judge(case: _Case) -> Judgement:
    if case.hold is not None:
        # A wish for what is there: after an outage the count must not fall on wishes from before it.
        return Judgement(wanted=case.count.desired, reason=case.hold.reason, message=case.hold.message)
    if case.count.ready == 0:
        return Judgement(wanted=None, reason=ScalingReason.WAITING_FOR_WORKERS, message="no worker is ready")
    readings = report.settled(case.readings, case.role, policy=case.policy)
    window = signals.window(readings)
    measured = judge(case.role, window, case.count, case.goals, case.policy)
    plan = planned(case.role, case.learned, window, case.count, case.goals, most=case.bounds.max, policy=case.policy)
    idle = measured.reason is ScalingReason.IDLE or not window.requests
    # The plan remembers bursts for an hour; a service that nobody asks anything need not be ready for them.
    return measured if plan is None or idle else _by_plan(plan, measured, case.count)


def _by_plan(plan: Plan, measured: Judgement, count: WorkerCount) -> Judgement:
    """What was measured stops the plan from taking workers away, and adds one where the plan has not seen what misses."""
    inputs = {**measured.inputs, **plan.inputs}
    message = f"{plan.message}; {measured.message}"
    if measured.reason in _UP:
        settled = count.ready >= count.desired
        wanted = max(plan.workers, count.desired + settled)
        return Judgement(wanted=wanted, reason=measured.reason, message=message, inputs=inputs)
    if plan.workers > count.desired:
        reason = ScalingReason.LOAD_NEEDS_MORE
    elif measured.reason in _NAMED:
        return Judgement(wanted=count.desired, reason=measured.reason, message=message, inputs=inputs)
    else:
        reason = ScalingReason.LOAD_FITS_FEWER if plan.workers < count.desired else ScalingReason.WITHIN_TARGETS
    return Judgement(wanted=plan.workers, reason=reason, message=message, inputs=inputs)


def _up(case: _Case, judged: Judgement, wanted: int) -> RoleDecision:
    desired = case.count.desired
    if case.count.unschedulable:
        message = f"{judged.message}; more are needed, and no node takes those asked for: {case.count.unschedulable}"
        return _decision(replace(judged, reason=ScalingReason.UNSCHEDULABLE, message=message), desired, desired)
    if wanted == desired:
        message = f"{judged.message}; {judged.wanted} are needed and `max` is {case.bounds.max}"
        return _decision(replace(judged, reason=ScalingReason.AT_MAXIMUM, message=message), desired, wanted)
    lowest = _extreme(case, case.policy.up_stabilisation, wanted, highest=False)
    target = max(desired, min(lowest, desired + max(case.policy.max_step_up, desired)))
    return _moved(case, judged, target, wanted)


def _down(case: _Case, judged: Judgement, wanted: int) -> RoleDecision:
    newest = case.readings[-1]
    if newest.unreadable:
        message = f"{judged.message}; not every router answered ({'; '.join(newest.unreadable)})"
        partial = replace(judged, reason=ScalingReason.PARTIAL_REPORT, message=message)
        return _decision(partial, case.count.desired, case.count.desired)
    highest = _extreme(case, case.policy.down_stabilisation, wanted, highest=True)
    step = max(1, int(case.policy.max_step_down * case.count.desired))
    target = min(case.count.desired, max(highest, case.count.desired - step))
    return _moved(case, judged, target, wanted)


def _moved(case: _Case, judged: Judgement, target: int, wanted: int) -> RoleDecision:
    desired = case.count.desired
    if target == desired:
        message = f"{judged.message}; {wanted} would do, and a change waits until that was so for long enough"
        return _decision(replace(judged, reason=ScalingReason.STABILISING, message=message), desired, wanted)
    return _decision(replace(judged, message=f"{judged.message}: {desired} -> {target}"), target, wanted)


def _extreme(case: _Case, span: float, wanted: int, *, highest: bool) -> int:
    """Return the most careful count wanted within `span` seconds; today's when the history does not reach so far back."""
    if span <= 0:
        return wanted
    desired = case.count.desired
    if not case.wishes or case.wishes[0][0] > case.now - span:
        return max(wanted, desired) if highest else min(wanted, desired)
    recent = [wanted, *(wish for time, wish in case.wishes if wish is not None and time > case.now - span)]
    return max(recent) if highest else min(recent)


def _awaited(case: _Case) -> ScalingReason:
    return ScalingReason.UNSCHEDULABLE if case.count.unschedulable else ScalingReason.WAITING_FOR_WORKERS


def _decision(judged: Judgement, replicas: int, wanted: int | None) -> RoleDecision:
    return RoleDecision(
        replicas=replicas, wanted=wanted, reason=judged.reason, message=judged.message, inputs=dict(judged.inputs)
    )
