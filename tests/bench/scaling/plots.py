"""Draws a run: each method's GPU-hours against what it attains, a panel for each trace and start time, none left out."""

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.scaling.methods import METHODS, TANDEM
from bench.scaling.summary import Summary

__all__ = ["KINDS", "draw"]

KINDS = ("png", "svg")
_COLUMNS = 3
_LEAST = 50.0
"""Percent below which points are drawn at the edge."""


def draw(found: Sequence[Summary], *, folder: Path, stems: Sequence[str]) -> None:
    """Write the picture under each name, as PNG and as SVG."""
    # A fixed salt and no date: the same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "tandem"
    rows = math.ceil(len(found) / _COLUMNS)
    picture = Figure(figsize=(5 * _COLUMNS, 4 * rows + 0.6), layout="constrained")
    panels = picture.subplots(rows, _COLUMNS, squeeze=False).flatten()
    for panel, each in zip(panels, found, strict=False):
        _panel(panel, each)
    for panel in panels[len(found) :]:
        panel.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=5, fontsize="small")
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        written, *others = [folder / f"{stem}.{kind}" for stem in stems]
        picture.savefig(written, dpi=110, metadata={"Date": None} if kind == "svg" else None)
        for other in others:  # Copied: drawn again, the layout would move by a hair.
            shutil.copyfile(written, other)


def _panel(panel: Axes, each: Summary) -> None:
    base = each.bound.oracle.cost
    colours = {method.name: f"C{number}" for number, method in enumerate(METHODS)}
    for row in each.rows:
        curve = sorted(each.curves.get(row.method, ()))
        colour = colours[row.method]
        if len(curve) > 1:
            panel.plot([_shown(y) for _, y in curve], [x / base for x, _ in curve], color=colour, linewidth=0.8, alpha=0.5)
        panel.errorbar(
            _shown(row.attainment.mean),
            row.cost.mean / base,
            xerr=row.attainment.half,
            yerr=row.cost.half / base,
            fmt="*" if row.method == TANDEM else "o",
            markersize=12 if row.method == TANDEM else 5,
            color=colour,
            label=row.method,
        )
    static = each.bound.static
    panel.plot(static.attainment, static.cost / base, "ks", markersize=5, label="hindsight-static")
    panel.plot(each.bound.oracle.attainment, 1.0, "k^", markersize=7, label="oracle")
    panel.axvline(each.objective, color="grey", linewidth=0.8, linestyle="--")
    panel.axhline(each.bound.fluid / base, color="grey", linewidth=0.8, linestyle=":", label="fluid bound")
    panel.set_title(f"{each.case}, start {each.start:.0f} s, {each.clones} copies", fontsize="small")
    panel.set_xlabel("requests that met the target, %")
    panel.set_ylabel("GPU-hours over the oracle's")
    panel.set_xlim(_LEAST - 2, 101)
    panel.set_yscale("log")


def _shown(attainment: float) -> float:
    return max(attainment, _LEAST)
