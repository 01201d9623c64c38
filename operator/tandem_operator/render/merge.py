"""Merges a user's pod template into ours as Kubernetes merges: lists of objects by their keys, other lists whole.

Ours is the base; what the user wrote is added, and wins where both speak. What the user may not write was refused by
`policies.pod_template` before.
"""

from typing import Any

__all__ = ["merge_pod_template"]

_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
_APPENDED = {"tolerations", "envFrom", "readinessGates"}
_HANDLERS = {"exec", "httpGet", "tcpSocket", "grpc"}
_KEY_DEFAULTS = {"protocol": "TCP"}
_UNIONS = {"volumes", "env"}
"""Lists whose entries hold one of several kinds of source: an entry that the user writes replaces ours whole."""


def merge_pod_template(base: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with the user's `added` merged in; neither is changed."""
    return _objects(base, added)


def _objects(base: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    if _HANDLERS & added.keys():
        # A probe has one handler: with the user's own the base's must go.
        base = {name: value for name, value in base.items() if name not in _HANDLERS}
    merged = dict(base)
    for name, value in added.items():
        merged[name] = _values(name, base[name], value) if name in base else value
    return merged


def _values(name: str, base: Any, added: Any) -> Any:
    if isinstance(base, dict) and isinstance(added, dict):
        return _objects(base, added)
    if isinstance(base, list) and isinstance(added, list):
        if name in _APPENDED:
            return [*base, *(item for item in added if item not in base)]
        if name in _KEYS:
            return _lists(name, base, added)
    return added


def _lists(name: str, base: list[Any], added: list[Any]) -> list[Any]:
    theirs = {_key(name, item): item for item in added}
    kept = [_entry(name, item, theirs.pop(_key(name, item), {})) for item in base]
    return [*kept, *theirs.values()]


def _entry(name: str, base: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    return added if added and name in _UNIONS else _objects(base, added)


def _key(name: str, item: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(item.get(part, _KEY_DEFAULTS.get(part)) for part in _KEYS[name])
