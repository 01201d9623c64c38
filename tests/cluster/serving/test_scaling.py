"""Load raises the number of prefill workers, its end lowers it; what is decided is told, and nothing is done unasked."""

import json
from typing import Any

from support import deployed

_SERVICE = "scaled"
_MOST = 3
_PROMPTS = [f"Summary {number}: {'a long report about rivers. ' * 12}" for number in range(5)]


def _manifest(mode: str) -> dict[str, Any]:
    """Prefill takes about 0.1 s a prompt, alone within the target; several at once wait for each other."""
    return deployed.simulated(
        _SERVICE,
        engine={
            "type": "Simulator",
            "maxModelLen": 4096,
            "prefixCaching": False,
            "maxBatchedTokens": 512,
            "args": ["--sim-prefill-tokens-per-second", "1200"],
        },
        slo={"objective": 90, "ttft": {"target": "400ms"}, "tpot": {"target": "1s"}},
        autoscaling={"mode": mode, "prefill": {"min": 1, "max": _MOST}, "decode": {"min": 1, "max": 1}},
    )


def _status(space: Any) -> dict[str, Any]:
    found: dict[str, Any] = space.get("inferenceservice", _SERVICE)["status"]
    return found


def _pool(space: Any) -> int:
    return int(space.get("workerpool", f"{_SERVICE}-prefill")["spec"]["replicas"])


def _notes(space: Any) -> dict[str, str]:
    """Return the reasons and texts of the service's Events."""
    listed = json.loads(space.kubectl("get", "events.events.k8s.io", "-o", "json"))["items"]
    return {each["reason"]: each["note"] for each in listed if each["regarding"]["name"] == _SERVICE}


def test_load_raises_prefill_and_its_end_lowers_it_and_recommendations_change_nothing(space: Any) -> None:
    space.apply(_manifest("Recommend"))
    space.wait_whole(_SERVICE, prefill=1, decode=1)
    load = deployed.LoadGenerator(space.url(_SERVICE), model="model", prompts=_PROMPTS, clients=10, max_tokens=4)

    def wanted() -> dict[str, Any]:
        scaling: dict[str, Any] = _status(space).get("scaling", {})
        return scaling if scaling.get("reason") == "TTFTAboveTarget" else {}

    with load:
        scaling = space.wait(wanted, service=_SERVICE, what="more prefill workers are recommended")
        assert scaling["prefill"] > 1
        assert "of its target" in scaling["message"]
        assert space.condition(_SERVICE, "ScalingActive")["reason"] == "RecommendOnly"
        assert _pool(space) == 1
        assert "TTFTAboveTarget" not in _notes(space)
        space.apply(_manifest("Apply"))
        space.wait(lambda: _pool(space) > 1, service=_SERVICE, what="the prefill pool grows")
        space.wait(lambda: _status(space)["prefill"]["ready"] > 1, service=_SERVICE, what="more prefill workers serve")
        note = space.wait(lambda: _notes(space).get("TTFTAboveTarget"), service=_SERVICE, what="the decision is an Event")
        assert f"{_SERVICE}-prefill: 1 -> " in note
    assert load.lost == load.refused
    assert not load.wrong, load.wrong
    space.wait(lambda: _pool(space) == 1, service=_SERVICE, what="without load the prefill pool shrinks", seconds=120)
    space.wait_whole(_SERVICE, prefill=1, decode=1)
    assert {"Idle", "LoadFitsFewer"} & _notes(space).keys()
