"""Undo and redo: the rows that an operation kept go back to their places.

Undo is an operation itself, which keeps the rows as it found them, so redo is the same thing once more. Refused where a
later operation changed one of the rows, or where putting them back would contradict spans made or removed since.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, Table, and_, exists, func, or_, select, update

from surgeval.errors import BadInput
from surgeval.studio.store.cover import alive_spans, stale_row
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.errors import Conflict
from surgeval.studio.store.kinds import KINDS
from surgeval.studio.store.records import Track
from surgeval.studio.store.tables import BEFORE, FRAMES, INSTANCES, OPERATIONS, SPANS, STATE, keys
from surgeval.studio.store.work import Work, kept_by, row_in_words

__all__ = ["REDO", "UNDO", "restore", "to_redo", "to_undo"]

UNDO, REDO = "undo", "redo"
_PLAIN = [name for name, kind in KINDS.items() if kind.undoable and not kind.blind]
_BLIND = [name for name, kind in KINDS.items() if kind.blind]


@dataclass(frozen=True, slots=True)
class Step:
    """The operation to take back or do again, and whose kept rows do it."""

    target: int
    rows: int


def to_undo(work: Work, target: int | None, study: str | None = None) -> Step:
    """The author's last operation that is in force, or the named one: an edit, or an answer in the named study."""
    operations, last = OPERATIONS, _last_turn()
    query = select(operations.c.seq, operations.c.payload).where(
        operations.c.author == work.author, operations.c.kind.in_(_kinds(study)), or_(last.is_(None), last == REDO)
    )
    if target is not None:
        query = query.where(operations.c.seq == target)
    row = _first(work, query.order_by(operations.c.seq.desc()), study)
    if row is None:
        missing = "nothing" if target is None else f"no operation {target}"
        sentence = f"undo: found {missing} of {work.author} to take back, expected an edit"
        raise BadInput(sentence, code="nothing-to-undo")
    return Step(int(row.seq), _last_turn_of(work, int(row.seq)) or int(row.seq))


def to_redo(work: Work, target: int | None, study: str | None = None) -> Step:
    """The operation that the author took back last, unless an edit was made since; or a named one of the author's."""
    turns = OPERATIONS.alias("turns")
    mine = and_(OPERATIONS.c.author == work.author, OPERATIONS.c.kind.in_(_kinds(study)))
    edits = select(OPERATIONS.c.seq, OPERATIONS.c.payload).where(mine).order_by(OPERATIONS.c.seq.desc())
    since = _first(work, edits, study)
    later = OPERATIONS.alias("later")
    query = (
        select(turns.c.target, turns.c.seq, OPERATIONS.c.payload)
        .join(OPERATIONS, OPERATIONS.c.seq == turns.c.target)
        .where(turns.c.kind == UNDO, ~exists().where(later.c.target == turns.c.target, later.c.seq > turns.c.seq))
        .where(turns.c.author == work.author, mine)
    )
    if target is None:
        query = query.where(turns.c.seq > (0 if since is None else since.seq))
    else:
        query = query.where(turns.c.target == target)
    row = _first(work, query.order_by(turns.c.seq.desc()), study)
    if row is None:
        missing = "nothing" if target is None else f"no operation {target}"
        sentence = f"redo: found {missing} of {work.author} to do again, expected an edit that was taken back"
        raise BadInput(sentence, code="nothing-to-redo")
    return Step(int(row.target), int(row.seq))


def _kinds(study: str | None) -> list[str]:
    return _PLAIN if study is None else _BLIND


def _first(work: Work, query: Select[Any], study: str | None) -> Row[Any] | None:
    """The first row, or the first whose payload names the study."""
    rows = work.connection.execute(query if study is not None else query.limit(1))
    first = next((row for row in rows if study is None or json.loads(row.payload).get("study") == study), None)
    rows.close()
    return first


def restore(work: Work, step: Step, kind: str) -> Effect:
    """Put the rows that operation `step.rows` kept back in their places."""
    changed = 0
    places: set[tuple[str, Track, int, int]] = set()
    query = select(OPERATIONS.c.inverse).where(OPERATIONS.c.seq == step.rows)
    inverse = json.loads(work.connection.execute(query).scalar_one())
    for table in (table for table in STATE if table.name in inverse):
        _check_made_by(work, table, step, kind)
        before = BEFORE[table.name]
        same = and_(before.c.seq == step.rows, *(before.c[key] == table.c[key] for key in keys(table)))
        if table in (INSTANCES, SPANS, FRAMES):
            places |= _places(work, table, step.rows)
        work.keep(table, kept_by(table, step.rows))
        values = {c.name: before.c[c.name] for c in table.columns if c.name not in (*keys(table), "version")}
        changed += int(work.connection.execute(update(table).where(same).values(**values, version=work.seq)).rowcount)
    if {"videos", "frames"} & set(inverse):
        _check_dependents(work)
    if INSTANCES.name in inverse:
        _check_frames(work, kind)
    _check_spans(work, places)
    return Effect(changed)


def _last_turn() -> Any:
    """Whether the operation at hand was last undone or redone; NULL where neither."""
    turns = OPERATIONS.alias("turns")
    query = select(turns.c.kind).where(turns.c.target == OPERATIONS.c.seq).order_by(turns.c.seq.desc()).limit(1)
    return query.correlate(OPERATIONS).scalar_subquery()


def _last_turn_of(work: Work, target: int) -> int | None:
    query = select(func.max(OPERATIONS.c.seq)).where(OPERATIONS.c.target == target, OPERATIONS.c.kind == REDO)
    seq = work.connection.execute(query).scalar()
    return None if seq is None else int(seq)


