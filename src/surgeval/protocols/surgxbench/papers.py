"""Tables 1 and 2 of the early text as it prints them, models side by side, and what every model's means left out.

A column or row over all videos stands last; its interval is in the columns `…_low` and `…_high`. V/T and Z/V are per
cent here, as in the paper, and shares everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.result import SurgXScores

__all__ = ["left_out", "paper_table_1", "paper_table_2"]

_TABLE_1 = {"ac": "τ-AC", "aa": "τ-AA"}
_TABLE_2 = {"ars": ("ARS", 1), "valid": ("V/T (%)", 100), "zero": ("Z/V (%)", 100)}
_ENDS = ("", "_low", "_high")
_MEASURED = {  # task and, where not all of its cases were to be measured, the column that says which
    "instrument predictions (AC, AA)": ("instruments", "predicted"),
    "labelled triplets (RAS)": ("triplets", ""),
    "valid frames (ARS)": ("ars", "valid"),
}


def paper_table_1(scores: Sequence[SurgXScores]) -> pl.DataFrame:
    """Table 1: a row per model, τ-AC and τ-AA of each video and of all; below them chance, what a blind map scores.

    Empty without a run of profile `early`. Models that were measured on the same predictions share one chance row.
    """
    shown = {run.name: _by_video(run.detail_tables["table1"]) for run in scores if "table1" in run.detail_tables}
    videos, total = _videos(shown)
    rows = [{"model": name, **_row_1(ratios, _TABLE_1, videos, total)} for name, ratios in shown.items()]
    blind = {name: _row_1(ratios, {"chance": "τ-AC"}, videos, total) for name, ratios in shown.items()}
    if blind and all(row == next(iter(blind.values())) for row in blind.values()):
        rows.append({"model": "chance", **next(iter(blind.values()))})
    else:
        rows += [{"model": f"chance ({name})", **row} for name, row in blind.items()]
    return pl.DataFrame(rows, infer_schema_length=None)


def paper_table_2(scores: Sequence[SurgXScores]) -> pl.DataFrame:
    """Table 2: a row per video and one for all; mean ARS, V/T and Z/V of each model. Empty without profile `early`."""
    shown = {run.name: _by_video(run.detail_tables["table2"]) for run in scores if "table2" in run.detail_tables}
    videos, total = _videos(shown)
    rows: list[dict[str, Any]] = []
    for video in (*videos, None) if shown else ():
        row: dict[str, Any] = {"video": total if video is None else video}
        for name, ratios in shown.items():
            for column, (title, factor) in _TABLE_2.items():
                for end in _ENDS:
                    # A single video has no interval: its cells stay empty.
                    value = ratios.get(video, {}).get(f"{column}{end}") if video is None or not end else None
                    row[f"{name} {title}{end}"] = None if value is None else factor * value
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _by_video(table: pl.DataFrame) -> dict[str | None, Mapping[str, Any]]:
    """The rows by video; the last one is over all of them, whatever the videos are called."""
    rows = table.to_dicts()
    return {**{row["video"]: row for row in rows[:-1]}, None: rows[-1]} if rows else {}


def _videos(shown: Mapping[str, Mapping[str | None, object]]) -> tuple[list[str], str]:
    """The videos of all models, and a name for their sum that none of them has."""
    videos = sorted({video for ratios in shown.values() for video in ratios if video is not None})
    total = "all videos"
    while total in videos:
        total += "*"
    return videos, total


def _row_1(
    by_video: Mapping[str | None, Mapping[str, Any]], columns: Mapping[str, str], videos: Sequence[str], total: str
) -> dict[str, float | None]:
    row = {
        f"{video} {title}": by_video.get(video, {}).get(column) for video in videos for column, title in columns.items()
    }
    for column, title in columns.items():
        row |= {f"{total} {title}{end}": by_video.get(None, {}).get(f"{column}{end}") for end in _ENDS}
    return row


def left_out(scores: Sequence[SurgXScores]) -> pl.DataFrame:
    """Of each model: how many cases were to be measured, how many count in means, and what kept out the others.

    The cases of one model and measure add up to `of`. Flags that kept out a case together stand together.
    """
    rows: list[dict[str, Any]] = []
    for run in scores:
        for measure, (task, column) in _MEASURED.items():
            part = run.cases.filter(pl.col("task") == task)
            if column and not part.is_empty():
                part = part.filter(pl.col(column))
            if part.is_empty():
                continue
            reasons = part.group_by("excluded").len().sort("len", "excluded", descending=[True, False])
            counts = {str(reason): int(count) for reason, count in reasons.iter_rows()}
            outcomes = {"counted": counts.pop("", 0)}
            if task == "instruments":
                blind = part.filter((pl.col("excluded") == "") & pl.col("present") & pl.col("aa").is_null()).height
                outcomes["counted"] -= blind
                outcomes |= {"counted in AC, left out of AA: no visible box of the instrument": blind} if blind else {}
            outcomes |= {f"left out: {' and '.join(reason.split())}": count for reason, count in counts.items()}
            rows += [{"model": run.name, "what": measure, "became": key, "cases": count, "of": part.height,
                      "percent": 100 * count / part.height} for key, count in outcomes.items()]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)
