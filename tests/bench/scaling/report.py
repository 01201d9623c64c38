"""Turns summaries into a page and a JSON document. Pure. Where another method is better, the page says so."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.results import facts_table
from bench.scaling.cases import CASES, case
from bench.scaling.evaluating import Run
from bench.scaling.simulation.settings import Terms
from bench.scaling.summary import Row, Summary
from bench.scaling.tuning import Tuned

__all__ = ["document", "page"]

_DEAR = 1.5
"""From hindsight-static's cost over the oracle's, a trace is one on which scaling is worth something."""


def document(
    found: Sequence[Summary], runs: Sequence[Run], tuned: Sequence[Tuned], *, facts: Mapping[str, Any], plan: Mapping[str, Any]
) -> Any:
    """The JSON document: facts, cases, every run, what tuning found, and the summaries."""
    return {
        "facts": dict(facts),
        "plan": dict(plan),
        "cases": [
            {
                "name": each.name,
                "kind": each.kind,
                "tuning": each.tuning,
                "clones": each.clones,
                "gpus": each.gpus,
                "engine": asdict(each.engine),
                "terms": asdict(each.terms),
                "hidden": asdict(each.hidden),
            }
            for each in CASES
        ],
        "tuned": [asdict(each) for each in tuned],
        "summaries": [asdict(each) for each in found],
        "runs": [asdict(each) for each in runs],
    }


def page(found: Sequence[Summary], tuned: Sequence[Tuned], *, facts: Mapping[str, Any], notice: str, picture: str) -> str:
    """The page for people."""
    parts = ["# Autoscaling on recorded loads\n", notice, facts_table(facts), _overview(found)]
    parts.append(f"![GPU-hours against attainment, by method and trace]({picture})\n")
    parts += [_section(each) for each in found]
    parts.append(_knobs(tuned))
    return "\n".join(part for part in parts if part)


def _overview(found: Sequence[Summary]) -> str:
    head = (
        "[How it is measured](../scaling.md). Times are simulated and the same on every machine.\n\n"
        "| trace | start s | copies | held out | Tandem attains % | objective % | GPU-hours | x oracle | x static "
        "| x best baseline | goals |\n|---|---:|---:|---|---:|---:|---:|---:|---:|---|---|"
    )
    return "\n".join([head, *map(_line, found), ""])


def _line(each: Summary) -> str:
    own, bound = each.own, each.bound
    rival = "no baseline attains as much" if each.vs_baseline is None else f"{each.vs_baseline:.2f} ({each.best_baseline})"
    cells = [
        each.case,
        f"{each.start:.0f}",
        each.clones,
        "yes" if each.held_out else "tuning",
        f"{own.attainment.mean:.2f}",
        f"{each.objective:.0f}",
        f"{own.cost.mean:,.1f}",
        f"{own.vs_oracle:.2f}",
        f"{own.cost.mean / bound.static.cost:.2f}",
        rival,
        _goals(each),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _goals(each: Summary) -> str:
    own, bound = each.own, each.bound
    missed = [] if own.met else ["attainment"]
    if own.vs_oracle > 1.15:
        missed.append("1.15 x oracle")
    if bound.static.cost >= _DEAR * bound.oracle.cost:
        if each.vs_baseline is not None and each.vs_baseline > 0.8:
            missed.append("0.8 x best baseline")
    elif own.cost.mean > 1.05 * bound.static.cost:
        missed.append("1.05 x static")
    return f"misses {', '.join(missed)}" if missed else "met"


def _section(each: Summary) -> str:
    bound, terms = each.bound, case(each.case).terms
    pooled = "no number of them is enough" if bound.pooled is None else _static(bound.pooled)
    lines = [
        f"## {each.case}, workers start in {each.start:.0f} s, {each.clones} copies\n",
        _promised(terms, requests=bound.oracle.requests),
        f"Fluid bound {bound.fluid:,.1f} GPU-hours; oracle {bound.oracle.cost:,.1f} ({bound.oracle.attainment:.2f} %).\n",
        f"Hindsight-static {_static(bound.static)}; aggregated hindsight-static {pooled}.\n",
        "| method | GPU-hours | attainment % | x oracle | objective met |\n|---|---:|---:|---:|---|",
        *(_row(row) for row in each.rows),
        "",
        _verdict(each),
    ]
    return "\n".join(lines)


def _promised(terms: Terms, *, requests: int) -> str:
    ttft = f"TTFT {terms.ttft * 1000:.0f} ms and {terms.ttft_thousand * 1000:.0f} ms for each thousand prompt tokens"
    return f"{requests:,} requests; {ttft}; TPOT {terms.tpot * 1000:.0f} ms; each for {terms.objective} % of requests.\n"


def _static(run: Run) -> str:
    return f"{run.cost:,.1f} ({', '.join(f'{name} {value}' for name, value in run.knobs.items())})"


def _row(row: Row) -> str:
    cost, attained = row.cost, row.attainment
    return (
        f"| {row.method} | {cost.mean:,.1f} ± {cost.half:,.1f} | {attained.mean:.2f} ± {attained.half:.2f} "
        f"| {row.vs_oracle:.2f} | {'yes' if row.met else 'no'} |"
    )


def _verdict(each: Summary) -> str:
    if each.vs_baseline is None:
        return "No baseline attains as much as Tandem.\n"
    least = min(each.objective, each.own.attainment.mean)
    told = f"Tandem costs {each.vs_baseline:.2f} times as much, where {least:.1f} % is to be attained.\n"
    if each.vs_baseline <= 1.0:
        return f"Best baseline: {each.best_baseline}. {told}"
    return f"**{each.best_baseline} is better here**: {told}"


def _knobs(tuned: Sequence[Tuned]) -> str:
    lines = [
        f"| {each.kind} | {each.start:.0f} | {each.method} | {each.tried} "
        f"| {', '.join(f'{name} {value}' for name, value in each.knobs.items()) or 'none to turn'} |"
        for each in tuned
    ]
    head = "| kind of load | start s | method | combinations | chosen |\n|---|---:|---|---:|---|"
    return "\n".join(["## Knobs, as chosen on the tuning traces\n", head, *lines, ""])
