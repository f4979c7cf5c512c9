"""The files of a folder of folds: the plan, what every fold leaves when it is finished, and the plan of an ablation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from surgeval.errors import BadInput
from surgeval.files import StoredFile, StoredPart, failure_reason, make_folder, safe_name
from surgeval.protocols.result import RunSettings

__all__ = ["BOXES", "SCORES", "TRAINING", "AblationFile", "AblationName", "FoldFile", "PlanFile", "TrainingSettings",
           "fold_home", "load_fold", "save_plan"]  # fmt: skip

AblationName: TypeAlias = Literal["components", "fusion"]
BOXES, TRAINING, SCORES = "detections.parquet", "training", "scores"
Count = Annotated[int, Field(ge=0)]


class StoredFold(StoredPart):
    """The videos of a fold."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]


class StoredFolds(StoredPart):
    """The folds by name."""

    name: str
    kind: Literal["folds", "sources"]
    folds: dict[str, StoredFold] = Field(min_length=1)


class PlanFile(StoredFile, name="folds.json", format=1):
    """The content of folds.json: the detector that is trained, and the folds."""

    surgeval: str
    name: str
    method: dict[str, Any]
    data: str
    scheme: StoredFolds

    def identity(self) -> dict[str, Any]:
        """What the folds depend on, as plain values."""
        return self.model_dump(mode="json", exclude={"surgeval"})


class FoldFile(StoredFile, name="fold.json", format=1):
    """The content of fold.json: what finding the boxes of a fold's test videos took. `plan` marks the plan's fold."""

    plan: str
    fold: str
    boxes: Count
    frames: Count
    seconds: Annotated[float, Field(ge=0)]
    device: str

    @property
    def frames_per_second(self) -> float:
        """Detection end to end; nan where nothing was detected in."""
        return self.frames / self.seconds if self.frames and self.seconds > 0 else math.nan


def _check_distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) != len(seeds):
        raise ValueError("has a seed twice")
    return seeds


class AblationFile(StoredFile, name="ablation.json", format=1):
    """The content of ablation.json: a table of the paper, its configurations and the seeds of each."""

    table: AblationName
    configurations: tuple[str, ...]
    seeds: Annotated[tuple[Count, ...], Field(min_length=1), AfterValidator(_check_distinct)]


class TrainingSettings(RunSettings):
    """What a run of this protocol holds."""

    kind: Literal["folds", "ablation"]


def fold_home(folder: Path, name: str) -> Path:
    """Where a fold of this name lives."""
    return folder / "folds" / safe_name(name)


def load_fold(home: Path, plan: str | None = None) -> FoldFile | None:
    """What a fold left when it was finished; None where it is not, or belongs to another plan.

    >>> load_fold(Path("no/such/fold"))
    """
    if not (home / FoldFile.file_name).exists() or not (home / BOXES).exists():
        return None
    fold = FoldFile.load(home)
    return fold if plan in (None, fold.plan) else None


def save_plan(plan: PlanFile | AblationFile, folder: Path) -> None:
    """Write what a folder of trainings is going to hold."""
    try:
        make_folder(folder)
        plan.save(folder)
    except OSError as error:
        raise BadInput(f"{folder / plan.file_name}: cannot be written: {failure_reason(error)}") from error
