"""The folder of a training: train.json says what it is and how far it is, and another process can resume it.

RUN/train.json             settings, classes, data, versions, status, result
curves.jsonl           a line per epoch, readable while it runs
last.safetensors       where the training is: network, moving average, momentum, counters
best.safetensors       the best moving average so far, a detector
student/               the same files of the distilled stage
detector.safetensors   the detector that the training made
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from surgeval.engine import RunStatus, hold_folder
from surgeval.errors import RunError
from surgeval.files import StoredFile

__all__ = ["DETECTOR", "LABELS", "RECORD", "STUDENT", "TrainFolder", "TrainRecord", "check_stage", "current_versions"]

RECORD, STUDENT, DETECTOR, LABELS = "train.json", "student", "detector.safetensors", "labels.png"
_MOST = 8  # differences named
_PACKAGES = ("surgeval", "torch", "numpy", "opencv-python-headless")
_NUMBERS = ("epoch", "epochs", "images_per_second", "total_seconds")  # of a stage's result


def check_stage(row: dict[str, Any]) -> dict[str, Any]:
    """A stage's result as it is; `ValueError` if one of its numbers is missing."""
    for name in _NUMBERS:
        if type(row.get(name)) not in (int, float):
            raise ValueError(f"{name} must be a number, got {str(row.get(name))[:60]}")
    return row


class TrainRecord(StoredFile, name="train.json", format=1, limit=32 << 20):
    """The content of train.json.

    `status` is that of a run: `running` (also after a kill), `interrupted`, `stopped` (an error ended the training) or
    `done`. `result` has the best epoch's line of the curves for each stage.

    >>> import tempfile
    >>> record = TrainRecord(model="tdnet", settings={"epochs": 2}, classes={}, data={}, versions={}, status="running")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record.save(folder)
    ...     TrainRecord.load(folder) == record
    True
    >>> TrainRecord.load("nowhere")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere/train.json: no such file
    """

    model: str  # tdnet or rtdetr
    status: RunStatus
    reason: str = ""
    settings: dict[str, Any]
    data: dict[str, Any]  # fingerprints, counts and videos of both sets
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    result: dict[str, Annotated[dict[str, Any], AfterValidator(check_stage)]] | None = None
    classes: dict[str, Any]


class TrainFolder:
    """The folder of a training, held by this process."""

    def __init__(self, path: Path, record: TrainRecord) -> None:
        self.path, self.record = path, record

    @classmethod
    @contextmanager
    def open(cls, path: Path, record: TrainRecord, identity: Mapping[str, Any]) -> Iterator[TrainFolder]:
        """Hold a new folder, or one with a training of the same settings, classes and data.

        `identity` are the settings that must be the same.
        """
        own = (LABELS, f".{LABELS}.tmp")  # of a dry run
        with hold_folder(path, RECORD, STUDENT, own):
            earlier = TrainRecord.load(path) if (path / RECORD).exists() else None
            if earlier is not None:
                _refuse_other(path, earlier, record, identity)
                record = earlier.model_copy(update={"versions": record.versions})
            folder = cls(path, record)
            if earlier is None or earlier.status != "done":
                folder.set_status("running")
            yield folder

    def set_status(self, status: RunStatus, reason: str = "", *, result: Mapping[str, Any] | None = None) -> None:
        """Write how far the training is, and its result if there is a new one."""
        self._update(status=status, reason=reason, result=result if result is not None else self.record.result)

    def note(self, text: str) -> None:
        """Keep a sentence that a reader of the results must know, once."""
        if text not in self.record.notes:
            self._update(notes=(*self.record.notes, text))

    def _update(self, **changed: Any) -> None:
        self.record = self.record.model_copy(update=changed)
        self.record.save(self.path)


def current_versions() -> dict[str, str]:
    """Versions that a training depends on.

    >>> sorted(current_versions())[:2]
    ['numpy', 'opencv-python-headless']
    """
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # run from the source, or another build of the same library
            versions[name] = "not installed as a package"
    return versions


def _refuse_other(path: Path, earlier: TrainRecord, now: TrainRecord, identity: Mapping[str, Any]) -> None:
    changed = []
    if earlier.model != now.model:
        changed.append(f"model {earlier.model} (now {now.model})")
    for name, value in _to_json(identity).items():
        if earlier.settings.get(name) != value:
            changed.append(f"{name} {json.dumps(earlier.settings.get(name))[:60]} (now {json.dumps(value)[:60]})")
    for name in ("classes", "data"):
        before, wanted = getattr(earlier, name), _to_json(getattr(now, name))
        different = [key for key in sorted({*before, *wanted}) if before.get(key) != wanted.get(key)]
        changed += [f"other {name} ({key})" for key in different]
    if changed:
        more = f" and {len(changed) - _MOST} more" if len(changed) > _MOST else ""
        raise RunError(
            f"{path}: holds a training with {', '.join(changed[:_MOST])}{more};"
            " use the same settings and data, or name another folder"
        )


def _to_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """The value as JSON would give it back."""
    read: dict[str, Any] = json.loads(json.dumps(dict(value), ensure_ascii=False).encode(errors="replace"))
    return read
