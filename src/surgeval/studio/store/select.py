"""Finding what a payload names, and refusing what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, select

from surgeval.errors import BadInput
from surgeval.studio.store.errors import Conflict
from surgeval.studio.store.records import Track
from surgeval.studio.store.tables import FRAMES, INSTANCES, OPERATIONS, SPANS, VIDEOS
from surgeval.studio.store.work import Work, chunks, row_in_words

__all__ = ["CORRECTED", "by_id", "check_frames", "check_video", "instance_rows", "span_row", "track_frames"]


# Who corrects a proposal by hand has decided on it: the same edit accepts it, and its undo makes it a proposal again.
CORRECTED = {"state": "accepted"}


def check_video(work: Work, kind: str, video: str) -> Row[Any]:
    """The video's row."""
    query = select(VIDEOS).where(VIDEOS.c.id == video, VIDEOS.c.alive.is_(True))
    row = work.connection.execute(query).first()
    if row is None:
        raise BadInput(f"{kind}: video: found no video {video}, expected one of the project")
    return row


def check_frames(work: Work, kind: str, video: str, wanted: Sequence[int]) -> None:
    """Refuse frames that the video has not."""
    check_video(work, kind, video)
    query = select(FRAMES.c.frame).where(
        FRAMES.c.video == video, FRAMES.c.frame.between(min(wanted), max(wanted)), FRAMES.c.alive.is_(True)
    )
    missing = set(wanted) - {row.frame for row in work.rows(query)}
    if missing:
        raise BadInput(f"{kind}: frame: found {min(missing)}, expected a frame of video {video}")


def by_id(ids: Sequence[str]) -> ColumnElement[bool]:
    """The living instances of these ids."""
    return and_(INSTANCES.c.id.in_(ids), INSTANCES.c.alive.is_(True))


def instance_rows(work: Work, kind: str, ids: Sequence[str]) -> list[Row[Any]]:
    """The instances of these ids, in that order; one that is gone is a conflict where someone deleted it."""
    rows: dict[str, Row[Any]] = {}
    for part in chunks(ids):
        for row in work.rows(select(INSTANCES).where(INSTANCES.c.id.in_(part))):
            rows[row.id] = row
    for wanted in ids:
        if wanted not in rows:
            raise BadInput(f"{kind}: ids: found {wanted}, expected an instance of the project")
        if not rows[wanted].alive:
            raise _gone(work, row_in_words(INSTANCES, rows[wanted]), rows[wanted].version)
    return [rows[wanted] for wanted in ids]


def span_row(work: Work, kind: str, id: str) -> Row[Any]:
    """The span of this id."""
    row = work.connection.execute(select(SPANS).where(SPANS.c.id == id)).first()
    if row is None:
        raise BadInput(f"{kind}: id: found no span {id}, expected one of the project")
    if not row.alive:
        raise _gone(work, row_in_words(SPANS, row), row.version)
    return row


def track_frames(work: Work, video: str, track: Track) -> tuple[int, int] | None:
    """The first and last frame of a track."""
    number = INSTANCES.c.track.is_(None) if track.number is None else INSTANCES.c.track == track.number
    query = (
        select(INSTANCES.c.frame)
        .where(
            INSTANCES.c.video == video,
            INSTANCES.c.grp == track.group,
            INSTANCES.c.name == track.name,
            number,
            INSTANCES.c.alive.is_(True),
        )
        .order_by(INSTANCES.c.frame)
    )
    first = work.connection.execute(query.limit(1)).scalar()
    last = work.connection.execute(query.order_by(None).order_by(INSTANCES.c.frame.desc()).limit(1)).scalar()
    return None if first is None or last is None else (int(first), int(last))


def _gone(work: Work, subject: str, version: int) -> Conflict:
    query = select(OPERATIONS.c.author, OPERATIONS.c.kind).where(OPERATIONS.c.seq == version)
    row = work.connection.execute(query).one()
    return Conflict(subject, row.author, row.kind, version, "it is no longer there")
