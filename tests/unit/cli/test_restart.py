"""A restart changes one field, on the spec that was read, and says what comes of it."""

import datetime as dt
from typing import Any

import pytest

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_cli.errors import CommandError
from tandem_cli.restart_command import outcome, patch, version_at

NOW = dt.datetime(2026, 12, 1, 2, 5, 47, tzinfo=dt.timezone(dt.timedelta(hours=1)))


def service(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "chat", "generation": 7},
        "spec": {"model": {"uri": "hf://a/b"}, "engine": {"image": "e"}, "decode": {"replicas": 4}, **spec},
    }


def test_the_value_is_the_time_in_utc_and_the_api_takes_it() -> None:
    assert version_at(NOW) == "20261201T010547Z"
    assert InferenceServiceSpec.model_validate(service()["spec"] | {"runtimeVersion": version_at(NOW)})


@pytest.mark.parametrize("before", [{}, {"runtimeVersion": "1"}], ids=["the first", "another"])
def test_nothing_but_the_runtime_version_is_changed_and_only_of_the_spec_that_was_read(before: dict[str, str]) -> None:
    assert patch(service(**before), "2") == [
        {"op": "test", "path": "/metadata/generation", "value": 7},
        {"op": "add", "path": "/spec/runtimeVersion", "value": "2"},
    ]


def test_the_user_is_told_what_to_watch() -> None:
    assert outcome(service(runtimeVersion="2", rollout={"paused": False}), "2") == (
        "Workers of chat are to be replaced (`runtimeVersion` is 2): kubectl get tsvc chat -w\n"
    )


def test_the_user_is_told_that_a_paused_rollout_moves_nothing() -> None:
    assert "paused" in outcome(service(runtimeVersion="2", rollout={"paused": True}), "2")


def test_a_cluster_whose_definition_drops_the_field_is_no_success() -> None:
    with pytest.raises(CommandError, match=r"nothing was restarted.*upgrade Tandem"):
        outcome(service(), "2")
