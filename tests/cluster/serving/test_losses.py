"""Workers go, politely and not, while clients ask: what is lost, and that it is never a wrong answer."""

import random
from typing import Any

import pytest

from support import deployed
from tandem_api.names import Role

_SERVICE = "losses"
_ROUNDS = 2
_PROMPTS = [f"Question {number}: {'why is the sky blue and the sea green? ' * 6}" for number in range(7)]


@pytest.fixture
def seed() -> int:
    """Chosen anew each time; a failure prints it."""
    return random.SystemRandom().randrange(2**32)


@pytest.fixture(scope="module")
def serving(shared_space: Any) -> Any:
    """A service of two workers of each role."""
    shared_space.apply(deployed.simulated(_SERVICE, prefill=2, decode=2))
    shared_space.wait_whole(_SERVICE, prefill=2, decode=2)
    return shared_space


def _load(serving: Any, **options: Any) -> deployed.LoadGenerator:
    serving.wait_whole(_SERVICE, prefill=2, decode=2)
    return deployed.LoadGenerator(serving.url(_SERVICE), model="model", prompts=_PROMPTS, **options)


def _kill_engine(serving: Any, pod: str) -> None:
    """Kill an engine as the kernel would, and wait until the kubelet has started it anew."""
    deployed.kill_engine(serving.cluster, pod)

    def restarted() -> bool:
        (engine,) = serving.get("pod", pod)["status"]["containerStatuses"]
        return bool(engine["restartCount"] and engine["ready"])

    serving.wait(restarted, service=_SERVICE, what=f"the engine of {pod} was started anew")


def test_deleting_random_workers_under_load_loses_no_request(serving: Any, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - which pod goes is no secret
    with _load(serving) as load:
        for _ in range(_ROUNDS):
            gone = [chance.choice(serving.workers(_SERVICE, role)) for role in (Role.PREFILL, Role.DECODE)]
            serving.kubectl("delete", "pod", *gone, "--wait=false")
            serving.wait_whole(_SERVICE, prefill=2, decode=2)
    assert not load.lost, (seed, load.lost)
    assert not load.wrong, (seed, load.wrong)
    assert len(load.answers) > len(_PROMPTS), seed


def test_a_killed_prefill_engine_loses_no_request(serving: Any, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - which pod goes is no secret
    with _load(serving) as load:
        _kill_engine(serving, chance.choice(serving.workers(_SERVICE, Role.PREFILL)))
        serving.wait_whole(_SERVICE, prefill=2, decode=2)
    assert not load.lost, (seed, load.lost)
    assert not load.wrong, (seed, load.wrong)


def _continued(serving: Any) -> int:
    """How many streams went on after the loss of their worker."""
    return int(serving.signals(_SERVICE).continuations.get("continued", 0))


def test_a_killed_decode_engine_breaks_no_stream(serving: Any, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - which pod goes is no secret
    continued = _continued(serving)
    with _load(serving, clients=6, max_tokens=96) as load:
        _kill_engine(serving, chance.choice(serving.workers(_SERVICE, Role.DECODE)))
        serving.wait_whole(_SERVICE, prefill=2, decode=2)
    assert not load.lost, (seed, load.lost)
    assert not load.wrong, (seed, load.wrong)
    assert _continued(serving) > continued, (seed, "no stream was open on the worker: the test has shown nothing")
