"""What asking needs of a question, so that every protocol's questions can be asked: its id, its video, its window."""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["Asked", "Question", "Timed"]


class Asked(Protocol):
    """A question that can be told from others and belongs to a video (the cluster of its answer)."""

    @property
    def id(self) -> str:
        """Unique among the questions of a run."""

    @property
    def video(self) -> str:
        """The video it is about."""


class Timed(Asked, Protocol):
    """A question about a moment (`start` equals `end`) or a window of its video, in seconds."""

    @property
    def start(self) -> float:
        """Where the window begins."""

    @property
    def end(self) -> float:
        """Where it ends."""


Question = TypeVar("Question", bound=Asked, contravariant=True)
