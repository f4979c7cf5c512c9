"""The studio's projects among the dataset formats, found by the entry point `surgeval.datasets`.

Only what it takes to recognise a project is loaded with this module; the database comes with `open`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.vocab import LabelSpace

if TYPE_CHECKING:
    from surgeval.studio.exchange.dataset import StudioDataset

__all__ = ["StudioFormat"]

_FILE = "studio.sqlite"
_MAGIC = b"SQLite format 3\0"


class StudioFormat:
    """A folder in which the studio keeps a project."""

    name = "studio"
    title = "a project of the studio: a folder with studio.sqlite"
    marked = True  # the file says what the folder is, whatever else lies in it

    def detect(self, path: Path) -> bool:
        """A folder with the project's file.

        >>> StudioFormat().detect(Path("nowhere"))
        False
        """
        try:
            if not (path / _FILE).is_file():
                return False
            with (path / _FILE).open("rb") as stream:
                return stream.read(len(_MAGIC)) == _MAGIC
        except OSError:
            return False

    def open(self, path: Path, labels: LabelSpace | None = None) -> StudioDataset:
        """What was accepted in the project, only read; the studio may have it open."""
        from surgeval.studio.exchange.dataset import StudioDataset

        return StudioDataset(path, labels)
