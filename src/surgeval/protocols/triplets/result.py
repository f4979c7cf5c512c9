"""`TripletScores`: what scoring a prediction file gives, and how it is stored in a run folder and loaded again.

A scored folder is a run: `run.json` says what was scored and how, further files (`stored`, `mixing_files`) hold every
number, table, curve and ranking: the page is made again, and two folders are compared, without predictions or dataset.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval._version import __version__
from surgeval.engine import Manifest, load_record, scored_record
from surgeval.errors import BadInput, RunError
from surgeval.figures import Curve
from surgeval.files import check_stored
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.protocols.pictures import load_pictures, save_pictures
from surgeval.protocols.result import RunResult, check_output, write_run
from surgeval.protocols.triplets.metrics import NAMES, Key, number_of, reading_order
from surgeval.protocols.triplets.mixing_files import Layout, read_mixable, write_mixable
from surgeval.protocols.triplets.scoring.inputs import Task
from surgeval.protocols.triplets.scoring.mixing import RankedBoxes, ScoredFrames
from surgeval.protocols.triplets.scoring.numbers import ScoreNumber, StoredReplicates
from surgeval.protocols.triplets.scoring.objects import ObjectRow
from surgeval.protocols.triplets.stored import Confusions, DetailsFile, ReplicateRow, TripletsFile, check_sheets
from surgeval.protocols.triplets.tables import confusion_table, headline_table
from surgeval.protocols.triplets.verdict import baselines_of, judge
from surgeval.stats import Interval, Measure

if TYPE_CHECKING:
    from surgeval.figures import Figure
    from surgeval.pages import Evidence
    from surgeval.protocols.verdict import Verdict

__all__ = ["TripletScores", "load_triplets"]


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
        """A number's label; classes without a label space are not called triplets."""
        return key.label if self.settings["label_space"] else key.label.removeprefix(f"{NAMES['ivt']} ")

    def headlines(self) -> tuple[Headline, ...]:
        """The defined numbers to read first; a mAP has the constant prediction as its blind baseline."""
        known = {number.key.text: number.interval for number in self.numbers}
        defined = {key: interval for key, interval in known.items() if not math.isnan(interval.estimate)}
        metric = "mAP50" if self.task == "detection" else "mAP"
        baselines = {Key("global", component, metric).text: value for component, value in baselines_of(self).items()}
        return headlines_of(self.measures, defined, baselines=baselines)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:  # type: ignore[override]
        """Every number, those to read first in front; none twice."""
        first, others = reading_order([number.key for number in self.numbers], self.main)
        return tuple(
            number_of(key, self.label_of(key), headline=key in first)
            for key in (*first, *others) if key not in self.repeated
        )  # fmt: skip

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Does it find more than the same answer in every frame would? None where its number is not defined."""
        return judge(self)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by file name, first every headline number with its interval, none of them twice."""
        confusions = {f"confusion_{key}": confusion_table(*matrix) for key, matrix in self.confusions.items()}
        numbers = [number for number in self.numbers if number.key not in self.repeated]
        known = {measure.key: measure for measure in self.measures}
        signatures = [known[number.key.text].signature(self.settings, number.interval) for number in numbers]
        recipes = pl.Series("signature", signatures, dtype=pl.String)
        return {"headline": headline_table(numbers).with_columns(recipes), **self.sheets, **confusions}

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure by file name; one with nothing to show is left out."""
        from surgeval.protocols.triplets.figures import score_figures

        convention = self.settings.get("convention", "")
        known = {(convention, number.key.component, number.key.metric): number.interval
                 for number in self.numbers if number.key.scope == "global"}  # fmt: skip
        return score_figures(self.task, self.settings, self.sheets, self.curves, self.confusions, known)

    def evidence(self) -> Evidence | None:
        """A row per frame: labelled, said, and what became of each."""
        from surgeval.protocols.triplets.evidence import triplet_evidence

        return triplet_evidence(self)

    def plot(self, name: str | None = None) -> Figure:
        """One figure, by default precision over recall of the triplets."""
        main = f"curves_{self.main}"
        return super().plot(main if name is None and main in self.figures else name)

    def to_json(self) -> dict[str, Any]:
        """Plain values: what `scores.json` holds."""
        return {
            "surgeval": __version__,
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
        """Make the folder a run that `load_triplets` reads back."""
        check_output(folder, self.protocol, own=TripletsFile.file_name)
        config = {key: value for key, value in self.settings.items() if key != "data"}
        manifest = Manifest(self.protocol, config=config, dataset=self.settings["data"], model=self.name)
        with write_run(folder, scored_record(manifest, cases=self.settings["frames"])) as out:
            (out / ObjectRow.file_name).unlink(missing_ok=True)
            if self.objects is not None:
                ObjectRow.save(self.objects, out)
            ReplicateRow.save(ReplicateRow.of(self.replicates), out)
            DetailsFile.of(self.sheets, self.curves, self.confusions).save(out)
            save_pictures(out, self.pictures)
            write_mixable(out, self.mixable)
            check_stored(TripletsFile, self.to_json(), out / TripletsFile.file_name).save(out)
        return Path(folder) / TripletsFile.file_name


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
    if "\0" in str(folder) or not (run_folder / TripletsFile.file_name).exists():
        raise BadInput(f"{folder}: found no {TripletsFile.file_name}, expected a folder of scored triplets")
    record = load_record(run_folder, "triplets")
    if not record.complete:
        raise RunError(f"{folder}: the run is not complete ({record.status}); score the predictions again")
    file, details = TripletsFile.load(run_folder), DetailsFile.load(run_folder)
    settings, numbers = file.to_settings(), tuple(number.to_number() for number in file.numbers)
    sheets, confusions, keys = details.to_sheets(), details.to_confusions(), [number.key for number in numbers]
    check_sheets(run_folder / DetailsFile.file_name, settings, sheets, numbers)
    replicates = ReplicateRow.to_replicates(ReplicateRow.load(run_folder), keys, run_folder / ReplicateRow.file_name)
    pictures, odd = load_pictures(run_folder)
    return TripletScores(
        objects=ObjectRow.load(run_folder) if (run_folder / ObjectRow.file_name).exists() else None,
        pictures=pictures, name=file.name, task=file.task, settings=settings, notes=(*file.notes, *odd),
        thresholds=file.thresholds, numbers=numbers, replicates=replicates, sheets=sheets, curves=details.to_curves(),
        confusions=confusions, mixable=read_mixable(run_folder, Layout.of(settings, confusions, keys)),
        folder=run_folder,
    )  # fmt: skip
