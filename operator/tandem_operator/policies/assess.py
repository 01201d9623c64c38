"""From observed children to conditions and the status, telling the truth and what to do.

Says `Unknown` where something is not known, and never calls a service ready because a child once was.
"""

from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus
from tandem_operator.policies.acceptance import Verdict
from tandem_operator.policies.observation import Observation
from tandem_operator.policies.scaling.decision import Decision

__all__ = ["assess"]


def assess(
    *,
    spec: InferenceServiceSpec | None,
    generation: int,
    verdict: Verdict,
    observation: Observation,
    decision: Decision | None,
    previous: InferenceServiceStatus | None,
    now: str,
) -> InferenceServiceStatus:
    """Return the whole status of one service.

    Args:
        spec: The spec; None when it could not be read as the current API (then `verdict` says why).
        generation: Generation of the object that `spec` was read from.
        verdict: What `acceptance.accept` said.
        observation: Its children.
        decision: The last decision of the autoscaler; None before the first and without autoscaling.
        previous: The status as it stands, for transition times and the SLO figures.
        now: RFC 3339 time.
    """
    raise NotImplementedError
