"""What every dataset offers, whatever its files look like.

A reader has one parsing path for using and for checking: whatever is wrong is handed to `on_problem`. The default
raises at the first error and lets warnings pass; `surgeval data check` collects everything and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from surgeval.files import OnProblem, raise_errors
from surgeval.records import Frame, Question, Video
from surgeval.vocab import LabelSpace

Holds: TypeAlias = Literal["labels", "questions", "media"]


class Dataset(Protocol):
    """Videos with lazily read labelled frames, and questions. `frames` never holds more than it yields.

    A dataset may also have `left_out() -> tuple[str, ...]`, sentences on what it holds and does not give, which
    conversions say with their losses; `content() -> str`, which identifies it where its files do not (a database); and
    `fixations(video) -> tuple[Gaze, ...]`, all of a video's, where frames only hold those of their own moment.
    """

    format: ClassVar[str]
    root: Path
    space: LabelSpace

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """The videos, in a stable order."""
        ...

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The frames of one video in time order; pixels are not read here (`read_image`)."""
        ...

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """The dataset's questions; none for most formats."""
        ...


def left_out(source: Dataset) -> tuple[str, ...]:
    """The sentences with which a dataset tells what it leaves out; () for one that tells nothing."""
    told = getattr(source, "left_out", None)
    return tuple(told()) if told else ()


@runtime_checkable
class Format(Protocol):
    """One source format: how it is recognised, opened and (where it can be) written.

    One with `marked = True` knows its folders by a file of its own, whatever else lies in them: it comes before others.
    `holds` says what its files are: `labels` where it says nothing, `questions`, or `media` without labels.
    """

    name: str
    title: str  # one line for `surgeval data list`

    def detect(self, path: Path) -> bool:
        """Whether this folder or file looks like this format (cheap: looks at names and first bytes)."""
        ...

    def open(self, path: Path, labels: LabelSpace | None = None) -> Dataset:
        """Open it; `labels` replaces the label space that the files themselves name."""
        ...


def held_by(format: Format) -> Holds:
    """What the files of a format are; labels for one that does not say it, or says something else.

    >>> from surgeval.datasets import dataset_formats
    >>> [held_by(dataset_formats()[name]) for name in ("voc", "focus", "video")]
    ['labels', 'questions', 'media']
    """
    stated = getattr(format, "holds", "labels")
    kinds: tuple[Holds, ...] = get_args(Holds)
    return next((kind for kind in kinds if kind == stated), "labels")
