"""A worker that is told to go stays until nobody can want its KV cache any more."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from support import deployed
from tandem_api import ports
from tandem_api.names import Role
from tandem_api.nixl import ASK_TO_EXPORT
from tandem_api.wire import SidecarState
from tandem_cli.errors import CommandError
from tandem_cli.private_ports import PrivatePorts
from tandem_local.errors import LocalClusterError

_SERVICE = "drained"
_PROMPT = "Where does the cache go when its worker leaves? " * 20
_HOLD_SECONDS = 6
"""Longer than a worker without anything to hold takes to drain."""


@pytest.fixture
def serving(shared_space: Any) -> Any:
    """A service whose leases outlast the time for which a test watches."""
    shared_space.apply(deployed.simulated(_SERVICE))
    shared_space.wait_whole(_SERVICE, prefill=1, decode=1)
    return shared_space


def _generate(serving: Any, pod: str, parameters: dict[str, Any], *, max_tokens: int) -> dict[str, Any]:
    """Ask one engine directly, as a router would."""
    body = {
        "model": "model",
        "messages": [{"role": "user", "content": _PROMPT}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "kv_transfer_params": parameters,
    }
    found: dict[str, Any] = json.loads(serving.private(_SERVICE).ask(pod, ports.ENGINE, "v1/chat/completions", body))
    return found


def _state(private: PrivatePorts, pod: str) -> SidecarState | None:
    """Return what a worker's sidecar says; None when it says nothing, as at its end."""
    try:
        return SidecarState.model_validate_json(private.ask(pod, ports.SIDECAR, "state"))
    except (CommandError, LocalClusterError, KeyError):
        return None


def _holds(private: PrivatePorts, pod: str) -> bool:
    state = _state(private, pod)
    return state is not None and state.draining and bool(state.kv_usage) and state.engine_ready


def _stays(look: Callable[[], bool], *, seconds: float) -> None:
    """See that something stays true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert look()
        time.sleep(0.5)


def _prefill_and_delete(serving: Any) -> tuple[str, dict[str, Any]]:
    """Leave KV cache on the prefill worker, delete the pod and wait until it drains; its name and the KV parameters."""
    (pod,) = serving.workers(_SERVICE, Role.PREFILL)
    answer = _generate(serving, pod, dict(ASK_TO_EXPORT), max_tokens=1)
    serving.kubectl("delete", "pod", pod, "--wait=false")
    private = serving.private(_SERVICE)
    serving.wait(lambda: _holds(private, pod), service=_SERVICE, what=f"{pod} drains and holds KV cache")
    return pod, answer["kv_transfer_params"]


def test_a_drain_waits_until_the_kv_cache_was_pulled(serving: Any) -> None:
    right = deployed.asked(serving.url(_SERVICE), model="model", prompt=_PROMPT)
    assert right.whole, right
    pod, parameters = _prefill_and_delete(serving)
    private = serving.private(_SERVICE)
    _stays(lambda: _holds(private, pod), seconds=_HOLD_SECONDS)
    (decode,) = serving.workers(_SERVICE, Role.DECODE)
    pulled = _generate(serving, decode, parameters, max_tokens=24)
    assert pulled["choices"][0]["message"]["content"] == right.text
    assert pulled["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    serving.wait(lambda: not serving.get("pod", pod), service=_SERVICE, what=f"{pod} goes once its KV cache was pulled")


def test_a_drain_ends_when_the_lease_has_run_out(serving: Any) -> None:
    pod, _ = _prefill_and_delete(serving)
    private = serving.private(_SERVICE)
    seen: list[SidecarState] = []

    def gone() -> bool:
        state = _state(private, pod)
        seen.extend([state] if state else [])
        return not serving.get("pod", pod)

    serving.wait(gone, service=_SERVICE, what=f"{pod} goes once the lease has run out")
    assert any(state.kv.expired_leases for state in seen), seen
