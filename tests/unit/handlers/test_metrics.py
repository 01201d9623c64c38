"""Metrics count what happened, with bounded labels."""

from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Call
from tandem_operator.metrics import Metrics


def test_only_successful_changes_are_writes() -> None:
    metrics = Metrics()
    for verb, code in (
        ("get", "200"),
        ("patch", "200"),
        ("patch", "409"),
        ("delete", "200"),
        ("create", "201"),
        ("list", "200"),
    ):
        metrics.observe_call(Call(verb, kinds.DEPLOYMENT, "team", "chat"), code)
    text = metrics.text().decode()
    assert 'tandem_operator_writes_total{kind="Deployment"} 3.0' in text
    assert 'tandem_operator_api_requests_total{code="409",resource="deployments",verb="patch"} 1.0' in text
    assert "chat" not in text


def test_a_pass_is_counted_by_result_and_timed() -> None:
    metrics = Metrics()
    metrics.observe_pass("success", 0.02)
    metrics.observe_decision("prefill", "WithinTargets")
    metrics.observe_resync("error")
    text = metrics.text().decode()
    assert 'tandem_operator_reconcile_total{result="success"} 1.0' in text
    assert 'tandem_operator_reconcile_seconds_bucket{le="0.025"} 1.0' in text
    assert 'tandem_operator_scaling_decisions_total{reason="WithinTargets",role="prefill"} 1.0' in text
    assert 'tandem_operator_resyncs_total{result="error"} 1.0' in text
