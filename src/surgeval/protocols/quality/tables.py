"""What is measured of a frame, and the tables of a run: frames to drop, reasons, means of each video."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from surgeval.datasets import DropProposal
from surgeval.results import counted
from surgeval.stats import UNBOUNDED, Measure, mean_ratio, numbers_table, share_ratio

if TYPE_CHECKING:
    from surgeval.protocols.quality.result import QualityScores

__all__ = ["GRADES", "MEASURES", "drop_table", "printed_tables", "quality_tables"]

MEASURES = (
    Measure(
        key="dropped", label="frames proposed to drop, share", unit="share", higher_is_better=False,
        settings=("limits",), ratio=share_ratio(pl.col("dropped"), one_video="wilson"),
        explanation="The share of readable frames that are black, too dark, too bright, out of body or blurred.",
    ),
    Measure(
        key="brightness", label="brightness (95th percentile, 0–255)", unit="measure", higher_is_better=None,
        ratio=mean_ratio("brightness", bounds=UNBOUNDED),
        explanation="The 95th percentile of the grey values inside the central ellipse of a frame, from 0 to 255.",
    ),
    Measure(
        key="sharpness", label="sharpness (variance of the Laplacian)", unit="measure",
        ratio=mean_ratio("sharpness", bounds=UNBOUNDED),
        explanation="The variance of the Laplacian inside the central ellipse of a frame: low where it is blurred.",
    ),
    Measure(
        key="tissue", label="share of tissue colour", unit="share", higher_is_better=None, ratio=mean_ratio("tissue"),
        explanation="The share of the central ellipse that has the colours of tissue: low outside the body.",
    ),
    Measure(
        key="saturated", label="share of blown-out pixels", unit="share", higher_is_better=False,
        ratio=mean_ratio("saturated"),
        explanation="The share of the central ellipse that is too bright to show anything.",
    ),
    Measure(
        key="dark", label="share of unlit pixels", unit="share", higher_is_better=False, ratio=mean_ratio("dark"),
        explanation="The share of the central ellipse that is too dark to show anything.",
    ),
)  # fmt: skip
GRADES = tuple(measure.key for measure in MEASURES if measure.key != "dropped")  # what is stored of each frame
_DROP = {"video": pl.String, "frame": pl.String, "reason": pl.String, "measure": pl.String, "value": pl.Float64,
         "limit": pl.Float64}  # fmt: skip


def quality_tables(scores: QualityScores) -> dict[str, pl.DataFrame]:
    """Everything that is saved as CSV, the frames to drop first."""
    drop = drop_table(scores.proposals)
    reasons = drop.group_by("reason").len("frames").sort("frames", "reason", descending=[True, False])
    of_video = (pl.col("video").first(), pl.len().alias("frames"), pl.col("dropped").sum().alias("to drop"),
                *(pl.col(name).mean() for name in GRADES))  # fmt: skip
    # Video after video: what polars adds up in groups differs in its last digits with the number of cores.
    means = [frames.select(of_video) for frames in scores.cases.partition_by("video", maintain_order=True)]
    videos = pl.concat(means).sort("video") if means else scores.cases.clear().select(of_video).clear()
    numbers = numbers_table(MEASURES, scores.numbers, settings=scores.settings)
    tables = {"drop": drop, "reasons": reasons, "videos": videos, "numbers": numbers}
    return tables if scores.unreadable.is_empty() else {**tables, "unreadable": scores.unreadable}


def printed_tables(scores: QualityScores) -> dict[str, pl.DataFrame]:
    """What the command prints: the frames to drop."""
    drop = drop_table(scores.proposals)
    return {f"{counted(drop.height, 'frame')} to drop": drop} if drop.height else {}


def drop_table(proposals: tuple[DropProposal, ...]) -> pl.DataFrame:
    """One row per frame to drop.

    >>> drop_table((DropProposal("VID01", "000025", "black", "brightness", 12.0, 30.0),)).row(0)
    ('VID01', '000025', 'black', 'brightness', 12.0, 30.0)
    """
    rows = [(p.video, p.name, p.reason, p.measure, p.value, p.limit) for p in proposals]
    return pl.DataFrame(rows, schema=_DROP, orient="row")
