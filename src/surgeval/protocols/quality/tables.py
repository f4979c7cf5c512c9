"""What is measured of a frame, and the tables of a run: frames to drop, reasons, means of each video."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from surgeval.datasets import DropProposal
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.protocols.quality.result import QualityScores

__all__ = ["MEASURES", "SHARES", "drop_table", "printed_tables", "quality_tables"]

# Measure, what it is in words, and whether more of it is better (None: neither).
SHARES = ("dropped", "tissue", "saturated", "dark")
MEASURES: Mapping[str, tuple[str, bool | None]] = {
    "brightness": ("brightness (95th percentile, 0–255)", None),
    "sharpness": ("sharpness (variance of the Laplacian)", True),
    "tissue": ("share of tissue colour", None),
    "saturated": ("share of blown-out pixels", False),
    "dark": ("share of unlit pixels", False),
}
_DROP = {"video": pl.String, "frame": pl.String, "reason": pl.String, "measure": pl.String, "value": pl.Float64,
         "limit": pl.Float64}  # fmt: skip


def quality_tables(scores: QualityScores) -> dict[str, pl.DataFrame]:
    """Everything that is saved as CSV, the frames to drop first."""
    drop = drop_table(scores.proposals)
    reasons = drop.group_by("reason").len("frames").sort("frames", "reason", descending=[True, False])
    of_video = (pl.col("video").first(), pl.len().alias("frames"), pl.col("dropped").sum().alias("to drop"),
                *(pl.col(name).mean() for name in MEASURES))  # fmt: skip
    # Video after video: what polars adds up in groups differs in its last digits with the number of cores.
    means = [frames.select(of_video) for frames in scores.cases.partition_by("video", maintain_order=True)]
    videos = pl.concat(means).sort("video") if means else scores.cases.clear().select(of_video).clear()
    tables = {"drop": drop, "reasons": reasons, "videos": videos}
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