def _check_made_by(work: Work, table: Table, step: Step, kind: str) -> None:
    """Refuse where a row no longer shows what the operation (or its undoing) left."""
    before = BEFORE[table.name]
    same = [before.c[key] == table.c[key] for key in keys(table)]
    query = select(table).where(before.c.seq == step.rows, *same)
    if kind == UNDO:
        query = query.where(table.c.made_by != step.target)
    else:  # the undone rows show what the first doing had kept
        first = BEFORE[table.name].alias("first")
        done = _last_done(work, step)
        query = query.where(
            first.c.seq == done, *(first.c[key] == table.c[key] for key in keys(table)),
            table.c.made_by != first.c.made_by,
        )  # fmt: skip
    row = work.connection.execute(query.order_by(*(table.c[key] for key in keys(table))).limit(1)).first()
    if row is not None:
        raise _conflict(work, row_in_words(table, row), row.version, kind)


def _last_done(work: Work, step: Step) -> int:
    """The doing or redoing that the undo `step.rows` took back."""
    query = select(func.max(OPERATIONS.c.seq)).where(
        OPERATIONS.c.target == step.target, OPERATIONS.c.kind == REDO, OPERATIONS.c.seq < step.rows
    )
    seq = work.connection.execute(query).scalar()
    return step.target if seq is None else int(seq)


def _places(work: Work, table: Table, rows: int) -> set[tuple[str, Track, int, int]]:
    """Tracks and ranges whose values depend on the rows, as they are now and as they will be."""
    before = BEFORE[table.name]
    same = [before.c.seq == rows, *(before.c[key] == table.c[key] for key in keys(table))]
    places: set[tuple[str, Track, int, int]] = set()
    for source in (table, before):
        if table is SPANS:
            ranges = select(source.c.video, source.c.tracks, source.c.first, source.c.last).where(*same)
            for row in work.rows(ranges):
                places |= {(row.video, Track(*t), row.first, row.last) for t in json.loads(row.tracks)}
            continue
        names = ("video",) if table is FRAMES else ("video", "grp", "name", "track")
        columns = [source.c[name] for name in names]
        frame = source.c.frame
        query: Select[Any] = select(*columns, func.min(frame).label("low"), func.max(frame).label("high")).where(*same)
        for row in work.rows(query.group_by(*columns)):
            track = Track.image() if table is FRAMES else Track(row.grp, row.name, row.track)
            places.add((row.video, track, row.low, row.high))
    return places


def _check_dependents(work: Work) -> None:
    """Refuse to take frames away that have instances, or videos that have frames."""
    for table, before, child in ((FRAMES, BEFORE["frames"], INSTANCES),):
        gone = and_(
            before.c.seq == work.seq, before.c.alive.is_(True), table.c.alive.is_(False),
            *(before.c[key] == table.c[key] for key in keys(table)),
        )  # fmt: skip
        query = (
            select(child)
            .where(gone, child.c.video == table.c.video, child.c.frame == table.c.frame, child.c.alive.is_(True))
            .limit(1)
        )
        row = work.connection.execute(query).first()
        if row is not None:
            raise _conflict(work, row_in_words(child, row), row.version, UNDO)
    videos, then = STATE[0], BEFORE["videos"]
    gone = and_(then.c.seq == work.seq, then.c.alive.is_(True), videos.c.alive.is_(False), then.c.id == videos.c.id)
    query = select(FRAMES).where(gone, FRAMES.c.video == videos.c.id, FRAMES.c.alive.is_(True)).limit(1)
    row = work.connection.execute(query).first()
    if row is not None:
        raise _conflict(work, row_in_words(FRAMES, row), row.version, UNDO)


def _check_frames(work: Work, kind: str) -> None:
    """Refuse to bring instances back whose frame is gone."""
    before = BEFORE[INSTANCES.name]
    frame = and_(FRAMES.c.video == INSTANCES.c.video, FRAMES.c.frame == INSTANCES.c.frame, FRAMES.c.alive.is_(True))
    back = and_(before.c.seq == work.seq, before.c.id == INSTANCES.c.id, INSTANCES.c.alive.is_(True))
    row = work.connection.execute(select(INSTANCES).where(back, ~exists().where(frame)).limit(1)).first()
    if row is not None:
        raise BadInput(f"{kind}: found {row_in_words(INSTANCES, row)} on a frame that is gone, expected its frame")


def _check_spans(work: Work, places: set[tuple[str, Track, int, int]]) -> None:
    """Refuse where a restored row would not show what the spans of today say."""
    for video in sorted({video for video, *_ in places}):
        spans = alive_spans(work.connection, video)
        for _, track, first, last in sorted((p for p in places if p[0] == video), key=str):
            row = stale_row(work, video, track, first, last, spans)
            if row is not None:
                query = select(func.max(SPANS.c.version)).where(SPANS.c.video == video, SPANS.c.version < work.seq)
                latest = work.connection.execute(query).scalar() or row.made_by
                table = FRAMES if track.is_image else INSTANCES
                raise _conflict(work, row_in_words(table, row), max(int(latest), int(row.made_by)), UNDO)


def _conflict(work: Work, subject: str, version: int, kind: str) -> Conflict:
    query = select(OPERATIONS.c.author, OPERATIONS.c.kind, OPERATIONS.c.seq).where(OPERATIONS.c.seq == version)
    row = work.connection.execute(query).first()
    if row is None:
        raise BadInput(f"{kind}: found {subject} in another state, expected it as the operation left it")
    return Conflict(subject, row.author, row.kind, version, f"the {kind} is refused, as it would overwrite that")
