"""Does it find more than the same answer in every frame would? Rules from numbers to sentences, for a scored file.

docs/verdicts.md lists the rules. Each is a function of plain numbers, tested on planted predictions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from surgeval.protocols.triplets.figures import TITLES
from surgeval.protocols.verdict import Claim, Reason, Rule, Verdict, above, listed, verdict_of
from surgeval.results import percent
from surgeval.stats import Interval

if TYPE_CHECKING:
    from surgeval.protocols.triplets.result import TripletScores

__all__ = ["RULES", "ClassScore", "Evidence", "evidence_of", "floors_of", "judge", "reasons_of"]

LEAST_LEAD, MOST_UNFOUND, LEAST_LEFT, ENOUGH = 0.01, 0.5, 0.5, 10
RULES = {
    rule.name: rule
    for rule in (
        Rule("floor", "The interval of the mean average precision lies more than "
             f"{LEAST_LEAD} above what the same answer in every frame reaches; contradicted where it lies below that "
             "answer's.", "decides"),
        Rule("classes", f"No more than {percent(MOST_UNFOUND)} of the classes that occur are found no better than by "
             "the same answer in every frame.", "limits"),
        Rule("one video", "Without any one video the number keeps at least half of its lead over the same answer.",
             "limits"),
        Rule("weakest", f"The three classes with the lowest average precision of those with {ENOUGH} or more "
             "instances."),
        Rule("boxes", "What became of all boxes, true and predicted; the commonest error is named."),
    )
}  # fmt: skip


class ClassScore(NamedTuple):
    """A class that occurs: its average precision, that of the same answer in every frame, and its instances."""

    name: str
    ap: float
    floor: float
    instances: int


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The numbers that the rules take; what was not measured is None or empty."""

    videos: int
    what: str  # triplets, instruments …
    metric: str
    number: Interval
    floor: float | None
    without: Mapping[str, float]  # video → the number without it
    classes: Sequence[ClassScore]
    boxes: Mapping[str, float]  # what became of them → share; the first is what went right


def judge(scores: TripletScores) -> Verdict | None:
    """The verdict on a scored file; None where its number is not defined."""
    found = evidence_of(scores)
    if math.isnan(found.number.estimate):
        return None
    claim = Claim(
        f"It finds {found.what} better than the same answer in every frame would.",
        f"It finds {found.what} no better than the same answer in every frame would.",
    )
    return verdict_of(claim, reasons_of(found), found.videos)


def reasons_of(found: Evidence) -> tuple[Reason, ...]:
    """Every rule that has its number, in the order of the page."""
    made = [_floor(found)]
    made += [_classes(found)] if found.classes else []
    made += [_one_video(found)] if len(found.without) > 1 and found.floor is not None else []
    weak = [one for one in found.classes if one.instances >= ENOUGH]
    made += [_weakest(weak)] if len(weak) > 1 else []
    made += [_boxes(found.boxes)] if len(found.boxes) > 1 else []
    return tuple(made)


def _floor(found: Evidence) -> Reason:
    said = f"{found.metric} of {found.what} {found.number.cell()}"
    if found.floor is None:
        return Reason(RULES["floor"], f"{said}; what the same answer in every frame reaches is not known.", None,
                      "what the same answer in every frame reaches is not known")  # fmt: skip
    text = f"{said}; the same answer in every frame reaches {found.floor:.3f}."
    clause = f"{found.metric} {found.number.estimate:.3f} against {found.floor:.3f}"
    below = above(found.number, found.floor) is False
    holds = False if below else above(found.number, found.floor + LEAST_LEAD) or None
    return Reason(RULES["floor"], text, holds, clause)


def _classes(found: Evidence) -> Reason:
    never = [one.name for one in sorted(found.classes, key=lambda one: -one.instances) if not one.ap > one.floor]
    share, total = len(never) / len(found.classes), len(found.classes)
    if not never:
        return Reason(RULES["classes"], f"Each of the {total} classes that occur is found.", True)
    text = f"{len(never)} of {total} classes that occur ({percent(share)}) are not found: {listed(never, 5, '; ')}."
    clause = f"{len(never)} of {total} classes are not found"
    return Reason(RULES["classes"], text, share <= MOST_UNFOUND, clause)


def _one_video(found: Evidence) -> Reason:
    known = {video: value for video, value in found.without.items() if not math.isnan(value)}
    if not known:
        return Reason(RULES["one video"], "The number without single videos is not defined.", None)
    video = min(known, key=lambda name: known[name])
    floor, least = found.floor or 0.0, known[video]
    lead = found.number.estimate - floor
    holds = lead <= 0 or least - floor >= LEAST_LEFT * lead
    text = f"Without the video that helps it most, {video}, {found.metric} is {least:.3f}."
    clause = f"one video carries it: without {video} {found.metric} is {least:.3f}"
    return Reason(RULES["one video"], text, holds, clause)


def _weakest(classes: Sequence[ClassScore]) -> Reason:
    order = sorted(classes, key=lambda one: (one.ap, -one.instances))[:3]
    named = "; ".join(f"{one.name} ({one.ap:.3f}, {one.instances} instances)" for one in order)
    return Reason(RULES["weakest"], f"Weakest classes: {named}.", None)


def _boxes(shares: Mapping[str, float]) -> Reason:
    right, *errors = shares
    worst = max(errors, key=lambda name: shares[name])
    text = (
        f"Of all boxes {percent(shares[right])} are {right}; the commonest error: {worst} ({percent(shares[worst])})."
    )
    return Reason(RULES["boxes"], text, None)


def evidence_of(scores: TripletScores) -> Evidence:
    """The numbers out of the stored tables."""
    metric = "mAP50" if scores.task == "detection" else "mAP"
    videos = scores.sheets.get("videos", pl.DataFrame())
    without = {} if videos.is_empty() else dict(videos.select("video", "without").iter_rows())
    boxes = scores.sheets.get("association", pl.DataFrame())
    shares = {} if boxes.is_empty() else dict(boxes.select("meaning", "share").iter_rows())
    return Evidence(
        videos=len(scores.settings["videos"]), what=TITLES[scores.main], metric=metric,
        number=scores.number(scores.main), floor=floors_of(scores).get(scores.main),
        without={video: math.nan if value is None else value for video, value in without.items()},
        classes=_class_scores(scores), boxes={name: value for name, value in shares.items() if value is not None},
    )  # fmt: skip


def floors_of(scores: TripletScores) -> dict[str, float | None]:
    """By component, what the same answer in every frame reaches; runs scored before it was stored have none."""
    table = scores.sheets["components"]
    column = next((name for name in ("constant mAP50", "constant mAP") if name in table.columns), None)
    return {} if column is None else dict(table.select("component", column).iter_rows())


def _class_scores(scores: TripletScores) -> list[ClassScore]:
    table = scores.sheets[f"classes_{scores.main}"].filter(pl.col("instances") > 0)
    metric = "AP50" if scores.task == "detection" else "AP"
    floor = pl.col("constant AP") if "constant AP" in table.columns else pl.lit(0.0)
    rows = table.select("name", pl.col(metric).fill_null(0.0), floor.fill_null(0.0).alias("floor"), "instances")
    return [ClassScore(*row) for row in rows.iter_rows()]
