"""Proposals, problem frames and review marks, over ranges of frames."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Table, and_, exists, func, literal, select

from surgeval.studio.store.checks import Fields
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.labels import canonical
from surgeval.studio.store.select import check_frames, instance_rows
from surgeval.studio.store.tables import FLAGS, FRAMES, INSTANCES, REVIEWS, ROUNDS
from surgeval.studio.store.work import Work, chunks

__all__ = ["accept", "begin_round", "clear_flags", "flag", "mark_frames", "mark_instances", "reject"]


def accept(work: Work, fields: Fields) -> Effect:
    """Proposals become annotations: chosen ones, or all of a range with at least this score."""
    return _decide(work, fields, {"state": "accepted"}, above=True)


def reject(work: Work, fields: Fields) -> Effect:
    """Proposals are taken away: chosen ones, or all of a range below this score."""
    return _decide(work, fields, {"alive": False}, above=False)


def flag(work: Work, fields: Fields) -> Effect:
    """Mark frames as a problem, with its reason."""
    fields.only("video", "first", "last", "reason", "note")
    reason, note = fields.text("reason"), fields.text("note", "", 2000, empty=True)
    columns: dict[str, ColumnElement[Any]] = {"reason": literal(reason)}
    change = {"note": note, "author": work.author}
    return _mark(work, fields, FLAGS, FLAGS.c.reason == reason, columns, change)


def clear_flags(work: Work, fields: Fields) -> Effect:
    """Take marks of a problem away; without a reason all of them."""
    fields.only("video", "first", "last", "reason")
    video, (first, last) = fields.id("video"), fields.frames()
    where = [FLAGS.c.video == video, FLAGS.c.frame.between(first, last), FLAGS.c.alive.is_(True)]
    if fields.data.get("reason"):
        where.append(FLAGS.c.reason == fields.text("reason"))
    return Effect(work.touch(FLAGS, and_(*where), {"alive": False}))


def begin_round(work: Work, fields: Fields) -> Effect:
    """Another round of review, with the people who are to see every frame; its number is the next one."""
    fields.only("title", "reviewers")
    used = [work.connection.execute(select(func.max(column))).scalar() for column in (ROUNDS.c.number, REVIEWS.c.round)]
    number = 1 + max(int(latest or 0) for latest in used)
    row = {
        "number": number,
        "title": fields.text("title", "", empty=True),
        "reviewers": canonical(fields.people("reviewers")),
        "author": work.author,
        "time": work.time,
    }
    return Effect(work.insert(ROUNDS, [row]), created=(str(number),))


def mark_frames(work: Work, fields: Fields) -> Effect:
    """The author's word on frames in a review round; an empty mark takes it away."""
    fields.only("video", "first", "last", "round", "mark")
    round_number, mark = fields.whole("round", 1, least=1), fields.text("mark", "seen", empty=True)
    same = and_(REVIEWS.c.reviewer == work.author, REVIEWS.c.round == round_number)
    if not mark:
        video, (first, last) = fields.id("video"), fields.frames()
        inside = and_(REVIEWS.c.video == video, REVIEWS.c.frame.between(first, last), REVIEWS.c.alive.is_(True))
        return Effect(work.touch(REVIEWS, and_(inside, same), {"alive": False}))
    columns: dict[str, ColumnElement[Any]] = {"reviewer": literal(work.author), "round": literal(round_number)}
    return _mark(work, fields, REVIEWS, same, columns, {"mark": mark})


def mark_instances(work: Work, fields: Fields) -> Effect:
    """The review state of instances."""
    fields.only("ids", "mark")
    mark, ids = fields.text("mark", empty=True), fields.ids("ids")
    instance_rows(work, fields.path, ids)
    return Effect(sum(work.touch(INSTANCES, INSTANCES.c.id.in_(part), {"review": mark}) for part in chunks(ids)))


def _decide(work: Work, fields: Fields, change: dict[str, Any], *, above: bool) -> Effect:
    fields.only("ids", "video", "first", "last", "threshold")
    proposed = and_(INSTANCES.c.state == "proposal", INSTANCES.c.alive.is_(True))
    if fields.data.get("ids"):
        ids = fields.ids("ids")
        instance_rows(work, fields.path, ids)
        changed = sum(work.touch(INSTANCES, and_(proposed, INSTANCES.c.id.in_(part)), change) for part in chunks(ids))
        return Effect(changed, len(ids) - changed)
    video, (first, last) = fields.id("video"), fields.frames()
    check_frames(work, fields.path, video, [first, last])
    inside = and_(proposed, INSTANCES.c.video == video, INSTANCES.c.frame.between(first, last))
    threshold = fields.optional_real("threshold")
    if threshold is None:
        return Effect(work.touch(INSTANCES, inside, change))
    total = work.count(INSTANCES, inside)
    score = INSTANCES.c.score >= threshold if above else INSTANCES.c.score < threshold
    changed = work.touch(INSTANCES, and_(inside, score), change)
    return Effect(changed, total - changed)


def _mark(
    work: Work,
    fields: Fields,
    table: Table,
    same: ColumnElement[bool],
    columns: dict[str, ColumnElement[Any]],
    change: dict[str, str],
) -> Effect:
    """Set a mark on every frame of a range: rows that are there or were there change, the others are made."""
    video, (first, last) = fields.id("video"), fields.frames()
    check_frames(work, fields.path, video, [first, last])
    present = and_(table.c.video == video, table.c.frame.between(first, last), same)
    changed = work.touch(table, present, {**change, "alive": True})
    there = exists(select(table.c.frame).where(present, table.c.frame == FRAMES.c.frame).correlate(FRAMES))
    inside = and_(FRAMES.c.video == video, FRAMES.c.frame.between(first, last), FRAMES.c.alive.is_(True), ~there)
    named = {name: literal(value, table.c[name].type) for name, value in change.items()}
    new = {"video": FRAMES.c.video, "frame": FRAMES.c.frame, **columns, **named}
    return Effect(changed + work.insert_select(table, new, inside))
