"""A service moves to an engine that refuses the other's KV cache, and back, under load; no client sees it."""

from typing import Any

from support import deployed

_SERVICE = "moving"
_PROMPTS = [f"Question {number}: {'what moves, and what stays? ' * 8}" for number in range(6)]


def _manifest(block_size: int) -> dict[str, Any]:
    """Engines with blocks of another size cannot exchange KV cache; the simulator refuses it as vLLM does."""
    engine = {"type": "Simulator", "maxModelLen": 4096, "blockSize": block_size}
    return deployed.simulated(_SERVICE, prefill=2, decode=4, engine=engine, rollout={"maxSurge": 2})


def _groups(space: Any) -> set[str]:
    pods = deployed.worker_pods(space.cluster, space.name, _SERVICE, leaving=True)
    return {pod["metadata"]["labels"]["serving.tandem.dev/kv-group"] for pod in pods}


def test_two_prefill_and_four_decode_workers_move_to_another_engine_and_back_and_no_request_fails(space: Any) -> None:
    space.apply(_manifest(16))
    space.wait_whole(_SERVICE, prefill=2, decode=4)
    (before,) = _groups(space)
    load = deployed.LoadGenerator(space.url(_SERVICE), model="model", prompts=_PROMPTS, clients=4)
    with load:
        for block_size in (32, 16):
            space.apply(_manifest(block_size))
            space.wait(lambda: len(_groups(space)) == 2, service=_SERVICE, what="workers of two KV groups")
            space.wait(lambda: len(_groups(space)) == 1, service=_SERVICE, what="workers of one KV group", seconds=180)
            space.wait_whole(_SERVICE, prefill=2, decode=4)
    assert _groups(space) == {before}
    assert (load.lost, load.wrong) == ([], [])
    assert len(load.answers) > len(_PROMPTS)
    # Nothing was computed twice for want of a partner, and nothing was pulled from a stranger.
    assert space.signals(_SERVICE).fallbacks == {}
