"""Who is who: numbers of instances, set by hand, by a rule, or for a whole stretch of a track.

An identity operation never overwrites values. A stretch that is renamed takes its spans along (cut at the edges of the
stretch); single instances that change their number keep what they show as said of themselves.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, or_, select

from surgeval.errors import BadInput
from surgeval.studio.store.checks import Fields
from surgeval.studio.store.cover import alive_spans, cover_of, refresh, rows_of, tracks_text
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.kinds.instances import fill_from_spans
from surgeval.studio.store.records import Track
from surgeval.studio.store.select import CORRECTED, check_video, instance_rows, track_frames
from surgeval.studio.store.tables import INSTANCES, SPANS
from surgeval.studio.store.work import Work, chunks, rows_given

__all__ = ["check_collisions", "freeze", "merge", "renumber", "set_range", "set_track", "split", "swap"]

END = 2**53  # beyond every frame


def set_track(work: Work, fields: Fields) -> Effect:
    """A number for instances, by hand; None takes it away."""
    fields.only("ids", "number")
    return _assign(work, fields, {fields.optional_whole("number"): fields.ids("ids")}, "hand")


def renumber(work: Work, fields: Fields) -> Effect:
    """Numbers that a rule found for the instances of a range; those set by hand stay as they are."""
    fields.only("ids", "numbers", "by")
    by = fields.choice("by", ("rule", "upstream"), "rule")
    ids, numbers = fields.ids("ids"), fields.optional_wholes("numbers")
    if len(numbers) != len(ids):
        raise fields.error("numbers", f"{len(numbers)} numbers", f"{len(ids)}, one for each id")
    places, fixed = _places(work, fields, ids)
    ours = and_(INSTANCES.c.alive.is_(True), or_(INSTANCES.c.track_by.is_(None), INSTANCES.c.track_by != "hand"))
    rows = [{"id": id, "track": number} for id, number in zip(ids, numbers, strict=True)]
    track_by = case((INSTANCES.c.track.is_(None), None), else_=by)
    changed = work.touch_rows(INSTANCES, rows, ours, {})
    touched = work.touched(INSTANCES)
    work.touch(INSTANCES, touched, {"track_by": track_by})
    freeze(work, touched)
    check_collisions(work, fields.path)
    number_of = dict(zip(ids, numbers, strict=True))
    fill_from_spans(work, ((video, Track(group, name, number_of[id]), frame)
                           for id, video, group, name, frame in places))  # fmt: skip
    return Effect(changed, fixed)


def set_range(work: Work, fields: Fields) -> Effect:
    """Another number for a track over a range of frames; refused where that number exists there already."""
    fields.only("video", "group", "name", "number", "to", "first", "last")
    video, track, (first, last) = fields.id("video"), fields.track(), fields.frames()
    check_video(work, fields.path, video)
    return _rename(work, fields, video, {track: Track(track.group, track.name, fields.whole("to"))}, first, last)


def swap(work: Work, fields: Fields) -> Effect:
    """Two tracks of one class exchange their numbers from a frame on."""
    fields.only("video", "group", "name", "first_number", "second_number", "at")
    video, first, second = _two_tracks(work, fields, "first_number", "second_number")
    return _rename(work, fields, video, {first: second, second: first}, fields.whole("at"), END)


def merge(work: Work, fields: Fields) -> Effect:
    """One track takes another in; refused where both exist in one frame."""
    fields.only("video", "group", "name", "keep", "other")
    video, keep, other = _two_tracks(work, fields, "keep", "other")
    return _rename(work, fields, video, {other: keep}, 0, END)


def split(work: Work, fields: Fields) -> Effect:
    """From a frame on a track gets a new number; the earlier part keeps its own."""
    fields.only("video", "group", "name", "number", "at")
    video, track, at = fields.id("video"), fields.track(), fields.whole("at")
    check_video(work, fields.path, video)
    inside = and_(INSTANCES.c.video == video, INSTANCES.c.grp == track.group, INSTANCES.c.name == track.name)
    largest = work.connection.execute(select(func.coalesce(func.max(INSTANCES.c.track), 0)).where(inside)).scalar_one()
    used = [t.number or 0 for span in alive_spans(work.connection, video) for t in span.tracks
            if (t.group, t.name) == (track.group, track.name)]  # fmt: skip
    new = Track(track.group, track.name, max([int(largest), *used]) + 1)
    effect = _rename(work, fields, video, {track: new}, at, END)
    return Effect(effect.changed, created=(str(new.number),))


def freeze(work: Work, where: ColumnElement[bool]) -> None:
    """What these instances show becomes what was said of themselves, now."""
    labels = sorted(row.label for row in work.rows(select(INSTANCES.c.label).where(where).distinct()))
    work.labels.load(labels)
    for label in labels:
        own = work.labels.own_number({key: (value, work.seq) for key, value in work.labels.values(label).items()})
        work.touch(INSTANCES, and_(where, INSTANCES.c.label == label), {"own": own})


def check_collisions(work: Work, kind: str) -> None:
    """Refuse two instances of one track in one frame, if this operation made them so; names the first frame."""
    instance, other = INSTANCES, INSTANCES.alias("other")
    query = (
        select(instance.c.video, instance.c.frame, instance.c.name, instance.c.track)
        .where(
            work.touched(INSTANCES),
            instance.c.alive.is_(True),
            other.c.alive.is_(True),
            instance.c.id != other.c.id,
            *(instance.c[name] == other.c[name] for name in ("video", "frame", "grp", "name", "track")),
        )
        .order_by(instance.c.video, instance.c.frame)
        .limit(1)
    )
    row = work.connection.execute(query).first()
    if row is not None:
        raise BadInput(
            f"{kind}: found {row.name} #{row.track} twice in frame {row.frame} of {row.video}, "
            "expected one instance of a track in a frame",
            code="track-twice-in-frame",
            parts={"name": row.name, "track": row.track, "frame": row.frame, "video": row.video},
        )


def _two_tracks(work: Work, fields: Fields, first: str, second: str) -> tuple[str, Track, Track]:
    """The video, and two tracks of one class whose numbers are in these fields."""
    video, group, name = fields.id("video"), fields.text("group"), fields.text("name")
    check_video(work, fields.path, video)
    track, other = Track(group, name, fields.whole(first)), Track(group, name, fields.whole(second))
    if track == other:
        raise fields.error(second, other.number, "another track")
    return video, track, other


def _places(work: Work, fields: Fields, ids: list[str]) -> tuple[list[tuple[str, str, str, str, int]], int]:
    """Where instances are (id, video, group, class, frame) whose number is not set by hand, and how many others."""
    wanted = rows_given(work.connection, INSTANCES, ["id"], [{"id": id} for id in ids])
    table = INSTANCES.c
    query = select(table.id, table.video, table.grp, table.name, table.frame, table.track_by)
    rows = work.rows(query.where(table.id == wanted.c.id, table.alive.is_(True)))
    if len(rows) < len(ids):
        instance_rows(work, fields.path, ids)  # says which one is not there, and why
    places = [(row.id, row.video, row.grp, row.name, row.frame) for row in rows if row.track_by != "hand"]
    return places, len(rows) - len(places)


def _assign(work: Work, fields: Fields, numbers: dict[int | None, list[str]], by: str) -> Effect:
    changed = 0
    everything = [id for ids in numbers.values() for id in ids]
    rows = instance_rows(work, fields.path, everything)
    for number, ids in sorted(numbers.items(), key=str):
        for part in chunks(ids):
            where = INSTANCES.c.id.in_(part)
            change = {"track": number, "track_by": None if number is None else by, **CORRECTED}
            changed += work.touch(INSTANCES, where, change)
            freeze(work, where)
    check_collisions(work, fields.path)
    number_of = {id: number for number, ids in numbers.items() for id in ids}
    fill_from_spans(work, ((row.video, Track(row.grp, row.name, number_of[row.id]), row.frame) for row in rows))
    return Effect(changed)


def _rename(work: Work, fields: Fields, video: str, names: dict[Track, Track], first: int, last: int) -> Effect:
    """Tracks of one class under other numbers within a range, with their spans."""
    tracks = list(names)
    known = [track_frames(work, video, track) for track in tracks]
    if not any(known):
        raise fields.error("number", " and ".join(map(str, tracks)), f"a track of video {video}")
    group, name = tracks[0].group, tracks[0].name
    numbers = [track.number for track in tracks]
    if None in numbers:
        _, where = rows_of(video, tracks[0], first, last)
        change: dict[str, Any] = {"track": names[tracks[0]].number, "track_by": "hand"}
    else:
        where = and_(
            INSTANCES.c.video == video,
            INSTANCES.c.grp == group,
            INSTANCES.c.name == name,
            INSTANCES.c.track.in_(numbers),
            INSTANCES.c.frame.between(first, last),
            INSTANCES.c.alive.is_(True),
        )
        new = case({old.number: new.number for old, new in names.items()}, value=INSTANCES.c.track)
        change = {"track": new, "track_by": "hand"}
    changed = work.touch(INSTANCES, where, change)
    if set(names) != set(names.values()):  # a swap makes no new pairs
        check_collisions(work, fields.path)
    _retarget(work, video, names, first, last)
    for track in sorted({*names, *names.values()}, key=str):
        refresh(work, video, track, first, last)
    return Effect(changed)


def _retarget(work: Work, video: str, names: dict[Track, Track], first: int, last: int) -> None:
    """Spans of renamed tracks follow them: cut at the edges of the range, and inside it under the new names."""
    query = select(SPANS).where(SPANS.c.video == video, SPANS.c.alive.is_(True)).order_by(SPANS.c.stamp, SPANS.c.id)
    pieces = 0
    for row in work.rows(query):
        cover = cover_of(row)
        if not cover.covers(first, last) or not any(track in names for track in cover.tracks):
            continue
        renamed = tracks_text(dict.fromkeys(names.get(track, track) for track in cover.tracks))
        inner = (max(cover.first, first), min(cover.last, last))
        outer = [(cover.first, first - 1), (last + 1, cover.last)]
        work.touch(SPANS, SPANS.c.id == row.id, {"tracks": renamed, "first": inner[0], "last": inner[1]})
        for start, end in outer:
            if start <= end:
                piece = {**row._mapping, "id": f"{work.id}.{pieces}", "first": start, "last": end}
                for column in ("alive", "version", "made_by"):
                    del piece[column]
                work.insert(SPANS, [piece])
                pieces += 1
