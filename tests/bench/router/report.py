"""Turns measurements into medians, a page, a JSON document and the line that ends the benchmark. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from statistics import median
from typing import Any

from bench.results import facts_table
from bench.router.cases import Case, Suite
from bench.router.measuring import Measured
from bench.router.proxies import DIRECT, PROXIES

__all__ = ["document", "last_line", "medians", "page"]

MAIN = "64 streams, 100 B"
SHORT = "short answers, 64 clients"
_NUMBERS = tuple(field.name for field in fields(Measured) if field.name not in {"case", "proxy", "first_error"})
_QUICK = (
    "> A quick run: one repetition of a few cases, on a machine that may have been busy. It shows that the benchmark works,"
    " and is no result.\n"
)


def medians(measured: Iterable[Measured]) -> list[dict[str, Any]]:
    """One row a case and proxy: the median of each figure over the repetitions, and what is added to a direct connection.

    `failed` is the sum; added TTFT is the median of the differences within one repetition, milliseconds.
    """
    groups: dict[tuple[str, str], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.case, one.proxy), []).append(one)
    return [_row(case, proxy, runs, groups.get((case, DIRECT), [])) for (case, proxy), runs in groups.items()]


def _row(case: str, proxy: str, runs: Sequence[Measured], direct: Sequence[Measured]) -> dict[str, Any]:
    row: dict[str, Any] = {"case": case, "proxy": proxy, "repetitions": len(runs)}
    for name in _NUMBERS:
        row[name] = _median([getattr(run, name) for run in runs])
    row["failed"] = sum(run.failed for run in runs)
    row["first_error"] = next((run.first_error for run in runs if run.first_error), "")
    for name in ("ttft_p50", "ttft_p99"):
        pairs = [(getattr(run, name), getattr(base, name)) for run, base in zip(runs, direct, strict=False)]
        row[f"added_{name}"] = _median([own - base for own, base in pairs if None not in (own, base)])
    return row


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def document(rows: list[dict[str, Any]], measured: Iterable[Measured], *, facts: Mapping[str, Any], suite: Suite) -> Any:
    """The JSON document: facts, what was run, medians and every single measurement."""
    cases = [asdict(case) for case in suite.cases]
    return {"facts": dict(facts), "cases": cases, "medians": rows, "measurements": [asdict(one) for one in measured]}


def page(rows: list[dict[str, Any]], *, facts: Mapping[str, Any], suite: Suite, quick: bool) -> str:
    """The page for people."""
    parts = ["# Cost of the router\n", _QUICK if quick else "", facts_table(facts), _reading(suite)]
    for case in suite.cases:
        found = [row for row in rows if row["case"] == case.name]
        parts.append(f"## {case.name}\n\n{_describe(case)}\n\n{_table(found, case)}")
    return "\n".join(part for part in parts if part)


def _reading(suite: Suite) -> str:
    return (
        f"Medians of {suite.repetitions} repetitions, in which the proxies took turns on the same core; the load ran on the "
        "others. CPU is all that the proxy's processes used, divided by the events with a token that clients received. "
        "`tandem`, `splice` and `vllm_router` run a prefill and a decode leg, `envoy` and `direct` one leg only. `load` is how "
        "busy the load generator's cores were: below 100 %, it was not what limited the figures. A dash is a figure that was "
        "not taken. `direct` is without TLS throughout.\n"
    )


def _describe(case: Case) -> str:
    security = "with TLS" if case.tls else "without TLS"
    if not case.stream:
        return f"{case.chunks} tokens an answer, each client asks again at once, {security}."
    rate = f"{1 / case.gap:g} tokens/s a stream ({case.tokens_per_second:,.0f}/s in all)"
    return f"{case.chunks} tokens a stream, {rate}, {security}."


def _table(rows: list[dict[str, Any]], case: Case) -> str:
    columns = _columns(case)
    head = "| proxy | " + " | ".join(columns) + " |\n|---" * 1 + "|---:" * len(columns) + "|"
    lines = [f"| {row['proxy']} | " + " | ".join(_cell(row, key) for key in columns.values()) + " |" for row in rows]
    notes = [f"\n{row['proxy']}: {row['first_error']}" for row in rows if row["first_error"]]
    return "\n".join([head, *lines, *notes, ""])


def _columns(case: Case) -> dict[str, str]:
    own = {"CPU µs/chunk": "us_per_chunk", "added TTFT p50 ms": "added_ttft_p50", "added TTFT p99 ms": "added_ttft_p99"}
    if not case.stream:
        own = {"requests/s/core": "requests_per_core"}
    if case.fresh:
        own["memory KiB/stream"] = "kib_per_stream"
    return {**own, "requests": "requests", "failed": "failed", "proxy": "proxy_busy", "load": "load_busy"}


def _cell(row: Mapping[str, Any], key: str) -> str:
    value = row[key]
    if value is None:
        return "-"
    if key.endswith("_busy"):
        return f"{value:.0%}"
    return f"{value:,.0f}" if key in {"requests", "failed", "requests_per_core"} else f"{value:,.2f}"


def last_line(rows: Iterable[Mapping[str, Any]]) -> str:
    """The line that ends the benchmark: CPU, added TTFT and short answers of this router and of those it is compared with."""
    found = {(row["case"], row["proxy"]): row for row in rows}

    def said(case: str, key: str, names: Sequence[str]) -> str:
        return " ".join(f"{name}={_plain(found.get((case, name), {}).get(key))}" for name in names)

    routers = [name for name in PROXIES if name in {"tandem", "vllm_router"}]
    cpu = said(MAIN, "us_per_chunk", [*routers, "envoy"])
    ttft = said(MAIN, "added_ttft_p50", routers)
    return f"BENCH-ROUTER us_per_chunk {cpu} ttft_ms_p50 {ttft} rps_per_core {said(SHORT, 'requests_per_core', routers)}"


def _plain(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
