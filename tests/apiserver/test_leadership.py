"""Two operators: one works, and the other takes over when it dies, goes or hangs. Never both."""

import signal
from pathlib import Path

import pytest

from support.faulty_api import Fault, FaultyApi
from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pairs import LEASE, Pair
from support.services import sample, wait_for_condition
from tandem_local.apiserver import ApiServer


def named(name: str) -> dict[str, object]:
    """Return a small service of a name."""
    return sample("minimal") | {"metadata": {"name": name}}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_leader_that_is_killed_or_stopped_is_followed_by_the_standby_which_has_written_nothing_before(
    cluster: Kube, kube: Kube, alone: OperatorProcess, account: Path, tmp_path: Path, how: signal.Signals
) -> None:
    assert alone.ended() is None
    with Pair(cluster, account, tmp_path, TANDEM_WATCH_NAMESPACES=kube.namespace).running() as pair:
        leader, standby = pair.roles()
        kube.create(named("before"))
        wait_for_condition(kube, "before", "Accepted", "True")
        assert standby.writes() == {}
        assert standby.metric("tandem_operator_reconcile_total") == 0
        assert standby.fetch(standby.health, "/healthz")[0] == 200
        leader.send(how)
        kube.create(named("after"))
        wait_for_condition(kube, "after", "Accepted", "True")
        assert pair.leaders() == [standby]
        assert standby.metric("tandem_operator_leader_transitions_total") == 2
        leader.send(signal.SIGCONT)
        assert until(leader.ended, what="the end of the one that led") == (1 if how == signal.SIGSTOP else -signal.SIGKILL)
        assert pair.leaders() == [standby]


def test_a_leader_that_is_asked_to_go_gives_the_lease_away_when_its_work_has_ended(
    cluster: Kube, kube: Kube, alone: OperatorProcess, account: Path, tmp_path: Path
) -> None:
    assert alone.ended() is None
    # Longer than the test waits: only a release can make the standby lead.
    settings = {"TANDEM_WATCH_NAMESPACES": kube.namespace, "TANDEM_LEASE_DURATION": "10m"}
    with Pair(cluster, account, tmp_path, **settings).running() as pair:
        leader, standby = pair.roles()
        assert leader.end(signal.SIGTERM) == 0
        assert pair.holder() in {"", "second"}
        until(standby.leads, what="the standby leads")
        assert "This operator released the Lease" in leader.output()


def test_a_leader_whose_calls_hang_ends_before_the_other_one_leads(
    cluster: Kube, kube: Kube, server: ApiServer, alone: OperatorProcess, account: Path, tmp_path: Path
) -> None:
    assert alone.ended() is None
    with FaultyApi(server.url, account) as api:
        pair = Pair(cluster, account, tmp_path, TANDEM_WATCH_NAMESPACES=kube.namespace)
        pair.both[0].with_settings(KUBECONFIG=str(api.kubeconfig(tmp_path)))
        with pair.running():
            leader, standby = pair.roles()
            assert leader is pair.both[0]
            hung = api.add(Fault("PUT", f"/leases/{LEASE}", status=-1))
            api.add(Fault("GET", f"/leases/{LEASE}", status=-1))

            def taken_over() -> bool:
                leaders = pair.leaders()
                assert len(leaders) <= 1
                return leaders == [standby]

            until(taken_over, what="the standby leads")
            assert hung.seen >= 1
            assert until(leader.ended, what="the end of the one that hung") == 1
            assert "the Lease could not be renewed in time" in leader.output()
            kube.create(named("after"))
            wait_for_condition(kube, "after", "Accepted", "True")


def test_a_lease_that_may_not_be_read_is_named_by_readiness(alone: OperatorProcess) -> None:
    with alone.with_settings(TANDEM_LEASE="of-somebody-else").launched():
        until(
            lambda: "the Lease could neither be read nor made" in alone.fetch(alone.health, "/readyz")[1],
            what="the reason why it is not ready",
        )
        assert "is forbidden" in alone.fetch(alone.health, "/readyz")[1]
        assert alone.fetch(alone.health, "/healthz")[0] == 200
