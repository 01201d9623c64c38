"""Turns the figures into a page, a JSON document and the line that ends the benchmark. Pure."""

from collections.abc import Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.operator.cases import Suite
from bench.operator.measuring import Measured
from bench.results import facts_table

__all__ = ["document", "last_line", "page"]

_QUICK = (
    "> A quick run with few services, a short steady state and shortened periods. It shows that the benchmark works, and is "
    "no result.\n"
)


def document(measured: Measured, *, bare: float, facts: Mapping[str, Any], suite: Suite) -> Any:
    """The JSON document: facts, what was run, and every figure."""
    return {
        "facts": dict(facts),
        "suite": asdict(suite),
        "bare_loop_seconds": bare,
        "ratio_to_bare_loop": measured.filling.seconds / bare,
        "requests_per_second": measured.steady.requests_per_second,
    } | asdict(measured)


def page(measured: Measured, *, bare: float, facts: Mapping[str, Any], suite: Suite, quick: bool) -> str:
    """The page for people."""
    parts = [
        "# The operator with many services\n",
        _QUICK if quick else "",
        facts_table(facts),
        _setting(suite),
        _goals(measured, bare=bare, suite=suite),
        _details(measured, bare=bare),
        _requests(measured),
    ]
    return "\n".join(part for part in parts if part)


def _setting(suite: Suite) -> str:
    return (
        f"{suite.services:,} services, each with prefill and decode workers, two routers, targets and autoscaling. Routers are "
        f"read every {suite.scaling} s, everything is listed every {suite.resync} s. Control plane, operator, stub routers and "
        "bare loop share the machine. [What is measured and how](../operator.md).\n"
    )


def _goals(measured: Measured, *, bare: float, suite: Suite) -> str:
    steady = measured.steady
    memory = 150 + 0.06 * suite.services
    rows = [
        (
            "all children, times the bare loop",
            f"{measured.filling.seconds / bare:.2f}",
            measured.filling.seconds <= 1.5 * bare,
            "1.5",
        ),
        ("writes in the steady state", f"{steady.writes}", steady.writes == 0, "0"),
        ("requests/s in the steady state", f"{steady.requests_per_second:.2f}", steady.requests_per_second < 1, "below 1"),
        ("resident memory, MB", f"{steady.rss:.0f}", steady.rss <= memory, f"{memory:.0f}"),
        ("an edit reaches its child, s (slowest)", f"{max(measured.edits.seconds):.2f}", max(measured.edits.seconds) <= 1, "1"),
    ]
    lines = [f"| {name} | {figure} | {goal} | {'yes' if met else 'no'} |" for name, figure, met, goal in rows]
    return "\n".join(["| figure | measured | goal | met |", "|---|---:|---:|---|", *lines, ""])


def _details(measured: Measured, *, bare: float) -> str:
    filling, steady = measured.filling, measured.steady
    rows = [
        ("bare loop, s", f"{bare:.1f}"),
        ("operator: from the first service to the last child, s", f"{filling.seconds:.1f}"),
        ("operator: CPU meanwhile, s", f"{filling.cpu:.1f}"),
        ("operator: writes a service until all was ready", f"{filling.writes:.1f}"),
        ("pass while children are made, p50 / p99, ms", _pair(filling.pass_p50, filling.pass_p99)),
        ("pass in the steady state, p50 / p99, ms", _pair(steady.pass_p50, steady.pass_p99)),
        ("passes/s in the steady state", f"{steady.passes:.1f}"),
        ("CPU in the steady state, of one core", f"{steady.cpu:.1%}"),
        ("resident memory: the most, MB", f"{steady.peak:.0f}"),
        ("after a restart: ready within, s", f"{measured.restart.seconds:.1f}"),
        ("after a restart: writes", f"{measured.restart.writes}"),
        ("after a restart: resident memory / the most, MB", f"{measured.restart.rss:.0f} / {measured.restart.peak:.0f}"),
        ("an edit reaches its child: median, s", f"{median(measured.edits.seconds):.3f}"),
    ]
    return "\n".join(["| figure | value |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows), ""])


def _pair(low: float | None, high: float | None) -> str:
    return " / ".join("none" if value is None else f"{value * 1000:.1f}" for value in (low, high))


def _requests(measured: Measured) -> str:
    steady = measured.steady
    lines = [f"| {name} | {count} |" for name, count in steady.requests.items()]
    head = f"Requests that the API server answered in {steady.seconds:.0f} s of the steady state, its own to itself included:\n"
    return "\n".join([head, "| request | count |", "|---|---:|", *lines, ""])


def last_line(measured: Measured, *, bare: float, suite: Suite) -> str:
    """The line that ends the benchmark."""
    steady = measured.steady
    return (
        f"BENCH-OPERATOR services={suite.services} ratio_to_bare_loop={measured.filling.seconds / bare:.2f} "
        f"steady_writes={steady.writes} steady_requests_per_s={steady.requests_per_second:.2f} rss_mb={steady.rss:.0f} "
        f"edit_to_apply_s={max(measured.edits.seconds):.2f}"
    )
