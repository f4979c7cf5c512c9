"""The numbers of a run, declared: competency, reliability and what they are made of, and the gain by gaze.

They are weighted means over rows of `cluster`, `cell` (the kind of question) and `value` (1 for right). In rows asked
with and without gaze the condition stands before the cell, as in `gaze/absolute`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

import polars as pl

from surgeval.protocols.intent.scoring.weights import ASYMMETRY, DIMENSIONS, NUMBERS, SKILLS, Weights, weights_of
from surgeval.stats import Combine, MacroMean, Measure, NumberUnit, Parts, find_measure, share_ratio

__all__ = ["GAZE_GAIN", "LABELS", "MEASURES", "gain_weights", "number_unit", "weighted_mean"]

_PLAIN, _GAZE = "plain", "gaze"
_SETTINGS = ("invalid", "subset", "gaze", "sampling", "frames")
_SKILLS = {
    "absolute": "where something is in the picture",
    "relative": "where something is relative to something else",
    "prospective": "what comes next",
    "retrospective": "what came before",
    "discrete": "which of several steps or standards applies",
    "continuous": "how far a standard is met",
}


def weighted_mean(weights: Weights, value: str = "value") -> Parts:
    """The weighted mean of the cells' shares of right answers; a single cell is that share."""
    cells = {cell: share_ratio(pl.col(value) == 1, pl.col("cell") == cell, one_video="wilson") for cell in weights}
    if list(weights.values()) == [Fraction(1)]:
        return tuple(cells.values())
    return MacroMean(tuple(cells.values()), tuple(weights.values()), absent="undefined", constant="row")


def gain_weights(cells: Iterable[str]) -> Weights:
    """The weights of the gain by gaze over the cells that there are: competency with gaze minus that without."""
    skills = weights_of("overall", {cell.partition("/")[2] for cell in cells})
    return {
        **{f"{_GAZE}/{skill}": weight for skill, weight in skills.items()},
        **{f"{_PLAIN}/{skill}": -weight for skill, weight in skills.items()},
    }


def _ratio(number: str) -> Callable[[pl.DataFrame], Parts | None]:
    def of(cases: pl.DataFrame) -> Parts | None:
        weights = weights_of(number, cases["cell"].unique())
        return weighted_mean(weights) if weights else None

    return of


def _gain(cases: pl.DataFrame) -> Parts | None:
    weights = gain_weights(cell for cell in cases["cell"].unique() if "/" in cell)
    return weighted_mean(weights) if weights else None


def _measures() -> tuple[Measure, ...]:
    skills = Combine(frames="pooled in a skill", classes="mean of the skills present")
    traps = Combine(frames="pooled in a kind of trap", classes="mean of the kinds present")
    first = (
        Measure(
            key="overall", label="competency", unit="share", combine=skills, settings=_SETTINGS,
            ratio=_ratio("overall"),
            explanation="Share of right answers to questions without a trap: the plain mean of six skills.",
        ),
        Measure(
            key="paired", label="paired accuracy", unit="share", question="fooled", settings=_SETTINGS,
            ratio=_ratio("paired"),
            explanation="Share of false premises that are rejected whose true twin is answered rightly too: only "
            "looking gets both.",
        ),
        Measure(
            key="reliability", label="average reliability", term="reliability", also=("average reliability",),
            unit="share", question="fooled", combine=traps, settings=_SETTINGS, ratio=_ratio("reliability"),
            explanation="Share of traps that are passed: the mean of perceptual and cognitive reliability. A model "
            "that rejects everything passes every cognitive trap.",
        ),
        Measure(
            key="perceptual", label="perceptual reliability", also=("perceptual trap", "perceptual traps"),
            unit="share", question="fooled", settings=_SETTINGS, ratio=_ratio("perceptual"),
            explanation="Share of right answers where the wrong options are things that are not in the picture.",
        ),
        Measure(
            key="cognitive", label="cognitive reliability", also=("cognitive trap", "cognitive traps"), unit="share",
            question="fooled", settings=_SETTINGS, ratio=_ratio("cognitive"),
            explanation="Share of right answers to questions that assert something the pictures contradict; right is "
            "the option that rejects it.",
        ),
        Measure(
            key="twin", label="accuracy on twins", term="twins", unit="share", headline=False, settings=_SETTINGS,
            ratio=_ratio("twin"),
            explanation="Share of right answers to the true-premise twins of cognitive traps.",
        ),
        Measure(
            key="over_rejection", label="over-rejection", unit="share", higher_is_better=False, question="fooled",
            settings=_SETTINGS, ratio=_ratio("over_rejection"),
            explanation="Share of true premises that are rejected.",
        ),
    )  # fmt: skip
    dimensions = (
        Measure(
            key=name, label=f"{name} intent", unit="share", headline=False, combine=skills, settings=_SETTINGS,
            ratio=_ratio(name), explanation=f"Share of right answers: the mean of the skills {pair[0]} and {pair[1]}.",
        )
        for name, pair in DIMENSIONS.items()
    )  # fmt: skip
    alone = (
        Measure(
            key=skill, label=skill, term=f"skill {skill}", unit="share", headline=False, settings=_SETTINGS,
            ratio=_ratio(skill), explanation=f"Share of right answers to questions about {_SKILLS[skill]}.",
        )
        for skill in SKILLS
    )  # fmt: skip
    asymmetry = Measure(
        key=ASYMMETRY, label="prospective − retrospective", unit="points", higher_is_better=None, headline=False,
        baseline=0.0, settings=_SETTINGS, ratio=_ratio(ASYMMETRY),
        explanation="The share of right answers about what comes next minus that about what came before.",
    )  # fmt: skip
    return (*first, *dimensions, *alone, asymmetry)


GAZE_GAIN = Measure(
    key="gaze_gain", label="gain by gaze", unit="points", baseline=0.0, question="reason", settings=_SETTINGS,
    ratio=_gain, explanation="Competency with the clinician's gaze shown minus competency without, on the same items.",
)  # fmt: skip
MEASURES: tuple[Measure, ...] = (*_measures(), GAZE_GAIN)
LABELS: Mapping[str, str] = {number: find_measure(MEASURES, number).label for number in NUMBERS}


def number_unit(number: str) -> NumberUnit:
    """The unit in which a number is printed: a difference of two shares is in points.

    >>> number_unit("overall"), number_unit("asymmetry")
    ('share', 'points')
    """
    return find_measure(MEASURES, number).unit
