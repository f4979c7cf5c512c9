"""What commands do with what they are given: open the dataset, refuse a folder that holds something else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.vocab import LabelSpace

_HEAD = 1 << 16  # bytes of a page in which its generator is named


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

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     claim_folder(Path(folder), "run.json")  # empty: fine
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to")
    if (out / "run.json").exists() and mark not in ("run.json", "scores.json"):
        raise BadInput(f"{out}: found a run there, expected a folder of its own for this page")
    if out.is_dir() and any(out.iterdir()) and not _is_ours(out / mark):
        raise BadInput(f"{out}: found other files there, expected a new or empty folder or one with our own {mark}")


def _is_ours(path: Path) -> bool:
    """Whether the file is there and, where it is a page, one of ours: people have an index.html of their own."""
    if path.is_symlink() or not path.is_file():
        return False
    if path.suffix != ".html":
        return True
    with path.open("rb") as file:
        return b'<meta name="generator" content="surgeval ' in file.read(_HEAD)
