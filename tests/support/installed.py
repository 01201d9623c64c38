"""What of the chart an API server needs before an operator can work with it."""

import functools
from pathlib import Path

import yaml

from support import accounts
from support.kube import Kube, until
from tandem_operator.cluster.permissions import ROUTER_PERMISSIONS

__all__ = ["install"]

_DEFINITIONS = Path(__file__).parents[2] / "crds"


def install(kube: Kube) -> None:
    """Install the CRDs and the routers' ClusterRole; return when the kinds are served."""
    for file in sorted(_DEFINITIONS.glob("*.yaml")):
        crd = yaml.safe_load(file.read_text())
        kube.create(crd)
        name = crd["metadata"]["name"]
        until(functools.partial(_established, kube, name), what=f"{name} established")
    kube.create(accounts.cluster_role(ROUTER_PERMISSIONS, "tandem-router"))


def _established(kube: Kube, name: str) -> bool:
    conditions = kube.get("CustomResourceDefinition", name).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
