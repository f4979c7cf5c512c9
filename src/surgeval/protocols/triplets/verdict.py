"""Does it beat a constant prediction? Rules from numbers to sentences, for a scored file.

docs/verdicts.md lists the rules. Each is a function of plain numbers, tested on planted predictions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from surgeval.arrays import Ints
from surgeval.protocols.triplets.figures import title_of
from surgeval.protocols.verdict import Claim, Reason, Rule, Verdict, above, listed, verdict_of
from surgeval.results import percent
from surgeval.stats import Interval

if TYPE_CHECKING:
    from surgeval.protocols.triplets.result import TripletScores

__all__ = [
    "RULES",
    "BoxCounts",
    "ClassScore",
    "TripletFacts",
    "baselines_of",
    "claim_of",
    "facts_of",
    "judge",
    "reasons_of",
]  # fmt: skip

LEAST_LEAD, MOST_UNFOUND, LEAST_LEFT, ENOUGH = 0.01, 0.5, 0.5, 10
_ROUNDING = 1e-9  # average precisions that differ by less are the same
RULES = {
    rule.name: rule
    for rule in (
        Rule("baseline", "The interval of the mean average precision lies more than "
             f"{LEAST_LEAD} above the baseline (for detection the median box of each class in every frame, for "
             "recognition the class frequencies); fails where it lies below the baseline.", "decides"),
        Rule("classes", f"No more than {percent(MOST_UNFOUND)} of the classes that occur are found no better than the "
             "baseline finds them; a class that both find always counts as found. Inconclusive where the run does not "
             "store the baseline of each class.", "limits"),
        Rule("one video", "Without any one video the number keeps at least half of its lead over the baseline; "
             f"inconclusive where the lead is below {LEAST_LEAD}.", "limits"),
        Rule("weakest", f"The three classes with the lowest average precision of those with {ENOUGH} or more "
             "instances, and how many these are."),
        Rule("boxes", "What became of the true boxes, and how many of the reported ones match none of them, counting "
             "predictions from the score threshold of P, R and F1 on; boxes match at IoU 0.5, whatever their class."),
    )
}  # fmt: skip


class ClassScore(NamedTuple):
    """A class that occurs: its average precision, the baseline's (None: it was not stored), and its instances."""

    name: str
    ap: float
    baseline: float | None
    instances: int


class BoxCounts(NamedTuple):
    """Of true boxes, those found with their class, with another, and missed; and reported ones that match none."""

    right: int
    other_class: int
    missed: int
    unmatched: int
    threshold: float | None = None  # None: each group of videos has its own

    @classmethod
    def of(cls, counts: Ints, threshold: float | None) -> BoxCounts:
        """From a confusion matrix, whose last row is missed and whose last column background."""
        found, right = int(counts[:-1, :-1].sum()), int(np.trace(counts[:-1, :-1]))
        return cls(right, found - right, int(counts[-1, :-1].sum()), int(counts[:-1, -1].sum()), threshold)


@dataclass(frozen=True, kw_only=True)
class TripletFacts:
    """The numbers that the rules take; what was not measured is None or empty."""

    videos: int
    subject: str  # triplets, instruments …
    metric: str
    number: Interval
    baseline: float | None
    without: Mapping[str, float]  # video → the number without it
    classes: Sequence[ClassScore]
    boxes: BoxCounts | None = None

    @property
    def blind(self) -> str:
        """What the baseline predicts, in words."""
        return "the median box of each class in every frame" if self.metric == "mAP50" else "the class frequencies"


def judge(scores: TripletScores) -> Verdict | None:
    """The verdict on a scored file; None where its number is not defined."""
    facts = facts_of(scores)
    if math.isnan(facts.number.estimate):
        return None
    return verdict_of(claim_of(facts), reasons_of(facts), facts.videos)


def claim_of(facts: TripletFacts) -> Claim:
    """What the rules test, naming the baseline: other constant boxes could reach more without looking."""
    return Claim(
        f"It finds {facts.subject} better than {facts.blind}.", f"It finds {facts.subject} worse than {facts.blind}."
    )


def reasons_of(facts: TripletFacts) -> tuple[Reason, ...]:
    """Every rule that has its number, in the order of the page."""
    reasons = [_against_baseline(facts)]
    reasons += [_classes(facts)] if facts.classes else []
    reasons += [_one_video(facts, facts.baseline)] if len(facts.without) > 1 and facts.baseline is not None else []
    reasons += [_weakest(facts.classes)] if len(facts.classes) > 1 else []
    reasons += [_boxes(facts.boxes)] if facts.boxes is not None else []
    return tuple(reasons)


def _against_baseline(facts: TripletFacts) -> Reason:
    reached = f"{facts.metric} of {facts.subject} {facts.number.cell()}"
    if facts.baseline is None:
        unknown = "the baseline is unknown"
        return Reason(RULES["baseline"], f"{reached}; {unknown}.", None, unknown, facts.number)
    text = f"{reached}; {facts.blind} would reach {facts.baseline:.3f}."
    clause = f"{facts.metric} {facts.number.estimate:.3f} against {facts.baseline:.3f}"
    below = above(facts.number, facts.baseline) is False
    holds = False if below else above(facts.number, facts.baseline + LEAST_LEAD) or None
    return Reason(RULES["baseline"], text, holds, clause, facts.number, facts.baseline)


