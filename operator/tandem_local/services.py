"""Where a Service of the cluster leads: its ClusterIP, or one ready pod of a headless one."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tandem_local.errors import LocalClusterError

__all__ = ["service_target"]


def service_target(kubectl: Callable[..., str], *, namespace: str, service: str, port: int | str) -> tuple[str, int]:
    """Return the address and the number of a Service's port, which is given by number or name.

    Raises:
        LocalClusterError: there is no such Service, port or ready pod.
    """
    where = f"{namespace}/{service}"
    flags = ("--namespace", namespace, "--output", "json")
    spec = json.loads(kubectl("get", "service", service, *flags))["spec"]
    entry = port_entry(spec, port, where)
    if spec.get("clusterIP") != "None":
        return spec["clusterIP"], entry["port"]
    slices = json.loads(kubectl("get", "endpointslices", "--selector", f"kubernetes.io/service-name={service}", *flags))
    return ready_endpoint(slices["items"], entry.get("name") or "", where)


def port_entry(spec: Mapping[str, Any], port: int | str, where: str) -> dict[str, Any]:
    """The entry of a Service's port."""
    for entry in spec["ports"]:
        if port in (entry["port"], entry.get("name")):
            return dict(entry)
    known = ", ".join(f"{entry.get('name', '')}:{entry['port']}" for entry in spec["ports"])
    raise LocalClusterError(f"Service {where} has no port {port}, only {known}")


def ready_endpoint(slices: list[dict[str, Any]], name: str, where: str) -> tuple[str, int]:
    """The address of a ready pod, and its port of that name (empty for an unnamed one)."""
    for each in slices:
        numbers = [entry["port"] for entry in each.get("ports") or () if (entry.get("name") or "") == name]
        for endpoint in each.get("endpoints") or ():
            if numbers and endpoint.get("conditions", {}).get("ready"):
                return endpoint["addresses"][0], numbers[0]
    raise LocalClusterError(f"headless Service {where} has no ready pod")
