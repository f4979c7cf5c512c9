"""The figures of a scored submission: accuracy by bucket, and by capability group and answer format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from surgeval.figures import Estimate, Figure, Series, estimates, heatmap

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores
    from surgeval.protocols.focus.scoring.summary import BucketScore

__all__ = ["focus_figures"]


def focus_figures(scores: FocusScores) -> dict[str, Figure]:
    """`buckets` and `leaves`, or none when nothing could be scored."""
    if not scores.buckets:
        return {}
    groups = tuple(dict.fromkeys(bucket.group for bucket in scores.buckets))
    labels = tuple(group.replace("_", " ") for group in groups)
    return {"buckets": _buckets(scores, groups, labels), "leaves": _formats(scores, groups, labels)}


def _buckets(scores: FocusScores, groups: tuple[str, ...], labels: tuple[str, ...]) -> Figure:
    known = {(bucket.group, bucket.ood): _estimate(bucket) for bucket in scores.buckets}
    series = tuple(
        Series(name, tuple(known.get((group, ood), Estimate(None)) for group in groups))
        for name, ood in (("in distribution", False), ("out of distribution", True))
        if any((group, ood) in known for group in groups)
    )
    return estimates("Accuracy by bucket", labels, series, "accuracy", span=(0, 1))


def _estimate(bucket: BucketScore) -> Estimate:
    return Estimate.of(bucket.accuracy, bucket.interval.low, bucket.interval.high)


def _formats(scores: FocusScores, groups: tuple[str, ...], labels: tuple[str, ...]) -> Figure:
    scored = scores.results.filter(pl.col("correctness").is_not_null())
    formats = tuple(sorted(scored["answer_format"].unique()))
    shares = scored.group_by("group", "answer_format").agg(pl.col("correctness").mean()).iter_rows()
    share = {(group, name): round(right, 2) for group, name, right in shares}
    cells = tuple(tuple(share.get((group, name)) for name in formats) for group in groups)
    columns = tuple(name.replace("_", " ") for name in formats)
    return heatmap("Accuracy by capability and answer format", labels, columns, cells, "accuracy", whole=1)
