"""Does it name instruments by looking at them? Rules from numbers to sentences, and the numbers out of a run's cases.

docs/verdicts.md lists the rules. Each is a function of plain numbers, tested on planted models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from surgeval.protocols.surgxbench._numbers import guessing
from surgeval.protocols.surgxbench._ratios import EITHER_WAY, Ratio, ratios
from surgeval.protocols.surgxbench.tables import RIGHT, USED
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
from surgeval.stats import Interval

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.result import SurgXScores

__all__ = ["CLAIM", "RULES", "Evidence", "evidence_of", "judge", "reasons_of"]

CLAIM = Claim("It names instruments by looking at them.", "It does not name instruments by looking at them.")
CONSTANT, LEAST_EFFECT, LEAST_GROUNDED, SAME_MAP, SAME_PROMPT = 0.9, 0.05, 0.25, 0.5, 0.9
_BLIND = {"uniform": "everywhere alike", "centre": "the middle", "edge": "edges"}  # reference maps, as one looks
RULES = {
    rule.name: rule
    for rule in (
        Rule("right", "The interval of its lead over the commonest instrument's share lies above 0, and its own above "
             "guessing; contradicted where one lies below.", "decides"),
        Rule("varied", f"No answer makes up {percent(CONSTANT)} of its answers unless so many frames show that "
             "instrument.", "decides"),
        Rule("looks", "When it is right, more of what it looks at is an instrument than with each of three maps that "
             "know nothing, on the same frames: the intervals of all three differences lie above 0; contradicted "
             "where one lies below.", "decides"),
        Rule("depends", "Hiding the instrument costs more right answers than hiding its shape elsewhere: the interval "
             f"lies above 0; contradicted where all of it lies below {100 * LEAST_EFFECT:.0f} points.", "decides"),
        Rule("faithful", "Hiding what it looks at costs more right answers than hiding the same shape elsewhere; where "
             f"the whole interval lies below {100 * LEAST_EFFECT:.0f} points, its maps do not tell what it uses.",
             "limits"),
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
class Evidence:
    """The numbers that the rules take; what was not measured is None or empty."""

    videos: int
    accuracy: Interval
    usual: str  # the instrument that most frames show
    usual_right: float  # how often always naming it is right
    lead: Interval  # accuracy minus that, paired
    guess: float | None = None
    said: Mapping[str, int]  # answer → frames
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
    evidence = evidence_of(scores)
    return None if evidence is None else verdict_of(CLAIM, reasons_of(evidence), evidence.videos)


def reasons_of(evidence: Evidence) -> tuple[Reason, ...]:
    """Every rule that has its number, in the order of the page."""
    made = [_right(evidence), _varied(evidence), _looks(evidence), _depends(evidence.instrument_hidden)]
    if evidence.region_hidden is not None:
        made.append(_faithful(evidence.region_hidden))
    if evidence.grounded is not None:
        made.append(_grounded(evidence.grounded))
    if evidence.weights is not None:
        made.append(_unlike(evidence.weights, "weights", SAME_MAP, "all weights shuffled"))
    if evidence.prompt is not None:
        made.append(_unlike(evidence.prompt, "prompt", SAME_PROMPT, "another prompt"))
    if len(evidence.f1) > 1:
        made.append(_weakest(evidence.f1))
    if evidence.unused:
        text = f"Frames or records that could not be used: {evidence.unused}."
        made.append(Reason(RULES["left out"], text, None))
    return tuple(made)


def _right(evidence: Evidence) -> Reason:
    told = [above(evidence.lead)] + ([above(evidence.accuracy, evidence.guess)] if evidence.guess is not None else [])
    guess = "" if evidence.guess is None else f", a guess {percent(evidence.guess)}"
    text = (
        f"It names an instrument that is there in {share(evidence.accuracy)} of the frames that show one; always "
        f"saying {evidence.usual} would be right in {percent(evidence.usual_right)}{guess}. "
        f"Its lead over {evidence.usual}: {changed(evidence.lead)}."
    )
    clause = (
        f"it is right in {percent(evidence.accuracy.estimate)} of the frames, always saying {evidence.usual} would be "
    )
    return Reason(RULES["right"], text, every_one(*told), f"{clause}in {percent(evidence.usual_right)}")


def _varied(evidence: Evidence) -> Reason:
    total = sum(evidence.said.values())
    name, count = max(evidence.said.items(), key=lambda pair: pair[1])
    often, there = count / total, evidence.shown.get(name, 0.0)
    holds = often < CONSTANT or there >= CONSTANT
    text = (
        f"It says {name} in {percent(often)} of the frames ({count} of {total}); {percent(there)} show one; "
        f"it gives {len(evidence.said)} different answer{'s' * (len(evidence.said) != 1)}."
    )
    return Reason(RULES["varied"], text, holds, "" if holds else f"it says {name} in {percent(often)} of the frames")


def _looks(evidence: Evidence) -> Reason:
    if evidence.looks is None or not evidence.maps:
        return Reason(RULES["looks"], "Where it looks when it is right was not measured.", None,
                      "where it looks was not measured")  # fmt: skip
    hardest = max(evidence.maps, key=lambda name: evidence.maps[name][0])
    theirs, gap = evidence.maps[hardest]
    reached = ", ".join(f"{_BLIND.get(name, name)} {percent(value)}" for name, (value, _) in evidence.maps.items())
    text = (
        f"When it is right, {share(evidence.looks)} of what it looks at is an instrument. Maps that know nothing "
        f"reach, on the same frames: {reached}. Against {_BLIND.get(hardest, hardest)}: {changed(gap)}."
    )
    holds = every_one(*(above(one) for _, one in evidence.maps.values()))
    than = f"a map of {_BLIND.get(hardest, hardest)} ({percent(theirs)})"
    than = f"chance ({percent(theirs)})" if hardest == "uniform" else than
    word = "more than" if holds else "not surely more than" if holds is None else "less than"
    clause = f"{percent(evidence.looks.estimate)} of what it looks at is an instrument, {word} {than}"
    return Reason(RULES["looks"], text, holds, clause)


def _depends(evidence: Interval | None) -> Reason:
    if evidence is None:
        return Reason(RULES["depends"], "What hiding the instrument does was not measured.", None,
                      "what hiding the instrument does was not measured")  # fmt: skip
    holds = above(evidence, 0, LEAST_EFFECT)
    text = f"Right answers lost by hiding the instrument, against hiding its shape elsewhere: {changed(evidence)}."
    said = "costs it right answers" if holds else "makes no sure difference" if holds is None else "changes nothing"
    return Reason(RULES["depends"], text, holds, f"hiding the instrument {said} ({changed(evidence)})")


def _faithful(evidence: Interval) -> Reason:
    holds = above(evidence, 0, LEAST_EFFECT)
    text = (
        f"Right answers lost by hiding what it looks at, against hiding the same shape elsewhere: {changed(evidence)}."
    )
    return Reason(RULES["faithful"], text, holds, "hiding what it looks at changes nothing")


def _grounded(evidence: Interval) -> Reason:
    wrong = percent(1 - evidence.estimate)
    text = (
        f"Of its right answers {share(evidence)} look mostly at an instrument; "
        f"{wrong} are right while it looks elsewhere."
    )
    return Reason(
        RULES["grounded"], text, above(evidence, LEAST_GROUNDED), f"{wrong} of its right answers look elsewhere"
    )


def _unlike(evidence: Interval, name: str, limit: float, what: str) -> Reason:
    flipped = replace(evidence, estimate=-evidence.estimate, low=-evidence.high, high=-evidence.low)
    text = f"With {what} the rank correlation of the maps is {evidence.cell()}."
    return Reason(RULES[name], text, above(flipped, -limit), f"its map hardly changes with {what}")


def _weakest(f1: Mapping[str, float | None]) -> Reason:
    order = sorted(f1, key=lambda name: f1[name] or 0.0)[:3]
    named = ", ".join(f"{name} (F1 {f1[name] or 0:.3f})" for name in order)
    never = [name for name, value in f1.items() if not value]
    missed = f" Never named rightly: {listed(never, 5)}." if never else ""
    return Reason(RULES["weakest"], f"Weakest instruments: {named}.{missed}", None)


def evidence_of(scores: SurgXScores) -> Evidence | None:
    """The numbers out of a run's cases; None where no frame shows an instrument to name."""
    rows = scores.cases.filter(pl.col("task") == "instruments")
    best = rows.filter(pl.col("best") & (pl.col("shown") > 0))
    if best.is_empty() or "accuracy" not in scores.numbers:
        return None
    present = rows.filter(pl.col("present"))
    shown = {name: present.filter(pl.col("class") == name).height / best.height for name in scores.classes}
    usual = max(shown, key=lambda name: shown[name])
    said = best.group_by("class").len().sort("len", "class", descending=[True, False])
    numbers, looks = scores.numbers, _against_maps(scores, rows)
    return Evidence(
        videos=numbers["accuracy"].clusters, accuracy=numbers["accuracy"], usual=usual, usual_right=shown[usual],
        lead=_lead(scores, best, present, usual), guess=guessing(scores.cases, len(scores.classes)),
        said=dict(said.iter_rows()), shown=shown, looks=numbers.get("tp_ac"), maps=looks,
        instrument_hidden=numbers.get("lost_boxes_minus_moved"),
        region_hidden=numbers.get("lost_attended_minus_random"), grounded=numbers.get("grounded_when_right"),
        weights=_sanity(scores, "weights"), prompt=_sanity(scores, "prompt"),
        f1=_f1(scores, [name for name in scores.classes if shown[name]]), unused=scores.failed,
    )  # fmt: skip


