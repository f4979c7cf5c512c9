"""Reading the state: one frame, a video's spans and tracks, counts of labels, what changed since a version."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, select, true, tuple_

from surgeval.errors import DataError
from surgeval.records import Box
from surgeval.studio.schema import IMAGE, LabelledValues, Schema, parse_schema
from surgeval.studio.store.columns import (
    changed_tracks,
    columns,
    frame_columns,
    outlines,
    runs,
    upstream_numbers,
)
from surgeval.studio.store.commit import logged
from surgeval.studio.store.cover import alive_spans
from surgeval.studio.store.labels import Labels
from surgeval.studio.store.records import (
    Annotation,
    Flag,
    FrameState,
    LoggedOperation,
    News,
    Review,
    Span,
    Track,
    TrackSummary,
    VideoState,
)
from surgeval.studio.store.tables import (
    FLAGS,
    FRAMES,
    HEAD,
    INSTANCES,
    LABELS,
    OPERATIONS,
    REVIEWS,
    SETTINGS,
    SPANS,
    VIDEOS,
)
from surgeval.studio.store.work import WORDS, chunks, schema_in_force, words_key

__all__ = [
    "changed_since", "changed_tracks", "columns", "count_labels", "find_frames", "find_instances", "flags",
    "frame_columns", "frame_names", "frames", "instances", "instances_where", "latest", "news", "operation",
    "operations", "outlines", "reviews", "runs", "schema", "setting", "spans", "tally", "tracks", "upstream_numbers",
    "used_schemas", "version", "videos", "words",
]  # fmt: skip

_SCHEMAS = 200  # operations that are looked at for schemas
_SHORT = 10_000  # characters of a payload that is worth a look: a longer one is a list of instances


def version(connection: Connection) -> int:
    """The number of the last operation."""
    return int(connection.execute(select(HEAD.c.version)).scalar_one())


def latest(connection: Connection) -> tuple[int, str, float]:
    """Number, id and time of the last operation: what tells one state of one project from all others."""
    query = select(OPERATIONS.c.seq, OPERATIONS.c.id, OPERATIONS.c.time).order_by(OPERATIONS.c.seq.desc()).limit(1)
    row = connection.execute(query).first()
    return (0, "", 0.0) if row is None else (row.seq, row.id, row.time)


def videos(connection: Connection) -> tuple[VideoState, ...]:
    """The videos with their number of frames."""
    counted = select(FRAMES.c.video, func.count()).where(FRAMES.c.alive.is_(True)).group_by(FRAMES.c.video)
    counts: dict[str, int] = {row[0]: row[1] for row in connection.execute(counted)}
    rows = connection.execute(select(VIDEOS).where(VIDEOS.c.alive.is_(True)).order_by(VIDEOS.c.id))
    return tuple(
        VideoState(row.id, row.name, row.width, row.height, row.fps, counts.get(row.id, 0), _object(row.extra))
        for row in rows
    )


def frames(connection: Connection, video: str, first: int = 0, last: int = 2**53) -> tuple[FrameState, ...]:
    """The frames of a range with what is said of the whole image."""
    where = and_(FRAMES.c.video == video, FRAMES.c.frame.between(first, last))
    return _frames(connection, where)


def frame_names(connection: Connection, video: str) -> list[str]:
    """The names of all frames of a video, in order: what opening a long one needs, and no more."""
    mine = and_(FRAMES.c.video == video, FRAMES.c.alive.is_(True))
    return list(connection.execute(select(FRAMES.c.name).where(mine).order_by(FRAMES.c.frame)).scalars())


def find_frames(
    connection: Connection, part: str, limit: int = 100, *, videos: Iterable[str] | None = None
) -> tuple[FrameState, ...]:
    """Frames whose file name has this in it, whatever its case; of some videos only where they are named."""
    where = FRAMES.c.name.icontains(part, autoescape=True)
    return _frames(connection, where if videos is None else and_(where, FRAMES.c.video.in_(sorted(videos))), limit)


def instances(connection: Connection, video: str, first: int, last: int | None = None) -> tuple[Annotation, ...]:
    """The instances of a frame, or of a range of frames."""
    inside = INSTANCES.c.frame == first if last is None else INSTANCES.c.frame.between(first, last)
    return instances_where(connection, and_(INSTANCES.c.video == video, inside, INSTANCES.c.alive.is_(True)))


def changed_since(
    connection: Connection, video: str, since: int, limit: int = 10_000
) -> tuple[tuple[Annotation, ...], tuple[str, ...]]:
    """The instances that others changed after a version, and the ids of those that are gone."""
    newer = and_(INSTANCES.c.video == video, INSTANCES.c.version > since)
    gone = select(INSTANCES.c.id).where(newer, INSTANCES.c.alive.is_(False)).order_by(INSTANCES.c.id).limit(limit)
    living = instances_where(connection, and_(newer, INSTANCES.c.alive.is_(True)), limit)
    return living, tuple(row.id for row in connection.execute(gone))


def spans(connection: Connection, video: str) -> tuple[Span, ...]:
    """The spans of a video in the order of their frames, each with the later ones that overlap it."""
    covers = alive_spans(connection, video)
    by_track: dict[Track, list[int]] = defaultdict(list)
    for number, cover in enumerate(covers):
        for track in cover.tracks:
            by_track[track].append(number)
    over: dict[str, set[str]] = defaultdict(set)
    for numbers in by_track.values():
        for position, number in enumerate(numbers):
            for other in numbers[position + 1 :]:
                earlier, later = covers[number], covers[other]
                if later.covers(earlier.first, earlier.last) and later.stamp > earlier.stamp:
                    over[earlier.id].add(later.id)
    query = select(SPANS).where(SPANS.c.video == video, SPANS.c.alive.is_(True))
    return tuple(
        Span(
            row.id, row.video, tuple(Track(*item) for item in json.loads(row.tracks)), json.loads(row.vals), row.first,
            row.last, row.author, row.time, row.source, row.stamp, tuple(sorted(over[row.id])), row.version,
        )
        for row in connection.execute(query.order_by(SPANS.c.first, SPANS.c.stamp, SPANS.c.id))
    )  # fmt: skip


def tracks(connection: Connection, video: str) -> tuple[TrackSummary, ...]:
    """The tracks of a video in numbers; instances without identity are one row per class."""
    key = (INSTANCES.c.grp, INSTANCES.c.name, INSTANCES.c.track)
    frame = INSTANCES.c.frame
    query = (
        select(*key, func.count().label("n"), func.min(frame).label("low"), func.max(frame).label("high"))
        .where(INSTANCES.c.video == video, INSTANCES.c.alive.is_(True))
        .group_by(*key)
    )
    summaries = [TrackSummary(Track(r.grp, r.name, r.track), r.n, r.low, r.high) for r in connection.execute(query)]
    return tuple(
        sorted(summaries, key=lambda summary: (summary.track.group, summary.track.name, summary.track.number or -1))
    )


def count_labels(
    connection: Connection, video: str | None = None, *, proposals: bool = True
) -> tuple[LabelledValues, ...]:
    """Every class with its values, and how often it occurs: of instances, and of the image where something is said."""
    key = (INSTANCES.c.grp, INSTANCES.c.name, INSTANCES.c.label)
    query = select(*key, func.count().label("n")).where(INSTANCES.c.alive.is_(True)).group_by(*key)
    if not proposals:
        query = query.where(INSTANCES.c.state != "proposal")
    images = select(FRAMES.c.label, func.count().label("n")).where(FRAMES.c.alive.is_(True)).group_by(FRAMES.c.label)
    if video is not None:
        query, images = query.where(INSTANCES.c.video == video), images.where(FRAMES.c.video == video)
    rows = [(r.grp, r.name, r.label, r.n) for r in connection.execute(query)]
    rows += [(IMAGE, IMAGE, r.label, r.n) for r in connection.execute(images)]
    labels = Labels(connection)
    labels.load(row[2] for row in rows)
    counted = [LabelledValues(group, name, labels.values(number), count) for group, name, number, count in rows]
    labelled = [label for label in counted if label.group != IMAGE or label.values]
    return tuple(sorted(labelled, key=lambda label: (label.group, label.name, sorted(label.values.items()))))


def find_instances(
    connection: Connection,
    matches: Callable[[LabelledValues], bool],
    video: str | None = None,
    *,
    proposal: bool | None = None,
    review: str | None = None,
    numbered: bool | None = None,
    unseen: tuple[str, int] | None = None,
    after: tuple[str, int, str] = ("", -1, ""),
    limit: int = 1000,
) -> tuple[Annotation, ...]:
    """Instances whose class and values match, in the order of video, frame and id, from behind `after` on.

    `matches` is asked once per combination that occurs, not once per instance: filters and quality rules over a whole
    project stay fast. `unseen` names a reviewer and a round: only frames without that mark count.
    """
    key = (INSTANCES.c.grp, INSTANCES.c.name, INSTANCES.c.label)
    where: list[ColumnElement[bool]] = [INSTANCES.c.alive.is_(True)]
    if video is not None:
        where.append(INSTANCES.c.video == video)
    if proposal is not None:
        where.append(INSTANCES.c.state == ("proposal" if proposal else "accepted"))
    if review is not None:
        where.append(INSTANCES.c.review == review)
    if numbered is not None:
        where.append(INSTANCES.c.track.is_not(None) if numbered else INSTANCES.c.track.is_(None))
    if unseen is not None:
        here = and_(REVIEWS.c.video == INSTANCES.c.video, REVIEWS.c.frame == INSTANCES.c.frame)
        mark = and_(REVIEWS.c.reviewer == unseen[0], REVIEWS.c.round == unseen[1], REVIEWS.c.alive.is_(True))
        where.append(~exists().where(here, mark))
    counted = connection.execute(select(*key, func.count().label("n")).where(*where).group_by(*key)).all()
    labels = Labels(connection)
    labels.load(row.label for row in counted)
    matching = [row for row in counted if matches(LabelledValues(row.grp, row.name, labels.values(row.label), row.n))]
    by_class: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in matching:
        by_class[row.grp, row.name].append(row.label)
    position = tuple_(INSTANCES.c.video, INSTANCES.c.frame, INSTANCES.c.id)
    annotations: list[Annotation] = []
    for (group, name), numbers in by_class.items():
        for part in chunks(sorted(numbers)):
            same = and_(INSTANCES.c.grp == group, INSTANCES.c.name == name, INSTANCES.c.label.in_(part))
            annotations += instances_where(connection, and_(*where, same, position > after), limit)
    annotations.sort(key=lambda annotation: (annotation.video, annotation.frame, annotation.id))
    return tuple(annotations[:limit])


def flags(connection: Connection, video: str | None = None) -> tuple[Flag, ...]:
    """The problem frames."""
    frame = and_(FRAMES.c.video == FLAGS.c.video, FRAMES.c.frame == FLAGS.c.frame)
    query = select(FLAGS, FRAMES.c.name).outerjoin(FRAMES, frame).where(FLAGS.c.alive.is_(True))
    if video is not None:
        query = query.where(FLAGS.c.video == video)
    rows = connection.execute(query.order_by(FLAGS.c.video, FLAGS.c.frame, FLAGS.c.reason))
    return tuple(Flag(row.video, row.frame, row.reason, row.note, row.author, row.name or "") for row in rows)


def reviews(connection: Connection, video: str, round_number: int | None = None) -> tuple[Review, ...]:
    """Who said what of which frame."""
    query = select(REVIEWS).where(REVIEWS.c.video == video, REVIEWS.c.alive.is_(True))
    if round_number is not None:
        query = query.where(REVIEWS.c.round == round_number)
    rows = connection.execute(query.order_by(REVIEWS.c.frame, REVIEWS.c.reviewer, REVIEWS.c.round))
    return tuple(Review(row.video, row.frame, row.reviewer, row.round, row.mark) for row in rows)


def schema(connection: Connection) -> Schema:
    """The schema in force."""
    return schema_in_force(connection)


def used_schemas(connection: Connection) -> tuple[Schema, ...]:
    """The schemas that were ever set, the latest first; of those with one name the latest."""
    query = select(OPERATIONS.c.payload).where(OPERATIONS.c.kind == "schema.set").order_by(OPERATIONS.c.seq.desc())
    schemas: dict[str, Schema] = {}
    for payload in connection.execute(query.limit(_SCHEMAS)).scalars():
        stored = json.loads(payload)
        if stored["name"] not in schemas:
            schemas[stored["name"]] = parse_schema(stored["source"], stored["name"])
    return tuple(schemas.values())


def setting(connection: Connection, key: str, owner: str = "") -> Any:
    """A setting's value; None where it was never set."""
    query = select(SETTINGS.c.value).where(SETTINGS.c.owner == owner, SETTINGS.c.key == key, SETTINGS.c.alive.is_(True))
    text = connection.execute(query).scalar()
    return None if text is None else json.loads(text)


