"""The page about metrics lists what is exposed, and nothing else."""

import re

import aiohttp

from support.router import running
from support.tree import ROOT
from tandem_operator.metrics import Metrics

_PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


def _documented(prefix: str) -> dict[str, str]:
    """Return name and type of each metric in the page's tables."""
    return dict(re.findall(rf"^\| `({prefix}\w+)` \| (\w+) \|", _PAGE, flags=re.MULTILINE))


def _exposed(text: str) -> dict[str, str]:
    """Return name and type of each metric family; when a series began is no metric of its own."""
    found = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, flags=re.MULTILINE))
    return {name: kind for name, kind in found.items() if not name.endswith("_created")}


async def test_the_routers_metrics_are_documented() -> None:
    async with running() as router, aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{router.admin_port}/metrics") as response:
            documented = _documented("tandem_router_") | _documented("tandem_continuations_")
            assert documented == _exposed(await response.text())


def test_the_operators_metrics_are_documented() -> None:
    assert _documented("tandem_operator_") == _exposed(Metrics().text().decode())


def test_the_sidecars_metrics_are_documented() -> None:
    source = (ROOT / "workers" / "tandem_sidecar" / "exposition.py").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(tandem_kv_\w+)(?:\{\w+\})?` \| (\w+) \|", source, flags=re.MULTILINE)
    assert _documented("tandem_kv_") == dict(listed)
