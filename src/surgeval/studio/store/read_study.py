"""Reading reviews and agreement studies: rounds, who has seen what, what is shown, answered and decided."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, select

from surgeval.errors import BadInput, visible
from surgeval.records import Box
from surgeval.studio.segments import Segment
from surgeval.studio.store.read import instances_where
from surgeval.studio.store.records import Annotation
from surgeval.studio.store.study_records import Decision, Round, Study, StudyAnswer
from surgeval.studio.store.tables import ANSWERS, DECISIONS, INSTANCES, REVIEWS, ROUNDS, STUDIES

__all__ = [
    "answered", "answers", "count_shown", "decisions", "hidden_ids", "review_runs", "rounds", "shown", "shown_answered",
    "shown_boxes", "shown_ids", "studies", "study",
]  # fmt: skip


def rounds(connection: Connection) -> tuple[Round, ...]:
    """The rounds that were begun or in which a frame was marked; the first is always there."""
    rows = connection.execute(select(ROUNDS).where(ROUNDS.c.alive.is_(True)))
    by_number = {
        row.number: Round(row.number, row.title, tuple(json.loads(row.reviewers)), author=row.author, time=row.time)
        for row in rows
    }
    marked = connection.execute(select(REVIEWS.c.round).where(REVIEWS.c.alive.is_(True)).distinct())
    for number in [1, *(row.round for row in marked)]:
        by_number.setdefault(number, Round(number))
    return tuple(by_number[number] for number in sorted(by_number))


def review_runs(
    connection: Connection, video: str, round_number: int
) -> tuple[tuple[tuple[int, int, tuple[str, ...]], ...], tuple[str, ...]]:
    """Runs of frames (first, last, by whom seen), and everyone who has marked a frame of the project in the round."""
    alive = and_(REVIEWS.c.round == round_number, REVIEWS.c.alive.is_(True))
    everyone = connection.execute(select(REVIEWS.c.reviewer).where(alive).distinct().order_by(REVIEWS.c.reviewer))
    # Within a run, a frame less its position among the reviewer's marks is always the same number.
    position = func.row_number().over(partition_by=REVIEWS.c.reviewer, order_by=REVIEWS.c.frame)
    marks = select(REVIEWS.c.reviewer, REVIEWS.c.frame, (REVIEWS.c.frame - position).label("run"))
    inner = marks.where(alive, REVIEWS.c.video == video).subquery()
    first, last = func.min(inner.c.frame), func.max(inner.c.frame)
    rows = connection.execute(select(inner.c.reviewer, first, last).group_by(inner.c.reviewer, inner.c.run)).all()
    edges = sorted({edge for _, begin, end in rows for edge in (begin, end + 1)})
    seen: dict[int, set[str]] = {edge: set() for edge in edges}
    for person, begin, end in rows:
        for edge in edges[bisect_left(edges, begin) : bisect_left(edges, end + 1)]:
            seen[edge].add(person)
    runs = [(begin, end - 1, tuple(sorted(seen[begin]))) for begin, end in pairwise(edges) if seen[begin]]
    return tuple(runs), tuple(row.reviewer for row in everyone)


def studies(connection: Connection) -> tuple[Study, ...]:
    """The studies, the earliest first."""
    rows = connection.execute(select(STUDIES).where(STUDIES.c.alive.is_(True)).order_by(STUDIES.c.time, STUDIES.c.id))
    return tuple(_study(row) for row in rows)


def study(connection: Connection, id: str) -> Study:
    """The study of that id."""
    row = connection.execute(select(STUDIES).where(STUDIES.c.id == id, STUDIES.c.alive.is_(True))).first()
    if row is None:
        raise BadInput(f"study: found no study {visible(id[:60])}, expected one of the project")
    return _study(row)


def shown(
    connection: Connection, of: Study, video: str | None = None, first: int = 0, last: int = 2**53
) -> tuple[Annotation, ...]:
    """The instances that a study shows, with their labels, in the order of video, frame and id."""
    return _shown(connection, of, video, lambda segment: _within(segment, first, last))


def shown_answered(connection: Connection, of: Study, annotator: str, video: str, since: int) -> tuple[Annotation, ...]:
    """The shown instances of a video on which the annotator's answer changed after a version.

    Never those that changed themselves: the version of an instance is that of its last label.
    """
    mine = and_(ANSWERS.c.study == of.id, ANSWERS.c.annotator == annotator, ANSWERS.c.version > since)
    answered = INSTANCES.c.id.in_(select(ANSWERS.c.instance).where(mine))
    return _shown(connection, of, video, lambda segment: and_(_within(segment), answered))


def hidden_ids(connection: Connection, of: Study, video: str, limit: int = 10_000) -> tuple[str, ...]:
    """Ids of the instances in a study's segments that were deleted, whenever that was."""
    query = select(INSTANCES.c.id).where(INSTANCES.c.alive.is_(False), INSTANCES.c.grp == of.group)
    ids = [row.id for segment in _in_order(of, video) for row in connection.execute(query.where(_within(segment)))]
    return tuple(ids[:limit])


