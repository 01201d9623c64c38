"""The operator as a process: it starts, says that it is ready and alive, and stops when it is told to."""

import signal
from pathlib import Path

from support.kube import Kube
from support.operators import OperatorProcess
from tandem_local.apiserver import ApiServer


def test_it_is_ready_and_alive_and_exposes_metrics(operator: OperatorProcess) -> None:
    assert operator.fetch(operator.health, "/readyz") == (200, "ok")
    assert operator.fetch(operator.health, "/healthz") == (200, "ok")
    assert operator.metric("tandem_operator_resyncs_total") == 1


def test_sigterm_ends_it_in_order(server: ApiServer, kube: Kube, tmp_path: Path) -> None:
    operator = OperatorProcess(server.kubeconfig, tmp_path / "log", TANDEM_WATCH_NAMESPACES=kube.namespace)
    operator.start()
    assert operator.end(signal.SIGTERM) == 0
    assert "Traceback" not in operator.output()
