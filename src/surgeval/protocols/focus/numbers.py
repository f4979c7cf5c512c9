"""The numbers of FOCUS, declared: the pre-evaluation score, two accuracies that are never confused, and each bucket.

They are ratios over rows of `cluster` (the video), `bucket`, `right`, and `filmed`: whether the question takes part in
the mean of video means.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from surgeval.stats import Combine, MacroMean, Measure, Ratio, share_ratio, shown_bucket

__all__ = ["MEASURES", "bucket_mean", "bucket_measures"]

_RIGHT = pl.col("right").cast(pl.Float64)
_RULES = ("max_latency", "compat", "track")  # what decides whether an answer is right


def bucket_mean(rows: pl.DataFrame) -> MacroMean | None:
    """The mean of the buckets' flat accuracies; undefined in a draw of videos without one of the buckets."""
    names = sorted(rows["bucket"].unique())
    shares = tuple(share_ratio(pl.col("right"), pl.col("bucket") == name) for name in names)
    return MacroMean(shares, absent="undefined", constant="row") if shares else None


def _video_mean() -> Ratio:
    """Each video's sum is its accuracy, over 1: so every video counts the same."""
    filmed = pl.col("filmed").cast(pl.Float64)
    questions = filmed.sum().over("cluster")
    where = pl.col("filmed")
    return Ratio(pl.when(where).then(_RIGHT / questions), pl.when(where).then(1 / questions))


MEASURES = (
    Measure(
        key="pre_evaluation_score", label="pre-evaluation score", ratio=bucket_mean, settings=_RULES,
        combine=Combine(frames="pooled in a bucket", classes="mean of the buckets present"),
        explanation="The challenge's one number: the plain mean of the accuracies of the buckets.",
    ),
    Measure(
        key="flat_accuracy", label="flat accuracy", ratio=share_ratio(pl.col("right"), one_video="wilson"),
        settings=_RULES, explanation="The share of right answers over all questions, each counted the same.",
    ),
    Measure(
        key="accuracy_mean_of_video_means", label="mean of video means", ratio=_video_mean(), also=("macro",),
        settings=_RULES, combine=Combine(videos="mean"),
        explanation="The accuracy of each video first, then their mean, so that every video weighs the same.",
    ),
)  # fmt: skip


def bucket_measures(buckets: Iterable[str]) -> tuple[Measure, ...]:
    """The flat accuracy of each bucket, such as `aggregation/ood`.

    >>> bucket_measures(["aggregation/ood"])[0].key
    'bucket/aggregation/ood'
    """
    return tuple(
        Measure(
            key=f"bucket/{name}", label=shown_bucket(name), headline=False, settings=_RULES,
            ratio=share_ratio(pl.col("right"), pl.col("bucket") == name, one_video="wilson"),
            explanation="The share of right answers over the questions of the bucket.",
        )
        for name in sorted(buckets)
    )  # fmt: skip
