"""Turns what clients saw into a page, a JSON document and the line that ends the benchmark. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.pd.cases import AGGREGATED, PD, Suite
from bench.pd.clients import Outcome
from bench.pd.figures import PERCENTS, TIMES, Figures, counted, figures
from bench.pd.load import Kind
from bench.pd.measuring import Measured
from bench.results import facts_table

__all__ = ["document", "failures", "last_line", "page", "table"]

_QUICK = "> A quick run: short loads, once. It shows that the benchmark works, and is no result.\n"
_SIMULATOR = "> Simulated engines: their times mean nothing here. It shows that the benchmark works, and is no result.\n"
_TITLES = {"ttft": "TTFT", "tpot": "TPOT", "pause": "longest pause"}


def table(measured: Measured, suite: Suite) -> list[Figures]:
    """The figures of every arrangement and kind of request, over all loads."""
    return [
        figures(_counted(measured, suite, arrangement.name), arrangement=arrangement.name, kind=kind)
        for kind in Kind
        for arrangement in suite.arrangements
    ]


def failures(measured: Measured) -> dict[str, list[str]]:
    """Why requests failed, also those at the beginning, by arrangement."""
    found: dict[str, list[str]] = {}
    for block in measured.blocks:
        found.setdefault(block.arrangement, []).extend(each.error for each in block.outcomes if each.error)
    return found


def document(measured: Measured, *, facts: Mapping[str, Any], suite: Suite) -> Any:
    """The JSON document: facts, what was run, figures and every request."""
    rows = [asdict(row) for row in table(measured, suite)]
    return {"facts": dict(facts), "suite": asdict(suite), "figures": rows} | asdict(measured)


def page(measured: Measured, *, facts: Mapping[str, Any], suite: Suite, quick: bool, simulator: bool) -> str:
    """The page for people."""
    rows = table(measured, suite)
    parts = [
        "# Prefill and decode apart, beside two aggregated engines\n",
        _QUICK if quick else "",
        _SIMULATOR if simulator else "",
        facts_table(facts),
        _load(measured, suite),
        *(_kind(kind, [row for row in rows if row.kind is kind]) for kind in Kind),
        _failed(measured),
        _single(measured, suite),
    ]
    return "\n".join(part for part in parts if part)


def _load(measured: Measured, suite: Suite) -> str:
    lines = [f"| {each.arrangement} | {each.chats:.2f} | {each.long_seconds:.2f} |" for each in measured.capacities]
    late = max((each.late for block in measured.blocks for each in block.outcomes), default=0.0)
    at = measured.rates
    words = (
        f"The load is {suite.chat_share:.0%} of what the weaker one takes: {at.chats:.2f} chats/s with {suite.chat_tokens} "
        f"output tokens each, and a long prompt every {1 / at.longs:.1f} s on average, which would keep one core busy for "
        f"{suite.long_share:.0%} of the time. {suite.seconds:.0f} s are counted after {suite.ramp:.0f} s of the same, for each "
        f"seed of {', '.join(map(str, suite.seeds))}. The clients sent no request more than {late * 1000:.0f} ms late. "
        "[What is measured, and what it does not show](../pd.md).\n"
    )
    head = ["What each takes of one thing alone:\n", "| arrangement | chats/s | TTFT of a long prompt, s |", "|---|---:|---:|"]
    return "\n".join([*head, *lines, "", words])


def _kind(kind: Kind, rows: Sequence[Figures]) -> str:
    columns = [f"{_TITLES[name]} p{percent} ms" for name in TIMES for percent in PERCENTS]
    head = f"| arrangement | {' | '.join(columns)} | requests | prompt tokens | on prefill |"
    lines = [
        f"| {row.arrangement} | {' | '.join(_cells(row))} | {row.requests} "
        f"| {'-' if row.prompt_tokens is None else row.prompt_tokens} | {row.disaggregated} |"
        for row in rows
    ]
    return "\n".join(
        [f"## {kind.value.capitalize()}s\n", head, "|---" + "|---:" * (len(columns) + 3) + "|", *lines, "", _verdict(rows)]
    )


def _cells(row: Figures) -> list[str]:
    return [_shown(row.milliseconds[name][percent]) for name in TIMES for percent in PERCENTS]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _verdict(rows: Sequence[Figures]) -> str:
    """Say in words who is better in what, whoever it is."""
    own = next(row for row in rows if row.arrangement == PD.name)
    others = [row for row in rows if row is not own]
    pairs = [pair for other in others for pair in ((own, other), (other, own))]
    said = [f"- {lower.arrangement} is below {higher.arrangement} in {_below(lower, higher)}." for lower, higher in pairs]
    return "\n".join([*said, ""])


def _below(lower: Figures, higher: Figures) -> str:
    found = []
    for name in TIMES:
        for percent in PERCENTS:
            mine, theirs = lower.milliseconds[name][percent], higher.milliseconds[name][percent]
            if mine is not None and theirs is not None and mine < theirs:
                found.append(f"{_TITLES[name]} p{percent} by {1 - mine / theirs:.0%}")
    return ", ".join(found) or "nothing"


def _failed(measured: Measured) -> str:
    lines = []
    for arrangement, errors in failures(measured).items():
        lines.append(f"- {arrangement}: {len(errors)}{f', the first: {errors[0]}' if errors else ''}")
    return "\n".join(["## Failed requests\n", *lines, ""])


def _single(measured: Measured, suite: Suite) -> str:
    lines = [
        f"| {block.seed} | {block.arrangement} | {' | '.join(_tails(block.outcomes, suite))} |" for block in measured.blocks
    ]
    head = "| seed | arrangement | chats: TTFT p95 ms | chats: TPOT p95 ms | long prompts: TTFT p95 ms |"
    return "\n".join(["## Each load by itself\n", head, "|---:|---|---:|---:|---:|", *lines, ""])


def _tails(outcomes: Iterable[Outcome], suite: Suite) -> Iterator[str]:
    kept = counted(outcomes, ramp=suite.ramp)
    chats, longs = (figures(kept, arrangement="", kind=kind).milliseconds for kind in Kind)
    yield from (_shown(chats["ttft"][95]), _shown(chats["tpot"][95]), _shown(longs["ttft"][95]))


def _counted(measured: Measured, suite: Suite, arrangement: str) -> list[Outcome]:
    seen = [each for block in measured.blocks if block.arrangement == arrangement for each in block.outcomes]
    return counted(seen, ramp=suite.ramp)


def last_line(rows: Iterable[Figures]) -> str:
    """The line that ends the benchmark: what chats see at the 95th percentile."""
    found = {row.arrangement: row.milliseconds for row in rows if row.kind is Kind.CHAT}

    def said(name: str) -> str:
        return " ".join(f"{each.name}={_plain(found[each.name][name][95])}" for each in (PD, AGGREGATED))

    return f"BENCH-PD tpot_p95_ms {said('tpot')} ttft_p95_ms {said('ttft')}"


def _plain(value: float | None) -> str:
    return "none" if value is None else f"{value:.0f}"
