"""The numbers to read first, declared once: is it right, and right for the right reason?

Each is a ratio of sums over the cases of one task, so that a run, its page, a comparison of two runs and the glossary
use the same declaration.
"""

from __future__ import annotations

import polars as pl

from surgeval.protocols.surgxbench.area import without_set_area
from surgeval.protocols.surgxbench.tables import (
    CONTROLS,
    RIGHT,
    USED,
    attended_areas,
    count_of,
    grounding_ratios,
    masked,
)
from surgeval.stats import (
    EITHER_WAY,
    Combine,
    Interval,
    Measure,
    Ratio,
    mean_ratio,
    measure_intervals,
    share_ratio,
    task_cases,
)

__all__ = ["MEASURES", "guessing", "headline_numbers", "shares_shown"]

_CLASSES = Combine(classes="pooled")
_ANSWERS = ("profile", "predict")  # the settings that decide what counts as predicted
_MAPS = (*_ANSWERS, "method", "region", "keep_top", "threshold", "geometry")  # and where the model looks
_MOTION = (*_MAPS, "flow", "motion_top")  # and what moves


def _lost_ratios() -> dict[str, Ratio]:
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


def _instrument_measures() -> tuple[Measure, ...]:
    looks, lost = grounding_ratios(pl.lit(True)), _lost_ratios()
    there = pl.col("best") & (pl.col("shown") > 0)  # top-1 counts where there is something to name
    return (
        Measure(
            key="accuracy", label="top-1 right", unit="share", task="instruments", combine=_CLASSES, settings=_ANSWERS,
            explanation="Of the frames that show an instrument, the share in which the best prompt names one that is "
            "there. The baseline is a guess among the instruments.",
            ratio=share_ratio(pl.col("present"), there),
        ),
        Measure(
            key="tp_ac", label="TP-AC, on instruments when right", term="TP-AC", unit="share", baseline="tp_chance",
            question="reason", task="instruments", combine=_CLASSES, settings=_MAPS, ratio=looks["tp_ac"],
            explanation="AC over right predictions (true positives): when the model names an instrument that is there, "
            "how much of what it looks at is an instrument.",
        ),
        Measure(
            key="tp_chance", label="chance (of TP-AC)", unit="share", higher_is_better=None, headline=False,
            question="reason", task="instruments", combine=_CLASSES, settings=_ANSWERS, ratio=looks["tp_chance"],
            explanation="The share of the picture that instruments cover, over right predictions: the TP-AC of a map "
            "that knows nothing.",
        ),
        Measure(
            key="tp_lift", label="lift, TP-AC in times chance", baseline=1.0, question="reason",
            task="instruments", combine=_CLASSES, settings=_MAPS, ratio=looks["tp_lift"],
            explanation="TP-AC divided by its chance: 1 is a map that knows nothing.",
        ),
        Measure(
            key="grounded_when_right", label="grounded when right", unit="share", question="reason", task="instruments",
            combine=_CLASSES, settings=_MAPS, ratio=share_ratio(pl.col("grounded"), RIGHT & USED),
            explanation="The share of right predictions that are grounded.",
        ),
        Measure(
            key="lost_boxes_minus_moved", label="instrument hidden: lost − elsewhere", unit="points", baseline=0.0,
            question="reason", task="instruments", combine=_CLASSES, settings=_ANSWERS,
            ratio=lost["lost_boxes_minus_moved"],
            explanation="How many more right predictions are lost when the instrument's boxes are hidden than when the "
            "same shape is hidden elsewhere.",
        ),
        Measure(
            key="lost_attended_minus_random", label="region hidden: lost − elsewhere", unit="points", baseline=0.0,
            question="reason", task="instruments", combine=_CLASSES, settings=_MAPS,
            ratio=lost["lost_attended_minus_random"],
            explanation="How many more right predictions are lost when the attended region is hidden than when the "
            "same shape is hidden elsewhere.",
        ),
        Measure(
            key="lost_attended_minus_least", label="region hidden: lost − least attended", unit="points", baseline=0.0,
            headline=False, question="reason", task="instruments", combine=_CLASSES, settings=_MAPS,
            ratio=lost["lost_attended_minus_least"],
            explanation="How many more right predictions are lost when the attended region is hidden than when as many "
            "of the least attended pixels are.",
        ),
        Measure(
            key="lost_attended", label="region hidden: lost", unit="share", higher_is_better=None, headline=False,
            question="reason", task="instruments", combine=_CLASSES, settings=_MAPS, ratio=lost["lost_attended"],
            explanation="The share of right predictions that are lost when the attended region is hidden.",
        ),
        Measure(
            key="tp_aa", label="TP-AA, on the named one when right", term="TP-AA", unit="share",
            baseline="tp_aa_chance", question="reason", task="instruments", combine=_CLASSES, settings=_MAPS,
            ratio=looks["tp_aa"],
            explanation="AA over right predictions (true positives): when the model names an instrument that is there, "
            "how much of what it looks at is that instrument.",
        ),
        Measure(
            key="tp_aa_chance", label="chance (of TP-AA)", unit="share", higher_is_better=None, headline=False,
            question="reason", task="instruments", combine=_CLASSES, settings=_ANSWERS, ratio=looks["tp_aa_chance"],
            explanation="The share of the picture that the named instrument covers, over right predictions: the TP-AA "
            "of a map that knows nothing.",
        ),
        Measure(
            key="fp_ac", label="FP-AC, on instruments when wrong", term="FP-AC", unit="share", higher_is_better=None,
            baseline="fp_chance", question="reason", task="instruments", combine=_CLASSES, settings=_MAPS,
            ratio=looks["fp_ac"],
            explanation="AC over wrong predictions (false positives): when the model names an instrument that is not "
            "there, how much of what it looks at is some other instrument.",
        ),
        Measure(
            key="fp_chance", label="chance (of FP-AC)", unit="share", higher_is_better=None, headline=False,
            question="reason", task="instruments", combine=_CLASSES, settings=_ANSWERS, ratio=looks["fp_chance"],
            explanation="The share of the picture that instruments cover, over wrong predictions: the FP-AC of a map "
            "that knows nothing.",
        ),
        Measure(
            key="area", label="attended share of its view, |A|/HW", term="|A|/HW", unit="share", higher_is_better=None,
            question="reason", task="instruments", combine=_CLASSES, settings=_MAPS, ratio=looks["area"],
            explanation="Attended share: how much of the picture that the model saw belongs to its attended region.",
        ),
    )  # fmt: skip


