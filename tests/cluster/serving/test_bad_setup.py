"""What is wrong with a set-up stands in the condition, in words that say what to change."""

from typing import Any

from support import deployed
from tandem_api.names import Role

_SERVICE = "wrong"
_MODELS = "file:///var/lib/tandem/models"


def _condition(space: Any, *words: str, kind: str = "PrefillAvailable") -> dict[str, str]:
    """Wait for a condition that holds all words, and return it."""

    def said() -> dict[str, str]:
        found: dict[str, str] = space.condition(_SERVICE, kind)
        return found if all(word in found.get("message", "") for word in words) else {}

    found: dict[str, str] = space.wait(said, service=_SERVICE, what=f"{kind} says {words}")
    return found


def _ended(space: Any) -> str:
    """Return the last termination message of a prefill worker's engine."""
    (pod, *_) = deployed.worker_pods(space.cluster, space.name, _SERVICE, Role.PREFILL)
    (engine,) = pod["status"]["containerStatuses"]
    ends = [engine[state]["terminated"] for state in ("state", "lastState") if "terminated" in engine.get(state, {})]
    return str(ends[0]["message"])


def _one_line(space: Any) -> str:
    message = _ended(space)
    assert len(message.strip().splitlines()) == 1, message
    return message.strip()


def test_more_gpus_than_any_node_has(space: Any) -> None:
    role = {"replicas": 1, "parallelism": {"tensor": 32}}
    space.apply(deployed.simulated(_SERVICE, prefill=role, decode=role))
    found = _condition(space, "Insufficient nvidia.com/gpu", "ask for less in `resources`")
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    assert space.condition(_SERVICE)["reason"] == "Unschedulable"


def test_a_model_folder_that_is_not_there(open_space: Any) -> None:
    open_space.apply(deployed.simulated(_SERVICE, model={"uri": f"{_MODELS}/absent", "servedName": "model"}))
    found = _condition(open_space, "/var/lib/tandem/models/absent", "check the path in `model.uri`")
    assert found["reason"] == "PodFailing"


def test_a_secret_that_is_not_there(space: Any) -> None:
    model = {"uri": "hf://example/model", "servedName": "model", "secretRef": {"name": "hf-token"}}
    space.apply(deployed.simulated(_SERVICE, model=model))
    assert _condition(space, 'secret "hf-token" not found')["reason"] == "PodFailing"


def test_an_image_that_cannot_be_pulled(space: Any) -> None:
    engine = {"type": "VLLM", "image": "registry.example.com/vllm:none", "maxModelLen": 4096}
    space.apply(deployed.simulated(_SERVICE, engine=engine))
    found = _condition(space, "ImagePullBackOff", "check the image's name")
    assert found["reason"] == "PodFailing"


def test_an_engine_flag_that_does_not_exist(space: Any) -> None:
    engine = {"type": "Simulator", "maxModelLen": 4096, "args": ["--enable-log-request"]}
    space.apply(deployed.simulated(_SERVICE, engine=engine))
    line = "the engine has no flag --enable-log-request (did you mean --enable-log-requests?)"
    assert _condition(space, line)["reason"] == "PodFailing"
    assert line in _one_line(space)


def test_heads_that_cannot_be_spread_over_the_gpus(open_space: Any) -> None:
    role = {"replicas": 1, "parallelism": {"tensor": 2}}
    model = {"uri": f"{_MODELS}/SmolLM2-135M-Instruct", "servedName": "model"}
    open_space.apply(deployed.simulated(_SERVICE, model=model, prefill=role, decode=role))
    line = _condition(open_space, "attention heads")["message"]
    assert "9" in line
    assert _one_line(open_space) in line
