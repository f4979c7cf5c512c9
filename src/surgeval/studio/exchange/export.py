"""A project in the format of another tool: what that format cannot hold is said first, then a folder is written.

Exports lie in the project's folder under `exports`, each under a name of its own; none is ever written over.
"""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from surgeval.datasets import OnProblem, convert, export_losses, raise_errors
from surgeval.errors import BadInput
from surgeval.files import path_inside, safe_name
from surgeval.records import Frame
from surgeval.studio.exchange.dataset import Selection, StudioDataset
from surgeval.studio.media import EXPORTS
from surgeval.studio.schema import Counts
from surgeval.studio.store import STORE_FILE, Database

__all__ = ["EXPORT_FORMATS", "Export", "export_project", "preview_export", "zipped"]

EXPORT_FORMATS = ("labelme", "coco", "yolo5", "yolo8", "cvat", "cholect50")
_WRITING: set[Path] = set()  # exports that are being written: nobody else may write there
_TURN = threading.Lock()
_PACKED = frozenset({".jpg", ".jpeg", ".png", ".webp"})  # what is compressed already


@dataclass(frozen=True)
class Export:
    """What an export writes or wrote."""

    format: str
    frames: int
    labelled: int
    instances: int
    losses: tuple[str, ...]  # what is not in it
    refined: tuple[Counts, ...]  # how often labels occur before and after the rules
    folder: Path | None = None


class _Source(StudioDataset):
    """What is exported, counted. Its root is the file that is read: the export may lie in the folder around it."""

    def __init__(self, folder: Path, database: Database, selection: Selection) -> None:
        super().__init__(folder, selection=selection, database=database)
        self.root = folder / STORE_FILE
        self.frame_count = self.labelled_count = self.instance_count = 0

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        for frame in super().frames(video, on_problem):
            self.frame_count += 1
            self.labelled_count += frame.labelled
            self.instance_count += len(frame.instances)
            yield frame

    def told(self, format: str, losses: tuple[str, ...], folder: Path | None = None) -> Export:
        plain = tuple(loss.removeprefix(f"{format}: ") for loss in losses)
        return Export(format, self.frame_count, self.labelled_count, self.instance_count, plain, self.refined(), folder)


def preview_export(
    folder: str | Path, database: Database, format: str, selection: Selection | None = None, *, images: bool = True
) -> Export:
    """What an export would hold, and what it would not; nothing is written.

    >>> import tempfile
    >>> from surgeval.studio.store import Request, apply
    >>> cut = {"id": "a", "video": "V1", "frame": 0, "group": "tools", "name": "scissors", "box": [5, 6, 20, 10]}
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
    ...     _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["1"]}))
    ...     _ = apply(database, Request("i", "amy", "instances.add", {"instances": [cut]}))
    ...     told = preview_export(Path(folder), database, "coco")
    >>> told.instances, told.losses[-1]
    (1, '1 instances without a whole triplet were left out')
    """
    folder = Path(folder)
    source = _source(folder, database, format, selection)
    return source.told(format, export_losses(source, format, images=images))


def export_project(
    folder: str | Path,
    database: Database,
    name: str,
    format: str,
    selection: Selection | None = None,
    *,
    images: bool = True,
    advance: Callable[[int], None] = lambda _count: None,
) -> Export:
    """Write `exports/NAME` in the project's folder; a name that is taken is refused.

    >>> import tempfile
    >>> from surgeval.studio.store import Request, apply
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
    ...     export = export_project(Path(folder), database, "first", "coco", images=False)
    ...     sorted(path.name for path in export.folder.iterdir())
    ['annotations.json', 'labels.json']
    """
    folder = Path(folder)
    source = _source(folder, database, format, selection)
    if not name or safe_name(name) != name:
        raise BadInput(f"name: found {name[:80]!r}, expected letters, digits and _ . - that can name a folder")
    target = path_inside(folder, EXPORTS, name)
    with _claimed(target, name):
        report = convert(source, target, format, images=images, progress=lambda _video, _frame: advance(1))
    return source.told(format, report.losses, target)


@contextmanager
def _claimed(target: Path, name: str) -> Iterator[None]:
    """A name for one export alone, also while it is written."""
    with _TURN:
        if target.exists() or target in _WRITING:
            raise BadInput(f"{EXPORTS}/{name}: found an export of that name, expected a new one")
        _WRITING.add(target)
    try:
        yield
    finally:
        with _TURN:
            _WRITING.discard(target)


def _source(folder: Path, database: Database, format: str, selection: Selection | None) -> _Source:
    if format not in EXPORT_FORMATS:
        raise BadInput(f"format: found {format[:40]!r}, expected one of {', '.join(EXPORT_FORMATS)}")
    return _Source(folder, database, selection or Selection())


def zipped(folder: str | Path, stream: IO[bytes]) -> None:
    """A folder as a ZIP file.

    >>> import io, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.json").write_text("{}")
    ...     zipped(Path(folder), stream := io.BytesIO())
    >>> zipfile.ZipFile(stream).namelist()
    ['labels.json']
    """
    folder = Path(folder)
    with zipfile.ZipFile(stream, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                kind = zipfile.ZIP_STORED if path.suffix.lower() in _PACKED else zipfile.ZIP_DEFLATED
                archive.write(path, path.relative_to(folder).as_posix(), kind)
