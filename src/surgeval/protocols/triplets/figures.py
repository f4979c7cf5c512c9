"""The figures of a score: precision over recall, what was confused with what, frequency and AP, three conventions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from surgeval.arrays import Ints
from surgeval.figures import Cloud, Curve, Estimate, Figure, Series, estimates, heatmap, scatter
from surgeval.figures import curves as draw_curves
from surgeval.metrics import Confusion
from surgeval.protocols.triplets.metrics import DETECTION
from surgeval.stats import Interval

__all__ = ["MOST_CLASSES", "TITLES", "score_figures", "title_of"]


TITLES = {"i": "instruments", "v": "verbs", "t": "targets", "iv": "instrument and verb", "it": "instrument and target",
          "vt": "verb and target", "ivt": "triplets"}  # fmt: skip
MOST_CLASSES = 20  # of a confusion matrix; the table has them all


def title_of(component: str, settings: Mapping[str, Any]) -> str:
    """What the classes of a component are: without a label space they are not called triplets.

    >>> title_of("ivt", {"label_space": "cholect50"}), title_of("ivt", {"label_space": ""})
    ('triplets', 'classes')
    """
    return "classes" if component == "ivt" and not settings["label_space"] else TITLES[component]


def score_figures(
    task: str,
    settings: Mapping[str, Any],
    sheets: Mapping[str, pl.DataFrame],
    curves: Mapping[str, tuple[Curve, ...]],
    confusions: Mapping[str, tuple[Confusion, tuple[str, ...]]],
    intervals: Mapping[tuple[str, str, str], Interval] | None = None,
) -> dict[str, Figure]:
    """Every figure that has something to show, by file name; `intervals` by convention, component and metric."""
    figures: dict[str, Figure] = {}
    at = " at IoU 0.5" if task == "detection" else ""
    for component, lines in curves.items():
        if lines:
            title = f"Precision over recall of {title_of(component, settings)}{at}"
            figures[f"curves_{component}"] = draw_curves(title, "recall", "precision", lines)
    for component, (confusion, names) in confusions.items():
        if confusion.counts.sum():
            figures[f"confusion_{component}"] = _confusion(title_of(component, settings), confusion, names)
    by_frequency = _by_frequency(task, settings, sheets)
    if by_frequency is not None:
        figures["ap_by_frequency"] = by_frequency
    if "conventions" in sheets:
        figures["conventions"] = _conventions(sheets["conventions"], intervals or {})
    return figures


def _by_frequency(task: str, settings: Mapping[str, Any], sheets: Mapping[str, pl.DataFrame]) -> Figure | None:
    metric = "AP50" if task == "detection" else "AP"
    clouds = []
    for component in TITLES:
        table = sheets.get(f"classes_{component}")
        if table is not None and component in ("i", "v", "t", "ivt"):
            seen = table.filter((pl.col("instances") > 0) & pl.col(metric).is_not_null())
            columns = [tuple(seen[name].to_list()) for name in ("name", "instances", metric)]
            clouds.append(Cloud(title_of(component, settings), columns[0], columns[1], columns[2]))
    clouds = [cloud for cloud in clouds if cloud.x]
    unit = "instances" if task == "detection" else "frames"
    return scatter(f"{metric} of each class against how often it occurs", unit, metric, tuple(clouds), log=True) \
        if clouds else None  # fmt: skip


def _conventions(table: pl.DataFrame, intervals: Mapping[tuple[str, str, str], Interval]) -> Figure:
    rows = table.filter(pl.col("metric").is_in([metric.key for metric in DETECTION if metric.summary]))
    labels = tuple(f"{component.upper()} {metric}" for component, metric in rows.select("component", "metric").rows())
    names = [name for name in rows.columns if name not in ("component", "metric", "difference")]
    groups = []
    for name in names:
        known = zip(rows[name].to_list(), rows.select("component", "metric").rows(), strict=True)
        groups.append(Series(name, tuple(_estimate(value, intervals.get((name, *key))) for value, key in known)))
    return estimates("The same predictions under three conventions", labels, tuple(groups), "score", span=(0, 1))


def _estimate(value: float | None, interval: Interval | None) -> Estimate:
    if value is None or interval is None or math.isnan(interval.low):
        return Estimate(value)
    return Estimate(value, interval.low, interval.high)


def _confusion(subject: str, confusion: Confusion, names: Sequence[str]) -> Figure:
    """Shares of each true class; the classes beyond the most frequent stand together as one."""
    n = len(names)
    counts = confusion.counts
    occurring = [k for k in range(n) if counts[:, k].any() or counts[k].any()]
    ranked = sorted(occurring, key=lambda k: (-int(counts[:, k].sum()), k))
    shown, rest = sorted(ranked[:MOST_CLASSES]), sorted(ranked[MOST_CLASSES:])
    labels = [names[k] for k in shown]
    groups = [[k] for k in shown]
    if rest:
        labels.append(f"{len(rest)} other classes")
        groups.append(rest)
    groups.append([n])  # missed as a row, background as a column
    merged = _merged(counts, groups)
    total = merged.sum(axis=0)
    filled = [c for c in range(len(groups)) if total[c]]
    cells = tuple(tuple(_percent(merged[r, c] / total[c]) for c in filled) for r in range(len(groups)))
    columns = (*labels, "background")
    title = f"What became of {subject}: predicted (rows) for true (columns)"
    return heatmap(title, (*labels, "missed"), tuple(columns[c] for c in filled), cells, "% of the true class")


def _percent(share: float) -> float:
    """Whole percents, tenths below one: more digits do not fit into a cell, and what occurs stays above 0."""
    percent = 100 * float(share)
    return float(round(percent)) if percent >= 1 else max(round(percent, 1), 0.1) if percent else 0.0


def _merged(counts: Ints, groups: Sequence[Sequence[int]]) -> Ints:
    return np.array([[counts[np.ix_(rows, columns)].sum() for columns in groups] for rows in groups], dtype=np.int64)
