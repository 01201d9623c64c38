"""What the operator tells Prometheus, named after the set that controllers of Kubernetes have in common.

Labels are bounded: kinds, verbs, results and reasons, never names of objects.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tandem_operator.cluster.access import Call

__all__ = ["Metrics"]

_PASS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """All metrics of one operator process."""

    def __init__(self) -> None:
        """Register everything at zero."""
        self._registry = CollectorRegistry()
        prefix = "tandem_operator"
        self._passes = Counter(f"{prefix}_reconcile", "Passes over a service, by result.", ["result"], registry=self._registry)
        self._seconds = Histogram(
            f"{prefix}_reconcile_seconds", "Duration of a pass.", buckets=_PASS_SECONDS, registry=self._registry
        )
        self._calls = Counter(
            f"{prefix}_api_requests", "Calls of the API server.", ["verb", "resource", "code"], registry=self._registry
        )
        self._writes = Counter(f"{prefix}_writes", "Objects written, by kind.", ["kind"], registry=self._registry)
        self._decisions = Counter(
            f"{prefix}_scaling_decisions",
            "Decisions of the autoscaler, by role and reason.",
            ["role", "reason"],
            registry=self._registry,
        )
        self._resyncs = Counter(f"{prefix}_resyncs", "Complete lists, by result.", ["result"], registry=self._registry)
        self.missed = Counter(
            f"{prefix}_watch_missed",
            "Services for which a complete list told something that no watch had told.",
            registry=self._registry,
        )
        self.depth = Gauge(f"{prefix}_workqueue_depth", "Services that wait for a pass.", registry=self._registry)
        self.longest_wait = Gauge(
            f"{prefix}_workqueue_longest_wait_seconds", "Time that the oldest of them has waited.", registry=self._registry
        )
        self.waiting_routers = Gauge(
            f"{prefix}_router_rollouts_waiting",
            "Services whose router of a newer operator waits until those of others are rolled out.",
            registry=self._registry,
        )
        self.leader = Gauge(f"{prefix}_leader", "1 while this process leads, 0 while it stands by.", registry=self._registry)
        self._transitions = Counter(
            f"{prefix}_leader_transitions", "Times that this process saw the Lease get another holder.", registry=self._registry
        )

    def observe_pass(self, result: str, seconds: float) -> None:
        """Count one pass of the queue."""
        self._passes.labels(result).inc()
        self._seconds.observe(seconds)

    def observe_call(self, call: Call, code: str) -> None:
        """Count one call of the API server; a successful patch, create or delete is a write."""
        resource = f"{call.kind.plural}/{call.subresource}" if call.subresource else call.kind.plural
        self._calls.labels(call.verb, resource, code).inc()
        if call.verb in {"patch", "create", "delete"} and code.startswith("2"):
            self._writes.labels(call.kind.kind).inc()

    def observe_decision(self, role: str, reason: str) -> None:
        """Count one decision of the autoscaler."""
        self._decisions.labels(role, reason).inc()

    def observe_resync(self, result: str) -> None:
        """Count one complete list, `success` or `error`."""
        self._resyncs.labels(result).inc()

    def observe_transition(self) -> None:
        """Count that the Lease got another holder."""
        self._transitions.inc()

    def text(self) -> bytes:
        """Return the exposition that Prometheus scrapes."""
        return generate_latest(self._registry)
