"""`TrainingScores`: a detector trained and tested on every fold, loaded from its folder.

The numbers are those of the run of `triplets` in `scores/`; here are the folds, their speed and their curves, and the
tables in the paper's layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.protocols.contract import Headline
from surgeval.protocols.result import RunFiles, RunResult
from surgeval.protocols.training.ablation.result import AblationScores, load_ablation
from surgeval.protocols.training.curves import Training, is_training, load_training_folder
from surgeval.protocols.training.stored import (
    SCORES,
    TRAINING,
    FoldFile,
    PlanFile,
    TrainingSettings,
    fold_home,
    load_fold,
)
from surgeval.protocols.training.tables import PaperTable, convention_notes, fold_table, own_rows, paper_tables
from surgeval.protocols.triplets import TripletScores, load_triplets
from surgeval.stats import Measure

if TYPE_CHECKING:
    from surgeval.figures import Figure
    from surgeval.pages import Evidence
    from surgeval.protocols.verdict import Verdict

__all__ = ["TrainingScores", "load_folds", "load_training"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TrainingScores(RunResult):
    """A detector over folds: `scores` are those of its boxes, each video's from the model that did not see it."""

    name: str
    notes: tuple[str, ...]
    scores: TripletScores
    plan: PlanFile
    records: tuple[FoldFile, ...]
    trainings: Mapping[str, Training]
    folder: Path | None = None
    protocol: str = field(default="training", init=False)

    @property
    def scheme(self) -> str:
        """`folds` or `sources`."""
        return str(self.scores.settings["scheme"]["kind"])

    @property
    def measures(self) -> tuple[Measure, ...]:  # type: ignore[override]
        """Those of its scores."""
        return self.scores.measures

    @property
    def recipe_settings(self) -> Mapping[str, Any]:
        """Those of its scores."""
        return self.scores.settings

    def headlines(self) -> tuple[Headline, ...]:
        """Those of its scores."""
        return self.scores.headlines()

    def evidence(self) -> Evidence | None:
        """Every frame of its scores."""
        return self.scores.evidence()

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Does it find more than the same answer in every frame would?"""
        return self.scores.verdict()

    def sentences(self) -> tuple[str, ...]:
        """Where the rows were scored under another convention than the paper's."""
        return convention_notes(self.own_tables())

    def own_tables(self) -> tuple[PaperTable, ...]:
        """The paper's tables with our rows only."""
        return own_rows(paper_tables([self]))

    def to_json(self) -> dict[str, Any]:
        """The notes and the tables."""
        shown = {key: table.to_dicts() for key, table in self.tables.items() if not key.startswith("scores_")}
        return {**super().to_json(), "tables": shown}

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Every fold, then the paper's tables (values and standard deviations in columns), then those of the scores."""
        papers = {f"table_{table.paper.number}": table.frame() for table in paper_tables([self])}
        return {"folds": fold_table(self), **papers, **{f"scores_{k}": t for k, t in self.scores.tables.items()}}

    @property
    def figures(self) -> dict[str, Figure]:
        """The mAP by epoch of every fold, each fold's number, and AP by class."""
        from surgeval.protocols.training.figures import fold_figures

        return fold_figures(self)


def load_training(folder: str | Path) -> TrainingScores | AblationScores:
    """The result of a finished folder of folds, or of an ablation; the example of `run_training` loads one.

    >>> load_training("no/such/folder")
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/folder: no such folder
    """
    files = RunFiles.open(folder, "training", TrainingSettings)
    return load_ablation(files.folder) if files.settings.kind == "ablation" else load_folds(files.folder)


def load_folds(folder: str | Path) -> TrainingScores:
    """The folds of a folder, scored.

    >>> load_folds(Path("no/such/folder"))
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/folder/folds.json: no such file
    """
    folder = Path(folder)
    plan = PlanFile.load(folder)
    scores = load_triplets(folder / SCORES)
    names = list(scores.settings["scheme"]["groups"])
    known = {name: load_fold(fold_home(folder, name)) for name in names}
    lost = [name for name, record in known.items() if record is None]
    notes = scores.notes
    if lost:
        notes += (f"the boxes of {', '.join(lost)} are gone: speed is that of the other folds",)
    homes = {name: fold_home(folder, name) / TRAINING for name in names}
    return TrainingScores(
        name=plan.name, notes=notes, scores=scores, plan=plan,
        records=tuple(record for record in known.values() if record is not None),
        trainings={name: load_training_folder(home) for name, home in homes.items() if is_training(home)},
        folder=folder,
    )  # fmt: skip
