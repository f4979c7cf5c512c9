"""What identifies a dataset's content: a run recorded with one fingerprint is not resumed on other data."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from surgeval.datasets.base import Dataset
from surgeval.datasets.io.layout import is_printable, names
from surgeval.errors import DataError
from surgeval.files import file_digest

__all__ = ["dataset_fingerprint"]

_LABELS = (".json", ".jsonl", ".txt", ".xml", ".yaml", ".yml", ".csv", ".parquet", ".toml")


def dataset_fingerprint(dataset: Dataset) -> str:
    """A hash of the dataset's files: labels by their content, images and videos by name and size.

    It does not depend on where the folder lies or when its files were written.

    >>> import tempfile
    >>> from surgeval.datasets import open_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     label = Path(folder) / "labels" / "VID01_000012.txt"
    ...     label.parent.mkdir()
    ...     _ = label.write_text("3 0.5 0.5 0.2 0.1")
    ...     before = dataset_fingerprint(open_dataset(folder, labels="cholec80"))
    ...     _ = label.write_text("2 0.5 0.5 0.2 0.1")
    ...     before == dataset_fingerprint(open_dataset(folder, labels="cholec80"))
    False
    """
    digest = hashlib.sha256(f"{dataset.format}\n{dataset.space!r}\n".encode())
    if content := getattr(dataset, "content", None):  # a database, whose file tells nothing
        digest.update(content().encode())
        return digest.hexdigest()
    # `beside`: what a dataset takes from elsewhere, boxes of another folder or the mapping of a table.
    for root in (dataset.root, *getattr(dataset, "beside", ())):
        try:
            for path in _files(root) if root.is_dir() else [root] if root.is_file() else []:
                relative = path.relative_to(root).as_posix() if path != root else path.name
                digest.update(f"{relative}\0{path.stat().st_size}\n".encode())
                if path.suffix.lower() in _LABELS:
                    digest.update(bytes.fromhex(file_digest(path)))
        except OSError as error:
            raise DataError(
                error.filename or root, f"found {error.strerror or 'an error'}, expected a readable file"
            ) from error
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    result = []
    for inside, inner, _ in os.walk(folder):
        # A run written into the dataset's folder is no part of the dataset.
        inner[:] = sorted(name for name in inner if not name.startswith(".") and is_printable(name)
                          and not (Path(inside) / name / "run.json").exists())  # fmt: skip
        result += [path for name in names(Path(inside)) if (path := Path(inside) / name).is_file()]
    return result
