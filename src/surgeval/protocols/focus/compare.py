"""Two submissions on the same questions: those where both have a correctness, so both numbers are over the very same.

Runs on other questions, or scored by other rules, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from surgeval.errors import BadInput, visible
from surgeval.protocols.comparison import Pair, refuse_different
from surgeval.protocols.focus.numbers import MEASURES, bucket_measures
from surgeval.protocols.focus.result import FocusScores
from surgeval.protocols.focus.scoring.summary import bucket_of_row, with_clusters
from surgeval.results import counted

__all__ = ["pair_focus"]

_COLUMNS = ("video", "group", "ood", "answer_format")


def pair_focus(first: FocusScores, second: FocusScores) -> Pair:
    """The pre-evaluation score, flat accuracy, mean of video means and every bucket, over the shared questions.

    >>> from surgeval import compare
    >>> from surgeval.protocols.focus import score_focus
    >>> ask = [{"qID": f"q{k}", "videoID": f"v{k // 2}", "start_time": 0, "end_time": 0, "procedure_type": "",
    ...         "question": "?"} for k in range(12)]
    >>> truth = [{"qID": f"q{k}", "primary": "3a", "format": "number", "answer": "3"} for k in range(12)]
    >>> def said(right): return [{"qID": f"q{k}", "content": "3" if right(k) else "4"} for k in range(12)]
    >>> good, poor = (score_focus(said(right), ask, truth, name=name, resamples=100)
    ...               for name, right in (("good", lambda k: k > 0), ("poor", lambda k: k % 2)))
    >>> compare(good, poor)
    good − poor: pre-evaluation score 0.917 − 0.500 = 0.417 [0.000, 0.631], p = 0.0625
    """
    refuse_different(first, second, _rules(first), _rules(second), advice="Score both by the same rules.")
    cases, left_out = _shared(first, second)
    measures = [
        measure for measure in (*MEASURES, *bucket_measures(cases[0]["bucket"].unique()))
        if cases[0]["filmed"].any() or measure.key != "accuracy_mean_of_video_means"
    ]  # fmt: skip
    return Pair(
        measures=measures, cases=cases, settings={**_rules(first), "questions": cases[0].height},
        notes=lambda _numbers: _notes(first, second, left_out),
    )  # fmt: skip


def _rules(scores: FocusScores) -> Mapping[str, object]:
    """What decides whether the same answer is right."""
    pooled = None if scores.time is None else f"pooled, {scores.time.seconds:g} s for a question"
    return {
        "max_latency": scores.limit, "time": pooled, "compat": scores.compat, "flags": scores.settings.get("flags"),
    }  # fmt: skip


def _shared(a: FocusScores, b: FocusScores) -> tuple[tuple[pl.DataFrame, pl.DataFrame], int]:
    """The questions both have a correctness for, as the cases of each, and how many others there are.

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
        raise _refusal(a, b, f"{len(every) - both.height} of {len(every)} questions differ.")
    if a.questions != b.questions:
        raise _refusal(a, b, "the texts or references of the questions differ.")
    scored = both.filter(pl.col("correctness").is_not_null() & pl.col("correctness_b").is_not_null())
    if not scored.height:
        raise _refusal(a, b, "no question has a verdict in both.")
    cases = tuple(
        scored.select(pl.col("video").alias("cluster"), "filmed", bucket_of_row().alias("bucket"),
                      pl.col(column).alias("right"))
        for column in ("correctness", "correctness_b")
    )  # fmt: skip
    return (cases[0], cases[1]), both.height - scored.height


def _refusal(a: FocusScores, b: FocusScores, problem: str) -> BadInput:
    return BadInput(visible(f"{a.name} and {b.name}: {problem} Compare runs on the same questions."))


def _notes(a: FocusScores, b: FocusScores, left_out: int) -> tuple[str, ...]:
    notes = []
    if left_out:
        notes.append(f"left out of both, without a verdict in one: {counted(left_out, 'question')}")
    judges = [", ".join(tally.judge for tally in side.judges.judges) or "none" for side in (a, b)]
    if judges[0] != judges[1]:
        notes.append(f"other judges decided: {judges[0]} for {a.name}, {judges[1]} for {b.name}")
    notes += [f"{side.name} is not to be ranked: {side.unrankable}" for side in (a, b) if side.unrankable]
    return (*notes, *dict.fromkeys((*a.notes, *b.notes)))
