"""The tables as people read them: three decimals, the interval in the same cell, ± where there are folds.

The terminal and the page show these; the CSV files hold the same numbers unrounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from surgeval.protocols.triplets.metrics import DETECTION, NAMES, SCOPES
from surgeval.protocols.triplets.result import TripletScores
from surgeval.protocols.triplets.verdict import baselines_of
from surgeval.results import counted
from surgeval.stats import with_ends

__all__ = ["BASELINE", "Readable", "printed_tables", "readable_scores"]

BASELINE = "constant baseline"  # heading of what it reaches
_MOST = 20  # classes listed in a terminal
_SUMMARY = tuple(metric.key for metric in DETECTION if metric.summary)
_GROUPS = ("component", "group", "videos", *_SUMMARY, "video-wise mAP50", "mAP", "video-wise mAP")
_CLASSES = ("name", "instances", "AP50", "video-wise AP50", "F1", "AP", "video-wise AP")


@dataclass(frozen=True, slots=True)
class Readable:
    """A table of short texts; `name` is the CSV file with the full numbers."""

    name: str
    title: str
    frame: pl.DataFrame


def printed_tables(scores: TripletScores) -> dict[str, pl.DataFrame]:
    """What the command prints: the first of the readable tables."""
    first, *_ = readable_scores(scores)
    return {first.title: first.frame}


def readable_scores(scores: TripletScores) -> list[Readable]:
    """Every table that a reader wants to see first, in the order of the paper's."""
    by = f"convention {scores.settings['convention']}" if scores.task == "detection" else "average precision"
    kind = scores.settings["scheme"]["kind"]
    spread = "" if kind == "all" else f", mean ± std over {kind} (ddof = 1)"
    level = "95 % intervals over videos"
    together = "All videos" if kind == "all" else f"The videos of each {kind[:-1]}"
    tables = [
        Readable("components", f"{together} ranked together ({by}{spread}; {level})", _grid(scores, SCOPES[0])),
        Readable(
            "video_wise", f"Video by video, mean over videos then classes ({by}{spread})", _grid(scores, SCOPES[1])
        ),
        Readable(
            "video_first", f"Video by video, mean over classes then videos, eq. 3 ({by})", _grid(scores, SCOPES[2])
        ),
    ]
    fewer, where = scores.settings["rare"], scores.settings["rare_from"]
    listed = "training videos" if where == "train" else "dataset"
    lists = [
        ("rare", f"Rare classes (fewer than {fewer} instances in the {listed})", "rare"),
        (
            "cost_aware",
            "Cost-aware F1 (macro over true triplets); parts are on Table 14's scale, each computed as its own F1",
            "cost",
        ),
        ("top", "Positives among the highest scores of their frame", "recall"),
    ]
    tables += [Readable(name, title, _line(scores, scope)) for name, title, scope in lists if name in scores.sheets]
    if "association" in scores.sheets:
        outcomes = _association(scores.sheets["association"], len(scores.settings["videos"]))
        every = "every box" if kind == "all" else f"every box of all {kind} together"
        tables.append(Readable("association", f"What became of {every}, predicted ones of any score", outcomes))
    if "videos" in scores.sheets:
        each = scores.sheets["videos"].sort("without", nulls_last=True)
        tables.append(Readable("videos", "Each video alone, and all the others without it", _rounded(each)))
    if kind in scores.sheets:
        whole_first = scores.sheets[kind].sort(pl.col("component") != "ivt", maintain_order=True)
        tables.append(Readable(kind, f"By {kind[:-1]}", _rounded(_some(whole_first, _GROUPS))))
    if "conventions" in scores.sheets:
        main_metrics = scores.sheets["conventions"].filter(pl.col("metric").is_in(_SUMMARY))
        tables.append(Readable("conventions", "The same predictions under three conventions", _rounded(main_metrics)))
    if "ties" in scores.sheets:
        title = "Numbers that the order of equal scores changes (no class: the mean over classes)"
        tables.append(Readable("ties", title, _rounded(scores.sheets["ties"])))
    main = f"classes_{scores.main}"
    classes = scores.sheets[main].sort("instances", descending=True, maintain_order=True)
    shown = f", the {_MOST} most frequent of {len(classes)}" if len(classes) > _MOST else ""
    tables.append(Readable(main, f"Each class{shown}", _rounded(_some(classes.head(_MOST), _CLASSES))))
    return tables


def _part(scores: TripletScores, component: str) -> str:
    return NAMES[component] if scores.settings["label_space"] or component != "ivt" else "classes"


def _grid(scores: TripletScores, scope: str) -> pl.DataFrame:
    """Components by metrics."""
    kind = scores.settings["scheme"]["kind"]
    spreads: dict[tuple[str, str], float] = {}
    if kind != "all" and scope in SCOPES[:2]:
        prefix = "" if scope == SCOPES[0] else "video-wise "
        for row in scores.sheets[kind].filter(pl.col("group") == "std").iter_rows(named=True):
            spreads |= {(row["component"], name.removeprefix(prefix)): value for name, value in row.items()
                        if name.startswith(prefix) and isinstance(value, float)}  # fmt: skip
    rows: dict[str, dict[str, str]] = {}
    for number in scores.numbers:
        if number.key.scope == scope:
            component, metric = number.key.component, number.key.metric
            text = number.interval.cell()
            if (component, metric) in spreads:
                head, gap, tail = text.partition(" ")
                text = f"{head} ± {spreads[component, metric]:.3f}{gap}{tail}"
            rows.setdefault(component, {})[metric] = text
    table = pl.DataFrame([{"component": _part(scores, component), **row} for component, row in rows.items()])
    if scope == SCOPES[0] and baselines_of(scores):
        known = baselines_of(scores)
        cells = ["–" if (value := known.get(component)) is None else f"{value:.3f}" for component in rows]
        table = table.with_columns(pl.Series(BASELINE, cells))
    return table


def _line(scores: TripletScores, scope: str) -> pl.DataFrame:
    """All numbers of a scope in one row, as the paper has them."""
    row: dict[str, str] = {}
    for number in scores.numbers:
        if number.key.scope.startswith(scope):
            where = number.key.scope.partition(", ")[2].partition(" ")[0]
            part = _part(scores, number.key.component)
            name = {"cost": f"{part} (of {number.key.most:g})", "recall": number.key.metric}.get(
                scope, f"{part} {number.key.metric} ({where})"
            )
            row[name] = number.interval.cell()
    if scope == "rare":
        classes = scores.sheets[f"classes_{scores.main}"]
        row = {"classes": str(int(classes["rare"].sum())), **row}
        if scores.repeated:
            row = {"classes": f"all {row['classes']}", "numbers": "those of all classes, above"}
    return pl.DataFrame([row])


def _association(table: pl.DataFrame, videos: int) -> pl.DataFrame:
    """What never occurs has no share that could be more or less sure."""
    share = [
        with_ends(row["share"], row["share_low"], row["share_high"], "share")
        if row["count"]
        else f"none in {counted(videos, 'video')}"
        for row in table.iter_rows(named=True)
    ]
    return table.select("outcome", "meaning", "count").with_columns(pl.Series("share", share))


def _some(table: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    return table.select([name for name in names if name in table.columns])


def _rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Fractions as text with three decimals."""
    texts = [
        pl.Series(column.name, ["–" if value is None else f"{value:.3f}" for value in column.to_list()])
        if column.dtype.is_float()
        else column
        for column in table.get_columns()
    ]
    rows = pl.DataFrame(texts)
    if "component" in rows.columns:
        rows = rows.with_columns(pl.col("component").replace(NAMES))
    return rows