def words(connection: Connection, video: str, first: int, last: int) -> dict[int, dict[str, Any]]:
    """What the files that frames were imported from said of them beyond labels, by frame."""
    # Not `between`: with a collation pg8000 makes a statement of it that the server does not take.
    inside = and_(SETTINGS.c.key >= words_key(video, first), SETTINGS.c.key <= words_key(video, last))
    query = select(SETTINGS.c.key, SETTINGS.c.value).where(
        SETTINGS.c.owner == WORDS, inside, SETTINGS.c.alive.is_(True)
    )
    return {int(row.key.rpartition(" ")[2]): json.loads(row.value) for row in connection.execute(query)}


def tally(connection: Connection) -> dict[str, int]:
    """How much there is of what only a project holds: proposals, spans, flagged frames, marks of reviewers."""
    alive = {"proposals": (INSTANCES, INSTANCES.c.state == "proposal"), "spans": (SPANS, true()),
             "marked instances": (INSTANCES, INSTANCES.c.review != ""), "marked frames": (REVIEWS, true())}  # fmt: skip
    counts = {
        name: int(connection.execute(select(func.count()).where(where, table.c.alive.is_(True))).scalar_one())
        for name, (table, where) in alive.items()
    }
    flagged = select(FLAGS.c.video, FLAGS.c.frame).where(FLAGS.c.alive.is_(True)).distinct().subquery()
    return {**counts, "flagged": int(connection.execute(select(func.count()).select_from(flagged)).scalar_one())}


