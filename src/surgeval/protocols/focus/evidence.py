"""The questions of a scored submission as evidence: asked, answered, expected, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from surgeval.pages import Evidence

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores

__all__ = ["focus_evidence"]

_FACETS = {"status": "Status", "group": "Capability", "answer_format": "Format", "distribution": "Distribution",
           "clinical": "Clinical", "video": "Video"}  # fmt: skip
_UNDECIDED = ("bad_reference", "judge_error")


def focus_evidence(scores: FocusScores) -> Evidence | None:
    """A row per question; None for scores of a run that kept no texts."""
    if scores.said is None:
        return None
    right = pl.when(pl.col("correctness")).then(pl.lit("right")).otherwise(pl.lit("wrong"))
    usual = pl.col("status").is_in(["ok", "flagged"])
    verdict = pl.when(usual & pl.col("correctness").is_not_null()).then(right).otherwise(pl.col("status"))
    texts = scores.said.rename({"qID": "id", "when": "frame", "question": "asked"})
    rows = scores.results.select(
        pl.col("video").fill_null("no video"), "status", pl.col("group").str.replace_all("_", " "), "answer_format",
        pl.when("ood").then(pl.lit("out")).otherwise(pl.lit("in")).alias("distribution"),
        pl.when("clinical").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("clinical"),
        verdict.alias("verdict"), "reason", "latency",
    )  # fmt: skip
    return Evidence(
        model=scores.name, cases=pl.concat([texts, rows], how="horizontal"), facets=_FACETS,
        own=frozenset({"status"}), numbers={"latency": "latency in s"}, open=frozenset(_UNDECIDED),
        pictures=scores.pictures, case="question",
    )  # fmt: skip
