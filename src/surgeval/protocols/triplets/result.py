"""`TripletScores`: what scoring a prediction file gives, and how it is stored in a run folder and loaded again.

A scored folder is a run: `run.json` says what was scored and how, further files (`_stored`, `_mixing_files`) hold every
number, table, curve and ranking: the page is made again, and two folders are compared, without predictions or dataset.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval._version import __version__
from surgeval.errors import BadInput, DataError, RunError
from surgeval.figures import Curve, Figure
from surgeval.files import (
    failure_reason,
    file_digest,
    folder_lock,
    make_folder,
    read_json_object,
    read_parquet_file,
    write_atomically,
    write_parquet_file,
)
from surgeval.pages import Evidence
from surgeval.protocols.contract import Headline, RunResult, refuse_dataset
from surgeval.protocols.pictures import load_pictures, save_pictures
from surgeval.protocols.triplets.check import check_scores
from surgeval.protocols.triplets.evidence import triplet_evidence
from surgeval.protocols.triplets.figures import score_figures
from surgeval.protocols.triplets.mixing_files import MIXING_FILES, Layout, read_mixable, write_mixable
from surgeval.protocols.triplets.scoring.inputs import Task
from surgeval.protocols.triplets.scoring.mixing import RankedBoxes, ScoredFrames
from surgeval.protocols.triplets.scoring.numbers import NAMES, Key, ScoreNumber, StoredReplicates, reading_order
from surgeval.protocols.triplets.scoring.objects import OBJECTS, read_objects, write_objects
from surgeval.protocols.triplets.stored import Confusions, details_json, read_details
from surgeval.protocols.triplets.tables import confusion_table, headline_table
from surgeval.protocols.triplets.verdict import floors_of, judge
from surgeval.protocols.verdict import Verdict
from surgeval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

__all__ = ["TripletScores", "load_triplets"]

SCORES, DETAILS, REPLICATES = "scores.json", "details.json", "replicates.parquet"
SCHEMA = 3


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TripletScores(RunResult):
    """Every number, table and curve of one prediction file; nothing in it is rounded.

    `thresholds` are the score thresholds of P, R and F1 by component, where one is defined; `folder` is where the
    scores were loaded from. `objects` says what became of every label and prediction, `pictures` are frames by case;
    `mixable` is what a comparison needs to exchange videos with another model.

    >>> import numpy as np
    >>> from surgeval import score_recognition
    >>> labels = np.eye(2)[[0, 1, 0, 1]]
    >>> scores = score_recognition(labels * 0.8, labels, ["v1", "v1", "v2", "v2"])
    >>> scores.to_frame().columns[:4], list(scores.tables)[:2]
    (['scope', 'component', 'metric', 'estimate'], ['headline', 'components'])
    """

    name: str
    task: Task
    settings: Mapping[str, Any]
    notes: tuple[str, ...]
    thresholds: Mapping[str, float]
    numbers: tuple[ScoreNumber, ...]
    replicates: StoredReplicates
    sheets: Mapping[str, pl.DataFrame]
    curves: Mapping[str, tuple[Curve, ...]]
    confusions: Confusions
    objects: pl.DataFrame | None = None
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    mixable: RankedBoxes | ScoredFrames | None = None
    folder: Path | None = None
    protocol: str = field(default="triplets", init=False)

    @property
    def main(self) -> str:
        """The component that matters most: the triplets, where they are scored."""
        components: list[str] = self.settings["components"]
        return "ivt" if "ivt" in components else components[0]

    @property
    def repeated(self) -> frozenset[Key]:
        """Numbers that say others again: those of rare classes, where every class that occurs is rare."""
        classes = self.sheets[f"classes_{self.main}"]
        if "rare" not in classes.columns or classes.filter(pl.col("instances") > 0, ~pl.col("rare")).height:
            return frozenset()
        return frozenset(number.key for number in self.numbers if number.key.scope.startswith("rare"))

    def number(self, component: str | None = None, metric: str | None = None, scope: str = "global") -> Interval:
        """One number with its interval: unless it is said, mAP50 (mAP for recognition) of the main component."""
        component = component or self.main
        wanted = metric or ("mAP50" if self.task == "detection" else "mAP")
        for number in self.numbers:
            if number.key == (scope, component, wanted):
                return number.interval
        raise BadInput(f"number {scope!r}, {component!r}, {wanted!r}: expected one of the rows of to_frame()")

    def label_of(self, key: Key) -> str:
        """What a number is called; of classes without a label space nobody says that they are triplets."""
        return key.label if self.settings["label_space"] else key.label.removeprefix(f"{NAMES['ivt']} ")

    def headlines(self) -> tuple[Headline, ...]:
        """The defined numbers to read first; of mAPs also what one reaches who never looks: the same answer always."""
        intervals = {number.key: number.interval for number in self.numbers}
        metric = "mAP50" if self.task == "detection" else "mAP"
        unseeing = {Key("global", component, metric): value for component, value in floors_of(self).items()}
        return tuple(
            Headline(key.text, self.label_of(key), intervals[key], unseeing=unseeing.get(key))
            for key in reading_order(intervals, self.main)[0]
            if not math.isnan(intervals[key].estimate) and key not in self.repeated
        )

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Does it find more than the same answer in every frame would? None where its number is not defined."""
        return judge(self)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by file name, first every headline number with its interval, none of them twice."""
        confusions = {f"confusion_{key}": confusion_table(*matrix) for key, matrix in self.confusions.items()}
        numbers = [number for number in self.numbers if number.key not in self.repeated]
        return {"headline": headline_table(numbers), **self.sheets, **confusions}

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure by file name; one with nothing to show is left out."""
        convention = self.settings.get("convention", "")
        known = {(convention, number.key.component, number.key.metric): number.interval
                 for number in self.numbers if number.key.scope == "global"}  # fmt: skip
        return score_figures(self.task, self.settings, self.sheets, self.curves, self.confusions, known)

    def evidence(self) -> Evidence | None:
        """A row per frame: labelled, said, and what became of each."""
        return triplet_evidence(self)

    def plot(self, name: str | None = None) -> MatplotlibFigure:
        """One figure for print, by default precision over recall of the triplets."""
        main = f"curves_{self.main}"
        return super().plot(main if name is None and main in self.figures else name)

    def to_json(self) -> dict[str, Any]:
        """Plain values: what `scores.json` holds."""
        return {
            "surgeval": __version__,
            "schema": SCHEMA,
            "name": self.name,
            "task": self.task,
            "verdict": None if (verdict := self.verdict()) is None else verdict.to_json(),
            "settings": dict(self.settings),
            "notes": list(self.notes),
            "thresholds": dict(self.thresholds),
            "numbers": [number.to_json() for number in self.numbers],
        }

    def json_details(self) -> dict[str, Any]:
        """Every table."""
        return {"tables": {key: table.to_dicts() for key, table in self.sheets.items()}}

    def save(self, folder: str | Path) -> Path:
        """Make the folder a run that `load_triplets` reads back; a reader never meets half a file."""
        from surgeval.engine import load_record  # it imports pydantic (80 ms), which scoring does not need

        out = Path(folder)
        if (out / "run.json").exists() and (other := load_record(out).protocol) != self.protocol:
            raise RunError(f"{out}: found a run of {other}, expected a new folder or a run of {self.protocol}")
        if not (out / "run.json").exists() and not (out / SCORES).exists():
            refuse_dataset(out)
        try:
            make_folder(out)
            with folder_lock(out):
                self._write(out)
        except OSError as error:
            raise BadInput(f"{out}: scores cannot be written: {failure_reason(error)}") from error
        return out / SCORES

    def _write(self, out: Path) -> None:
        """run.json goes first and comes last: what has one is complete, and all of one scoring."""
        from surgeval.engine import Manifest, save_scored

        for stale in ("run.json", "report.html", OBJECTS):
            (out / stale).unlink(missing_ok=True)
        write_parquet_file(self.replicates.to_frame(), out / REPLICATES)
        _write_json(out / DETAILS, details_json(self.sheets, self.curves, self.confusions))
        if self.objects is not None:
            write_objects(out / OBJECTS, self.objects)
        save_pictures(out, self.pictures)
        mixing = write_mixable(out, self.mixable)
        files = (REPLICATES, DETAILS, *((OBJECTS,) if self.objects is not None else ()), *mixing)
        digests = {name: file_digest(out / name) for name in files}
        _write_json(out / SCORES, {**self.to_json(), "sha256": digests}, indent=1)
        config = {key: value for key, value in self.settings.items() if key != "data"}
        manifest = Manifest(self.protocol, config=config, dataset=self.settings["data"], model=self.name)
        save_scored(out, manifest, cases=self.settings["frames"])