def operations(connection: Connection, after: int = 0, limit: int | None = None) -> Iterator[LoggedOperation]:
    """The log from a version on."""
    query = select(OPERATIONS).where(OPERATIONS.c.seq > after).order_by(OPERATIONS.c.seq)
    for row in connection.execution_options(yield_per=200).execute(query if limit is None else query.limit(limit)):
        yield logged(row)


def operation(connection: Connection, id: str) -> LoggedOperation | None:
    """The operation that a client named so, where there is one."""
    row = connection.execute(select(OPERATIONS).where(OPERATIONS.c.id == id)).first()
    return None if row is None else logged(row)


def news(connection: Connection, after: int, most: int) -> tuple[News, ...]:
    """Who did what after a version, without the particulars; of many operations the newest."""
    log = OPERATIONS.c
    short = case((func.length(log.payload) < _SHORT, log.payload), else_="{}").label("payload")
    query = select(log.seq, log.author, log.session, log.time, log.kind, log.target, log.outcome, short)
    rows = connection.execute(query.where(log.seq > after).order_by(log.seq.desc()).limit(most))
    newest_first = [
        News(
            r.seq,
            r.author,
            r.session,
            r.time,
            r.kind,
            r.target,
            _video_of(r.payload),
            json.loads(r.outcome)[0],
        )
        for r in rows
    ]
    return tuple(reversed(newest_first))


