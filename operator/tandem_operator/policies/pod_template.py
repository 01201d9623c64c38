"""Which parts of a user's pod template are refused: Tandem sets them, or they reach what is not the service's namespace's.

The schema already refused what is no pod template. Paths are those that the user wrote, lists by index.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tandem_api import ports
from tandem_operator.policies import ownership
from tandem_operator.policies.problems import Problem

__all__ = ["template_problems"]

_ENGINE_FIELDS = {
    "image": "set `spec.engine.image`",
    "command": "Tandem's launcher starts the engine",
    "args": "set `engine.args`",
    "startupProbe": "set `startup`",
    "terminationMessagePath": "the launcher writes its reason to the default path",
    "terminationMessagePolicy": "the launcher's reason is read from there",
    "workingDir": "the engine's files have their places",
}
_POD_FIELDS = {
    "restartPolicy": "workers are always restarted",
    "activeDeadlineSeconds": "a Deployment's pods have no deadline",
    "ephemeralContainers": "use `kubectl debug` on the pod",
}
_OWN_PORTS = {ports.ENGINE, ports.SIDECAR, ports.NIXL_SIDE_CHANNEL}
_OWN_PORT_NAMES = {"http", "sidecar", "kv-handshake"}

_FOREIGN = (
    ("ephemeral", "volumeClaimTemplate", "spec", "dataSourceRef", "namespace"),
    ("storageos", "volumeNamespace"),
)
"""Fields of a volume by which a pod would get at another namespace's objects; a test finds them all in the schema."""


def template_problems(
    template: Mapping[str, Any],
    *,
    path: str,
    resources: Mapping[str, Mapping[str, str]],
    least_grace: int,
    node_paths: bool,
) -> Iterator[Problem]:
    """Yield what is refused in one role's template.

    Args:
        template: `spec.<role>.template`.
        path: Where it stands.
        resources: Requests and limits of the engine that typed fields already set.
        least_grace: Seconds that a worker needs to go.
        node_paths: Whether the installation lets services mount paths of the node.
    """
    metadata, pod = template.get("metadata") or {}, template.get("spec") or {}
    yield from _metadata(metadata, f"{path}.metadata")
    where = f"{path}.spec"
    for name in sorted(pod.keys() & _POD_FIELDS.keys()):
        yield Problem(f"{where}.{name}", "may not be set", _POD_FIELDS[name])
    grace = pod.get("terminationGracePeriodSeconds")
    if grace is not None and grace < least_grace:
        allowed = f"at least {least_grace}, or a shorter `drain`"
        yield Problem(f"{where}.terminationGracePeriodSeconds", "is shorter than drain and engine shutdown together", allowed)
    yield from _containers(pod, where, resources)
    for index, volume in enumerate(pod.get("volumes") or []):
        yield from _volume(volume, f"{where}.volumes[{index}]", node_paths=node_paths)


def _volume(volume: Mapping[str, Any], path: str, *, node_paths: bool) -> Iterator[Problem]:
    if volume.get("name", "").startswith(ownership.VOLUME_PREFIX):
        yield Problem(f"{path}.name", "begins with 'tandem-'", "use another name")
    if _reaches(volume, ("hostPath",)) and not node_paths:
        yield Problem(f"{path}.hostPath", "paths of the node are not allowed here", "use a claim")
    for foreign in _FOREIGN:
        if _reaches(volume, foreign):
            yield Problem(f"{path}.{'.'.join(foreign)}", "names an object of another namespace", "use one of the service's own")


def _reaches(tree: Any, path: Sequence[str]) -> bool:
    for key in path:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree is not None


def _metadata(metadata: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name in sorted(metadata.keys() - {"labels", "annotations"}):
        yield Problem(f"{path}.{name}", "may not be set", "only labels and annotations of the pods")
    for part in ("labels", "annotations"):
        for key in metadata.get(part) or {}:
            if key.startswith(ownership.OWN_PREFIX) or key in ownership.LABELS:
                yield Problem(f"{path}.{part}['{key}']", "belongs to Tandem", "use another key")


def _containers(pod: Mapping[str, Any], path: str, resources: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    for index, container in enumerate(pod.get("containers") or []):
        where = f"{path}.containers[{index}]"
        yield from _ports(container, where)
        if container.get("name") == ownership.ENGINE:
            yield from _engine(container, where, resources)
        elif container.get("name") in (ownership.LAUNCHER, ownership.SIDECAR):
            yield Problem(f"{where}.name", f"'{container['name']}' belongs to Tandem", "use another name")
    for index, container in enumerate(pod.get("initContainers") or []):
        where = f"{path}.initContainers[{index}]"
        yield from _ports(container, where)
        if container.get("name") in (ownership.ENGINE, ownership.LAUNCHER, ownership.SIDECAR):
            yield Problem(f"{where}.name", f"'{container['name']}' belongs to Tandem", "use another name")


def _ports(container: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for index, port in enumerate(container.get("ports") or []):
        if port.get("containerPort") in _OWN_PORTS or port.get("name") in _OWN_PORT_NAMES:
            yield Problem(f"{path}.ports[{index}]", "uses a port or port name of Tandem", "use another number and name")


def _engine(container: Mapping[str, Any], path: str, resources: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    for name in sorted(container.keys() & _ENGINE_FIELDS.keys()):
        yield Problem(f"{path}.{name}", "may not be set", _ENGINE_FIELDS[name])
    if "preStop" in (container.get("lifecycle") or {}):
        yield Problem(f"{path}.lifecycle.preStop", "may not be set", "it drains the worker; set `drain`")
    for index, variable in enumerate(container.get("env") or []):
        name = variable.get("name", "")
        if name in ownership.ENVIRONMENT:
            yield Problem(f"{path}.env[{index}].name", f"'{name}' may not be set", ownership.ENVIRONMENT[name])
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if _owned_path(mount.get("mountPath", "")):
            yield Problem(f"{path}.volumeMounts[{index}].mountPath", "belongs to Tandem", "use another path")
    for part, typed in resources.items():
        for name in sorted(((container.get("resources") or {}).get(part) or {}).keys() & typed.keys()):
            yield Problem(f"{path}.resources.{part}['{name}']", "is set by the role's `resources`", "set it there alone")


def _owned_path(path: str) -> bool:
    return any(f"{path.rstrip('/')}/".startswith(f"{owned}/") for owned in ownership.MOUNT_PATHS)
