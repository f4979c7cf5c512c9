"""A project as a dataset: what was accepted in it, read as it is now, beside a studio that may have it open.

Nothing is written, and a block of frames is held at a time. Frames are labelled where somebody accepted an instance,
marked the frame in a review, or imported it as labelled: who said the phase has not said that there is no instrument.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Connection

from surgeval.datasets import OnProblem, Problem, raise_errors
from surgeval.datasets.io import number_of
from surgeval.errors import BadInput, DataError
from surgeval.records import Frame, ImageRef, Instance, Question, Video
from surgeval.studio.exchange.given import ATTRIBUTES, LABELME, PROBLEM, given_instance, own_words
from surgeval.studio.exchange.space import PHASE, NumberedSpace, project_classes
from surgeval.studio.media import check_inside, find_films
from surgeval.studio.schema import IMAGE, Counts, LabelledValues, Schema, SchemaRule, refine, refined
from surgeval.studio.store import STORE_FILE, Annotation, Database, FrameState, VideoState, reading
from surgeval.vocab import LabelSpace

__all__ = ["Selection", "StudioDataset", "main_group"]

_BLOCK = 1000  # frames that are held at a time
_TOOLS = "tools"


@dataclass(frozen=True)
class Selection:
    """What of a project is given: also proposals that nobody accepted, problem frames, values merged by rules."""

    proposals: bool = False
    problem_frames: bool = True
    rules: tuple[SchemaRule, ...] = ()


def main_group(schema: Schema) -> str:
    """The group of the instruments: `tools`, or the first of a schema that has no such group.

    >>> from surgeval.studio.schema import builtin_schema
    >>> main_group(builtin_schema("prostatd"))
    'tools'
    """
    return _TOOLS if _TOOLS in schema.groups or not schema.groups else schema.groups[0]


class StudioDataset:
    """A project seen as videos and frames; `database` is one that is open already.

    >>> import tempfile
    >>> from surgeval.studio.store import Request, apply
    >>> cut = {"id": "a", "video": "V1", "frame": 1, "group": "tools", "name": "scissors", "box": [5, 6, 20, 10]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Database(f"{folder}/studio.sqlite") as database:
    ...         _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
    ...         _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["1", "2"]}))
    ...         _ = apply(database, Request("i", "amy", "instances.add", {"instances": [cut]}))
    ...     dataset = StudioDataset(Path(folder))
    ...     [(frame.name, frame.labelled, len(frame.instances)) for frame in dataset.frames("V1")]
    [('1', False, 0), ('2', True, 1)]
    """

    format: ClassVar[str] = "studio"

    def __init__(
        self,
        folder: str | Path,
        labels: LabelSpace | None = None,
        *,
        selection: Selection | None = None,
        database: Database | None = None,
    ) -> None:
        folder = Path(folder)
        self.root = self.folder = folder
        self.selection, self._open = selection or Selection(), database
        with self._reading() as connection:
            self._schema = reading.schema(connection)
            stored = reading.count_labels(connection, proposals=self.selection.proposals)
            self._videos = {video.name: video for video in reading.videos(connection)}
            self._tally = reading.tally(connection)
            self._last = reading.latest(connection)
        self._stored = stored
        self._classes: NumberedSpace = project_classes(self._schema, self._merged(stored), labels)
        self.space = self._classes.space
        self._pictures: dict[str, dict[str, ImageRef]] | None = None

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """The project's videos, by name."""
        if not self._picture_refs():
            expected = "films or images beside the project's file"
            on_problem(
                Problem("images-absent", str(self.root), f"found no pictures, expected {expected}", level="warning")
            )
        return tuple(Video(name, fps=video.fps, frames=None if self._drops_flagged else video.frames)
                     for name, video in self._videos.items())  # fmt: skip

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The frames of a video with what holds in them at the moment of the first."""
        if video not in self._videos:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._videos)}")
        state = self._videos[video]
        pictures = self._picture_refs().get(state.id, {})
        with self._reading() as connection:
            problems: dict[int, dict[str, str]] = defaultdict(dict)
            for flag in reading.flags(connection, state.id):
                problems[flag.frame][flag.reason] = flag.note
            reviewed = {review.frame for review in reading.reviews(connection, state.id)}
            for first in range(0, state.frames, _BLOCK):
                block = (state.id, first, first + _BLOCK - 1)
                words = reading.words(connection, *block)
                by_frame: dict[int, list[Annotation]] = defaultdict(list)
                for annotation in reading.instances(connection, *block):
                    by_frame[annotation.frame].append(annotation)
                for frame in reading.frames(connection, *block):
                    if frame.frame in problems and self._drops_flagged:
                        continue
                    frame_words = words.get(frame.frame, {})
                    instances = self._instances(by_frame.get(frame.frame, []), state, on_problem)
                    labelled = bool(instances or frame.frame in reviewed or frame_words.get("labelled"))
                    picture = self._inside(pictures.get(frame.name), on_problem)
                    yield self._frame(state, frame, instances, labelled, picture, frame_words,
                                      problems.get(frame.frame, {}))  # fmt: skip

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())

    def left_out(self) -> tuple[str, ...]:
        """What of the project is no part of the dataset."""
        tally, selection = self._tally, self.selection
        told = {
            "{n} proposals that nobody has accepted are left out": 0 if selection.proposals else tally["proposals"],
            "{n} problem frames are left out": tally["flagged"] if self._drops_flagged else 0,
            "{n} spans are not kept as such, only the values that they gave": tally["spans"],
            "review marks of {n} instances are not kept": tally["marked instances"],
            "review marks of {n} frames are not kept": tally["marked frames"],
        }
        return tuple(text.replace("{n}", str(count)) for text, count in told.items() if count)

    def refined(self) -> tuple[Counts, ...]:
        """Counts before and after the selection's rules."""
        return refined(self.selection.rules, self._stored)

    def content(self) -> str:
        """What identifies the content, as the database's file does not: its last operation, and what is selected."""
        return hashlib.sha256(repr((self._last, self.selection)).encode()).hexdigest()

    @property
    def _drops_flagged(self) -> bool:
        return not self.selection.problem_frames

    def _merged(self, stored: tuple[LabelledValues, ...]) -> list[LabelledValues]:
        rules = self.selection.rules
        return [
            LabelledValues(label.group, label.name, refine(rules, label.group, label.name, label.values), label.count)
            for label in stored
        ]

    def _instances(self, annotations: list[Annotation], video: VideoState, tell: OnProblem) -> tuple[Instance, ...]:
        group, size = main_group(self._schema), (video.width, video.height)
        instances = (
            given_instance(
                annotation, refine(self.selection.rules, annotation.group, annotation.name, annotation.values),
                self._classes, size, group, tell,
            )
            for annotation in annotations
            if self.selection.proposals or not annotation.proposal
        )  # fmt: skip
        return tuple(instance for instance in instances if instance is not None)

    def _frame(
        self, video: VideoState, frame: FrameState, instances: tuple[Instance, ...], labelled: bool,
        picture: ImageRef | None, words: dict[str, Any], problems: dict[str, str],
    ) -> Frame:  # fmt: skip
        values = refine(self.selection.rules, IMAGE, IMAGE, frame.values)
        phase = self.space.find_name("phase", values[PHASE]) if PHASE in values else -1
        imported = words.get(ATTRIBUTES)
        attributes: dict[str, Any] = dict(imported) if isinstance(imported, dict) else {}
        attributes |= {key: value for key, value in values.items() if key != PHASE or phase < 0}
        if problems:
            attributes[PROBLEM] = problems
        if LABELME in words:
            attributes[LABELME] = own_words(words[LABELME])
        return Frame(video.name, frame.name, number_of(frame.name, frame.frame), frame.time, picture, video.width,
                     video.height, instances, labelled, phase if phase >= 0 else None,
                     attributes=attributes)  # fmt: skip

    def _inside(self, picture: ImageRef | None, tell: OnProblem) -> ImageRef | None:
        """The picture, unless a link leads to it from out of the folder: an export would carry it along."""
        try:
            if picture is not None:
                check_inside(self.folder, picture.path)
        except DataError as error:
            tell(Problem("path-escape", error.path, error.sentence))
            return None
        return picture

    def _picture_refs(self) -> dict[str, dict[str, ImageRef]]:
        """The pictures of every video by name, as far as they are there; looked for once."""
        if self._pictures is None:
            try:
                films = find_films(self.folder, skip=lambda _: None)  # whose frames then have no pictures
                self._pictures = {film.id: dict(film.frames) for film in films}
            except BadInput:
                self._pictures = {}
        return self._pictures

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if self._open is not None:
            with self._open.reading() as connection:
                yield connection
            return
        database = Database(self.folder / STORE_FILE, read_only=True)
        try:
            with database.reading() as connection:
                yield connection
        finally:
            database.close()
