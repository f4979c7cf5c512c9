"""Does it name instruments by looking at them? Rules from numbers to sentences, and the numbers out of a run's cases.

docs/verdicts.md lists the rules. Each is a function of plain numbers, tested on planted models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from surgeval.protocols.surgxbench.numbers import guessing, shares_shown
from surgeval.protocols.surgxbench.tables import NONE_NAMED, RIGHT, USED
from surgeval.protocols.verdict import (
    Claim,
    Reason,
    Rule,
    Verdict,
    above,
    changed,
    every_one,
    listed,
    share,
    verdict_of,
)
from surgeval.results import percent
from surgeval.stats import EITHER_WAY, Interval, Ratio, ratio_intervals

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.result import SurgXScores

__all__ = ["CLAIM", "RULES", "GroundingFacts", "facts_of", "judge", "reasons_of"]

CLAIM = Claim("It names instruments by looking at them.", "It does not name instruments by looking at them.")
CONSTANT, MORE, LEAST_EFFECT, LEAST_GROUNDED, SAME_MAP, SAME_PROMPT = 0.9, 0.1, 0.05, 0.25, 0.5, 0.9
_BLIND = {"uniform": "everywhere alike", "centre": "the middle", "edge": "edges"}  # reference maps, as one looks
RULES = {
    rule.name: rule
    for rule in (
        Rule("right", "The interval of its lead over the commonest instrument's share lies above 0, and its own above "
             "guessing; fails where one lies below.", "decides"),
        Rule("varied", f"No answer makes up {percent(CONSTANT)} of its answers and over {100 * MORE:.0f} points more "
             "than the share of frames that show that instrument.", "decides"),
        Rule("looks", "When it is right, more of the attended region is an instrument than with each of three baseline "
             "maps, on the same frames: the intervals of all three differences lie above 0; fails where one lies "
             "below, but is inconclusive if hiding the instrument costs right answers.", "decides"),
        Rule("depends", "Hiding the instrument costs more right answers than hiding its shape elsewhere: the interval "
             f"lies above 0; fails where all of it lies below {100 * LEAST_EFFECT:.0f} points.", "decides"),
        Rule("faithful", "Hiding the attended region costs more right answers than hiding the same shape elsewhere; "
             f"fails where the whole interval lies below {100 * LEAST_EFFECT:.0f} points: then the maps do not show "
             "what the model uses.", "limits"),
        Rule("grounded", f"At least {percent(LEAST_GROUNDED)} of its right answers look mostly at an instrument; fails "
             "where the whole interval lies below.", "limits"),
        Rule("weights", f"With all weights shuffled the map changes: its rank correlation falls below {SAME_MAP}; "
             "fails where the whole interval lies above.", "limits"),
        Rule("prompt", f"Another prompt changes the map: its rank correlation lies below {SAME_PROMPT}; fails where "
             "the whole interval lies above.", "limits"),
        Rule("weakest", "The three instruments with the lowest F1 of those shown."),
        Rule("left out", "Frames that could not be used are in no number."),
    )
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GroundingFacts:
    """The numbers that the rules take; what was not measured is None or empty."""

    videos: int
    accuracy: Interval
    usual: str  # the instrument that most frames show
    usual_right: float  # how often always naming it is right
    lead: Interval  # accuracy minus that, paired
    guess: float | None = None
    answers: Mapping[str, int]  # answer → frames
    shown: Mapping[str, float]  # instrument → share of frames that show it
    looks: Interval | None = None  # share of what it looks at, when right, that is an instrument
    maps: Mapping[str, tuple[float, Interval]]  # map → its share on the same frames, and the paired difference
    instrument_hidden: Interval | None = None
    region_hidden: Interval | None = None
    grounded: Interval | None = None
    weights: Interval | None = None
    prompt: Interval | None = None
    f1: Mapping[str, float | None]  # of the instruments shown
    unused: int = 0  # frames and records


def judge(scores: SurgXScores) -> Verdict | None:
    """The verdict on a run; None where it did not name instruments."""
    facts = facts_of(scores)
    return None if facts is None else verdict_of(CLAIM, reasons_of(facts), facts.videos)


def reasons_of(facts: GroundingFacts) -> tuple[Reason, ...]:
    """Every rule that has its number, in the order of the page."""
    depends = _depends(facts.instrument_hidden)
    reasons = [_right(facts), _varied(facts), _looks(facts, depends.holds is True), depends]
    if facts.region_hidden is not None:
        reasons.append(_faithful(facts.region_hidden))
    if facts.grounded is not None:
        reasons.append(_grounded(facts.grounded))
    if facts.weights is not None:
        reasons.append(_unlike(facts.weights, "weights", SAME_MAP, "all weights shuffled"))
    if facts.prompt is not None:
        reasons.append(_unlike(facts.prompt, "prompt", SAME_PROMPT, "another prompt"))
    if len(facts.f1) > 1:
        reasons.append(_weakest(facts.f1))
    if facts.unused:
        text = f"Frames or records that could not be used: {facts.unused}."
        reasons.append(Reason(RULES["left out"], text, None))
    return tuple(reasons)


def _right(facts: GroundingFacts) -> Reason:
    better = [above(facts.lead)] + ([above(facts.accuracy, facts.guess)] if facts.guess is not None else [])
    guess = "" if facts.guess is None else f", guessing {percent(facts.guess)}"
    text = (
        f"Right in {share(facts.accuracy)} of the frames that show an instrument; always answering “{facts.usual}” "
        f"would reach {percent(facts.usual_right)}{guess}. The lead: {changed(facts.lead)}."
    )
    clause = f"right in {percent(facts.accuracy.estimate)} of the frames, always answering “{facts.usual}” in "
    return Reason(RULES["right"], text, every_one(*better), f"{clause}{percent(facts.usual_right)}", facts.accuracy,
                  facts.usual_right)  # fmt: skip


def _varied(facts: GroundingFacts) -> Reason:
    total = sum(facts.answers.values())
    name, count = max(facts.answers.items(), key=lambda pair: pair[1])
    often, there = count / total, facts.shown.get(name, 0.0)
    holds = often < CONSTANT or often - there <= MORE
    habit = "names nothing" if name == NONE_NAMED else f"answers “{name}”"
    shows = "" if name == NONE_NAMED else f" {percent(there)} of them show one;"
    text = (
        f"It {habit} in {percent(often)} of the frames that show an instrument ({count} of {total});{shows} "
        f"it gives {len(facts.answers)} different answer{'s' * (len(facts.answers) != 1)}."
    )
    return Reason(RULES["varied"], text, holds, "" if holds else f"it {habit} in {percent(often)} of the frames")


def _looks(facts: GroundingFacts, depends: bool) -> Reason:
    """`depends`: hiding the instrument costs right answers, which no map is needed to know."""
    if facts.looks is None or not facts.maps:
        return Reason(RULES["looks"], "Where it looks when it is right was not measured.", None,
                      "where it looks was not measured")  # fmt: skip
    hardest = min(facts.maps, key=lambda name: _order(facts.maps[name][1]))
    theirs, gap = facts.maps[hardest]
    reached = ", ".join(f"{_BLIND.get(name, name)} {percent(value)}" for name, (value, _) in facts.maps.items())
    text = (
        f"When it is right, {share(facts.looks)} of the attended region is an instrument. Baseline maps on the same "
        f"frames: {reached}. Against {_BLIND.get(hardest, hardest)}: {changed(gap)}."
    )
    holds = every_one(*(above(lead) for _, lead in facts.maps.values()))
    than = f"a map of {_BLIND.get(hardest, hardest)} ({percent(theirs)})"
    than = f"chance ({percent(theirs)})" if hardest == "uniform" else than
    word = "more than" if holds else "not significantly more than" if holds is None else "less than"
    clause = f"{percent(facts.looks.estimate)} of the attended region is an instrument, {word} {than}"
    if (
        holds is False and depends
    ):  # the answer depends on the instrument although the map misses it: the map is at fault
        text += " Hiding the instrument still costs right answers, so the maps do not show what the model uses."
        holds, clause = None, f"{clause}, though hiding the instrument costs right answers"
    return Reason(RULES["looks"], text, holds, clause, facts.looks, theirs)


def _order(gap: Interval) -> tuple[int, float]:
    """The worst difference first: below, then inconclusive, then above; among these by the lower end."""
    rank = (False, None, True).index(above(gap))
    return rank, gap.estimate if math.isnan(gap.low) else gap.low


def _depends(lost: Interval | None) -> Reason:
    if lost is None:
        return Reason(RULES["depends"], "The effect of hiding the instrument was not measured.", None,
                      "the effect of hiding the instrument was not measured")  # fmt: skip
    text = f"Right answers lost by hiding the instrument instead of the same shape elsewhere: {changed(lost)}."
    clause = f"hiding the instrument {_effect(lost)} ({changed(lost)})"
    return Reason(RULES["depends"], text, above(lost, 0, LEAST_EFFECT), clause, lost, 0.0, (-1.0, 1.0))


def _faithful(lost: Interval) -> Reason:
    text = f"Right answers lost by hiding the attended region instead of the same shape elsewhere: {changed(lost)}."
    clause = f"hiding the attended region {_effect(lost)}"
    return Reason(RULES["faithful"], text, above(lost, 0, LEAST_EFFECT), clause, lost, 0.0, (-1.0, 1.0))


def _effect(lost: Interval) -> str:
    """What hiding does, in words: right answers lost, against hiding the same shape elsewhere."""
    if lost.high < 0:
        return "costs fewer right answers than hiding elsewhere"
    holds = above(lost, 0, LEAST_EFFECT)
    if holds is False:
        return "costs hardly more right answers than hiding elsewhere" if lost.low > 0 else "changes nothing"
    return "costs right answers" if holds else "makes no significant difference"


def _grounded(looking: Interval) -> Reason:
    wrong = percent(1 - looking.estimate)
    text = (
        f"{share(looking)} of its right answers are grounded: most of the attended region is an instrument. "
        f"{wrong} are right while it looks elsewhere."
    )
    clause = f"{wrong} of its right answers look elsewhere"
    return Reason(RULES["grounded"], text, above(looking, LEAST_GROUNDED), clause, looking, LEAST_GROUNDED)


def _unlike(alike: Interval, name: str, limit: float, change: str) -> Reason:
    flipped = replace(alike, estimate=-alike.estimate, low=-alike.high, high=-alike.low)
    text = f"With {change} the rank correlation of the maps is {alike.cell()}; the limit is {limit}."
    clause = f"its map hardly changes with {change}"
    return Reason(RULES[name], text, above(flipped, -limit), clause, alike, limit, (-1.0, 1.0))


def _weakest(f1: Mapping[str, float | None]) -> Reason:
    order = sorted(f1, key=lambda name: f1[name] or 0.0)[:3]
    named = ", ".join(f"{name} (F1 {f1[name] or 0:.3f})" for name in order)
    never = [name for name, value in f1.items() if not value]
    missed = f" Never right: {listed(never, 5)}." if never else ""
    return Reason(RULES["weakest"], f"Weakest instruments: {named}.{missed}", None)


def facts_of(scores: SurgXScores) -> GroundingFacts | None:
    """The numbers out of a run's cases; None where no frame shows an instrument to name."""
    rows = scores.cases.filter(pl.col("task") == "instruments")
    best = rows.filter(pl.col("best") & (pl.col("shown") > 0))
    if best.is_empty() or "accuracy" not in scores.numbers:
        return None
    present = rows.filter(pl.col("present"))
    shown = dict.fromkeys(scores.classes, 0.0) | shares_shown(scores.cases)
    usual = max(shown, key=lambda name: shown[name])
    named = best.group_by("class").len().sort("len", "class", descending=[True, False])
    numbers, looks = scores.numbers, _against_maps(scores, rows)
    return GroundingFacts(
        videos=numbers["accuracy"].clusters, accuracy=numbers["accuracy"], usual=usual, usual_right=shown[usual],
        lead=_lead(scores, best, present, usual), guess=guessing(scores.cases, len(scores.classes)),
        answers=dict(named.iter_rows()), shown=shown, looks=numbers.get("tp_ac"), maps=looks,
        instrument_hidden=numbers.get("lost_boxes_minus_moved"),
        region_hidden=numbers.get("lost_attended_minus_random"), grounded=numbers.get("grounded_when_right"),
        weights=_sanity(scores, "weights"), prompt=_sanity(scores, "prompt"),
        f1=_f1(scores, [name for name in scores.classes if shown[name]]), unused=scores.failed,
    )  # fmt: skip


