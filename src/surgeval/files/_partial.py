"""Folders, and files that others write by name, whole or absent: a hidden name beside the target, fsync, rename.

The hidden name says which process writes there (`.out.4711.partial`), so what a killed process left is known as such:
the next one that writes the same target takes it away.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from surgeval.files._atomic import sync_folder

__all__ = ["atomic_folder", "atomic_path"]

_SYNCS = 32  # at once: a file system stores many files in one go, ten times as fast as one after the other


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """A path to write a file at, for writers that take a name; the suffix stays, because it tells them what to write.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "boxes.csv") as partial:
    ...         _ = partial.write_text("video,frame")
    ...         early = (Path(folder) / "boxes.csv").exists()
    ...     early, partial.suffix, [path.name for path in Path(folder).iterdir()]
    (False, '.csv', ['boxes.csv'])
    """
    target = Path(target)
    partial = _beside(target, target.stem, target.suffix)
    try:
        yield partial
        _sync_file(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(target.parent)


@contextmanager
def atomic_folder(target: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill that gets its name only when everything in it is on the disk; an error leaves no trace.

    What the target held before is taken away with `replace`, at the last moment; else it must be absent or empty.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_folder(Path(folder) / "frames") as partial:
    ...         _ = (partial / "000001.txt").write_text("a frame")
    ...         early = (Path(folder) / "frames").exists()
    ...     early, [path.name for path in Path(folder).rglob("*")]
    (False, ['frames', '000001.txt'])
    """
    target = Path(target)
    partial = _beside(target, target.name)
    partial.mkdir(parents=True)
    try:
        yield partial
        _sync_tree(partial)
        if replace and target.exists():
            shutil.rmtree(target)
        elif target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    sync_folder(target.parent)


def _beside(target: Path, name: str, suffix: str = "") -> Path:
    """A hidden name beside the target that nothing has; what dead processes and this one left there is removed."""
    pattern = re.compile(rf"\.{re.escape(name)}\.([0-9]{{1,9}})\.partial{re.escape(suffix)}")
    for path in target.parent.iterdir() if target.parent.is_dir() else ():
        match = pattern.fullmatch(path.name)
        if match and (int(match[1]) == os.getpid() or not _alive(int(match[1]))):
            _remove(path)
    return target.with_name(f".{name}.{os.getpid()}.partial{suffix}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True


def _sync_tree(folder: Path) -> None:
    files: list[Path] = []
    folders = [folder]
    for path in folder.rglob("*"):
        if not path.is_symlink():
            (folders if path.is_dir() else files).append(path)
    with ThreadPoolExecutor(_SYNCS) as pool:
        for _ in pool.map(_sync_file, files):
            pass
    for path in folders:
        sync_folder(path)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # there only writers may ask for it
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
