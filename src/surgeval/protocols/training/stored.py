"""The files of a folder of folds: the plan, and what every fold leaves when it is finished."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, DataError
from surgeval.files import failure_reason, make_folder, read_json_object, safe_name, write_atomically

__all__ = ["BOXES", "PLAN", "RECORD", "SCORES", "TRAINING", "FoldRecord", "fold_home", "fold_record", "read_plan",
           "write_plan"]  # fmt: skip

PLAN, RECORD, BOXES, TRAINING, SCORES = "folds.json", "fold.json", "detections.parquet", "training", "scores"


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """A finished fold: what finding the boxes of its test videos took."""

    name: str
    boxes: int
    frames: int
    seconds: float
    device: str

    @property
    def frames_per_second(self) -> float:
        """Detection end to end; nan where nothing was detected in."""
        return self.frames / self.seconds if self.frames and self.seconds > 0 else math.nan


def fold_home(folder: Path, name: str) -> Path:
    """Where a fold of this name lives."""
    return folder / "folds" / safe_name(name)


def fold_record(home: Path, plan: str | None = None) -> FoldRecord | None:
    """What a fold left when it was finished; None where it is not, or belongs to another plan.

    >>> fold_record(Path("no/such/fold"))
    """
    path = home / RECORD
    if not path.exists() or not (home / BOXES).exists():
        return None
    data = read_json_object(path, finite=True)
    kinds: dict[str, type | tuple[type, ...]] = {
        "plan": str, "fold": str, "boxes": int, "frames": int, "seconds": (int, float), "device": str
    }  # fmt: skip
    for key, kind in kinds.items():
        value = data.get(key)
        negative = isinstance(value, int | float) and value < 0
        if not isinstance(value, kind) or isinstance(value, bool) or negative:
            raise DataError(path, f"found {repr(value)[:60]}, expected a value of its kind, not below 0", field=key)
    if plan is not None and data["plan"] != plan:
        return None
    return FoldRecord(data["fold"], data["boxes"], data["frames"], float(data["seconds"]), data["device"])


def write_plan(path: Path, plan: Mapping[str, Any], name: str) -> None:
    """Write what a folder of trainings is going to hold; `name` stands in the message where it cannot be written."""
    try:
        make_folder(path.parent)
        write_atomically(path, (json.dumps(plan, indent=1) + "\n").encode())
    except OSError as error:
        raise BadInput(f"{path.parent}: {name} cannot be written: {failure_reason(error)}") from error


def read_plan(folder: Path) -> dict[str, Any]:
    """The plan of a folder of folds, checked as far as it is used."""
    path = folder / PLAN
    plan = read_json_object(path)
    if not isinstance(plan.get("name"), str):
        raise DataError(path, f"found {repr(plan.get('name'))[:60]}, expected the name of the detector", field="name")
    if not isinstance(plan.get("method"), dict):
        raise DataError(path, f"found {repr(plan.get('method'))[:60]}, expected its settings", field="method")
    scheme = plan.get("scheme")
    folds = scheme.get("folds") if isinstance(scheme, dict) else None
    if not isinstance(folds, dict) or not folds or not all(isinstance(fold, dict) for fold in folds.values()):
        raise DataError(path, f"found {repr(scheme)[:60]}, expected a scheme with its folds", field="scheme")
    return plan
