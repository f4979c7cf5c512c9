"""A dataset made in Python: what a user with frames of their own hands to `check` and `convert`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from surgeval.errors import BadInput
from surgeval.files import OnProblem, raise_errors
from surgeval.records import Frame, Question, Video
from surgeval.vocab import LabelSpace

__all__ = ["MemoryDataset"]


class MemoryDataset:
    """Frames and questions held in memory.

    >>> from surgeval.vocab import load_labels
    >>> frame = Frame("V1", "000001", 1, None, None, 640, 480)
    >>> [video.name for video in MemoryDataset(load_labels("cholec80"), [frame]).videos()]
    ['V1']
    """

    format: ClassVar[str] = "memory"

    def __init__(
        self,
        space: LabelSpace,
        frames: Iterable[Frame],
        videos: Iterable[Video] = (),
        questions: Iterable[Question] = (),
        media_root: str | Path | None = None,
    ) -> None:
        media_root = None if media_root is None else Path(media_root)
        self.root, self.space, self.media_root = Path("memory"), space, media_root
        self._questions = tuple(questions)
        self._frames: dict[str, list[Frame]] = {}
        for frame in frames:
            self._frames.setdefault(frame.video, []).append(frame)
        known = {video.name: video for video in videos}
        self._videos = known | {name: Video(name, frames=len(self._frames[name]))
                                for name in self._frames if name not in known}  # fmt: skip

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """As given, then those that only frames name."""
        return tuple(self._videos.values())

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The frames of one video as given."""
        if video not in self._videos:
            raise BadInput(f"found no video {video!r}, expected one of {', '.join(self._videos)}")
        return iter(self._frames.get(video, ()))

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """The questions as given."""
        return iter(self._questions)