def _classes(facts: TripletFacts) -> Reason:
    order = sorted(facts.classes, key=lambda score: -score.instances)
    if any(score.baseline is None for score in order):
        unknown = "The baseline of each class is unknown: this run does not store it."
        return Reason(RULES["classes"], unknown, None)
    low = [score for score in order if _no_better(score)]
    share, total = len(low) / len(order), len(order)
    every = "The one class that occurs" if total == 1 else f"Each of the {total} classes that occur"
    if not low:
        return Reason(RULES["classes"], f"{every} is found.", True)
    missed = [score for score in low if score.ap == 0]
    how = "not found" if len(missed) == len(low) else f"not found better than by {facts.blind}"
    verb = "is" if len(low) == 1 else "are"
    part = "the one class" if total == 1 else f"{len(low)} of {total} classes"
    occur = f"that occur{'s' * (total == 1)}" + ("" if total == 1 else f" ({percent(share)})")
    text = f"{part[:1].upper()}{part[1:]} {occur} {verb} {how}: {listed([score.name for score in low], 5, '; ')}."
    if missed and len(missed) < len(low):
        text += f" Not found at all: {listed([score.name for score in missed], 5, '; ')}."
    return Reason(RULES["classes"], text, share <= MOST_UNFOUND, f"{part} {verb} {how}")


def _no_better(score: ClassScore) -> bool:
    return score.baseline is not None and score.ap <= score.baseline + _ROUNDING and score.ap < 1 - _ROUNDING


def _one_video(facts: TripletFacts, baseline: float) -> Reason:
    known = {video: value for video, value in facts.without.items() if not math.isnan(value)}
    if not known:
        return Reason(RULES["one video"], "The number without single videos is undefined.", None)
    video = min(known, key=lambda name: known[name])
    least, lead = known[video], facts.number.estimate - baseline
    text = f"Without the video that helps it most, {video}, {facts.metric} is {least:.3f}."
    if lead < LEAST_LEAD:
        return Reason(RULES["one video"], f"{text} The lead over the baseline is too small for this test.", None)
    holds = least - baseline >= LEAST_LEFT * lead
    clause = f"one video decides it: without {video} {facts.metric} is {least:.3f}"
    return Reason(RULES["one video"], text, holds, clause)


def _weakest(classes: Sequence[ClassScore]) -> Reason:
    enough = [score for score in classes if score.instances >= ENOUGH]
    if not enough:
        text = f"None of the {len(classes)} classes that occur has {ENOUGH} or more instances."
        return Reason(RULES["weakest"], text, None)
    order = sorted(enough, key=lambda score: (score.ap, -score.instances))[:3]
    named = "; ".join(f"{score.name} ({score.ap:.3f}, {score.instances} instances)" for score in order)
    few = len(enough) < len(classes)
    only = (
        f" Of {len(classes)} classes {len(enough)} {'has' if len(enough) == 1 else 'have'} {ENOUGH} or more."
        if few
        else ""
    )
    return Reason(RULES["weakest"], f"Weakest class{'es' * (len(order) > 1)}: {named}.{only}", None)


def _boxes(boxes: BoxCounts) -> Reason:
    true = boxes.right + boxes.other_class + boxes.missed
    reported = boxes.right + boxes.other_class + boxes.unmatched
    at = "" if boxes.threshold is None else f" ({boxes.threshold:.3f})"
    became = (
        f"of the true boxes ({true}) {percent(boxes.right / true)} are found and named rightly, "
        f"{percent(boxes.other_class / true)} found and named as another class, {percent(boxes.missed / true)} missed"
    )
    unmatched = "no box is reported"
    if reported:
        unmatched = f"of the reported boxes ({reported}) {percent(boxes.unmatched / reported)} match no true box"
    return Reason(RULES["boxes"], f"From the score threshold of P, R and F1{at} on: {became}; {unmatched}.", None)


def facts_of(scores: TripletScores) -> TripletFacts:
    """The numbers out of the stored tables."""
    metric = "mAP50" if scores.task == "detection" else "mAP"
    videos = scores.sheets.get("videos", pl.DataFrame())
    without = {} if videos.is_empty() else dict(videos.select("video", "without").iter_rows())
    return TripletFacts(
        videos=len(scores.settings["videos"]), subject=title_of(scores.main, scores.settings), metric=metric,
        number=scores.number(scores.main), baseline=baselines_of(scores).get(scores.main),
        without={video: math.nan if value is None else value for video, value in without.items()},
        classes=_class_scores(scores), boxes=_box_counts(scores),
    )  # fmt: skip


def _box_counts(scores: TripletScores) -> BoxCounts | None:
    if scores.main not in scores.confusions:
        return None
    counts = scores.confusions[scores.main][0].counts
    return BoxCounts.of(counts, scores.thresholds.get(scores.main)) if counts[:, :-1].any() else None


def baselines_of(scores: TripletScores) -> dict[str, float | None]:
    """By component, what a constant prediction reaches; empty for a run that does not store it."""
    table = scores.sheets["components"]
    column = next((name for name in ("constant mAP50", "constant mAP") if name in table.columns), None)
    return {} if column is None else dict(table.select("component", column).iter_rows())


def _class_scores(scores: TripletScores) -> list[ClassScore]:
    table = scores.sheets[f"classes_{scores.main}"].filter(pl.col("instances") > 0)
    metric = "AP50" if scores.task == "detection" else "AP"
    known = f"constant {metric}" in table.columns
    baseline = pl.col(f"constant {metric}") if known else pl.lit(None, dtype=pl.Float64)
    rows = table.select("name", pl.col(metric).fill_null(0.0), baseline.alias("baseline"), "instances")
    return [ClassScore(*row) for row in rows.iter_rows()]
