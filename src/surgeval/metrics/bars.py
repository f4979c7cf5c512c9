"""How results on classes are drawn: a dot each, and the word where a number is undefined."""

from __future__ import annotations

from collections.abc import Mapping

from surgeval.arrays import Floats
from surgeval.results import Drawing

__all__ = ["draw_classes", "draw_means"]


def draw_classes(component: str, ap: Floats) -> Drawing:
    """AP of each class of a component, by its number."""
    return draw_means(f"AP by class ({component})", {str(number): value for number, value in enumerate(ap.tolist())})


def draw_means(title: str, values: Mapping[str, float]) -> Drawing:
    """Numbers from 0 to 1 by name."""
    rows = [(value,) for value in values.values()]
    how = {"title": title, "labels": list(values), "groups": [(title, rows)], "unit": "AP", "span": (0, 1)}
    return Drawing("estimates", how)
