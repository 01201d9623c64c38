"""The benchmark's figures: medians, what is added to a direct connection, and the last line."""

import json
from dataclasses import replace

from bench.router.cases import QUICK
from bench.router.measuring import Measured
from bench.router.report import document, last_line, medians, page

MAIN, SHORT = "64 streams, 100 B", "short answers, 64 clients"


def _measured(case: str, proxy: str, *, cost: float | None = None, first: float | None = None, rate: float | None = None):
    return Measured(
        case=case,
        proxy=proxy,
        requests=10,
        chunks=100,
        failed=0,
        first_error="",
        us_per_chunk=cost,
        requests_per_core=rate,
        ttft_p50=first,
        ttft_p99=first,
        kib_per_stream=None,
        proxy_busy=0.5,
        load_busy=0.25,
    )


def _three(case: str, proxy: str, costs: list[float], firsts: list[float]):
    return [_measured(case, proxy, cost=cost, first=first) for cost, first in zip(costs, firsts, strict=True)]


MEASURED = [
    *_three(MAIN, "direct", [0, 0, 0], [1, 2, 3]),
    *_three(MAIN, "tandem", [20, 90, 21], [3, 9, 5]),
    *_three(MAIN, "vllm_router", [30, 31, 32], [11, 12, 13]),
    *_three(MAIN, "envoy", [25, 25, 25], [2, 3, 4]),
    _measured(SHORT, "tandem", rate=4000.4),
]


def test_the_last_line_holds_medians_over_direct_and_says_what_was_not_measured():
    assert last_line(medians(MEASURED)) == (
        "BENCH-ROUTER us_per_chunk tandem=21.00 vllm_router=31.00 envoy=25.00 "
        "ttft_ms_p50 tandem=2.00 vllm_router=10.00 rps_per_core tandem=4000.40 vllm_router=none"
    )


def test_the_page_holds_every_case_and_marks_a_quick_run():
    rows = medians(MEASURED)
    text = page(rows, facts={"processor": "X"}, suite=QUICK, quick=True)
    assert all(f"## {case.name}\n" in text for case in QUICK.cases)
    assert "| tandem | 21.00 | 2.00 | 2.00 | 10 | 0 | 50% | 25% |" in text
    assert "is no result" in text
    assert "is no result" not in page(rows, facts={}, suite=QUICK, quick=False)


def test_failures_are_added_up_and_shown_with_the_first_reason():
    broken = [replace(one, failed=2, first_error="status 503") for one in MEASURED if one.proxy == "tandem"]
    rows = medians(broken)
    assert rows[0]["failed"] == 6
    assert "tandem: status 503" in page(rows, facts={}, suite=QUICK, quick=False)


def test_the_document_is_json_with_every_measurement():
    rows = medians(MEASURED)
    tree = json.loads(json.dumps(document(rows, MEASURED, facts={"date": "d"}, suite=QUICK)))
    assert len(tree["measurements"]) == len(MEASURED)
    assert {row["case"] for row in tree["medians"]} == {MAIN, SHORT}
