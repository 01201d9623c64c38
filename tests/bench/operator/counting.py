"""What the API server's and the operator's own metrics tell. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tandem_operator.cluster import kinds

__all__ = ["Request", "observations", "operator_writes", "percentile", "requests", "succeeded"]

_RESOURCES = {kind.plural for kind in kinds.WATCHED} | {
    kinds.SECRET.plural,
    kinds.EVENT.plural,
    kinds.CUSTOM_RESOURCE_DEFINITION.plural,
}
"""What the operator asks about; the API server's requests to itself are about other things, and a Lease is left out."""
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = {"APPLY", "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION"}
_POSTED = {kinds.SECRET.plural, kinds.EVENT.plural}
"""What the operator makes by POST; whoever else writes here uses neither that nor server-side apply."""


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """What a request was, as the API server names it: a server-side apply has the verb `APPLY`."""

    verb: str
    resource: str
    code: str

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.verb in _WRITES


def requests(exposition: str) -> Counter[Request]:
    """Return how often each request was answered, from the API server's metrics."""
    found: Counter[Request] = Counter()
    for line in exposition.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels = dict(_LABEL.findall(line))
        if labels["resource"] in _RESOURCES:
            resource = "/".join(part for part in (labels["resource"], labels.get("subresource", "")) if part)
            found[Request(labels["verb"], resource, labels["code"])] += int(float(line.rpartition(" ")[2]))
    return found


def operator_writes(counted: Mapping[Request, int]) -> int:
    """Return the successful writes of the operator among all requests; others patch by merge, and post other kinds."""
    return sum(
        count
        for request, count in counted.items()
        if request.code.startswith("2")
        and (request.verb in {"APPLY", "DELETE"} or (request.verb == "POST" and request.resource in _POSTED))
    )


def succeeded(counted: Mapping[Request, int]) -> int:
    """Return the successful writes of anybody."""
    return sum(count for request, count in counted.items() if request.is_write and request.code.startswith("2"))


def observations(before: str, after: str, *, metric: str) -> float:
    """Return how often a histogram was observed between two expositions."""
    return _buckets(after, metric).get(float("inf"), 0.0) - _buckets(before, metric).get(float("inf"), 0.0)


def percentile(before: str, after: str, *, metric: str, share: float) -> float | None:
    """Return a percentile of a histogram between two expositions, interpolated within its bucket as Prometheus does.

    None if nothing was observed meanwhile; the highest finite bound if it lies above that.
    """
    earlier, later = _buckets(before, metric), _buckets(after, metric)
    counts = sorted((bound, count - earlier.get(bound, 0.0)) for bound, count in later.items())
    if not counts or counts[-1][1] <= 0:
        return None
    rank = share * counts[-1][1]
    low, below = 0.0, 0.0
    for bound, count in counts:
        if count >= rank:
            return low if bound == float("inf") else low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    raise AssertionError  # unreachable: the last bucket counts everything


def _buckets(exposition: str, metric: str) -> dict[float, float]:
    lines = [line for line in exposition.splitlines() if line.startswith(f"{metric}_bucket{{")]
    return {float(dict(_LABEL.findall(line))["le"]): float(line.rpartition(" ")[2]) for line in lines}