def shown_ids(connection: Connection, of: Study) -> tuple[tuple[str, str, int], ...]:
    """Id, video and frame of the instances that a study shows, in the same order."""
    query = select(INSTANCES.c.id, INSTANCES.c.video, INSTANCES.c.frame).where(_there(of.group))
    ordered = query.order_by(INSTANCES.c.video, INSTANCES.c.frame, INSTANCES.c.id)
    return tuple(
        (row.id, row.video, row.frame)
        for segment in _in_order(of)
        for row in connection.execute(ordered.where(_within(segment)))
    )


def count_shown(connection: Connection, segments: Sequence[Segment], group: str) -> list[int]:
    """How many instances of a group each segment would show."""
    query = select(func.count()).select_from(INSTANCES)
    return [connection.execute(query.where(_there(group), _within(segment))).scalar_one() for segment in segments]


def shown_boxes(connection: Connection, of: Study, video: str) -> tuple[tuple[str, int, Box], ...]:
    """Id, frame and box of every instance that a study shows of a video, by frame."""
    sides = (INSTANCES.c.x, INSTANCES.c.y, INSTANCES.c.w, INSTANCES.c.h)
    query = select(INSTANCES.c.id, INSTANCES.c.frame, *sides).where(_there(of.group)).order_by(INSTANCES.c.frame)
    return tuple(
        (row.id, row.frame, Box(row.x, row.y, row.w, row.h))
        for segment in _in_order(of, video)
        for row in connection.execute(query.where(_within(segment)))
    )


def answers(connection: Connection, study: str, annotator: str | None = None) -> tuple[StudyAnswer, ...]:
    """What annotators said, or one of them."""
    query = select(ANSWERS).where(ANSWERS.c.study == study, ANSWERS.c.alive.is_(True))
    if annotator is not None:
        query = query.where(ANSWERS.c.annotator == annotator)
    rows = connection.execute(query.order_by(ANSWERS.c.annotator, ANSWERS.c.instance))
    return tuple(StudyAnswer(row.annotator, row.instance, row.name, json.loads(row.vals), row.version) for row in rows)


def answered(connection: Connection, study: str) -> dict[str, int]:
    """How many instances each annotator has said something of."""
    query = select(ANSWERS.c.annotator, func.count()).where(ANSWERS.c.study == study, ANSWERS.c.alive.is_(True))
    return {row[0]: row[1] for row in connection.execute(query.group_by(ANSWERS.c.annotator))}


def decisions(connection: Connection, study: str) -> tuple[Decision, ...]:
    """The log of decisions, the earliest first; several on one instance are numbered."""
    query = (
        select(DECISIONS, INSTANCES.c.video, INSTANCES.c.frame)
        .join(INSTANCES, INSTANCES.c.id == DECISIONS.c.instance)
        .where(DECISIONS.c.study == study, DECISIONS.c.alive.is_(True))
        .order_by(DECISIONS.c.time, DECISIONS.c.instance, DECISIONS.c.number)
    )
    return tuple(
        Decision(
            row.instance, row.number, row.choice, row.annotator, row.name_before, json.loads(row.vals_before),
            row.name_after, json.loads(row.vals_after), row.note, row.video, row.frame,
            author=row.author, time=row.time,
        )
        for row in connection.execute(query)
    )  # fmt: skip


def _shown(
    connection: Connection, of: Study, video: str | None, where: Callable[[Segment], ColumnElement[bool]]
) -> tuple[Annotation, ...]:
    """Segment by segment: each is one stretch of an index, which all of them together are not."""
    return tuple(
        instance
        for segment in _in_order(of, video)
        for instance in instances_where(connection, and_(_there(of.group), where(segment)))
    )


def _in_order(of: Study, video: str | None = None) -> list[Segment]:
    segments = [segment for segment in of.segments if video in (None, segment.video)]
    return sorted(segments, key=lambda segment: (segment.video, segment.first))


def _there(group: str) -> ColumnElement[bool]:
    return and_(INSTANCES.c.alive.is_(True), INSTANCES.c.state == "accepted", INSTANCES.c.grp == group)


def _within(segment: Segment, first: int = 0, last: int = 2**53) -> ColumnElement[bool]:
    frames = INSTANCES.c.frame.between(max(first, segment.first), min(last, segment.last))
    return and_(INSTANCES.c.video == segment.video, frames)


def _study(row: Row[Any]) -> Study:
    segments = tuple(Segment(*item) for item in json.loads(row.segments))
    annotators = tuple(json.loads(row.annotators))
    return Study(row.id, row.title, row.grp, annotators, segments, row.seed, author=row.author, time=row.time)
