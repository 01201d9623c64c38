"""Which fields of an object we own, and one digest over their values. Pure.

The API server notes in `metadata.managedFields` which manager applied which field. Someone who edits a field of ours takes
it over; someone who deletes it removes it. Either way the digest of what we still own differs from that of what we want,
so one comparison finds every hand edit, and fields that others or the API server's defaults set do not disturb it.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pydantic_core import to_json

__all__ = ["digest_of", "digest_of_template", "digest_owned", "digest_owned_template", "owned"]

_QUANTITY = re.compile(r"^([+-]?[0-9]+(?:[.][0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$")
_SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
_SUFFIXES |= {suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)}
_MAPS_OF_QUANTITIES = {"limits", "requests"}
_QUANTITIES = {"sizeLimit", "divisor"}
_ATOMIC_DEFAULTS: Mapping[str, dict[str, Any]] = {
    "fieldRef": {"apiVersion": "v1"},
    "resourceFieldRef": {"divisor": "0"},
    "serviceAccountToken": {"expirationSeconds": 3600},
}
"""Defaults inside values that have one owner as a whole: the API server adds them to what we applied."""
_SPECIAL = _MAPS_OF_QUANTITIES | _QUANTITIES | _ATOMIC_DEFAULTS.keys()
_IDENTITY = {"name", "namespace", "uid", "resourceVersion"}


def digest_of(desired: Mapping[str, Any]) -> str:
    """Return the digest of a tree that is to be applied; its identity (kind, name) is not part of it."""
    tree = {key: value for key, value in desired.items() if key not in {"apiVersion", "kind"}}
    metadata = {key: value for key, value in tree.get("metadata", {}).items() if key not in _IDENTITY}
    tree.pop("metadata", None)
    return _digest(tree | ({"metadata": metadata} if metadata else {}))


def digest_owned(live: Mapping[str, Any], *, manager: str, subresource: str = "") -> str:
    """Return the digest of the fields that `manager` applied and still owns; empty if it owns none."""
    tree = owned(live, manager=manager, subresource=subresource)
    return _digest(tree) if tree else ""


def digest_of_template(desired: Mapping[str, Any]) -> str:
    """Return the digest of the pod template of a Deployment that is to be applied."""
    return _digest(desired["spec"]["template"])


def digest_owned_template(live: Mapping[str, Any], *, manager: str) -> str:
    """Return the digest of what `manager` applied and still owns of a Deployment's pod template; empty if that is nothing."""
    template = owned(live, manager=manager).get("spec", {}).get("template")
    return _digest(template) if template else ""


def owned(live: Mapping[str, Any], *, manager: str, subresource: str = "") -> dict[str, Any]:
    """Return the part of an object that `manager` applied and still owns."""
    for entry in live.get("metadata", {}).get("managedFields", ()):
        applied = entry.get("manager") == manager and entry.get("operation") == "Apply"
        if applied and entry.get("subresource", "") == subresource:
            found = _extract(live, entry.get("fieldsV1", {}))
            return found if isinstance(found, dict) else {}
    return {}


def _extract(value: Any, fields: Mapping[str, Any]) -> Any:
    if not fields:
        return value
    if isinstance(value, Mapping):
        return {
            key[2:]: _extract(value[key[2:]], below)
            for key, below in fields.items()
            if key.startswith("f:") and key[2:] in value
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _extract_items(value, fields)
    return value


def _extract_items(items: Sequence[Any], fields: Mapping[str, Any]) -> list[Any]:
    found = []
    selectors = [(key[:2], json.loads(key[2:]), below) for key, below in fields.items() if key != "."]
    for item in items:
        for how, wanted, below in selectors:
            if how == "v:" and item == wanted:
                found.append(item)
            elif how == "k:" and all(item.get(key) == value for key, value in wanted.items()):
                found.append(_extract(item, below))
    return found


def _digest(tree: Any) -> str:
    return hashlib.blake2b(to_json(_normal(tree)), digest_size=12).hexdigest()


def _normal(value: Any) -> Any:
    # Trees come from JSON and YAML: comparing classes is several times faster than asking for an interface.
    if value.__class__ is dict:
        return {key: _normal_field(key, below) for key, below in sorted(value.items()) if below is not None and below != []}
    if value.__class__ is list:
        return [_normal(item) for item in value]
    return value


def _normal_field(name: str, value: Any) -> Any:
    if name in _SPECIAL:
        if name in _QUANTITIES:
            return _quantity(value)
        if name in _MAPS_OF_QUANTITIES and value.__class__ is dict:
            return {key: _quantity(below) for key, below in sorted(value.items())}
        if name in _ATOMIC_DEFAULTS and value.__class__ is dict:
            return _normal(_ATOMIC_DEFAULTS[name] | value)
    return _normal(value)


def _quantity(value: Any) -> Any:
    """One spelling for equal quantities: the API server turns `1000m` into `1`."""
    return _spelled(str(value)) or _normal(value)


@lru_cache(maxsize=4096)
def _spelled(text: str) -> str:
    """Return a quantity as a plain number; empty for what is none."""
    parts = _QUANTITY.match(text)
    return str(Fraction(parts[1]) * _SUFFIXES[parts[2] or ""]) if parts else ""
