"""What each number of the paper is made of: accuracies of cells, weighted.

A cell is a kind of question (a skill, a kind of trap, the twins). A dimension is the plain mean of its two skills, the
overall competency that of the six skills, the average reliability that of the two kinds of traps. Weights are
fractions, so that published numbers can be recomputed to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

__all__ = ["ASYMMETRY", "DIMENSIONS", "NUMBERS", "SKILLS", "TWINS", "Weights", "combine", "weights_of"]

Weights: TypeAlias = Mapping[str, Fraction]

DIMENSIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "spatial": ("absolute", "relative"),
        "temporal": ("prospective", "retrospective"),
        "standard": ("discrete", "continuous"),
    }
)
SKILLS: tuple[str, ...] = tuple(skill for pair in DIMENSIONS.values() for skill in pair)
TRAPS = ("perceptual", "cognitive")
TWINS = ("twin", "paired", "over_rejection")
ASYMMETRY = "asymmetry"


def _mean(cells: Iterable[str]) -> Weights:
    names = tuple(cells)
    return {name: Fraction(1, len(names)) for name in names}


NUMBERS: Mapping[str, Weights] = MappingProxyType(
    {
        "overall": _mean(SKILLS),
        **{dimension: _mean(pair) for dimension, pair in DIMENSIONS.items()},
        **{skill: _mean([skill]) for skill in SKILLS},
        "reliability": _mean(TRAPS),
        **{trap: _mean([trap]) for trap in TRAPS},
        **{name: _mean([name]) for name in TWINS},
        ASYMMETRY: {"prospective": Fraction(1), "retrospective": Fraction(-1)},
    }
)


def weights_of(number: str, cells: Iterable[str]) -> Weights:
    """The weights of a number over the cells that there are; empty where it is not defined.

    A mean is that of the cells that exist; a difference needs both of its sides.

    >>> {name: str(weight) for name, weight in weights_of("spatial", ["absolute"]).items()}
    {'absolute': '1'}
    >>> weights_of("asymmetry", ["prospective"])
    {}
    """
    there, wanted = set(cells), NUMBERS[number]
    present = {name: weight for name, weight in wanted.items() if name in there}
    if any(weight < 0 for weight in wanted.values()):
        return present if len(present) == len(wanted) else {}
    total = sum(present.values(), Fraction(0))
    return {name: weight / total for name, weight in present.items()} if total else {}


def combine(number: str, accuracies: Mapping[str, Fraction]) -> Fraction:
    """A number out of the accuracies of its cells.

    >>> gpt5 = dict(zip(SKILLS, map(Fraction, ["52.94", "56.86", "56.77", "62.39", "66.51", "78.22"])))
    >>> float(combine("spatial", gpt5)), round(float(combine("overall", gpt5)), 2)
    (54.9, 62.28)
    """
    return sum((weight * accuracies[cell] for cell, weight in NUMBERS[number].items()), Fraction(0))