def _video_of(payload: str) -> str | None:
    """The video that an operation names; none where its payload is not what was sent."""
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    video = fields.get("video") if isinstance(fields, dict) else None
    return video if isinstance(video, str) else None


def _frames(connection: Connection, where: ColumnElement[bool], limit: int | None = None) -> tuple[FrameState, ...]:
    query = (
        select(FRAMES, LABELS.c.text)
        .join(LABELS, LABELS.c.id == FRAMES.c.label)
        .where(where, FRAMES.c.alive.is_(True))
        .order_by(FRAMES.c.video, FRAMES.c.frame)
    )
    rows = connection.execute(query if limit is None else query.limit(limit))
    return tuple(FrameState(r.video, r.frame, r.name, r.time, json.loads(r.text), r.version) for r in rows)


def instances_where(
    connection: Connection, where: ColumnElement[bool], limit: int | None = None
) -> tuple[Annotation, ...]:
    """The instances that a condition holds for, in the order of video, frame and id."""
    query = (
        select(INSTANCES, LABELS.c.text)
        .join(LABELS, LABELS.c.id == INSTANCES.c.label)
        .where(where)
        .order_by(INSTANCES.c.video, INSTANCES.c.frame, INSTANCES.c.id)
    )
    return tuple(_annotation(row) for row in connection.execute(query if limit is None else query.limit(limit)))


def _annotation(row: Row[Any]) -> Annotation:
    try:
        drawn = json.loads(row.polygons) if row.polygons else []
        polygons = tuple(tuple((float(x), float(y)) for x, y in polygon) for polygon in drawn)
    except (ValueError, TypeError, RecursionError):
        name = f"row {row.id}"
        raise DataError("instances", "found something else, expected points", record=name, field="polygons") from None
    return Annotation(
        id=row.id,
        video=row.video,
        frame=row.frame,
        group=row.grp,
        name=row.name,
        box=Box(row.x, row.y, row.w, row.h),
        polygons=polygons,
        values=json.loads(row.text),
        track=row.track,
        track_by=row.track_by,
        source=row.source,
        score=row.score,
        proposal=row.state == "proposal",
        review=row.review,
        extra=_object(row.extra),
        version=row.version,
    )


def _object(text: str | None) -> Any:
    return None if text is None else json.loads(text)
