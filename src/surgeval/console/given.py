"""What commands do with what they are given: open the dataset, refuse a folder that holds something else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.errors import BadInput
from surgeval.files import LOCK, write_atomically

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.vocab import LabelSpace

_HEAD = 1 << 16  # bytes of a page in which its generator is named
_FIRST = ("run.json",)  # marks that are written before anything else
# What our own file begins with, of names that other tools use too.
_SIGNS = {
    "scores.json": (b'"surgeval"', b'"protocol"'),
    "set.json": (b'"made_by": "surgeval',),
    "problems.csv": (b"level,kind,file",),
}
_UNFINISHED = ".unfinished"
_claimed: dict[Path, list[Path]] = {}  # folders of this command, and those that had to be made for each


def open_named(
    path: str | Path,
    format: str | None,
    labels: str | None,
    mapping: str | Path | None = None,
    boxes: str | Path | None = None,
) -> Dataset:
    """Open a dataset as the options say.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.jsonl").write_text("")
    ...     open_named(Path(folder), "intent", None).format
    'intent'
    >>> open_named(Path("nowhere"), None, None)
    Traceback (most recent call last):
    surgeval.errors.BadInput: nowhere: found no such file or folder, expected a dataset
    """
    from surgeval import vocab
    from surgeval.datasets import open_dataset

    space: LabelSpace | None = vocab.load_labels(labels) if labels else None
    return open_dataset(path, format=format, labels=space, mapping=mapping, boxes=boxes)


def claim_folder(out: str | Path, mark: str) -> None:
    """Refuse to write into a folder that holds something else than our own earlier output, known by its `mark`.

    A mark is often the last thing that is written. Until then a hidden file says whose folder it is, so that after
    Ctrl-C or a kill the same command goes on; `release_folders` takes it back.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     claim_folder(Path(folder), "report.html")  # empty: fine
    ...     (Path(folder) / "tables").mkdir()
    ...     claim_folder(Path(folder), "report.html")  # not finished, and ours
    ...     release_folders()
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to")
    if (out / "run.json").exists() and mark not in ("run.json", "scores.json"):
        raise BadInput(f"{out}: found a run there, expected a folder of its own for this page")
    ours, unfinished = _is_ours(out / mark), _is_unfinished(out, mark)
    if out.is_dir() and any(path.name != LOCK for path in out.iterdir()) and not (ours or unfinished):
        raise BadInput(f"{out}: holds other files. Name a new or empty folder, or one with a {mark} of surgeval.")
    if mark not in _FIRST and (unfinished or not ours):  # both: killed when all but this was done
        made = [folder for folder in (out, *out.parents) if not folder.exists()]
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / _UNFINISHED, mark.encode())
        _claimed[out] = made


def claim_file(out: str | Path, *inputs: str | Path, option: str = "--out", overwrite: bool = False) -> None:
    """Refuse to replace an existing file without `overwrite`, and always one of the `inputs` or in their folders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.json").write_text("{}")
    ...     claim_file(Path(folder, "found.json"), folder)  # new: fine
    ...     try:
    ...         claim_file(Path(folder, "labels.json"), folder, overwrite=True)
    ...     except BadInput as error:
    ...         print(str(error).rpartition(": ")[2])
    is an input file, and those are never replaced. Name another file
    """
    out = Path(out)
    if not os.path.lexists(out):
        return
    place = out.resolve()
    for source in map(Path, inputs):
        if source.exists() and (
            place == source.resolve() or (source.is_dir() and place.is_relative_to(source.resolve()))
        ):
            raise BadInput(f"{option} {out}: is an input file, and those are never replaced. Name another file")
    if not overwrite:
        raise BadInput(f"{option} {out}: exists already. Name another file, or replace it with --overwrite")


def release_folders() -> None:
    """At the end of a command: take back the hidden files of folders that got their mark, or nothing else.

    >>> release_folders()
    """
    for out, made in _claimed.items():
        unfinished = out / _UNFINISHED
        if unfinished.is_file():
            mark = unfinished.read_text(encoding="utf-8")
            if _is_ours(out / mark) or [path.name for path in out.iterdir()] == [_UNFINISHED]:
                unfinished.unlink()
        for folder in made:
            with suppress(OSError):  # there is something in it
                folder.rmdir()
    _claimed.clear()


def _is_unfinished(out: Path, mark: str) -> bool:
    unfinished = out / _UNFINISHED
    if unfinished.is_symlink() or not unfinished.is_file():
        return False
    with unfinished.open("rb") as file:
        return file.read(_HEAD) == mark.encode()


def _is_ours(path: Path) -> bool:
    """Whether the file exists and is ours: other tools also write an index.html or a scores.json."""
    if path.is_symlink() or not path.is_file():
        return False
    page = (b'<meta name="generator" content="surgeval ',)
    signs = page if path.suffix == ".html" else _SIGNS.get(path.name)
    if signs is None:
        return True
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return any(sign in head for sign in signs)
