"""Where a Service leads."""

import json
from typing import Any

import pytest

from tandem_local.errors import LocalClusterError
from tandem_local.services import service_target

PORTS = [{"name": "http", "port": 80}, {"name": "admin", "port": 81}]


def kubectl(cluster_ip: str, *, ready: bool = True) -> Any:
    endpoints = [{"addresses": ["10.244.1.9"], "conditions": {"ready": ready}}]
    slices = [{"ports": [{"name": "http", "port": 8000}, {"name": "admin", "port": 8081}], "endpoints": endpoints}]

    def answer(_verb: str, kind: str, *_rest: str) -> str:
        found = {"spec": {"clusterIP": cluster_ip, "ports": PORTS}} if kind == "service" else {"items": slices}
        return json.dumps(found)

    return answer


@pytest.mark.parametrize("port", [80, "http"])
def test_a_service_leads_to_its_cluster_address(port: int | str) -> None:
    assert service_target(kubectl("10.96.0.7"), namespace="a", service="b", port=port) == ("10.96.0.7", 80)


def test_a_headless_one_leads_to_the_pods_own_port() -> None:
    assert service_target(kubectl("None"), namespace="a", service="b", port="admin") == ("10.244.1.9", 8081)


def test_a_headless_one_without_a_ready_pod_is_an_error() -> None:
    with pytest.raises(LocalClusterError, match="a/b has no ready pod"):
        service_target(kubectl("None", ready=False), namespace="a", service="b", port=80)


def test_an_unknown_port_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(LocalClusterError, match="only http:80, admin:81"):
        service_target(kubectl("10.96.0.7"), namespace="a", service="b", port=82)
