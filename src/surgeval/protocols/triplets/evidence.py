"""The frames of scored triplets as evidence: what is labelled, what was said, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from surgeval.datasets import Dataset, read_image
from surgeval.errors import DataError
from surgeval.pages import Evidence
from surgeval.protocols.pictures import thumbnail
from surgeval.protocols.triplets.scoring.objects import ERRORS

if TYPE_CHECKING:
    from surgeval.protocols.triplets.result import TripletScores

__all__ = ["kept_pictures", "triplet_evidence"]

_RIGHT = "all right"
_FILMS = 12  # videos that pictures are taken from: reading a dataset's labels can take longer than scoring it
_NOTE = {
    "detection": "Boxes are matched at IoU 0.5 as convention coco does, at the score threshold of P, R and F1; a "
    "confused box lies on a label of another class. (“Box right, triplet wrong” among the errors counts boxes of any "
    "score, so there are more of those.) The verdict of a frame is the worst that happened in it; the worst frames "
    "stand first.",
    "recognition": "Of as many classes as are labelled, those with the highest scores count as said. The verdict of a "
    "frame is the worst that happened in it; the worst frames stand first.",
}


def triplet_evidence(scores: TripletScores) -> Evidence | None:
    """A row per frame; None where what became of each object was not kept."""
    if scores.objects is None:
        return None
    objects = scores.objects.with_columns(_case().alias("id"))
    classes = "which instruments" if scores.main == "i" else "which triplets"
    asked = f"Frame {{}}: {classes}{', and where' if scores.task == 'detection' else ''}?"
    rows = _frames(objects).with_columns(pl.format(asked, "frame").alias("asked"))
    seen = objects.filter((pl.col("w") > 0) & (pl.col("h") > 0))
    boxes = seen.select("id", _kind().alias("kind"), pl.col("class").alias("label"), *"xywh")
    facets = {"errors": "What went wrong", "missed": "Missed class", "wrongly": "Wrongly said class",
              "labelled": "Labelled class", "video": "Video"}  # fmt: skip
    return Evidence(
        model=scores.name, cases=rows, facets=facets, own=frozenset({"errors", "missed", "wrongly"}),
        numbers={"count": "errors", "labels": "labels"}, right=frozenset({_RIGHT}), pictures=scores.pictures,
        boxes=boxes, order="count", case="frame", note=_NOTE[scores.task],
    )  # fmt: skip


def _case() -> pl.Expr:
    # A video may have / in its name: two frames must not share an id.
    video = pl.col("video").str.replace_all("%", "%25", literal=True).str.replace_all("/", "%2F", literal=True)
    return pl.concat_str(video, pl.lit("/"), "frame")


def _kind() -> pl.Expr:
    """How a box is drawn."""
    matched, label = pl.col("outcome") == "matched", pl.col("side") == "label"
    return (
        pl.when(label & (pl.col("outcome") == "missed")).then(pl.lit("missed")).when(label).then(pl.lit("label"))
        .when(matched).then(pl.lit("hit")).otherwise(pl.lit("wrong"))
    )  # fmt: skip


def _frames(objects: pl.DataFrame) -> pl.DataFrame:
    label, predicted = pl.col("side") == "label", pl.col("side") == "said"
    # A confusion stands on both sides and counts once, where it was said.
    wrong = (predicted | (pl.col("outcome") == "missed")) & pl.col("outcome").is_in(ERRORS)
    partner = pl.when(pl.col("partner") == "").then(pl.lit("")).otherwise(pl.format(" with {}", "partner"))
    remark = pl.when(pl.col("outcome") == "matched").then(pl.lit("")).otherwise(
        pl.format(" ({}{})", "outcome", partner))  # fmt: skip
    scored = pl.format("{} {}{}", "class", pl.col("score").round(2), remark)
    kinds = [(wrong & (pl.col("outcome") == name)).sum().alias(name) for name in ERRORS]
    grouped = objects.group_by("id", maintain_order=True).agg(
        pl.col("video", "frame", "width", "height").first(),
        pl.col("class").filter(label).str.join("; ").alias("reference"),
        scored.filter(predicted).str.join("; ").alias("answer"),
        pl.col("outcome").filter(wrong).unique(maintain_order=True).alias("errors"),
        pl.col("class").filter(label & (pl.col("outcome") == "missed")).unique(maintain_order=True).alias("missed"),
        pl.col("class").filter(predicted & wrong).unique(maintain_order=True).alias("wrongly"),
        pl.col("class").filter(label).unique(maintain_order=True).alias("labelled"),
        wrong.sum().alias("count"), label.sum().alias("labels"), *(kind.name.prefix("n ") for kind in kinds),
    )  # fmt: skip
    first = pl.lit(_RIGHT)
    for name in reversed(ERRORS):
        first = pl.when(pl.col(f"n {name}") > 0).then(pl.lit(name)).otherwise(first)
    counts = [pl.when(pl.col(f"n {name}") > 0).then(pl.format(f"{{}} {name}", f"n {name}")) for name in ERRORS]
    # The reference is the same for every model, so what became of a label stands in the reason.
    lost = pl.when(pl.col("missed").list.len() > 0).then(pl.format("missed: {}", pl.col("missed").list.join("; ")))
    told_counts = pl.concat_str(counts, separator=", ", ignore_nulls=True)
    return grouped.with_columns(
        first.alias("verdict"), pl.concat_str([told_counts, lost], separator="; ", ignore_nulls=True).alias("reason"),
        pl.col("answer", "reference").fill_null("").replace("", "nothing"),
    ).drop(f"n {name}" for name in ERRORS)  # fmt: skip


def kept_pictures(dataset: Dataset, objects: pl.DataFrame, count: int) -> dict[str, bytes]:
    """Small pictures of the worst frames, taken from each video in turn; a frame that cannot be read has none."""
    if not count:
        return {}
    frames = _frames(objects.with_columns(_case().alias("id")))
    films = frames.group_by("video").agg(pl.col("count").sum()).sort("count", "video", descending=[True, False])
    worst = frames.filter(pl.col("video").is_in(films["video"].head(_FILMS).to_list()))
    turns = worst.sort("count", descending=True, maintain_order=True).with_columns(
        pl.int_range(pl.len()).over("video").alias("turn"))  # fmt: skip
    wanted = set(turns.sort("turn", "video", maintain_order=True)["id"].head(count))
    videos = frames.filter(pl.col("id").is_in(list(wanted)))["video"].unique(maintain_order=True)
    return dict(picture for video in videos for picture in _read(dataset, video, wanted))


def _read(dataset: Dataset, video: str, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    for frame in dataset.frames(video, on_problem=lambda _problem: None):
        case = f"{frame.video}/{frame.name}"
        if case in wanted and frame.image is not None:
            try:
                yield case, thumbnail(read_image(frame.image))
            except DataError:
                continue  # scored all the same: its boxes stand on an empty canvas
