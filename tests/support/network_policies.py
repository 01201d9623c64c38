"""What Kubernetes' NetworkPolicies let in, computed as their reference says. Whatever is not understood here is an error."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OUTSIDE", "Pod", "admits"]

_NAME = "kubernetes.io/metadata.name"
"""The label that Kubernetes itself gives each namespace."""
_POLICY = {"podSelector", "policyTypes", "ingress"}


@dataclass(frozen=True)
class Pod:
    """One end of a connection; `namespace` empty stands for an address that is no pod's."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)


OUTSIDE = Pod("")


def admits(policies: Iterable[Mapping[str, Any]], target: Pod, *, source: Pod, port: int, protocol: str = "TCP") -> bool:
    """Return whether a connection from `source` reaches a port of `target`.

    Raises:
        NotImplementedError: a policy uses a part that is not evaluated here.
    """
    selecting = [each for each in policies if _selects(each, target)]
    return not selecting or any(
        _ports(rule, port, protocol) and _peers(rule, source, policy["metadata"]["namespace"])
        for policy in selecting
        for rule in policy["spec"].get("ingress", ())
    )


def _selects(policy: Mapping[str, Any], pod: Pod) -> bool:
    spec = policy["spec"]
    _only(spec, _POLICY)
    if spec["policyTypes"] != ["Ingress"]:
        raise NotImplementedError(f"policyTypes {spec['policyTypes']}")
    return policy["metadata"]["namespace"] == pod.namespace and _matches(spec["podSelector"], pod.labels)


def _ports(rule: Mapping[str, Any], port: int, protocol: str) -> bool:
    _only(rule, {"from", "ports"})
    return not rule.get("ports") or any(_port(each, port, protocol) for each in rule["ports"])


def _port(allowed: Mapping[str, Any], port: int, protocol: str) -> bool:
    _only(allowed, {"port", "protocol"})
    number = allowed.get("port")
    if isinstance(number, str):
        raise NotImplementedError(f"named port {number}")
    return allowed.get("protocol", "TCP") == protocol and number in (None, port)


def _peers(rule: Mapping[str, Any], source: Pod, namespace: str) -> bool:
    return not rule.get("from") or any(_peer(each, source, namespace) for each in rule["from"])


def _peer(peer: Mapping[str, Any], source: Pod, namespace: str) -> bool:
    """A pod selector alone is about the policy's own namespace; beside a namespace selector both must match."""
    _only(peer, {"namespaceSelector", "podSelector"})
    if not source.namespace:
        return False
    if "namespaceSelector" in peer:
        within = _matches(peer["namespaceSelector"], {_NAME: source.namespace})
    else:
        within = source.namespace == namespace
    return within and _matches(peer.get("podSelector", {}), source.labels)


def _matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    _only(selector, {"matchLabels", "matchExpressions"})
    wanted = selector.get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _expression(each, labels) for each in selector.get("matchExpressions", ())
    )


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if expression["operator"] != "In":
        raise NotImplementedError(f"operator {expression['operator']}")
    return labels.get(expression["key"]) in expression["values"]


def _only(part: Mapping[str, Any], known: set[str]) -> None:
    if unknown := part.keys() - known:
        raise NotImplementedError(f"{sorted(unknown)} of a NetworkPolicy")
