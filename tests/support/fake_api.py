"""An API server's memory of applied objects, for passes without network: server-side apply as far as a pass can see it."""

import copy
from typing import Any

from typing_extensions import override

from tandem_operator.cluster import errors
from tandem_operator.cluster.access import Access, Call
from tandem_operator.cluster.kinds import Kind

__all__ = ["FakeApi"]

_IDENTITY = {"name", "namespace", "resourceVersion"}


class FakeApi(Access):
    """Stores what is applied, notes each write, and refuses what a test tells it to."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Kind, str], dict[str, Any]] = {}
        self.writes: list[str] = []
        self.refused: dict[tuple[Kind, str], errors.ApiError] = {}
        self._version = 100

    @override
    async def call(self, call: Call, *, body: Any = None, content_type: str = "") -> Any:
        """Answer one call."""
        key = (call.kind, call.name or "")
        if call.verb == "get":
            if key not in self.objects:
                raise errors.NotFoundError(call.what)
            return copy.deepcopy(self.objects[key])
        if key in self.refused:
            raise self.refused[key]
        self.writes.append(call.what)
        if call.verb == "create" and key in self.objects:
            raise errors.ConflictError(call.what)
        if call.verb == "create":
            self.objects[key] = copy.deepcopy(body)
            return copy.deepcopy(body)
        if call.verb == "patch":
            return copy.deepcopy(self._applied(key, call, body))
        self.objects.pop(key, None)
        return {}

    def put(self, kind: Kind, live: dict[str, Any]) -> None:
        """Take what somebody else wrote, whose version follows."""
        self._version += 1
        live["metadata"]["resourceVersion"] = str(self._version)
        self.objects[kind, live["metadata"]["name"]] = live

    def _applied(self, key: tuple[Kind, str], call: Call, body: dict[str, Any]) -> dict[str, Any]:
        if "resourceVersion" in body["metadata"] and key in self.objects:
            raise errors.ConflictError(call.what)  # only new objects are applied with a version
        self._version += 1
        born = {"metadata": {"uid": f"uid-{self._version}", "generation": 1, "managedFields": []}}
        live = self.objects.setdefault(key, born)
        manager, subresource = call.query["fieldManager"], call.subresource or ""
        fields = {"metadata": {name: value for name, value in body["metadata"].items() if name not in _IDENTITY}}
        fields |= {name: value for name, value in body.items() if name not in {"apiVersion", "kind", "metadata"}}
        _merge(live, copy.deepcopy(body))
        kept = [each for each in live["metadata"]["managedFields"] if each["manager"] != manager]
        entry = {"manager": manager, "operation": "Apply", "subresource": subresource, "fieldsV1": _fields(fields)}
        live["metadata"] |= {"resourceVersion": str(self._version), "managedFields": [*kept, entry]}
        return live


def _merge(live: dict[str, Any], body: dict[str, Any]) -> None:
    for name, value in body.items():
        if isinstance(value, dict) and isinstance(live.get(name), dict):
            _merge(live[name], value)
        else:
            live[name] = value


def _fields(tree: dict[str, Any]) -> dict[str, Any]:
    found = {f"f:{name}": _fields(value) if isinstance(value, dict) else {} for name, value in tree.items()}
    return {name: below for name, below in found.items() if below or name != "f:metadata"}