def _write_json(path: Path, data: Mapping[str, Any], indent: int | None = None) -> None:
    write_atomically(path, (json.dumps(data, indent=indent, allow_nan=False) + "\n").encode())


def load_triplets(folder: str | Path) -> TripletScores:
    """The scores that `TripletScores.save` (or the command `score triplets`) wrote, whole and checked.

    >>> import tempfile
    >>> from surgeval import score_recognition
    >>> labels = [[1, 0], [0, 1]] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scores = score_recognition(labels, labels, ["v1", "v1", "v2", "v2"])
    ...     _ = scores.save(folder)
    ...     load_triplets(folder).number() == scores.number()
    True
    >>> load_triplets("no/such/folder")
    Traceback (most recent call last):
    surgeval.errors.BadInput: no/such/folder: found no scores.json, expected a folder of scored triplets
    """
    run_folder = Path(folder)
    if "\0" in str(folder) or not (run_folder / SCORES).exists():
        raise BadInput(f"{folder}: found no {SCORES}, expected a folder of scored triplets")
    data = read_json_object(run_folder / SCORES, finite=True)
    sheets, curves, confusions = read_details(run_folder / DETAILS)
    replicates = StoredReplicates.of_table(read_parquet_file(run_folder / REPLICATES), run_folder / REPLICATES)
    numbers = check_scores(run_folder, data, SCHEMA, sheets, [*curves, *confusions], replicates)
    _require_one_scoring(run_folder, data)
    pictures, odd = load_pictures(run_folder)
    layout = Layout.of(run_folder / SCORES, data, confusions, [number.key for number in numbers])
    return TripletScores(
        objects=read_objects(run_folder / OBJECTS) if (run_folder / OBJECTS).exists() else None, pictures=pictures,
        name=data["name"], task=data["task"], settings=data["settings"], notes=(*data["notes"], *odd),
        thresholds=data["thresholds"], numbers=numbers, replicates=replicates, sheets=sheets, curves=curves,
        confusions=confusions, mixable=read_mixable(run_folder, layout), folder=run_folder,
    )  # fmt: skip


def _require_one_scoring(folder: Path, data: Mapping[str, Any]) -> None:
    """Refuse files of two scorings in one folder: an interrupted one, or files copied from elsewhere."""
    from surgeval.engine import load_record

    record = load_record(folder)
    stored = data.get("sha256")
    known = (REPLICATES, DETAILS, *(name for name in (OBJECTS, *MIXING_FILES) if (folder / name).exists()))
    for name in known:
        digest = stored.get(name) if isinstance(stored, Mapping) else None
        if not (folder / name).is_file() or digest != file_digest(folder / name):
            raise DataError(folder / name, f"found another scoring's file, expected the one that {SCORES} belongs to")
    name = str(data.get("name"))
    if not record.complete or record.model != name:
        found = f"a run of {record.model!r:.60} that is {record.status}"
        raise DataError(folder / "run.json", f"found {found}, expected the finished run that {SCORES} belongs to")
