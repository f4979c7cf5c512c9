"""The frames of a run as evidence: what the model named, what is labelled, right or not, grounded or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from surgeval.pages import Evidence, jpeg_bytes
from surgeval.results import percent

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.result import SurgXScores

__all__ = ["surgxbench_evidence"]

_EMPTY = "nothing labelled"
_LONGEST = 300  # characters of a reply
_STATES = ("grounded", "ungrounded", "no map")
_NUMBERS = {"ac": "AC", "aa": "AA", "chance": "chance", "score": "score"}
_NOTE = (
    "Each labelled frame with the instrument that the model named first. AC is the share of what it looked at that "
    "lies on any annotated box, AA on boxes of the named instrument, chance what a map without knowledge reaches; a "
    "map is grounded when its AC is above {level} and above chance. Right and "
    "ungrounded is right for the wrong reason."
)


def surgxbench_evidence(scores: SurgXScores) -> Evidence | None:
    """A row per frame; None for a run that was not asked for instruments."""
    asked = scores.cases.filter(pl.col("task") == "instruments")
    if asked.is_empty():
        return None
    keys = ["cluster", "frame"]
    named = pl.col("class").filter(pl.col("predicted") & ~pl.col("best"))
    every = asked.group_by(keys, maintain_order=True).agg(
        pl.col("class").filter(pl.col("present")).alias("labelled"), named.alias("also"))  # fmt: skip
    best = asked.filter(pl.col("best")).unique(keys, keep="first", maintain_order=True)
    rows = best.join(every, on=keys, how="left", maintain_order="left")
    right = pl.when("present").then(pl.lit("right")).otherwise(pl.lit("wrong"))
    state = pl.when(pl.col("grounded").is_null()).then(pl.lit("no map")).when("grounded").then(
        pl.lit("grounded")).otherwise(pl.lit("ungrounded"))  # fmt: skip
    verdict = pl.when(pl.col("labelled").list.len() == 0).then(pl.lit(_EMPTY)).otherwise(
        pl.concat_str(right, pl.lit(" · "), state))  # fmt: skip
    rows = rows.drop("reply", strict=False).join(_replies(scores, keys), on=keys, how="left", maintain_order="left")
    also = pl.when(pl.col("also").list.len() > 0).then(pl.format("; also {}", pl.col("also").list.join(", ")))
    cases = rows.select(
        pl.concat_str("cluster", pl.lit("/"), "frame").alias("id"), pl.col("cluster").alias("video"), "frame",
        pl.format("Frame {}: which instrument is there?", "frame").alias("asked"),
        pl.concat_str(pl.col("class"), also.otherwise(pl.lit("")), pl.col("reply").fill_null("")).alias("answer"),
        pl.col("labelled").list.join(", ").replace("", "nothing").alias("reference"), verdict.alias("verdict"),
        pl.col("flags").fill_null("").alias("reason"), pl.col("class").alias("named"), "labelled", *_NUMBERS,
    )  # fmt: skip
    pictures = {
        f"{item.video}/{item.frame}": item.picture if isinstance(item.picture, bytes) else jpeg_bytes(item.picture)
        for item in scores.items
    }
    return Evidence(
        model=scores.name, cases=cases, facets={"named": "Named", "labelled": "Labelled", "video": "Video"},
        own=frozenset({"named"}), numbers=_NUMBERS, right=frozenset(f"right · {state}" for state in _STATES),
        doubtful=frozenset({"right · ungrounded"}), open=frozenset({_EMPTY}), pictures=pictures, case="frame",
        note=_NOTE.format(level=percent(scores.settings["grounded_at"])),
    )  # fmt: skip


def _replies(scores: SurgXScores, keys: list[str]) -> pl.DataFrame:
    """What a model that answers in words said about each frame; without rows for any other."""
    if "reply" not in scores.cases.columns:
        return pl.DataFrame(schema={**dict.fromkeys(keys, pl.String), "reply": pl.String})
    replies = scores.cases.filter((pl.col("task") == "replies") & (pl.col("asked") == "instruments"))
    return replies.select(*keys, reply=pl.format("; it replied: {}", pl.col("reply").str.slice(0, _LONGEST)))