def _triplet_measures() -> tuple[Measure, ...]:
    complete, valid = (pl.col("level") == "IVT") & USED, pl.col("valid") & USED
    return (
        Measure(
            key="triplet_named", label="labelled triplets named completely", unit="share", task="triplets",
            combine=_CLASSES, settings=_ANSWERS, ratio=share_ratio(pl.col("level") == "IVT"),
            explanation="The share of labelled triplets of which the best match among the top prompts has the right "
            "instrument, verb and target.",
        ),
        Measure(
            key="triplet_ras", label="RAS of completely named triplets", term="RAS", unit="share",
            baseline="triplet_ras_chance", question="reason", task="triplets", combine=_CLASSES, settings=_MOTION,
            ratio=mean_ratio("ras", complete),
            explanation="RAFT attention score: how much of the attended region lies on the acting instrument's box or "
            "on what moves once the camera's own motion is taken away.",
        ),
        Measure(
            key="triplet_ras_chance", label="chance (of RAS)", unit="share", higher_is_better=None, headline=False,
            question="reason", task="triplets", combine=_CLASSES, settings=_MOTION,
            ratio=mean_ratio("chance", complete),
            explanation="The share of the picture that counts for RAS, over completely named triplets: the RAS of a "
            "map that knows nothing.",
        ),
        Measure(
            key="ars", label="ARS over valid frames", term="ARS", also=("action reasoning score",), unit="share",
            question="reason", task="ars", combine=_CLASSES, settings=_MAPS, ratio=mean_ratio("ars", valid),
            explanation="Action reasoning score: where instrument and verb are right, how much of the map of the "
            "verb's own prompt lies on that instrument.",
        ),
        Measure(
            key="ars_valid", label="frames with I and V right (V/T)", term="V/T", unit="share", task="ars",
            combine=_CLASSES, settings=_ANSWERS, ratio=share_ratio(pl.col("valid")),
            explanation="Valid of total: the share of frames in which instrument and verb are both right, so that ARS "
            "is defined.",
        ),
    )  # fmt: skip


MEASURES = (*_instrument_measures(), *_triplet_measures())


def headline_numbers(cases: pl.DataFrame) -> dict[str, Interval]:
    """Every number that the cases define, with its interval over videos, in the order of `MEASURES`."""
    named = task_cases(MEASURES, cases).get("instruments", cases.clear())
    return without_set_area(measure_intervals(MEASURES, cases), attended_areas(named))


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
