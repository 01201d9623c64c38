"""The page about metrics lists what is exposed, and nothing else."""

import re

from support.tree import ROOT
from tandem_operator.metrics import Metrics
from tandem_router.estimate import TokenRatio
from tandem_router.metrics import render
from tandem_router.registry import Registry
from tandem_router.signals import Signals, Targets

_PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


def _documented(prefix: str) -> dict[str, str]:
    """Return name and type of each metric in the page's tables."""
    return dict(re.findall(rf"^\| `({prefix}\w+)` \| (\w+) \|", _PAGE, flags=re.MULTILINE))


def _exposed(text: str) -> dict[str, str]:
    """Return name and type of each metric family; when a series began is no metric of its own."""
    found = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, flags=re.MULTILINE))
    return {name: kind for name, kind in found.items() if not name.endswith("_created")}


def test_the_routers_metrics_are_documented() -> None:
    signals = Signals(router="r", targets=Targets(ttft=1, ttft_per_thousand=0, tpot=1), wall=lambda: 0.0)
    assert _documented("tandem_router_") == _exposed(render(signals, Registry(), TokenRatio()).decode())


def test_the_operators_metrics_are_documented() -> None:
    assert _documented("tandem_operator_") == _exposed(Metrics().text().decode())


def test_the_sidecars_metrics_are_documented() -> None:
    source = (ROOT / "workers" / "tandem_sidecar" / "exposition.py").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(tandem_kv_\w+)(?:\{\w+\})?` \| (\w+) \|", source, flags=re.MULTILINE)
    assert _documented("tandem_kv_") == dict(listed)
