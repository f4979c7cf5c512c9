"""The frames of a quality run as evidence: their grades, and why some are proposed to drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from surgeval.pages import Evidence
from surgeval.protocols.quality.tables import GRADES, drop_table

if TYPE_CHECKING:
    from surgeval.protocols.quality.result import QualityScores

__all__ = ["quality_evidence"]


def quality_evidence(scores: QualityScores) -> Evidence:
    """A row per frame, those that cannot be used first."""
    why = drop_table(scores.proposals).select(
        "video", pl.col("frame").alias("name"), pl.col("reason").alias("verdict"),
        pl.format("{} {}, limit {}", "measure", pl.col("value").round(3), pl.col("limit").round(3)).alias("reason"),
    )  # fmt: skip
    grades = pl.concat_str([pl.format(f"{name} {{}}", pl.col(name).round(2)) for name in GRADES], separator=", ")
    read = scores.cases.join(why, on=["video", "name"], how="left", maintain_order="left").select(
        "video", pl.col("name").alias("frame"), grades.alias("answer"), pl.col("verdict").fill_null("usable"),
        pl.col("reason").fill_null(""), *GRADES,
    )  # fmt: skip
    lost = scores.unreadable.with_columns(answer=pl.lit("not measured"), verdict=pl.lit("unreadable"))
    rows = pl.concat([read, lost], how="diagonal_relaxed").with_columns(
        pl.concat_str("video", pl.lit("/"), "frame").alias("id"),
        pl.format("Frame {}: can it be used?", "frame").alias("asked"), pl.lit("").alias("reference"),
    ).sort(pl.col("verdict") == "usable", maintain_order=True)  # fmt: skip
    return Evidence(
        model=scores.name, cases=rows, facets={"video": "Video"}, numbers={name: name for name in GRADES},
        right=frozenset({"usable"}), pictures=scores.pictures, case="frame",
    )  # fmt: skip
