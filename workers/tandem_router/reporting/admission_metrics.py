"""Admission, health and the other routers in the admin port's `/metrics`: read when scraped."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from tandem_api.names import Role
from tandem_router.admission.admission import Admission

__all__ = ["AdmissionReading"]


class AdmissionReading(Collector):
    """What the desk refused, what health leaves out, and how well times were predicted."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    @override
    def collect(self) -> Iterable[Metric]:
        admission = self._admission
        refusals = CounterMetricFamily("tandem_router_refusals", "Requests that were not accepted.", labels=["reason"])
        for reason, count in sorted(admission.desk.refusals.items()):
            refusals.add_metric([reason], count)
        yield refusals
        left_out = GaugeMetricFamily("tandem_router_left_out", "Workers and pairs that health leaves out.", labels=["kind"])
        for kind, number in admission.left_out().items():
            left_out.add_metric([kind.value], number)
        yield left_out
        error = GaugeMetricFamily(
            "tandem_router_prediction_error_ratio", "Mean relative error of predicted prompt times.", labels=["role"]
        )
        for role in Role:
            error.add_metric([role.value], admission.experience.times[role].error.value)
        yield error
        yield GaugeMetricFamily(
            "tandem_router_silent_peers", "Routers of the service that were not heard.", value=admission.peers.unreachable
        )
        yield from self._paths()
        yield CounterMetricFamily(
            "tandem_router_unread_sidecars",
            "Readings of sidecars that failed; recomputed prompts stay unseen meanwhile.",
            value=admission.experience.unread_sidecars,
        )

    def _paths(self) -> Iterable[Metric]:
        experience = self._admission.experience
        pairs = GaugeMetricFamily("tandem_router_pairs", "Pairs by what canaries found.", labels=["status"])
        for status, number in experience.paths.counts().items():
            pairs.add_metric([status], number)
        yield pairs
        prompts = CounterMetricFamily(
            "tandem_router_recomputed_prompts", "Prompts that were computed twice, whole or in part.", labels=["reason"]
        )
        for reason, count in sorted(experience.recomputed_prompts.items()):
            prompts.add_metric([reason], count)
        yield prompts
        yield CounterMetricFamily(
            "tandem_router_withheld_tokens",
            "Prompt tokens that prefill workers computed and did not offer.",
            value=experience.withheld_tokens,
        )
        yield CounterMetricFamily(
            "tandem_router_unexplained_tokens",
            "Prompt tokens that decode workers computed and no router had them compute; each router sees all of them.",
            value=experience.balance.total,
        )
