"""Cholec80-BBox ("Cholec80-Boxes"): instrument boxes for videos 41–45 of Cholec80, one frame a second.

`ROI_Labels.csv`, separated by semicolons, has one row per box; images are `Images/Video_41/Video_41_00001.png`. An
image without a row was looked at and shows no instrument tip. The paper does not say what a frame number counts:
numbers in steps of 25 are taken as frames of the film (25 a second), others as seconds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from surgeval.datasets.formats.box_table import BoxTable
from surgeval.datasets.formats.mapping import BoxMap
from surgeval.datasets.io.files import ends
from surgeval.datasets.io.layout import names
from surgeval.errors import BadInput
from surgeval.vocab import LabelSpace

FILE = "ROI_Labels.csv"
COLUMNS = BoxMap(
    video="Surgery_num",
    frame="FrameName",
    label="ToolName",
    box=("BBox_X", "BBox_Y", "BBox_Width", "BBox_Height"),
    table=FILE,
    image=tuple(
        f"{folder}{{frame}}"
        for folder in (
            "Images/Video_{video:02d}/", "Images/Video_{video}/", "Images/video{video:02d}/",
            "Video_{video:02d}/", "video{video:02d}/", "Images/", "",
        )
    ),
    name="video{video:02d}",
    size=(854, 480),  # of all Cholec80 films but a few
    fps=0,
    unlisted="empty",
    labels="cholec80",
    classes={"Bag": "SpecimenBag", "bag": "SpecimenBag"},  # the file's own spelling
)  # fmt: skip


class Cholec80Bbox(BoxTable):
    """A folder of Cholec80-BBox, or its CSV file."""

    format: ClassVar[str] = "cholec80-bbox"


class Cholec80BboxFormat:
    """Cholec80-BBox in the layout of its release."""

    name = "cholec80-bbox"
    title = "Cholec80-BBox: ROI_Labels.csv with one row per box, Images/Video_41/*.png: instruments only"

    def detect(self, path: Path) -> bool:
        """A CSV file with the release's columns, or a folder with one."""
        return _table(path) is not None

    def open(self, path: Path, labels: LabelSpace | None = None) -> Cholec80Bbox:
        """Open the folder or the table."""
        table = _table(path)
        if table is None and path.is_dir() and FILE not in names(path):
            raise BadInput(f"{path}: found no {FILE}, expected the table of Cholec80-BBox")
        return Cholec80Bbox(path, replace(COLUMNS, table=table.name) if table else COLUMNS, labels)


def _table(path: Path) -> Path | None:
    files = [path] if path.is_file() else [path / name for name in names(path)]
    tables = [file for file in files if file.suffix.lower() == ".csv"]
    return next((file for file in tables if _has_columns(file)), None)


def _has_columns(file: Path) -> bool:
    head = ends(file, 1 << 12)[0].split(b"\n")[0]
    return all(column.encode() in head for column in COLUMNS.columns)
