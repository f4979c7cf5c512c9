"""What readers of flat layouts share (VOC, YOLO): a label file beside each image, the video in the file's name."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from surgeval.datasets.io.layout import Flat
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, Problem, raise_errors
from surgeval.records import Video

__all__ = ["FlatReader"]


class FlatReader:
    """The videos of a flat layout. Names are listed once; each file is read when its frame is reached."""

    label_files: ClassVar[str]  # what the layout's label files are called in messages
    images: ClassVar[str]  # what is expected of the images

    def __init__(self, root: Path, flat: Flat) -> None:
        self.root = root
        self._early: list[Problem] = []  # found while opening, told when the videos are listed
        self._flat = flat

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per prefix of the file names."""
        for problem in self._early:
            on_problem(problem)
        here = Location(str(self.root), on_problem)
        if not self._flat.folders:
            here.error("file-missing", f"found no {self._flat.suffix} file, expected {self.label_files}")
        elif not self._flat.images:
            here.warn("images-absent", f"found no image, expected {self.images}")
        self._flat.tell(on_problem)
        return tuple(Video(name, split=self._flat.split(name), frames=len(entries))
                     for name, entries in self._flat.videos.items())  # fmt: skip

    def _entries(self, video: str) -> list[tuple[str, int, bool]]:
        """File stem, folder number and whether there is a label file, of each frame of a video."""
        if video not in self._flat.videos:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._flat.videos)}")
        return self._flat.videos[video]
