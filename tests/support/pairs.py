"""Two operators that share one Lease, as the chart would run them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.kube import Kube, until
from support.operators import OperatorProcess

__all__ = ["LEASE", "Pair"]

LEASE = "tandem-operator"


class Pair:
    """Two processes; either may lead."""

    def __init__(self, cluster: Kube, account: Path, folder: Path, **settings: str) -> None:
        """Prepare; the Lease is in the namespace of `cluster`."""
        self._cluster = cluster
        self.both = [
            OperatorProcess(account, folder / f"{name}.log", TANDEM_POD_NAME=name, **settings) for name in ("first", "second")
        ]

    @contextmanager
    def running(self) -> Iterator["Pair"]:
        """Run both for the length of a block; at its beginning the first one leads."""
        try:
            for each in self.both:
                each.start()
                until(self.leaders, what="a leader")
            yield self
        finally:
            for each in self.both:
                each.end(signal.SIGTERM)

    def leaders(self) -> list[OperatorProcess]:
        """Return who says that it leads."""
        return [each for each in self.both if each.leads()]

    def roles(self) -> tuple[OperatorProcess, OperatorProcess]:
        """Return the leader and the standby, once the one leads and the other is ready."""
        (leader,) = until(self.leaders, what="a leader")
        (standby,) = [each for each in self.both if each is not leader]
        until(standby.ready, what="a standby that is ready", seconds=90)
        return leader, standby

    def holder(self) -> str:
        """Return the pod's name in the Lease, empty if nobody holds it."""
        lease = self._cluster.get("Lease", LEASE) or {}
        return str(lease.get("spec", {}).get("holderIdentity") or "").split("_")[0]

    def replace_leader(self) -> None:
        """Kill the leader, and start another process in its place; do not wait for the dead one's Lease to run out."""
        leader, standby = self.roles()
        leader.end(signal.SIGKILL)
        self._cluster.patch("Lease", LEASE, {"spec": {"holderIdentity": None}})
        until(standby.leads, what="the standby leads")
        leader.launch()  # not before: a new process may be quicker than the standby's next look
