"""Tandem installed on a cluster with its chart, and services on it: apply, wait, ask, look at the pods.

Everything goes the way a user goes: the chart, kubectl, the router's Service. Clients are in `asking`.
"""

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

from support.asking import Answer, LoadGenerator, ask, asked
from tandem_api import labels, names, ports
from tandem_api.names import Role
from tandem_cli import install_command
from tandem_local.cluster import Cluster

__all__ = [
    "RELEASE_NAMESPACE",
    "Answer",
    "LoadGenerator",
    "apply",
    "ask",
    "asked",
    "condition",
    "describe",
    "get",
    "install_tandem",
    "kill_engine",
    "left",
    "objects",
    "pin_engine",
    "router_url",
    "simulated",
    "wait_for",
    "wait_ready",
    "worker_pods",
]

Found = TypeVar("Found")

RELEASE_NAMESPACE = install_command.NAMESPACE
_POLL_SECONDS = 0.25
_ON_ENGINE = """
pod=$1
shift
for folder in /proc/[0-9]*; do
  if tr '\\0' '\\n' <"$folder/environ" 2>/dev/null | grep -qx "POD_NAME=$pod" &&
     tr '\\0' '\\n' <"$folder/environ" 2>/dev/null | grep -q '^PHASE='; then
    "$@" "${folder#/proc/}" && found=1
  fi
done
test -n "$found"
"""
"""Only the engine has both variables."""
_KINDS = (
    "inferenceservices,workerpools,deployments,replicasets,pods,services,endpointslices,serviceaccounts,"
    "rolebindings,networkpolicies,poddisruptionbudgets,controllerrevisions,configmaps,secrets"
)


def install_tandem(cluster: Cluster, **values: Any) -> None:
    """Install the chart with the local images and wait until the operator is ready; `values` replace whole top-level keys."""
    install_command.install(cluster, **{"scaling": {"interval": "2s"}, **values})


def apply(cluster: Cluster, namespace: str, *manifests: dict[str, Any]) -> None:
    """Apply objects as `kubectl apply` does."""
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))


def simulated(name: str, *, prefill: int | dict[str, Any] = 1, decode: int | dict[str, Any] = 1, **spec: Any) -> dict[str, Any]:
    """Return a service of simulated engines, each with one GPU unless a whole role is given; `spec` replaces whole parts."""
    roles = {
        role: {"replicas": asked, "drain": "20s"} if isinstance(asked, int) else asked
        for role, asked in (("prefill", prefill), ("decode", decode))
    }
    return {
        "apiVersion": "serving.tandem.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {
            "model": {"uri": "hf://example/model", "servedName": "model"},
            "engine": {"type": "Simulator", "maxModelLen": 4096},
            **roles,
            "kvTransfer": {"lease": "15s", "minPromptTokens": 0},
            "router": {"replicas": 1, "drain": "20s"},
            **spec,
        },
    }


def get(cluster: Cluster, namespace: str, kind: str, name: str) -> dict[str, Any]:
    """Return one object; empty if there is none."""
    text = cluster.kubectl("-n", namespace, "get", kind, name, "--ignore-not-found", "-o", "json")
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def kill_engine(cluster: Cluster, pod: str) -> None:
    """Kill a pod's engine as the kernel would."""
    _on_engine(cluster, pod, "kill", "-9")


def pin_engine(cluster: Cluster, pod: str, core: int) -> None:
    """Let all threads of a pod's engine, and those that they start, run on one core only."""
    _on_engine(cluster, pod, "taskset", "--all-tasks", "--cpu-list", "--pid", str(core))


def _on_engine(cluster: Cluster, pod: str, *command: str) -> None:
    """Run a command of the host on each process of a pod's engine: its number becomes the last argument."""
    cluster.run_in("sh", "-c", _ON_ENGINE, "sh", pod, *command)


def objects(cluster: Cluster, namespace: str, kinds: str, selector: str = "") -> list[dict[str, Any]]:
    """Return the objects of comma-separated kinds, by label."""
    chosen = ("-l", selector) if selector else ()
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("-n", namespace, "get", kinds, *chosen, "-o", "json"))["items"]
    return found


def wait_for(look: Callable[[], Found], *, what: str, seconds: float = 60, words: Callable[[], str] = str) -> Found:
    """Return what `look` finds as soon as it is true; at the deadline fail with `what` and the last `words`."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}; last seen: {found!r}\n{words()}")
        time.sleep(_POLL_SECONDS)
    return found


def condition(cluster: Cluster, namespace: str, name: str, kind: str = "Ready") -> dict[str, str]:
    """Return one condition of a service; empty while there is none about the newest spec."""
    found = get(cluster, namespace, "inferenceservice", name)
    generation = found.get("metadata", {}).get("generation")
    listed = found.get("status", {}).get("conditions", ())
    return next((each for each in listed if each["type"] == kind and each["observedGeneration"] == generation), {})


def wait_ready(cluster: Cluster, namespace: str, name: str, seconds: float = 90) -> None:
    """Wait until a service is ready; the failure has its conditions' and its pods' last words."""
    wait_for(
        lambda: condition(cluster, namespace, name).get("status") == "True",
        what=f"{namespace}/{name} is ready",
        seconds=seconds,
        words=lambda: describe(cluster, namespace, name),
    )


def describe(cluster: Cluster, namespace: str, name: str) -> str:
    """Return the conditions of a service, and its pods with what their containers say."""
    status = get(cluster, namespace, "inferenceservice", name).get("status", {})
    lines = [f"{each['type']}={each['status']} {each['reason']}: {each['message']}" for each in status.get("conditions", ())]
    for pod in objects(cluster, namespace, "pods", f"{labels.SERVICE}={name}"):
        held = pod["status"]
        containers = [*held.get("initContainerStatuses", ()), *held.get("containerStatuses", ())]
        said = {each["name"]: each["state"] for each in containers if not each["ready"]}
        lines.append(f"{pod['metadata']['name']}: {held['phase']} {json.dumps(said)}")
    return "\n".join(lines)


def router_url(cluster: Cluster, namespace: str, name: str) -> str:
    """Forward a port to a service's router and return its base URL."""
    return cluster.forward(namespace, names.router(name), ports.SERVICE_PUBLIC)


def worker_pods(
    cluster: Cluster, namespace: str, name: str, role: Role | None = None, *, leaving: bool = False
) -> list[dict[str, Any]]:
    """Return the worker pods of a service, of one role or all; with `leaving` also those on their way out."""
    wanted = {role.value} if role else {each.value for each in Role}
    pods = objects(cluster, namespace, "pods", f"{labels.SERVICE}={name}")
    return [
        pod
        for pod in pods
        if pod["metadata"]["labels"][labels.ROLE] in wanted and (leaving or "deletionTimestamp" not in pod["metadata"])
    ]


def left(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """Return what there is of a service: itself, and whatever carries its label."""
    own = get(cluster, namespace, "inferenceservice", name)
    found = [*([own] if own else []), *objects(cluster, namespace, _KINDS, f"{labels.SERVICE}={name}")]
    return [f"{each['kind']}/{each['metadata']['name']}" for each in found]
