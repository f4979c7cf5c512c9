"""Images without labels: one file, or a folder of them; each folder with images counts as one video."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.layout import IMAGES, files_of, folders
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, raise_errors
from surgeval.records import Frame, ImageRef, Question, Video
from surgeval.vocab import LabelSpace

__all__ = ["ImageFolder"]


class ImageFolder:
    """Frames are the image files in natural order, named by their stems; nobody knows their times."""

    format: ClassVar[str] = "images"

    def __init__(self, path: Path, labels: LabelSpace | None = None) -> None:
        self.root = path
        self.space = labels or LabelSpace("none", ("instrument",))
        own = path.absolute().parent.name if path.is_file() else path.absolute().name
        groups = {own or "images": [path] if path.is_file() else files_of(path, IMAGES)}
        for folder in folders(path) if path.is_dir() else ():
            groups[f"{own}.{folder.name}" if folder.name in groups else folder.name] = files_of(folder, IMAGES)
        self._files = {name: files for name, files in groups.items() if files}
        if not self._files:
            raise BadInput(f"{path}: found no image, expected {', '.join(IMAGES)} in it or in the folders below it")

    def files(self) -> dict[str, tuple[Path, ...]]:
        """The image files of every video in their order, unopened."""
        return {name: tuple(files) for name, files in self._files.items()}

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per folder that holds images."""
        return tuple(Video(name, frames=len(files)) for name, files in self._files.items())

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The images of one folder; `labelled` is false."""
        if video not in self._files:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._files)}")
        taken: set[str] = set()
        for number, file in enumerate(self._files[video]):
            size = image_size(file)
            if size is None:
                Location(str(file), on_problem).error(
                    "image-broken", "found a file that is no image, expected a readable image"
                )
                continue
            name = file.name if file.stem in taken else file.stem  # a.jpg beside a.png
            taken.add(name)
            yield Frame(video, name, number, None, ImageRef(file), size[0], size[1], labelled=False)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())
