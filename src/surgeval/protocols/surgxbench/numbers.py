"""The numbers to read first: is it right, and right for the right reason?

Each is a ratio of sums over the cases of one task, so that a run, its page and a comparison of two runs compute it from
the same line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from surgeval.protocols.contract import Headline
from surgeval.protocols.surgxbench.area import without_set_area
from surgeval.protocols.surgxbench.ratios import EITHER_WAY, Ratio, ratio_of_sums, ratios, share_of
from surgeval.protocols.surgxbench.tables import (
    CONTROLS,
    RIGHT,
    USED,
    attended_areas,
    count_of,
    grounding_ratios,
    masked,
)
from surgeval.stats import Interval, NumberUnit

__all__ = [
    "LABELS",
    "NUMBERS",
    "Number",
    "guessing",
    "headline_numbers",
    "headlines_of",
    "shares_shown",
    "task_cases",
    "wanted_of",
]


@dataclass(frozen=True, slots=True)
class Number:
    """One of the numbers; `chance` is a value or the key of the number that says it.

    A label has at most 36 letters: figures shorten longer ones.
    """

    label: str
    task: str
    ratio: Ratio
    higher_is_better: bool | None = True
    chance: str | float | None = None
    first: bool = True  # among the headlines; the others are chance levels and details
    unit: NumberUnit = "share"


def _effects() -> dict[str, Ratio]:
    """Occlusion in one number each: how much more often a prediction is lost than when another place is hidden."""
    lost = {name: count_of(~pl.col(f"kept_{name}")) for name in CONTROLS}
    region, boxed = (pl.col(f"kept_{name}").is_not_null() for name in ("attended", "boxes"))
    return {
        "lost_attended": Ratio(masked(lost["attended"], region), count_of(region)),
        "lost_attended_minus_random": _gap(lost["attended"], lost["random"], region),
        "lost_attended_minus_least": _gap(lost["attended"], lost["least"], region),
        "lost_boxes_minus_moved": _gap(lost["boxes"], lost["boxes_moved"], boxed),
    }


def _gap(lost: pl.Expr, elsewhere: pl.Expr, where: pl.Expr) -> Ratio:
    return Ratio(masked(lost - elsewhere, where), count_of(where), bounds=EITHER_WAY)


def _numbers() -> dict[str, Number]:
    looks, effects, task = grounding_ratios(pl.lit(True)), _effects(), "instruments"
    there = pl.col("best") & (pl.col("shown") > 0)  # top-1 counts where there is something to name
    complete, valid = (pl.col("level") == "IVT") & USED, pl.col("valid") & USED
    return {
        "accuracy": Number("top-1 right", task, share_of(pl.col("present"), there)),
        "tp_ac": Number("TP-AC, on instruments when right", task, looks["tp_ac"], chance="tp_chance"),
        "tp_chance": Number("chance (of TP-AC)", task, looks["tp_chance"], None, first=False),
        "tp_lift": Number("lift, TP-AC in times chance", task, looks["tp_lift"], chance=1.0, unit="score"),
        "grounded_when_right": Number("grounded when right", task, share_of(pl.col("grounded"), RIGHT & USED)),
        "lost_boxes_minus_moved": Number("instrument hidden: lost − elsewhere", task,
                                         effects["lost_boxes_minus_moved"], chance=0.0, unit="points"),
        "lost_attended_minus_random": Number("region hidden: lost − elsewhere", task,
                                             effects["lost_attended_minus_random"], chance=0.0, unit="points"),
        "lost_attended_minus_least": Number("region hidden: lost − least attended", task,
                                            effects["lost_attended_minus_least"], chance=0.0, first=False,
                                            unit="points"),
        "lost_attended": Number("region hidden: lost", task, effects["lost_attended"], None, first=False),
        "tp_aa": Number("TP-AA, on the named one when right", task, looks["tp_aa"],
                        chance="tp_aa_chance"),
        "tp_aa_chance": Number("chance (of TP-AA)", task, looks["tp_aa_chance"], None, first=False),
        "fp_ac": Number("FP-AC, on instruments when wrong", task, looks["fp_ac"], None, "fp_chance"),
        "fp_chance": Number("chance (of FP-AC)", task, looks["fp_chance"], None, first=False),
        "area": Number("attended share of its view, |A|/HW", task, looks["area"], None),
        "triplet_named": Number("labelled triplets named completely", "triplets",
                                share_of(pl.col("level") == "IVT", pl.lit(True))),
        "triplet_ras": Number("RAS of completely named triplets", "triplets", ratio_of_sums("ras", complete),
                              chance="triplet_ras_chance"),
        "triplet_ras_chance": Number("chance (of RAS)", "triplets", ratio_of_sums("chance", complete), None,
                                     first=False),
        "ars": Number("ARS over valid frames", "ars", ratio_of_sums("ars", valid)),
        "ars_valid": Number("frames with I and V right (V/T)", "ars", share_of(pl.col("valid"), pl.lit(True))),
    }  # fmt: skip


NUMBERS: Mapping[str, Number] = _numbers()
LABELS: Mapping[str, str] = {key: number.label for key, number in NUMBERS.items()}
_TASKS = tuple(dict.fromkeys(number.task for number in NUMBERS.values()))


def wanted_of(task: str) -> dict[str, Ratio]:
    """The ratios of one task's numbers.

    >>> list(wanted_of("ars"))
    ['ars', 'ars_valid']
    """
    return {key: number.ratio for key, number in NUMBERS.items() if number.task == task}


def task_cases(cases: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The cases of each task that has numbers, if it has cases."""
    parts = {task: cases.filter(pl.col("task") == task) for task in _TASKS}
    return {task: part for task, part in parts.items() if not part.is_empty()}


