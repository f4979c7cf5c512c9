"""The numbers of MedGaze-Bench as printed (`published.toml`): other models on other data, for layout and size."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from surgeval.protocols.intent.scoring.weights import DIMENSIONS, SKILLS, combine

__all__ = ["PublishedModel", "half_up", "published", "published_gaze", "published_removal", "published_text_only"]


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A row of Tables 3 and 4, in per cent as printed; the dimensions are computed from the skills."""

    name: str
    kind: str
    skills: Mapping[str, Fraction]
    overall: Fraction
    perceptual: Fraction
    cognitive: Fraction
    reliability: Fraction

    @property
    def numbers(self) -> dict[str, Fraction]:
        """Skills, dimensions and overall; reliability."""
        dimensions = {name: combine(name, self.skills) for name in DIMENSIONS}
        return {
            **self.skills, **dimensions, "overall": self.overall, "perceptual": self.perceptual,
            "cognitive": self.cognitive, "reliability": self.reliability,
        }  # fmt: skip


def half_up(value: Fraction) -> str:
    """Two decimals as the paper prints them: halves go up.

    >>> half_up(Fraction("61.835")), half_up(Fraction("-0.005"))
    ('61.84', '0.00')
    """
    hundredths = (value * 100 + Fraction(1, 2)).__floor__()
    sign, size = ("-" if hundredths < 0 else ""), abs(hundredths)
    return f"{sign}{size // 100}.{size % 100:02d}"


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads((files("surgeval.protocols.intent") / "published.toml").read_text(encoding="utf-8"))


@cache
def published() -> tuple[PublishedModel, ...]:
    """The rows of Tables 3 and 4."""
    return tuple(
        PublishedModel(
            row["name"], row["kind"], dict(zip(SKILLS, map(Fraction, row["skills"]), strict=True)),
            *(Fraction(row[key]) for key in ("overall", "perceptual", "cognitive", "reliability")),
        )
        for row in _content()["model"]
    )  # fmt: skip


def published_gaze() -> dict[str, dict[str, tuple[Fraction, Fraction, Fraction]]]:
    """Table 5: by model and dimension (and overall) without gaze, with gaze, and the printed gain."""
    return {row["name"]: _triples(row) for row in _content()["gaze"]}


def _triples(row: Mapping[str, Any]) -> dict[str, tuple[Fraction, Fraction, Fraction]]:
    triples = {}
    for name in (*DIMENSIONS, "overall"):
        without, with_gaze, gain = map(Fraction, row[name])
        triples[name] = (without, with_gaze, gain)
    return triples


def published_text_only() -> dict[str, dict[str, tuple[Fraction, Fraction]]]:
    """Table 6: by model and kind of trap without and with the pictures."""
    return {
        row["name"]: {key: (Fraction(row[key][0]), Fraction(row[key][1])) for key in row if key != "name"}
        for row in _content()["text_only"]
    }


def published_removal() -> dict[str, dict[str, Fraction]]:
    """Table 7: by model and kind of trap, the accuracy on failed traps once the trap is taken away."""
    return {
        row["name"]: {key: Fraction(row[key]) for key in ("perceptual", "cognitive")} for row in _content()["removal"]
    }
