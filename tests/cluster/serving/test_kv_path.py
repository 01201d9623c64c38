"""A KV path that is cut between two workers that are both well: told with both names, gone around, and told when mended."""

import json
import urllib.request
from typing import Any

from support import deployed
from tandem_api import ports
from tandem_api.names import Role

_SERVICE = "paths"
_PROMPTS = [f"Letter {number}: {'where does the river go? ' * 20}" for number in range(16)]
_FOUND_SECONDS = 30
"""The routers need at most ten of them; the operator reads them every other second and writes a condition."""


def _fault(space: Any, pod: str, method: str, fault: dict[str, Any]) -> None:
    """Ask a simulated engine to fail, or to stop failing."""
    url = space.cluster.forward_address(_address(space, pod), ports.ENGINE)
    asking = urllib.request.Request(  # noqa: S310 - the forward's own http URL
        f"{url}/sim/faults", json.dumps(fault).encode(), {"content-type": "application/json"}, method=method
    )
    with urllib.request.urlopen(asking, timeout=60) as answer:  # noqa: S310 - the same
        assert answer.status == 200


def _address(space: Any, pod: str) -> str:
    found: str = space.get("pod", pod)["status"]["podIP"]
    return found


def _moves(space: Any, status: str) -> str:
    condition = space.condition(_SERVICE, "KVTransferHealthy")
    return condition["message"] if condition.get("status") == status else ""


def test_a_cut_path_between_healthy_workers_is_told_with_both_names_and_heals(space: Any) -> None:
    engine = {"type": "Simulator", "maxModelLen": 4096, "args": ["--sim-admin"]}
    space.apply(deployed.simulated(_SERVICE, prefill=2, decode=2, engine=engine))
    space.wait_whole(_SERVICE, prefill=2, decode=2)
    space.wait(lambda: _moves(space, "True"), service=_SERVICE, what="canaries show that KV cache moves, without any request")
    prefill, decode = space.workers(_SERVICE, Role.PREFILL)[0], space.workers(_SERVICE, Role.DECODE)[0]
    load = deployed.LoadGenerator(space.url(_SERVICE), model="model", prompts=_PROMPTS, clients=4, max_tokens=8)
    with load:
        _fault(space, decode, "POST", {"fault": "kv-deaf", "text": f"{_address(space, prefill)}:"})
        told = space.wait(
            lambda: _moves(space, "False"), service=_SERVICE, what="the dead path is told", seconds=_FOUND_SECONDS
        )
        assert f"from '{prefill}' to '{decode}'" in told
        assert space.condition(_SERVICE)["status"] == "True"
        assert len(space.workers(_SERVICE, Role.DECODE)) == 2
        _fault(space, decode, "DELETE", {})
        space.wait(lambda: _moves(space, "True"), service=_SERVICE, what="the mended path is told")
    assert not load.lost, load.lost
    assert not load.wrong, load.wrong
