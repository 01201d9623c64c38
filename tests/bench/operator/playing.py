"""Plays the controllers and the kubelet: says by patches that every child is as it should be."""

from collections.abc import Iterator
from typing import Any

from bench.operator.cases import Suite, addresses
from bench.operator.crowd import for_each
from tandem_api import labels
from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access, Call

__all__ = ["MERGE", "make_ready"]

MERGE = "application/merge-patch+json"
_WORKER_ADDRESS = "127.0.0.1"
_CONDITIONS = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]


async def make_ready(access: Access, suite: Suite) -> None:
    """Report every Deployment as complete and give it its pods, ready; routers get the addresses of the stubs."""
    found = [item async for page in access.pages(kinds.DEPLOYMENT, None, labels.SERVICE) for item in page]
    routers = addresses()
    pods = [pod for deployment in found for pod in _pods(deployment, routers)]

    async def report(deployment: dict[str, Any]) -> None:
        await _say(access, kinds.DEPLOYMENT, deployment["metadata"], _complete(deployment))

    async def run(item: tuple[dict[str, Any], str]) -> None:
        pod, address = item
        await access.call(Call("create", kinds.POD, pod["metadata"]["namespace"]), body=pod)
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": _CONDITIONS}
        await _say(access, kinds.POD, pod["metadata"], status)

    await for_each(found, report, at_once=suite.at_once)
    await for_each(pods, run, at_once=suite.at_once)


def _pods(deployment: dict[str, Any], routers: Iterator[str]) -> Iterator[tuple[dict[str, Any], str]]:
    metadata, spec = deployment["metadata"], deployment["spec"]
    is_router = metadata["labels"][labels.ROLE] == "router"
    for number in range(spec["replicas"]):
        identity = {"namespace": metadata["namespace"], "name": f"{metadata['name']}-{number}"}
        template = spec["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": identity | {"labels": template["metadata"]["labels"]},
            "spec": template["spec"],
        }
        yield pod, next(routers) if is_router else _WORKER_ADDRESS


def _complete(deployment: dict[str, Any]) -> dict[str, Any]:
    count = deployment["spec"]["replicas"]
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count),
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    }


async def _say(access: Access, kind: kinds.Kind, metadata: dict[str, Any], status: dict[str, Any]) -> None:
    call = Call("patch", kind, metadata["namespace"], metadata["name"], "status", {"fieldManager": "kubelet"})
    await access.call(call, body={"status": status}, content_type=MERGE)
