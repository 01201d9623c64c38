"""The operator as a process: it starts, says that it is ready and alive, and stops when it is told to."""

import signal

from support.operators import OperatorProcess


def test_it_is_ready_and_alive_and_exposes_metrics(operator: OperatorProcess) -> None:
    assert operator.fetch(operator.health, "/readyz") == (200, "ok")
    assert operator.fetch(operator.health, "/healthz") == (200, "ok")
    assert operator.metric("tandem_operator_resyncs_total") >= 1


def test_sigterm_ends_it_in_order(alone: OperatorProcess) -> None:
    alone.start()
    assert alone.end(signal.SIGTERM) == 0, alone.output()
    assert "Traceback" not in alone.output()
