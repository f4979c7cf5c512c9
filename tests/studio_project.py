"""A studio project in one object, for tests: reading is its methods, and an `Editor` has one for every kind of edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection
from tests.studio_editor import Editor

from surgeval.studio.schema import (
    Counts,
    LabelledValues,
    Mismatch,
    Schema,
    SchemaRule,
    Standing,
    mismatches,
    refined,
    standing,
)
from surgeval.studio.store import (
    STORE_FILE,
    Annotation,
    Database,
    Decision,
    Flag,
    FrameState,
    LoggedOperation,
    OperationOutcome,
    Request,
    Review,
    Round,
    Span,
    Study,
    StudyAnswer,
    TrackSummary,
    VideoState,
    apply,
    dump,
    preview,
    reading,
    replay,
    study_reading,
)
from surgeval.vocab import LabelSpace

__all__ = ["Project"]


class Project:
    """A project in a folder or on a PostgreSQL server (by URL), made where it is absent."""

    def __init__(self, where: Path | str, *, create: bool = True) -> None:
        is_url = "://" in str(where)
        place = str(where) if is_url else Path(where) / STORE_FILE
        self._database = Database(place, create=create)

    def edit(self, author: str, *, id: str | None = None, base: int | None = None, session: str = "") -> Editor:
        """Edits of one author: `base` is the version that they see, `id` the client's name for the (one) edit."""
        return Editor(self.apply, author, id, base, session)

    def preview(self, author: str, *, base: int | None = None, session: str = "") -> Editor:
        """The same edits, tried and not stored."""
        return Editor(lambda request: preview(self._database, request), author, None, base, session)

    def apply(self, request: Request) -> OperationOutcome:
        """Make an edit as a client sends it; on disk when this returns."""
        return apply(self._database, request)

    @property
    def version(self) -> int:
        """The number of the last operation."""
        with self._reading() as connection:
            return reading.version(connection)

    @property
    def schema(self) -> Schema:
        """The schema in force; ProstaTD's until another is set."""
        with self._reading() as connection:
            return reading.schema(connection)

    def videos(self) -> tuple[VideoState, ...]:
        """The videos with their number of frames."""
        with self._reading() as connection:
            return reading.videos(connection)

    def frames(self, video: str, first: int = 0, last: int = 2**53) -> tuple[FrameState, ...]:
        """Frames of a range with what is said of the whole image."""
        with self._reading() as connection:
            return reading.frames(connection, video, first, last)

    def find_frames(self, part: str, limit: int = 100) -> tuple[FrameState, ...]:
        """Frames whose file name has this in it."""
        with self._reading() as connection:
            return reading.find_frames(connection, part, limit)

    def instances(self, video: str, first: int, last: int | None = None) -> tuple[Annotation, ...]:
        """The instances of a frame, or of a range."""
        with self._reading() as connection:
            return reading.instances(connection, video, first, last)

    def find_instances(
        self,
        matches: Callable[[LabelledValues], bool],
        video: str | None = None,
        *,
        proposal: bool | None = None,
        review: str | None = None,
        after: tuple[str, int, str] = ("", -1, ""),
        limit: int = 1000,
    ) -> tuple[Annotation, ...]:
        """Instances whose class and values match, page by page: filters, the problem list."""
        with self._reading() as connection:
            return reading.find_instances(
                connection, matches, video, proposal=proposal, review=review, after=after, limit=limit
            )

    def changed_since(self, video: str, version: int) -> tuple[tuple[Annotation, ...], tuple[str, ...]]:
        """Instances that changed after a version, and ids of those that are gone: what another tab must redraw."""
        with self._reading() as connection:
            return reading.changed_since(connection, video, version)

    def spans(self, video: str) -> tuple[Span, ...]:
        """The spans of a video, each with the later ones that win over it."""
        with self._reading() as connection:
            return reading.spans(connection, video)

    def tracks(self, video: str) -> tuple[TrackSummary, ...]:
        """The tracks of a video in numbers."""
        with self._reading() as connection:
            return reading.tracks(connection, video)

    def labels(self, video: str | None = None) -> tuple[LabelledValues, ...]:
        """Every class with its values, and how often it occurs."""
        with self._reading() as connection:
            return reading.count_labels(connection, video)

    def standings(
        self, space: LabelSpace | None, video: str | None = None
    ) -> tuple[tuple[LabelledValues, Standing], ...]:
        """How what occurs stands to the schema in force and to a label space."""
        schema = self.schema
        return tuple((one, standing(schema, space, one.group, one.name, one.values)) for one in self.labels(video))

    def mismatches(self, schema: Schema | None = None) -> tuple[Mismatch, ...]:
        """Stored classes and values that a schema lacks (the one in force, or one to switch to), with proposals."""
        return mismatches(schema or self.schema, self.labels())

    def refined(self, rules: tuple[SchemaRule, ...]) -> tuple[Counts, ...]:
        """Counts before and after a refinement."""
        return refined(rules, self.labels())

    def flags(self, video: str | None = None) -> tuple[Flag, ...]:
        """The problem frames."""
        with self._reading() as connection:
            return reading.flags(connection, video)

    def reviews(self, video: str, round_number: int | None = None) -> tuple[Review, ...]:
        """Who said what of which frame in a review."""
        with self._reading() as connection:
            return reading.reviews(connection, video, round_number)

    def rounds(self) -> tuple[Round, ...]:
        """The rounds of review."""
        with self._reading() as connection:
            return study_reading.rounds(connection)

    def studies(self) -> tuple[Study, ...]:
        """The agreement studies."""
        with self._reading() as connection:
            return study_reading.studies(connection)

    def answers(self, study: str, annotator: str | None = None) -> tuple[StudyAnswer, ...]:
        """What the annotators of a study said."""
        with self._reading() as connection:
            return study_reading.answers(connection, study, annotator)

    def decisions(self, study: str) -> tuple[Decision, ...]:
        """Who decided what where annotators and labels differ."""
        with self._reading() as connection:
            return study_reading.decisions(connection, study)

    def setting(self, key: str, owner: str = "") -> Any:
        """A setting's value; None where it was never set."""
        with self._reading() as connection:
            return reading.setting(connection, key, owner)

    def operations(self, after: int = 0, limit: int | None = None) -> tuple[LoggedOperation, ...]:
        """The log from a version on."""
        with self._reading() as connection:
            return tuple(reading.operations(connection, after, limit))

    def state(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """Everything stored, as plain rows."""
        with self._reading() as connection:
            return dump(connection)

    def replay(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """What the operations alone make of an empty project: the same as `state`."""
        return replay(self._database)

    def close(self) -> None:
        """End all connections; what was stored stays."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._database.reading() as connection:
            yield connection
