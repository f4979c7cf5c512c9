"""Which frame of a project a frame of another dataset is: by video and name, and where tools spell them otherwise.

YOLO's flat names turn `_` into `-`, CholecT50 makes numbers of six digits, and where a folder of images is one video
here, a reader there may take what stands before the underscore as the video. Each of these is tried in turn, and only
where it leads to exactly one frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from surgeval.datasets.io import number_of
from surgeval.records import Frame
from surgeval.studio.schema import folded
from surgeval.studio.store import VideoState, reading

__all__ = ["Matcher", "ProjectFrame"]

_NONE = -1  # a frame that does not exist: also where two would fit


@dataclass(frozen=True)
class ProjectFrame:
    """A frame of the project."""

    video: VideoState
    frame: int


class Matcher:
    """Finds the frames of a project; the names of one video are held at a time, those of all only where needed."""

    def __init__(self, connection: Connection, sources: Iterable[str]) -> None:
        self._connection = connection
        self._videos = reading.videos(connection)
        names = list(sources)
        self._of = {name: video for name in names if (video := self._video(name)) is not None}
        if len(names) == len(self._videos) == 1 and not self._of:
            self._of[names[0]] = self._videos[0]  # one video here and there: the name does not matter
        self._held: tuple[str, _Names] | None = None
        self._every: dict[str, ProjectFrame | None] | None = None

    def find(self, frame: Frame) -> ProjectFrame | None:
        """The project's frame, or None."""
        video = self._of.get(frame.video)
        if video is not None:
            number = self._names(video.id).find(frame)
            return None if number == _NONE else ProjectFrame(video, number)
        return self._anywhere().get(f"{frame.video}_{frame.name}")

    def _video(self, name: str) -> VideoState | None:
        exact = [video for video in self._videos if name in (video.name, video.id)]
        alike = exact or [video for video in self._videos if folded(name) == folded(video.name)]
        return alike[0] if len(alike) == 1 else None

    def _names(self, video: str) -> _Names:
        if self._held is None or self._held[0] != video:
            names = [(frame.name, frame.frame) for frame in reading.frames(self._connection, video)]
            self._held = (video, _Names(names))
        return self._held[1]

    def _anywhere(self) -> dict[str, ProjectFrame | None]:
        if self._every is None:
            self._every = {}
            for video in self._videos:
                for frame in reading.frames(self._connection, video.id):
                    self._every[frame.name] = None if frame.name in self._every else ProjectFrame(video, frame.frame)
        return self._every


class _Names:
    """The frames of one video by their names, by their names without `_` and `-`, and by their numbers."""

    def __init__(self, named: list[tuple[str, int]]) -> None:
        self._exact = dict(named)
        self._folded: dict[str, int] = {}
        self._numbers: dict[int, int] = {}
        for name, frame in named:
            for table, key in ((self._folded, folded(name)), (self._numbers, number_of(name, frame))):
                table[key] = _NONE if key in table else frame  # type: ignore[index]

    def find(self, frame: Frame) -> int:
        """The number of the frame, −1 where there is none."""
        whole = f"{frame.video}_{frame.name}"
        for table, key in ((self._exact, frame.name), (self._exact, whole), (self._folded, folded(frame.name)),
                           (self._folded, folded(whole))):  # fmt: skip
            if (number := table.get(key, _NONE)) != _NONE:
                return number
        return self._numbers.get(frame.index, _NONE) if frame.name.isdigit() else _NONE
