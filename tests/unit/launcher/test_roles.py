"""Role, KV transfer and environment must agree: engines start happily when they do not."""

import pytest

from tandem_launcher.arguments import Transfer
from tandem_launcher.failures import Failure
from tandem_launcher.roles import check_connector, check_role, check_side_channel, read_role

NIXL = Transfer(connector="NixlConnector", role="kv_producer")


@pytest.mark.parametrize("phase", [None, "", "Prefill", "router"])
def test_a_phase_that_is_no_role_is_refused(phase: str | None) -> None:
    with pytest.raises(Failure, match="set it to prefill, decode or aggregated"):
        read_role({} if phase is None else {"PHASE": phase})


@pytest.mark.parametrize(
    ("phase", "role"),
    [
        ("prefill", "kv_producer"),
        ("decode", "kv_consumer"),
        ("prefill", "kv_both"),
        ("decode", "kv_both"),
        ("aggregated", "kv_both"),
    ],
)
def test_a_role_goes_with_its_side_of_the_transfer(phase: str, role: str) -> None:
    check_role(phase, Transfer(connector="NixlConnector", role=role))


@pytest.mark.parametrize(
    ("phase", "role"),
    [("prefill", "kv_consumer"), ("decode", "kv_producer"), ("aggregated", "kv_producer"), ("decode", "decode")],
)
def test_a_role_on_the_wrong_side_of_the_transfer_is_refused(phase: str, role: str) -> None:
    with pytest.raises(Failure, match=f"PHASE={phase} but --kv-transfer-config has kv_role '{role}'"):
        check_role(phase, Transfer(connector="NixlConnector", role=role))


def test_a_decode_worker_without_kv_transfer_is_refused_instead_of_recomputing_unseen() -> None:
    with pytest.raises(Failure, match="add one with kv_role kv_consumer"):
        check_role("decode", None)


def test_an_aggregated_worker_needs_no_kv_transfer() -> None:
    check_role("aggregated", None)


@pytest.mark.parametrize("host", ["", "localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::"])  # noqa: S104 -- refused
def test_a_side_channel_that_peers_cannot_reach_is_refused(host: str) -> None:
    with pytest.raises(Failure, match=r"fieldRef status\.podIP"):
        check_side_channel(NIXL, {"VLLM_NIXL_SIDE_CHANNEL_HOST": host})


@pytest.mark.parametrize("host", ["10.244.1.7", "fd00::7", "worker-0.workers.ns.svc"])
def test_a_side_channel_at_the_pods_own_address_is_right(host: str) -> None:
    check_side_channel(NIXL, {"VLLM_NIXL_SIDE_CHANNEL_HOST": host})


@pytest.mark.parametrize("transfer", [None, Transfer(connector="MooncakeConnector", role="kv_producer")])
def test_only_nixl_needs_a_side_channel(transfer: Transfer | None) -> None:
    check_side_channel(transfer, {})


def test_the_connector_that_was_configured_must_be_the_one_on_the_line() -> None:
    check_connector("nixl", NIXL)
    check_connector(None, None)
    for transfer in (None, Transfer(connector="MooncakeConnector", role="kv_producer")):
        with pytest.raises(Failure, match="make them agree"):
            check_connector("nixl", transfer)