def headline_numbers(cases: pl.DataFrame) -> dict[str, Interval]:
    """Every number that the cases define, with its interval over videos, in the order of `NUMBERS`."""
    intervals: dict[str, Interval] = {}
    for task, part in task_cases(cases).items():
        intervals |= without_set_area(ratios(part, wanted_of(task)), attended_areas(part))
    return {
        key: intervals[key]
        for key in NUMBERS
        if key in intervals and intervals[key].estimate == intervals[key].estimate
    }


def headlines_of(numbers: Mapping[str, Interval], cases: pl.DataFrame, classes: int) -> tuple[Headline, ...]:
    """The numbers to read first, each with what chance reaches."""
    headlines = []
    for key, number in NUMBERS.items():
        if number.first and key in numbers:
            chance = number.chance if not isinstance(number.chance, str) else _estimate(numbers.get(number.chance))
            chance = guessing(cases, classes) if key == "accuracy" else chance
            unseeing = max(shares_shown(cases).values(), default=None) if key == "accuracy" else None
            headlines.append(Headline(key, number.label, numbers[key], chance=chance, unseeing=unseeing,
                                      higher_is_better=number.higher_is_better, unit=number.unit))  # fmt: skip
    return tuple(headlines)


def _estimate(interval: Interval | None) -> float | None:
    return None if interval is None else interval.estimate


def shares_shown(cases: pl.DataFrame) -> dict[str, float]:
    """How often always naming an instrument is right, by instrument, over frames that show any."""
    rows = cases.filter(pl.col("task") == "instruments")
    frames = rows.filter(pl.col("best") & (pl.col("shown") > 0)).height
    known = rows.filter(pl.col("present")).group_by("class").len().sort("class")
    return {name: count / frames for name, count in known.iter_rows()} if frames else {}


def guessing(cases: pl.DataFrame, classes: int) -> float | None:
    """How often a guess among the instruments names one that is there, over frames that show any."""
    shown = cases.filter((pl.col("task") == "instruments") & pl.col("best") & (pl.col("shown") > 0))["shown"].mean()
    return float(shown) / classes if isinstance(shown, float) and classes else None