def _lead(scores: SurgXScores, best: pl.DataFrame, present: pl.DataFrame, usual: str) -> Interval:
    """How much more often it is right than always naming the commonest instrument, frame by frame."""
    there = present.filter(pl.col("class") == usual).select("cluster", "frame", pl.lit(True).alias("usual"))
    pairs = best.join(there, on=["cluster", "frame"], how="left").with_columns(pl.col("usual").fill_null(False))
    gap = pl.col("present").cast(pl.Float64) - pl.col("usual").cast(pl.Float64)
    return ratio_intervals(pairs, {"lead": Ratio(gap, pl.lit(True), bounds=EITHER_WAY)})["lead"]


def _against_maps(scores: SurgXScores, rows: pl.DataFrame) -> dict[str, tuple[float, Interval]]:
    """For each baseline map: what it reaches on the frames of the right answers, and the paired difference."""
    right = rows.filter(RIGHT & USED & pl.col("ac").is_not_null())
    maps = scores.cases.filter((pl.col("task") == "reference") & USED)
    gains: dict[str, tuple[float, Interval]] = {}
    for name in _BLIND:
        theirs = maps.filter(pl.col("reference") == name).select("cluster", "frame", "class", theirs=pl.col("ac"))
        pairs = right.join(theirs, on=["cluster", "frame", "class"], how="inner").drop_nulls("theirs")
        if not pairs.is_empty():
            gap = {"gap": Ratio(pl.col("ac") - pl.col("theirs"), pl.lit(True), bounds=EITHER_WAY)}
            intervals = ratio_intervals(pairs, gap)
            gains[name] = float(pairs.select(pl.col("theirs").mean()).item()), intervals["gap"]
    return gains


def _sanity(scores: SurgXScores, check: str) -> Interval | None:
    """The last step of a check: all weights shuffled, or another prompt."""
    table = scores.detail_tables.get("sanity")
    rows: Sequence[dict[str, object]] = [] if table is None else table.filter(pl.col("check") == check).to_dicts()
    values = [row.get(f"correlation{end}") for row in rows[-1:] for end in ("", "_low", "_high")]
    if not values or not isinstance(values[0], float):
        return None
    low, high = (value if isinstance(value, float) else math.nan for value in values[1:])
    return Interval(estimate=values[0], low=low, high=high)


def _f1(scores: SurgXScores, shown: Sequence[str]) -> dict[str, float | None]:
    table = scores.detail_tables.get("classes")
    if table is None:
        return {}
    return {name: value for name, value in table.select("class", "f1").iter_rows() if name in shown}
