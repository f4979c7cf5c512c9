"""Two submissions on the same questions: paired differences, exchanged video by video.

A question counts where both have a correctness for it, so both numbers of a row are over the very same questions. Runs
on other questions, or scored by other rules, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from surgeval.arrays import Bools
from surgeval.errors import BadInput, visible
from surgeval.protocols.contract import Compared, Comparison, few_video_notes
from surgeval.protocols.focus.result import FocusScores, load_focus
from surgeval.protocols.focus.scoring.summary import bucket_mean, with_clusters
from surgeval.results import counted
from surgeval.stats import Difference, paired_difference, paired_statistic, shown_bucket

__all__ = ["compare_focus"]

RESAMPLES = 2000
_COLUMNS = ("video", "group", "ood", "answer_format")


def compare_focus(
    a: FocusScores | str | Path, b: FocusScores | str | Path, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Differences a − b of pre-evaluation score, flat accuracy, mean of video means and every bucket.

    Both are results or run folders. Intervals leave out each video in turn; p-values exchange the runs' videos.

    >>> from surgeval.protocols.focus import score_focus
    >>> ask = [{"qID": f"q{k}", "videoID": f"v{k // 2}", "start_time": 0, "end_time": 0, "procedure_type": "",
    ...         "question": "?"} for k in range(12)]
    >>> truth = [{"qID": f"q{k}", "primary": "3a", "format": "number", "answer": "3"} for k in range(12)]
    >>> def said(right): return [{"qID": f"q{k}", "content": "3" if right(k) else "4"} for k in range(12)]
    >>> good, poor = (score_focus(said(right), ask, truth, name=name, resamples=100)
    ...               for name, right in (("good", lambda k: k > 0), ("poor", lambda k: k % 2)))
    >>> compare_focus(good, poor)
    good − poor: pre-evaluation score 0.917 − 0.500 = 0.417 [0.000, 0.631], p = 0.0625
    """
    first, second = (side if isinstance(side, FocusScores) else load_focus(side) for side in (a, b))
    _same_rules(first, second)
    rows, left_out = _shared(first, second)
    settings = {**_rules(first), "questions": rows.height, "resamples": resamples, "seed": seed}
    return Comparison(
        protocol="focus", a=first.name, b=second.name, numbers=_numbers(rows, resamples, seed), settings=settings,
        notes=(*few_video_notes(rows["video"].n_unique()), *_notes(first, second, left_out)),
    )  # fmt: skip


def _numbers(rows: pl.DataFrame, resamples: int, seed: int) -> tuple[Compared, ...]:
    a, b = (rows[side].cast(pl.Float64).to_numpy() for side in ("a", "b"))

    def mean(mask: Bools, name: str, point: Literal["flat", "macro"] = "flat") -> Difference:
        videos = rows["video"].filter(mask).to_list()
        return paired_difference(a[mask], b[mask], videos, point=point, resamples=resamples, seed=seed, name=name)

    buckets = {name: rows["bucket"].eq(name).to_numpy() for name in sorted(rows["bucket"].unique())}
    videos, code = np.unique(rows["video"].to_numpy(), return_inverse=True)
    # Both runs' questions, the videos of b numbered after those of a: some videos of one can stand in for the other's.
    both = bucket_mean(
        np.concatenate([a, b]), np.concatenate([code, code + len(videos)]), 2 * len(videos),
        [np.tile(mask, 2) for mask in buckets.values()],
    )  # fmt: skip
    score = paired_statistic(
        both, videos.tolist(), batched=True, sizes=np.bincount(code), resamples=resamples, seed=seed,
        bounds=(-1.0, 1.0), name="pre_evaluation/SCORE",
    )  # fmt: skip
    every, filmed = np.ones(rows.height, dtype=bool), rows["filmed"].to_numpy()
    numbers = [
        Compared("pre_evaluation_score", "pre-evaluation score", score),
        Compared("flat_accuracy", "flat accuracy", mean(every, "overall/MEAN")),
    ]
    if filmed.any():
        key = "accuracy_mean_of_video_means"
        numbers.append(Compared(key, "mean of video means", mean(filmed, "overall/MEAN", "macro")))
    numbers += [
        Compared(f"bucket/{name}", shown_bucket(name), mean(mask, f"bucket/{name}")) for name, mask in buckets.items()
    ]
    return tuple(numbers)


def _rules(scores: FocusScores) -> Mapping[str, object]:
    """What decides whether the same answer is right."""
    pooled = None if scores.time is None else f"pooled, {scores.time.seconds:g} s for a question"
    return {
        "max_latency": scores.limit, "time": pooled, "compat": scores.compat, "flags": scores.settings.get("flags"),
    }  # fmt: skip


def _same_rules(a: FocusScores, b: FocusScores) -> None:
    ours, theirs = _rules(a), _rules(b)
    odd = [f"{rule} {_shown(ours[rule])} and {_shown(theirs[rule])}" for rule in ours if ours[rule] != theirs[rule]]
    if odd:
        raise _refusal(a, b, f"other scoring rules ({', '.join(odd)})")


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _shared(a: FocusScores, b: FocusScores) -> tuple[pl.DataFrame, int]:
    """The questions both have a correctness for (video, bucket, a, b), and how many others there are.

    `filmed` says which take part in the mean of video means: in compat mode not those without a video.
    """
    first, second = (
        with_clusters(side.results).select(
            "qID",
            *_COLUMNS,
            "correctness",
            (side.results["video"].is_not_null() | (side.compat is None)).alias("filmed"),
        )
        for side in (a, b)
    )
    both = first.join(second, on=["qID", *_COLUMNS], how="inner", maintain_order="left", suffix="_b")
    every = set(first["qID"]) | set(second["qID"])
    if both.height < len(every):
        raise _refusal(a, b, f"other questions ({len(every) - both.height} of {len(every)} differ)")
    if a.questions != b.questions:
        raise _refusal(a, b, "other questions (other texts or references under the same ids)")
    scored = both.filter(pl.col("correctness").is_not_null() & pl.col("correctness_b").is_not_null())
    if not scored.height:
        raise _refusal(a, b, "no question that both have a verdict for", "some")
    side = pl.when("ood").then(pl.lit("/ood")).otherwise(pl.lit("/id"))
    rows = scored.select(
        "video", "filmed", (pl.col("group") + side).alias("bucket"), pl.col("correctness").alias("a"),
        pl.col("correctness_b").alias("b"),
    )  # fmt: skip
    return rows, both.height - scored.height


def _refusal(a: FocusScores, b: FocusScores, found: str, expected: str = "the same ones") -> BadInput:
    return BadInput(visible(f"{a.name} and {b.name}: found {found}, expected {expected}"))


def _notes(a: FocusScores, b: FocusScores, left_out: int) -> tuple[str, ...]:
    notes = []
    if left_out:
        notes.append(f"left out of both, without a verdict in one: {counted(left_out, 'question')}")
    judges = [", ".join(tally.judge for tally in side.judges.judges) or "nobody" for side in (a, b)]
    if judges[0] != judges[1]:
        notes.append(f"other judges decided: {judges[0]} for {a.name}, {judges[1]} for {b.name}")
    notes += [f"{side.name} is not to be ranked: {side.unrankable}" for side in (a, b) if side.unrankable]
    return (*notes, *dict.fromkeys((*a.notes, *b.notes)))
