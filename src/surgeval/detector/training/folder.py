"""A training is a folder: train.json says what it is and how far it is, and another process can go on with it.

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
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surgeval.errors import DataError, RunError
from surgeval.files import folder_lock, make_folder, read_json_object, remove_temporary, write_atomically

__all__ = ["DETECTOR", "LABELS", "RECORD", "STUDENT", "Status", "TrainFolder", "TrainRecord", "load_train_record"]

RECORD, LOCK, STUDENT, DETECTOR = "train.json", "train.lock", "student", "detector.safetensors"
LABELS = "labels.png"
Status: TypeAlias = Literal["running", "interrupted", "failed", "finished"]
_STATUSES = ("running", "interrupted", "failed", "finished")
_KIND = "surgeval training"
# What a dry run leaves, and a training that was killed in its first moments.
_OWN = {LABELS, RECORD, LOCK, f".{LABELS}.tmp", f".{RECORD}.tmp"}
_MOST = 8  # differences named
_PACKAGES = ("surgeval", "torch", "numpy", "opencv-python-headless")
_LIMIT = 32 << 20


@dataclass(frozen=True)
class TrainRecord:
    """What train.json says."""

    model: str  # tdnet or rtdetr
    settings: Mapping[str, Any]
    classes: Mapping[str, Any]
    data: Mapping[str, Any]  # fingerprints, counts and videos of both sets
    versions: Mapping[str, str]
    status: Status
    reason: str = ""
    notes: tuple[str, ...] = ()
    result: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "kind": _KIND, "model": self.model, "status": self.status, "reason": self.reason,
            "settings": dict(self.settings), "data": dict(self.data), "versions": dict(self.versions),
            "notes": list(self.notes), "result": self.result, "classes": dict(self.classes),
        }  # fmt: skip


def load_train_record(folder: Path | str) -> TrainRecord:
    """The record of a training.

    >>> import tempfile
    >>> record = TrainRecord("tdnet", {"epochs": 2}, {}, {}, {}, "finished", result={"mAP50": 0.5})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, RECORD).write_text(json.dumps(record.to_json()))
    ...     load_train_record(folder) == record
    True
    >>> load_train_record("nowhere")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere/train.json: no such file
    """
    path = Path(folder) / RECORD
    record = read_json_object(path, limit=_LIMIT, finite=True)
    if record.get("kind") != _KIND:
        raise DataError(path, f"found {json.dumps(record.get('kind'))[:60]}, expected {_KIND}", field="kind")
    for name in ("settings", "classes", "data", "versions"):
        if not isinstance(record.get(name), dict):
            raise DataError(path, f"found {json.dumps(record.get(name))[:60]}, expected an object", field=name)
    if record.get("status") not in _STATUSES:
        raise DataError(
            path, f"found {repr(record.get('status'))[:60]}, expected {', '.join(_STATUSES)}", field="status"
        )
    notes, result = record.get("notes", []), record.get("result")
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise DataError(path, f"found {json.dumps(notes)[:60]}, expected a list of sentences", field="notes")
    if result is not None and not isinstance(result, dict):
        raise DataError(path, f"found {json.dumps(result)[:60]}, expected an object", field="result")
    return TrainRecord(
        str(record.get("model", ""))[:60], record["settings"], record["classes"], record["data"], record["versions"],
        record["status"], str(record.get("reason", "")), tuple(notes), result,
    )  # fmt: skip


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
        if path.exists() and not path.is_dir():
            raise RunError(f"{path}: found a file, expected a folder for the training")
        known = path / RECORD
        if path.is_dir() and not known.exists() and any(entry.name not in _OWN for entry in path.iterdir()):
            raise RunError(f"{path}: found other files there, expected a new or empty folder or one of a training")
        make_folder(path)
        _refuse_links(path)
        with folder_lock(path, LOCK):
            earlier = load_train_record(path) if known.exists() else None
            if earlier is not None:
                _refuse_other(path, earlier, record, identity)
                record = TrainRecord(**{**vars(earlier), "versions": record.versions})
            remove_temporary(path, path / STUDENT)
            folder = cls(path, record)
            if earlier is None or earlier.status != "finished":
                folder.say("running")
            yield folder

    def say(self, status: Status, reason: str = "", *, result: Mapping[str, Any] | None = None) -> None:
        """Write how the training stands."""
        self._write(status=status, reason=reason, result=result if result is not None else self.record.result)

    def note(self, text: str) -> None:
        """Keep a sentence about something that a reader of the results must know; each one once."""
        if text not in self.record.notes:
            self._write(notes=(*self.record.notes, text))

    def _write(self, **changed: Any) -> None:
        self.record = TrainRecord(**{**vars(self.record), **changed})
        text = json.dumps(self.record.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / RECORD, f"{text}\n".encode(errors="replace"))


def _refuse_links(path: Path) -> None:
    """What a stage writes, and what it deletes as left behind, stays inside the folder."""
    for entry in sorted(path.iterdir()):
        if entry.is_symlink() and entry.is_dir():
            raise RunError(f"{entry}: found a link to a folder, expected a folder of the training's own")


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
    told = []
    if earlier.model != now.model:
        told.append(f"model {earlier.model} (now {now.model})")
    plain = json.loads(json.dumps(dict(identity)))
    for name, value in plain.items():
        if earlier.settings.get(name) != value:
            told.append(f"{name} {json.dumps(earlier.settings.get(name))[:60]} (now {json.dumps(value)[:60]})")
    for name in ("classes", "data"):
        before, wanted = getattr(earlier, name), json.loads(json.dumps(dict(getattr(now, name))))
        different = [key for key in sorted({*before, *wanted}) if before.get(key) != wanted.get(key)]
        told += [f"other {name} ({key})" for key in different]
    if told:
        more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
        raise RunError(
            f"{path}: found a training with {', '.join(told[:_MOST])}{more}, expected the same settings and data, "
            "or another folder"
        )
