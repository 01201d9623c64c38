"""Events: only for changes that users act upon."""

import pytest

from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceStatus
from tandem_operator.cluster.events import Notice
from tandem_operator.reconcile.statuses import transitions


def status(**conditions: str) -> InferenceServiceStatus:
    """Return a status with conditions of these types and statuses."""
    time = "2026-01-01T00:00:00Z"
    found = [
        Condition(type=kind, status=value, reason=f"{kind}{value}", message="why", last_transition_time=time)
        for kind, value in conditions.items()
    ]
    return InferenceServiceStatus(conditions=found)


def test_an_unchanged_status_is_no_event() -> None:
    assert list(transitions(status(Ready="True"), status(Ready="True"))) == []


@pytest.mark.parametrize(
    ("before", "after", "warning"),
    [
        ({"Ready": "False"}, {"Ready": "True"}, False),
        ({"Ready": "True"}, {"Ready": "False"}, True),
        ({"Accepted": "True"}, {"Accepted": "False"}, True),
        ({"Degraded": "False"}, {"Degraded": "True"}, True),
        ({"Degraded": "True"}, {"Degraded": "False"}, False),
    ],
)
def test_a_change_is_one_event(before: dict[str, str], after: dict[str, str], warning: bool) -> None:  # noqa: FBT001  # a table
    ((kind, value),) = after.items()
    assert list(transitions(status(**before), status(**after))) == [Notice(f"{kind}{value}", "why", warning)]


def test_a_rollout_that_is_stopped_is_one_event_also_where_something_else_was_wrong() -> None:
    (before,) = status(Degraded="True").conditions
    stopped = before.model_copy(update={"reason": "NewWorkersWorse"})
    wrong, after = (InferenceServiceStatus(conditions=[each]) for each in (before, stopped))
    assert list(transitions(wrong, after)) == [Notice("NewWorkersWorse", "why", warning=True)]
    assert list(transitions(after, after)) == []
    assert list(transitions(after, wrong)) == []


def test_the_first_view_is_an_event_only_if_the_spec_is_refused() -> None:
    assert list(transitions(None, status(Ready="False", Accepted="True", Degraded="False"))) == []
    assert [found.reason for found in transitions(None, status(Ready="False", Accepted="False"))] == ["AcceptedFalse"]


def test_other_conditions_are_no_events() -> None:
    assert list(transitions(status(Progressing="True"), status(Progressing="False"))) == []
