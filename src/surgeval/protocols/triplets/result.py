"""`TripletScores`: what scoring a prediction file gives, and the two files by which a scored folder is compared later.

`FOLDER/scores.json` holds the settings, notes and headline numbers, `FOLDER/replicates.parquet` what every number was
on every resample of videos.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval._version import __version__
from surgeval.errors import BadInput, DataError
from surgeval.figures import Curve, Figure
from surgeval.files import (
    atomic_file,
    make_folder,
    read_json_object,
    read_parquet_file,
    trust_parquet,
    write_atomically,
)
from surgeval.metrics import Confusion
from surgeval.protocols.triplets._inputs import Task
from surgeval.protocols.triplets._numbers import ScoreNumber, StoredReplicates
from surgeval.protocols.triplets.figures import score_figures
from surgeval.protocols.triplets.tables import headline_table
from surgeval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

__all__ = ["NAMES", "StoredScores", "TripletScores", "load_scores"]

SCHEMA = 1
SCORES, REPLICATES = "scores.json", "replicates.parquet"
NAMES = {"i": "I", "v": "V", "t": "T", "iv": "IV", "it": "IT", "vt": "VT", "ivt": "IVT", "bbox": "box"}
_MAX_BYTES = 100_000_000


@dataclass(frozen=True)
class StoredScores:
    """The part of a score that a folder keeps and a comparison needs."""

    name: str
    task: Task
    settings: Mapping[str, Any]
    thresholds: Mapping[str, float]
    replicates: StoredReplicates = field(repr=False)


@dataclass(frozen=True)
class TripletScores(StoredScores):
    """Every number, table and curve of one prediction file; nothing in it is rounded."""

    notes: tuple[str, ...]
    numbers: tuple[ScoreNumber, ...] = field(repr=False)
    sheets: Mapping[str, pl.DataFrame] = field(repr=False)
    curves: Mapping[str, tuple[Curve, ...]] = field(repr=False)
    confusions: Mapping[str, tuple[Confusion, tuple[str, ...]]] = field(repr=False)

    def number(self, component: str = "ivt", metric: str | None = None, scope: str = "global") -> Interval:
        """One headline number with its interval; `metric` is mAP50 (mAP for recognition) unless it is said."""
        wanted = metric or ("mAP50" if self.task == "detection" else "mAP")
        for number in self.numbers:
            if number.key == (scope, component, wanted):
                return number.interval
        raise BadInput(f"number {scope!r}, {component!r}, {wanted!r}: expected one of the rows of table()")

    def to_frame(self) -> pl.DataFrame:
        """Every headline number with its interval, one per row."""
        return headline_table(self.numbers)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by file name."""
        return {"headline": self.to_frame(), **self.sheets}

    def figures(self) -> dict[str, Figure]:
        """Every figure by file name; one with nothing to show is left out."""
        return score_figures(self.task, self.sheets, self.curves, self.confusions)

    def plot(self, name: str | None = None) -> MatplotlibFigure:
        """One figure for print, by default precision over recall of the triplets."""
        figures = self.figures()
        chosen = name or next((key for key in ("curves_ivt", "curves_i", *figures) if key in figures), "")
        if chosen not in figures:
            raise BadInput(f"figure {chosen!r}: expected one of {', '.join(figures) or 'none'}")
        return figures[chosen].to_matplotlib()

    def to_json(self) -> dict[str, Any]:
        """Plain values: what `scores.json` holds."""
        return {
            "surgeval": __version__,
            "schema": SCHEMA,
            "name": self.name,
            "task": self.task,
            "settings": dict(self.settings),
            "notes": list(self.notes),
            "thresholds": {key: value for key, value in self.thresholds.items() if value == value},
            "numbers": [number.to_json() for number in self.numbers],
        }

    def save(self, folder: str | Path) -> Path:
        """Write `scores.json` and `replicates.parquet`; a reader never meets half a file."""
        place = Path(folder)
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            make_folder(place)
            with atomic_file(place / REPLICATES) as file:
                self.replicates.to_frame().write_parquet(file)
            trust_parquet(place / REPLICATES)
            write_atomically(place / SCORES, text.encode())
        except OSError as error:
            raise BadInput(f"{place}: scores cannot be written: {error.strerror or error}") from error
        return place / SCORES

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


def load_scores(folder: str | Path) -> StoredScores:
    """What `save` wrote, checked."""
    place = Path(folder)
    path = place / SCORES
    if "\0" in str(folder) or not path.is_file():
        raise BadInput(f"{folder}: found no {SCORES}, expected a folder that `surgeval score triplets --out` wrote")
    data = read_json_object(path, expected="the scores that `surgeval score triplets` wrote", limit=_MAX_BYTES)
    if data.get("schema") != SCHEMA:
        raise DataError(path, field="schema", found=repr(data.get("schema"))[:60], expected=str(SCHEMA))
    kinds: dict[str, type] = {"name": str, "task": str, "settings": dict, "thresholds": dict}
    for key, kind in kinds.items():
        if not isinstance(data.get(key), kind):
            raise DataError(path, field=key, found=repr(data.get(key))[:60], expected=f"a {kind.__name__}")
    if data["task"] not in ("detection", "recognition"):
        raise DataError(path, field="task", found=repr(data["task"])[:60], expected="detection or recognition")
    for component, value in data["thresholds"].items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0:
            raise DataError(
                path, record="thresholds", field=component[:60], found=repr(value)[:60], expected="a finite number"
            )
    table = read_parquet_file(place / REPLICATES)
    replicates = StoredReplicates.of_table(table, place / REPLICATES)
    return StoredScores(data["name"], data["task"], data["settings"], data["thresholds"], replicates)
