"""What the scaler last read and decided, by service; the pass shows it in the status. Lost with the process, on purpose."""

from array import array
from dataclasses import dataclass, field, replace
from itertools import chain

from tandem_operator.cluster.packing import Packed
from tandem_operator.cluster.store import ServiceKey
from tandem_operator.policies.scaling.decision import Decision, History
from tandem_operator.policies.scaling.sample import Asked
from tandem_operator.policies.scaling.signals import Reading

__all__ = ["ScalingMemory", "ServiceScaling"]


@dataclass(frozen=True, slots=True)
class ServiceScaling:
    """One service's readings and last decision."""

    history: History = field(default_factory=History)
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """The same with readings packed, by their time, and the sample as bare numbers: they are nearly all of it."""

    rest: ServiceScaling
    readings: dict[float, Packed[Reading]]
    rows: bytes


class ScalingMemory:
    """By service."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._services: dict[ServiceKey, _Kept] = {}

    def get(self, key: ServiceKey) -> ServiceScaling:
        """Return what is remembered; empty for a service that was never read."""
        kept = self._services.get(key)
        if kept is None:
            return ServiceScaling()
        readings = tuple(packed.unpack() for packed in kept.readings.values())
        found = kept.rest
        learned = replace(found.history.learned, rows=_rows(kept.rows))
        return replace(found, history=replace(found.history, readings=readings, learned=learned))

    def set(self, key: ServiceKey, found: ServiceScaling) -> None:
        """Remember the last round."""
        known = self._services[key].readings if key in self._services else {}
        readings = {each.time: known.get(each.time) or Packed(each) for each in found.history.readings}
        rows = array("d", chain.from_iterable(found.history.learned.rows)).tobytes()
        learned = replace(found.history.learned, rows=())
        rest = replace(found, history=replace(found.history, readings=(), learned=learned))
        self._services[key] = _Kept(rest, readings, rows)

    def forget(self, key: ServiceKey) -> None:
        """Drop a service that is gone."""
        self._services.pop(key, None)


def _rows(packed: bytes) -> tuple[Asked, ...]:
    figures = iter(memoryview(packed).cast("d"))
    return tuple(map(Asked._make, zip(*[figures] * len(Asked._fields), strict=True)))
