"""Certificates, credentials and argument lines of the control plane and its nodes."""

import base64
import datetime as dt
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from tandem_local import dns, nodes
from tandem_local.controlplane import ControlPlane, Endpoints, Identities

NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
LOOPBACK = Endpoints(bind="127.0.0.1", advertise="127.0.0.1", port=1, etcd_port=2, etcd_peer_port=3)
INSIDE = Endpoints(bind="0.0.0.0", advertise="10.244.0.1", port=443, etcd_port=2, etcd_peer_port=3)  # noqa: S104 - an argument


@pytest.fixture
def plane(tmp_path: Path) -> ControlPlane:
    identities = Identities.create(tmp_path / "pki", addresses=("10.244.0.1",), now=NOW)
    return ControlPlane(Path("/programs"), tmp_path, identities, INSIDE, context="tandem-a")


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_certificates_are_signed_by_the_clusters_own_authority(plane: ControlPlane) -> None:
    authority = certificate(plane.identities.authority.certificate)
    key = authority.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    for pair in (plane.identities.server, plane.identities.admin, plane.identities.etcd):
        certificate(pair.certificate).verify_directly_issued_by(authority)


def test_the_api_server_is_known_by_its_service_names_and_addresses(plane: ControlPlane) -> None:
    names = (
        certificate(plane.identities.server.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    )
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)
    addresses = {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    assert {"127.0.0.1", "10.96.0.1", "10.244.0.1"} <= addresses


def test_keys_and_credentials_are_readable_by_their_owner_only(plane: ControlPlane) -> None:
    config = plane.kubeconfig("admin", plane.identities.admin)
    for path in (plane.identities.admin.key, plane.identities.signing.key, config):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_stands_alone(plane: ControlPlane) -> None:
    config = yaml.safe_load(plane.kubeconfig("admin", plane.identities.admin, server="https://127.0.0.1:5").read_text())
    assert config["current-context"] == "tandem-a"
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:5"
    embedded = base64.b64decode(config["users"][0]["user"]["client-key-data"])
    assert embedded == plane.identities.admin.key.read_bytes()


def test_no_argument_line_holds_a_secret(plane: ControlPlane) -> None:
    key = plane.identities.admin.key.read_text().splitlines()[1]
    commands = [plane.etcd(), plane.api_server(), plane.controller_manager(port=4), plane.scheduler(port=5)]
    assert not any(key in argument for command in commands for argument in command.argv)


def test_a_lone_api_server_advertises_no_endpoint(plane: ControlPlane, tmp_path: Path) -> None:
    alone = ControlPlane(Path("/programs"), tmp_path, plane.identities, LOOPBACK)
    assert "--endpoint-reconciler-type=none" in alone.api_server().argv
    assert "--endpoint-reconciler-type=none" not in plane.api_server().argv


def test_the_kubelet_admits_no_anonymous_caller_and_points_pods_to_the_clusters_dns(plane: ControlPlane) -> None:
    node = nodes.Node(2, plane.folder / "n2", plane.folder / "logs")
    node.kubelet(plane)
    config = yaml.safe_load((plane.folder / "n2" / "kubelet.yaml").read_text())
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["clusterDNS"] == ["10.96.0.10"]
    assert config["address"] == "10.244.2.1"


def test_dns_serves_the_clusters_domain_from_its_own_credentials(plane: ControlPlane) -> None:
    command = dns.coredns(plane)
    corefile = (plane.folder / "Corefile").read_text()
    assert command.argv == ("/programs/coredns", f"-conf={plane.folder}/Corefile")
    assert f"kubeconfig {plane.folder}/coredns.kubeconfig" in corefile


def test_a_dns_question_holds_the_name_label_by_label() -> None:
    question = dns.query("a.bc.", identifier=258)
    assert question == b"\x01\x02\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x02bc\x00\x00\x01\x00\x01"
