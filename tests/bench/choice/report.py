"""Turns the runs into a page, a JSON document and the line that ends the benchmark. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.choice.cases import SHAPE, TERMS, Load, Suite
from bench.choice.measuring import Measured
from bench.results import facts_table
from tandem_simulator.fleet.traces import BLOCK

__all__ = ["Described", "document", "last_line", "page"]

_QUICK = "> A quick run on short pieces of the traces. It shows that the benchmark works, and is no result.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A load as it was run: requests, prompt tokens a second, and the hit rate of a cache without end."""

    load: Load
    requests: int
    tokens_per_second: float
    endless: float


def document(measured: Sequence[Measured], loads: Sequence[Described], *, facts: Mapping[str, Any], suite: Suite) -> Any:
    """The JSON document: facts, the fleet, the loads and every run."""
    return {
        "facts": dict(facts),
        "fleet": asdict(SHAPE),
        "terms": asdict(TERMS),
        "replicas": suite.replicas,
        "loads": [asdict(each) for each in loads],
        "measurements": [asdict(each) for each in measured],
    }


def page(measured: Sequence[Measured], loads: Sequence[Described], *, facts: Mapping[str, Any], quick: bool) -> str:
    """The page for people."""
    parts = ["# Choice of workers on recorded loads\n", _QUICK if quick else "", facts_table(facts), _fleet()]
    for each in loads:
        rows = [one for one in measured if one.trace == each.load.trace]
        parts.append(f"## {each.load.trace}\n\n{_describe(each)}\n\n{_table(rows)}\n{_verdicts(rows)}")
    return "\n".join(part for part in parts if part)


def _fleet() -> str:
    timing = SHAPE.timing
    return (
        f"Simulated: {SHAPE.prefills} prefill and {SHAPE.decodes} decode workers, each with KV memory for "
        f"{SHAPE.blocks * BLOCK:,} tokens (least recently used goes), {timing.prefill_tokens_per_second:,.0f} prompt tokens/s, "
        f"{SHAPE.kv_bytes:,} B of KV cache a token pulled at {timing.kv_bytes_per_second / 1e9:.0f} GB/s, decode steps of "
        f"{timing.decode_base * 1000:.0f} ms + {timing.decode_per_sequence * 1000:.1f} ms a sequence + "
        f"{timing.decode_per_context_token * 1e9:.0f} ns a token of context, noise {timing.noise:.0%}. "
        "[What is simulated and what not](../choice.md). Times are simulated and the same on every machine.\n"
    )


def _describe(each: Described) -> str:
    copies = f", {each.load.count} times over" if each.load.count > 1 else ""
    return (
        f"The first {each.load.seconds / 60:.0f} minutes{copies}: {each.requests:,} requests, "
        f"{each.tokens_per_second:,.0f} prompt tokens/s. A single cache without end would hit {each.endless:.1%}."
    )


def _table(rows: Iterable[Measured]) -> str:
    head = (
        "| routers | choice | hit rate | TTFT p50 ms | TTFT p95 ms | TTFT p99 ms | TPOT p95 ms | on decode | refused |\n"
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    lines = [
        f"| {row.replicas} | {row.method} | {row.hit_rate:.1%} | {row.ttft_p50:,.0f} | {row.ttft_p95:,.0f} "
        f"| {row.ttft_p99:,.0f} | {row.tpot_p95:.1f} | {row.local} | {row.refused} |"
        for row in rows
    ]
    return "\n".join([head, *lines, ""])


def _verdicts(rows: Sequence[Measured]) -> str:
    """Say where another way to choose is better."""
    found = []
    for own in (row for row in rows if row.method == "tandem"):
        for other in (row for row in rows if row.replicas == own.replicas and row is not own):
            better = _better(other, own)
            if better:
                found.append(f"- {own.replicas} router{'s' * (own.replicas > 1)}: {other.method} has {better}.")
    return (
        "\n".join(["Where another choice is better:\n", *found, ""]) if found else "No other choice is better in any column.\n"
    )


def _better(other: Measured, own: Measured) -> str:
    parts = [f"a hit rate {(other.hit_rate - own.hit_rate) * 100:.1f} points higher"] if other.hit_rate > own.hit_rate else []
    for name in ("ttft_p50", "ttft_p95", "ttft_p99"):
        ours, theirs = getattr(own, name), getattr(other, name)
        if theirs < ours:
            parts.append(f"a TTFT {name.removeprefix('ttft_')} {1 - theirs / ours:.1%} lower")
    return ", ".join(parts)


def last_line(measured: Sequence[Measured]) -> str:
    """The line that ends the benchmark: hit rate and TTFT p50/p95 (ms) by trace, routers and choice."""
    groups: dict[tuple[str, int], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.trace, one.replicas), []).append(one)
    said = (f"{trace} routers={replicas} {' '.join(map(_said, rows))}" for (trace, replicas), rows in groups.items())
    return f"BENCH-CHOICE {'; '.join(said)}"


def _said(one: Measured) -> str:
    return f"{one.method.replace(' ', '_')}={one.hit_rate:.3f}/{one.ttft_p50:.0f}/{one.ttft_p95:.0f}"
