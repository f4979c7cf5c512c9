"""The known formats, and `open_dataset`, which finds out which one a path holds.

A package adds a format by an entry point of the group `surgeval.datasets` that names a `Format`.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from surgeval.datasets._base import Dataset, Format
from surgeval.datasets._cholect50 import CholecT50Format
from surgeval.datasets._coco import CocoFormat
from surgeval.datasets._files import NOT_REGULAR
from surgeval.datasets._focus import FocusFormat
from surgeval.datasets._intent import IntentFormat
from surgeval.datasets._labelme import LabelmeFormat
from surgeval.datasets._mp4 import Mp4Writer
from surgeval.datasets._phantom import PhantomFormat
from surgeval.datasets._video import VideoDataset, VideoFormat
from surgeval.datasets._voc import VocFormat
from surgeval.datasets._writing import Writer
from surgeval.datasets._yolo import YoloFormat
from surgeval.errors import BadInput
from surgeval.vocab import LabelSpace, load

__all__ = ["formats", "open_dataset", "open_video", "writers"]

GROUP = "surgeval.datasets"


@cache
def _builtin() -> dict[str, Format]:
    known: tuple[Format, ...] = (PhantomFormat(), CholecT50Format(), VocFormat(), YoloFormat(), LabelmeFormat(),
                                 CocoFormat(), FocusFormat(), IntentFormat(), VideoFormat())  # fmt: skip
    return {format.name: format for format in known}


def formats() -> dict[str, Format]:
    """The formats that can be read, by name: the built-in ones, then those of other packages.

    >>> list(formats())[:3]
    ['phantom', 'cholect50', 'voc']
    """
    result = dict(_builtin())
    for entry in entry_points(group=GROUP):
        try:
            found = entry.load()
            result[entry.name] = found() if isinstance(found, type) else found
        except (ImportError, AttributeError, TypeError) as error:
            raise BadInput(
                f"entry point {GROUP}.{entry.name}: found {entry.value}, which fails with: {error}"
            ) from error
    return result


def writers() -> dict[str, Writer]:
    """The formats that can be written, by name.

    >>> list(writers())
    ['cholect50', 'voc', 'yolo5', 'yolo8', 'labelme', 'coco', 'focus', 'intent', 'mp4'...]
    """
    builtin: tuple[Writer, ...] = (CholecT50Format(), VocFormat(), YoloFormat(5, "yolo5"), YoloFormat(8, "yolo8"),
                                   LabelmeFormat(), CocoFormat(), FocusFormat(), IntentFormat(),
                                   Mp4Writer())  # fmt: skip
    result = {writer.name: writer for writer in builtin}
    others = {name: format for name, format in formats().items() if name not in _builtin()}
    return result | {name: format for name, format in others.items() if isinstance(format, Writer)}


def open_dataset(path: str | Path, format: str | None = None, labels: LabelSpace | str | Path | None = None) -> Dataset:
    """Open a dataset folder or file; the format is found out unless it is given.

    `labels` (a label space, a packaged name or a JSON file) replaces the label space that the files name.
    """
    target = Path(path)
    known = formats()
    if format is not None and format not in known:
        raise BadInput(f"format {format!r}: expected one of {', '.join(known)}")
    if "\0" in str(path) or not os.path.exists(target):  # noqa: PTH110 (`Path.exists` raises for overlong names)
        raise BadInput(f"{path}: found no such file or folder, expected a dataset")
    if not target.is_dir() and not target.is_file():
        raise BadInput(f"{path}: found {NOT_REGULAR}, expected a file or a folder")
    space = load(labels) if isinstance(labels, str | Path) else labels
    if format is not None:
        return known[format].open(target, space)
    fitting = [name for name, one in known.items() if one.detect(target)]
    if "video" in fitting and len(fitting) > 1:
        fitting.remove("video")  # a folder of labels may well hold the films too
    if len(fitting) == 1:
        return known[fitting[0]].open(target, space)
    if fitting:
        raise BadInput(f"{path}: found files of {' and '.join(fitting)}, expected one format: "
                       f"name it, for example --format {fitting[0]}")  # fmt: skip
    if target.is_file():
        raise BadInput(f"{path}: found a file of unknown kind, expected a dataset folder, COCO or FOCUS JSON, "
                       "items.jsonl, published rows (Parquet) or a video")  # fmt: skip
    looked = "; ".join(one.title for one in known.values())
    raise BadInput(f"{path}: found no dataset of a known format, looked for: {looked}")


def open_video(path: str | Path, every: float | None = None) -> VideoDataset:
    """A video file or a folder of them, one frame every `every` seconds (all frames by default)."""
    target = Path(path)
    if not os.path.exists(target):  # noqa: PTH110
        raise BadInput(f"{path}: found no such file or folder, expected a video")
    if not target.is_dir() and not target.is_file():
        raise BadInput(f"{path}: found {NOT_REGULAR}, expected a file or a folder")
    return VideoDataset(target, every)
