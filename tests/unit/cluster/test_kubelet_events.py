"""What the kubelet says of a pod's mounts is its last word on the volume itself."""

from typing import Any

import pytest

from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Call
from tandem_operator.cluster.kubelet_events import kubelet_note
from tandem_operator.cluster.observed import observe

_POD = observe(kinds.POD, {"metadata": {"namespace": "team", "name": "p", "uid": "uid-p", "resourceVersion": "1"}})
_SLOW = 'MountVolume.SetUp failed for volume "token" : failed to sync secret cache: timed out waiting for the condition'
_ABSENT = 'MountVolume.SetUp failed for volume "token" : secret "hf-token" not found'
_VAGUE = "Unable to attach or mount volumes: timed out waiting for the condition"


class _Events:
    """Answers a list of Events."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self._items = list(items)

    async def call(self, call: Call) -> dict[str, Any]:
        assert call.query["fieldSelector"] == "reason=FailedMount,regarding.uid=uid-p"
        return {"items": self._items}


def _event(note: str, at: str | None = None, **more: Any) -> dict[str, Any]:
    return {"note": note, "deprecatedLastTimestamp": at, "eventTime": None} | more


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], ""),
        ([_event(_SLOW, "2026-01-01T00:00:01Z"), _event(_ABSENT, "2026-01-01T00:00:09Z")], _ABSENT),
        ([_event(_ABSENT, "2026-01-01T00:00:09Z"), _event(_SLOW, "2026-01-01T00:00:01Z")], _ABSENT),
        ([_event(_ABSENT, "2026-01-01T00:00:01Z"), _event(_VAGUE, "2026-01-01T00:02:00Z")], _ABSENT),
        ([_event(_VAGUE, "2026-01-01T00:02:00Z")], _VAGUE),
        (
            [
                _event(_SLOW, eventTime="2026-01-01T00:00:05.000000Z"),
                _event(_ABSENT, series={"lastObservedTime": "2026-01-01T00:00:06.000000Z"}),
            ],
            _ABSENT,
        ),
    ],
    ids=["nothing", "newest last", "newest first", "a vague word after it", "only a vague word", "the newer form"],
)
async def test_the_last_word_on_the_volume_itself_is_said(events: list[dict[str, Any]], said: str) -> None:
    assert await kubelet_note(_Events(*events), _POD, "FailedMount") == said
