"""What the scaler last read and decided, by service; the pass shows it in the status. Lost with the process, on purpose."""

from dataclasses import dataclass, field

from tandem_operator.cluster.store import ServiceKey
from tandem_operator.policies.scaling.decision import Decision, History

__all__ = ["ScalingMemory", "ServiceScaling"]


@dataclass(frozen=True, slots=True)
class ServiceScaling:
    """One service's readings and last decision."""

    history: History = field(default_factory=History)
    decision: Decision | None = None


class ScalingMemory:
    """By service."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._services: dict[ServiceKey, ServiceScaling] = {}

    def get(self, key: ServiceKey) -> ServiceScaling:
        """Return what is remembered; empty for a service that was never read."""
        return self._services.get(key, ServiceScaling())

    def set(self, key: ServiceKey, found: ServiceScaling) -> None:
        """Remember the last round."""
        self._services[key] = found

    def forget(self, key: ServiceKey) -> None:
        """Drop a service that is gone."""
        self._services.pop(key, None)
