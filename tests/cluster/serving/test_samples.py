"""Every sample, with the simulator in place of its engine, serves on a real Kubernetes and goes without a trace."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import deployed
from tandem_api.names import Role
from tandem_cli.simulate import simulated

_SAMPLES = sorted((Path(__file__).parents[3] / "crds" / "samples").glob("*.yaml"))
_CLAIMS = "/var/lib/tandem/claims"
_GPU = "nvidia.com/gpu"


def _claims(spec: dict[str, Any]) -> set[str]:
    """Return the names of the claims that a service needs."""
    uri, cache = spec["model"]["uri"], spec["model"].get("cache")
    named = {uri.removeprefix("pvc://").partition("/")[0]} if uri.startswith("pvc://") else set()
    return named | ({cache["claimName"]} if cache else set())


def _volume(space: Any, claim: str) -> list[dict[str, Any]]:
    """Return a volume of the node and the claim that is bound to it."""
    name, size = f"{space.name}-{claim}", {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        **common,
        "capacity": size,
        "hostPath": {"path": f"{_CLAIMS}/{claim}", "type": "Directory"},
        "claimRef": {"name": claim, "namespace": space.name},
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim},
            "spec": {**common, "volumeName": name, "resources": {"requests": size}},
        },
    ]


def _prepare(space: Any, spec: dict[str, Any]) -> None:
    """Make what the sample's first lines say that it needs."""
    for claim in _claims(spec):
        folder = spec["model"]["uri"].partition("/")[2].strip("/") if spec["model"]["uri"].startswith("pvc://") else claim
        space.cluster.run_in("mkdir", "-p", f"{_CLAIMS}/{folder}")
        space.apply(*_volume(space, claim))
    if secret := spec["model"].get("secretRef"):
        space.kubectl("create", "secret", "generic", secret["name"], "--from-literal=token=not-a-real-one")


def _gpus(space: Any, service: str) -> list[int]:
    """Return the GPUs of each worker pod that runs on a node."""
    pods = [pod["spec"] for pod in deployed.worker_pods(space.cluster, space.name, service)]
    limits = [pod["containers"][0].get("resources", {}).get("limits", {}) for pod in pods if pod.get("nodeName")]
    return sorted(int(each.get(_GPU, 0)) for each in limits)


def _asked(spec: dict[str, Any]) -> list[int]:
    """Return the GPUs that the sample asks for, worker by worker."""
    found = []
    for role in (Role.PREFILL, Role.DECODE):
        own = spec.get(role.value)
        if own is not None:
            size = own.get("parallelism", {}).get("tensor", 1)
            found += [own.get("resources", {}).get("gpus", size)] * own.get("replicas", 1)
    return sorted(found)


@pytest.fixture(scope="module")
def deleted(sample_space: Any) -> Iterator[list[str]]:
    """Take the names of deleted services, which go while others are tried; at the end nothing of them may be left."""
    services: list[str] = []
    yield services
    for name in services:
        gone = partial(_gone, sample_space, name)
        words = partial(deployed.describe, sample_space.cluster, sample_space.name, name)
        deployed.wait_for(gone, what=f"nothing of {name} is left", seconds=120, words=words)


def _gone(space: Any, name: str) -> bool:
    return not deployed.left(space.cluster, space.name, name)


@pytest.mark.parametrize("sample", _SAMPLES, ids=lambda path: path.stem)
def test_a_sample_is_placed_becomes_ready_answers_and_leaves_nothing_behind(
    sample_space: Any, deleted: list[str], sample: Path
) -> None:
    manifest = simulated(yaml.safe_load(sample.read_text()))
    service, spec = manifest["metadata"]["name"], manifest["spec"]
    spec.pop("autoscaling", None)  # the load of one question would not hold the replicas that are counted here
    _prepare(sample_space, spec)
    sample_space.apply(manifest)
    counts = {role: spec[role].get("replicas", 1) for role in ("prefill", "decode") if role in spec}
    sample_space.wait_whole(service, **counts)
    assert _gpus(sample_space, service) == _asked(spec)
    name = spec["model"].get("servedName") or spec["model"]["uri"].rpartition("/")[2]
    answer = deployed.asked(sample_space.url(service), model=name, prompt="What is a decode worker?")
    assert answer.whole, answer
    sample_space.kubectl("delete", "inferenceservice", service, "--wait=false")
    deleted.append(service)
