"""What every dataset offers, whatever its files look like.

A reader has one parsing path for using and for checking: whatever is wrong is handed to `on_problem`. The default
raises at the first error and lets warnings pass; `surgeval data check` collects everything and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from surgeval.errors import DataError, bounded, locate
from surgeval.records import Frame, Question, Video
from surgeval.vocab import LabelSpace

Level: TypeAlias = Literal["error", "warning"]
Holds: TypeAlias = Literal["labels", "questions", "media"]
_LONGEST = 900  # characters of each part of a problem


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a dataset, with the place where it is.

    `kind` is a short slug (`image-missing`, `json-broken`, `box-not-finite`, `box-outside`, …) by which problems are
    counted and tolerated. An *error* makes the record unusable (it is skipped); a *warning* is odd but usable.
    """

    kind: str
    path: str
    sentence: str
    record: str | None = None
    field: str | None = None
    level: Level = "error"

    def __post_init__(self) -> None:
        for name in ("sentence", "record", "field"):  # names in a file can be a megabyte long
            text = getattr(self, name)
            if text is not None and len(text) > _LONGEST:
                object.__setattr__(self, name, bounded(text, _LONGEST))

    def __str__(self) -> str:
        return locate(self.path, self.record, self.field, self.sentence)


OnProblem: TypeAlias = Callable[[Problem], None]


def raise_errors(problem: Problem) -> None:
    """The default: an error stops the reading, a warning does not.

    >>> raise_errors(Problem("image-missing", "VID01/0.jpg", "found no such file, expected an image", level="warning"))
    >>> raise_errors(Problem("image-missing", "VID01/0.jpg", "found no such file, expected an image"))
    Traceback (most recent call last):
    surgeval.errors.DataError: VID01/0.jpg: found no such file, expected an image
    """
    if problem.level == "error":
        raise DataError(problem.path, problem.sentence, record=problem.record, field=problem.field, code=problem.kind)


def keep_warnings(kept: list[Problem]) -> OnProblem:
    """As `raise_errors`, and appends each warning to a list.

    >>> kept = []
    >>> keep_warnings(kept)(Problem("image-missing", "VID01/0.jpg", "no such file", level="warning"))
    >>> len(kept)
    1
    """

    def on_problem(problem: Problem) -> None:
        raise_errors(problem)
        kept.append(problem)

    return on_problem


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
