"""What every training does around its stages, whatever network it trains: checks, the folder, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import cv2

from surgeval.detector.classes import Classes
from surgeval.detector.data import PLAIN, Augment, TrainingSet, label_mosaic, told_problems
from surgeval.detector.training.curves import CURVES, read_curves
from surgeval.detector.training.folder import TrainFolder, TrainRecord, check_stage, current_versions
from surgeval.detector.training.resume import Counters
from surgeval.detector.training.settings import TrainSettings
from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.files import file_digest, make_folder, write_atomically

__all__ = ["Tell", "begun", "best_row", "check_sets", "conduct", "picture_labels"]

Tell: TypeAlias = Callable[[str], None]
_DRAWN, _WIDEST = 16, 1600  # frames and pixels of a picture of labels


def conduct(
    path: Path, record: TrainRecord, identity: Mapping[str, Any], progress: Tell,
    work: Callable[[Tell, Tell], dict[str, Any]], *, product: str,
) -> Mapping[str, Any]:  # fmt: skip
    """Do the work inside its folder, which is told how it ended; the result, also that of a training done before.

    `product` is the file that a finished training has: where somebody took it away, the work is done again.

    `work` gets two callbacks, `on_epoch` and `on_note`. Both show their line; notes are also kept in the folder, for
    the readers of the results.
    """
    with TrainFolder.open(path, record, identity) as folder:

        def on_note(text: str) -> None:
            folder.note(text)
            progress(text)

        if folder.record.status == "done" and folder.record.result is not None and (path / product).is_file():
            progress(f"{path}: finished before")
            return folder.record.result
        try:
            result = work(progress, on_note)
        except KeyboardInterrupt:
            folder.set_status("interrupted", "stopped by hand; the same call goes on after its last finished epoch")
            raise
        except SurgevalError as error:
            folder.set_status("stopped", str(error))
            raise
        folder.set_status("done", result=result)
        return result


def check_sets(train: TrainingSet, validation: TrainingSet | None, classes: Classes, side: int) -> None:
    """Both sets are for these classes and pictures, there is something to train on, and no video is in both."""
    for name, data in (("training", train), ("validation", validation)):
        if data is not None and data.classes != classes:
            raise BadInput(f"{name} frames: found labels for other classes, expected those of the detector")
        if data is not None and data.image_size != side:
            raise BadInput(
                f"{name} frames: found pictures of {data.image_size} pixels, expected {side} as in the settings"
            )
    if not len(train):
        raise BadInput("training frames: found none, expected at least one")
    shared = set(train.videos) & set(validation.videos) if validation is not None else set()
    if shared:
        raise BadInput(f"validation frames: found video {sorted(shared)[0]}, which is trained on, expected others")


def begun(
    model: str, settings: TrainSettings, train: TrainingSet, validation: TrainingSet | None, classes: Classes,
    weights: Sequence[Path] = (),
) -> TrainRecord:  # fmt: skip
    """The record of a training that begins: all that it depends on. `weights` are the files that it begins with."""
    data = {
        "train": _about(train),
        "validation": _about(validation) if validation is not None else None,
        "weights": file_digest(*weights) if weights else None,
    }
    notes = tuple(told_problems(train, validation))
    return TrainRecord(
        model=model, settings=settings.to_json(), classes=_about_classes(classes), data=data,
        versions=current_versions(), status="running", notes=notes,
    )  # fmt: skip


def _about(data: TrainingSet) -> dict[str, Any]:
    return {
        "fingerprint": data.fingerprint, "frames": len(data), "boxes": int(data.counts.sum()),
        "videos": sorted(set(data.videos)), "counts": data.counts.tolist(),
    }  # fmt: skip


def _about_classes(classes: Classes) -> dict[str, Any]:
    """The classes as a detector's file has them, and their names by head: whoever reads the record needs no more."""
    heads = {head: list(names) for head, names in classes.heads.items()}
    return {**classes.to_json(), "main": classes.main, "heads": heads}


def picture_labels(folder: Path, data: TrainingSet, augment: Augment) -> None:
    """Draw what is learned from: `labels.jpg` frames as they are, `mosaic.jpg` as they are shown to the network."""
    make_folder(folder)
    for name, changed in (("labels.jpg", PLAIN), ("mosaic.jpg", augment)):
        if (folder / name).exists():
            continue
        sheet = label_mosaic(data, _DRAWN, augment=changed)
        side = min(_WIDEST, sheet.shape[1])
        sheet = cv2.resize(sheet, (side, sheet.shape[0] * side // sheet.shape[1]), interpolation=cv2.INTER_AREA)
        written, encoded = cv2.imencode(".jpg", cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR))
        if written:
            write_atomically(folder / name, encoded.tobytes())


def best_row(folder: Path, ended: Counters) -> dict[str, Any]:
    """The best epoch's line of the curves, and how the stage ended."""
    row = next((row for row in read_curves(folder) if row["epoch"] == ended.best_epoch), None)
    if row is None:
        raise DataError(folder / CURVES, f"found no line of epoch {ended.best_epoch}, expected one: it is the best")
    try:
        return check_stage({**row, "epochs": ended.epoch, "total_seconds": round(ended.seconds, 3)})
    except ValueError as error:
        raise DataError(folder / CURVES, str(error), record=f"epoch {ended.best_epoch}") from None
