"""What a reader says of files that it cannot open, and of those that it would not even see.

`sweep` names what a reader's listing leaves out: folders that cannot be listed, and names that are no text.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from surgeval.errors import BadInput
from surgeval.files import NOT_REGULAR, Location, NotRegular, OnProblem, name_beside, open_regular

_LABELS = (".json", ".jsonl", ".txt", ".xml", ".yaml", ".yml", ".csv", ".parquet", ".names")
_READ = (*_LABELS, ".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp",
         ".mp4", ".m4v", ".avi", ".mkv", ".mov", ".webm", ".mpg")  # fmt: skip
_DEPTH = 4  # levels of folders below the dataset's own: no layout goes deeper


def tell_unreadable(place: Location, error: OSError) -> None:
    """Tell why a file could not be opened or read."""
    if isinstance(error, NotRegular):
        place.error(
            error.code, f"found {error}, expected {('a file' if error.code == 'file-missing' else 'a regular file')}"
        )
    elif isinstance(error, FileNotFoundError):
        place.error("file-missing", "found no such file, expected a file")
    else:
        place.error("file-unreadable", f"found {error.strerror or type(error).__name__}, expected a readable file")


def bounded_size(stream: BufferedReader, place: Location, limit: int) -> int | None:
    """The bytes of an open file, or None after telling that they are too many."""
    size = os.fstat(stream.fileno()).st_size
    if size <= limit:
        return size
    place.error("file-too-large", f"found {size} bytes, expected at most {limit}")
    return None


def ends(path: Path, first: int, last: int = 0) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file, for telling its kind; nothing where it cannot be read."""
    try:
        with open_regular(path) as stream:
            head = stream.read(first)
            if last:
                stream.seek(max(0, os.fstat(stream.fileno()).st_size - last))
            return head, stream.read(last)
    except OSError:
        return b"", b""


def existing(path: str | Path, expected: str) -> Path:
    """The path of a file or a folder that a caller named.

    >>> existing("no such folder", "a dataset")
    Traceback (most recent call last):
    surgeval.errors.BadInput: no such folder: found no such file or folder, expected a dataset
    """
    target = Path(path)
    if "\0" in str(path) or not os.path.exists(target):  # noqa: PTH110 (`Path.exists` raises for overlong names)
        raise BadInput(f"{path}: found no such file or folder, expected {expected}{name_beside(target)}")
    if not target.is_dir() and not target.is_file():
        raise BadInput(f"{path}: found {NOT_REGULAR}, expected a file or a folder")
    return target


def is_there(path: Path) -> bool:
    """Whether a path leads to something that is no folder; opening it tells whether it is a file."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def sweep(root: Path, on_problem: OnProblem) -> None:
    """Report what a dataset's folder holds that has no proper name, cannot be read or is no file."""
    level, met = [root] if root.is_dir() else [], set[tuple[int, int]]()
    for _ in range(_DEPTH + 1):
        level = [inner for folder in level for inner in _swept(folder, on_problem, met)]


def _swept(folder: Path, on_problem: OnProblem, met: set[tuple[int, int]]) -> list[Path]:
    """The folders in a folder, each met once however many links lead there."""
    place = Location(str(folder), on_problem)
    inner: list[Path] = []
    try:
        status = folder.stat()
        if (status.st_dev, status.st_ino) in met:
            return []
        met.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        place.error(
            "file-unreadable", f"found {error.strerror or type(error).__name__}, expected a folder that can be listed"
        )
        return []
    for entry in listed:
        if entry.name.startswith("."):
            continue
        if any("\ud800" <= character <= "\udfff" for character in entry.name):
            place.error("file-unreadable", f"found the name {os.fsencode(entry.name)!r}, expected names in UTF-8")
            continue
        suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 (a name, not a path)
        here = Location(entry.path, on_problem)
        if os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir():  # noqa: PTH112 (does not raise)
            inner.append(folder / entry.name)
        elif os.path.isfile(entry.path) if entry.is_symlink() else entry.is_file():  # noqa: PTH113
            if suffix in _LABELS and not os.access(entry.path, os.R_OK):
                here.error("file-unreadable", "found a file that may not be read, expected a readable file")
        elif os.path.exists(entry.path):  # noqa: PTH110
            level = here.error if suffix in _READ else here.warn
            level("file-not-regular", f"found {NOT_REGULAR}, expected a regular file")
        elif suffix not in _READ:  # a label or image that is gone is told by its reader
            here.error("file-unreadable", "found a link that leads nowhere, expected a folder or a file")
    return inner
