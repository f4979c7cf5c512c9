"""Values read back from specifications of figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mark_rows(spec: Mapping[str, Any], mark: str) -> list[dict[str, Any]]:
    """The data of all layers with this mark."""
    layers = [part for part in spec.get("layer", [spec]) if part["mark"]["type"] == mark]
    return [row for layer in layers for row in layer["data"]["values"]]


def dots(spec: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Group, then class: the number of each dot of `estimates`."""
    found: dict[str, dict[str, float]] = {}
    for row in mark_rows(spec, "point"):
        found.setdefault(row["series"], {})[row["class"]] = row["value"]
    return found


def undefined(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Group and class of each place where the word stands."""
    return [(row["series"], row["class"]) for row in mark_rows(spec, "text")]