def _lead(scores: SurgXScores, best: pl.DataFrame, present: pl.DataFrame, usual: str) -> Interval:
    """How much more often it is right than one who always names the commonest instrument, frame by frame."""
    there = present.filter(pl.col("class") == usual).select("cluster", "frame", pl.lit(True).alias("usual"))
    pairs = best.join(there, on=["cluster", "frame"], how="left").with_columns(pl.col("usual").fill_null(False))
    gap = pl.col("present").cast(pl.Float64) - pl.col("usual").cast(pl.Float64)
    return ratios(pairs, {"lead": Ratio(gap, pl.lit(True), bounds=EITHER_WAY)})["lead"]


def _against_maps(scores: SurgXScores, rows: pl.DataFrame) -> dict[str, tuple[float, Interval]]:
    """Of each map that knows nothing: what it reaches on the frames of the right answers, and the paired difference."""
    right = rows.filter(RIGHT & USED & pl.col("ac").is_not_null())
    maps = scores.cases.filter((pl.col("task") == "reference") & USED)
    gains: dict[str, tuple[float, Interval]] = {}
    for name in _BLIND:
        theirs = maps.filter(pl.col("reference") == name).select("cluster", "frame", "class", theirs=pl.col("ac"))
        pairs = right.join(theirs, on=["cluster", "frame", "class"], how="inner").drop_nulls("theirs")
        if not pairs.is_empty():
            gap = {"gap": Ratio(pl.col("ac") - pl.col("theirs"), pl.lit(True), bounds=EITHER_WAY)}
            made = ratios(pairs, gap)
            gains[name] = float(pairs.select(pl.col("theirs").mean()).item()), made["gap"]
    return gains


def _sanity(scores: SurgXScores, check: str) -> Interval | None:
    """The last step of a check: all weights shuffled, or another prompt."""
    table = scores.made.get("sanity")
    rows: Sequence[dict[str, object]] = [] if table is None else table.filter(pl.col("check") == check).to_dicts()
    values = [row.get(f"correlation{end}") for row in rows[-1:] for end in ("", "_low", "_high")]
    if not values or not isinstance(values[0], float):
        return None
    low, high = (value if isinstance(value, float) else math.nan for value in values[1:])
    return Interval(values[0], low, high)


def _f1(scores: SurgXScores, shown: Sequence[str]) -> dict[str, float | None]:
    table = scores.made.get("classes")
    if table is None:
        return {}
    return {name: value for name, value in table.select("class", "f1").iter_rows() if name in shown}
