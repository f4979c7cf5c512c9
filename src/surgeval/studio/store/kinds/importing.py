"""Labels from elsewhere as one operation: instances, what is said of whole frames, problem frames, files' own words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, select, tuple_

from surgeval.studio.store.checks import Fields
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.kinds.instances import insert_instances, instance_fields
from surgeval.studio.store.kinds.values import said_change
from surgeval.studio.store.select import check_frames
from surgeval.studio.store.tables import FLAGS, FRAMES, INSTANCES, SETTINGS
from surgeval.studio.store.work import WORDS, Work, chunks, words_key

__all__ = ["check_taken", "take_in"]

_MAX_WORDS = 1_000_000  # characters of one frame


def check_taken(name: str, row: Mapping[str, Any]) -> None:
    r"""Refuse a row of the list `name` that `take_in` would refuse, so that an import can leave it out by itself.

    >>> check_taken("flags", {"video": "V1", "frame": 3, "reason": "smoke"})  # says nothing: it would be taken
    >>> check_taken("flags", {"video": "V1", "frame": 3, "reason": "smoke\0"})
    Traceback (most recent call last):
    surgeval.errors.BadInput: flags: reason: found 'smoke\x00', expected text of 1 to 200 characters
    """
    {"instances": instance_fields, "images": _said, "flags": _flagged, "words": _kept}[name](Fields(name, row))


def take_in(work: Work, fields: Fields) -> Effect:
    """Take labels in; with `replace` the instances of the named frames go first. Values that the schema lacks stay."""
    fields.only("instances", "images", "flags", "words", "replace")
    lists = {name: fields.objects(name) if fields.data.get(name) else [] for name in fields.data}
    if not any(lists.values()):
        raise fields.error("instances", "nothing", "something to take in")
    removed = sum(_remove(work, removal) for removal in lists.get("replace", []))
    changed = _say(work, lists.get("images", [])) + _flag(work, lists.get("flags", []))
    _keep_words(work, lists.get("words", []))
    if lists.get("instances"):
        changed += insert_instances(work, fields, lists["instances"])
    return Effect(changed, skipped=removed)


def _remove(work: Work, fields: Fields) -> int:
    """Take away every instance of some frames of a video."""
    video, frames = fields.only("video", "frames").id("video"), fields.items("frames")
    if not all(isinstance(frame, int) and not isinstance(frame, bool) and frame >= 0 for frame in frames):
        raise fields.error("frames", "another kind of value", "whole numbers")
    return sum(
        work.touch(
            INSTANCES,
            and_(INSTANCES.c.video == video, INSTANCES.c.frame.in_(part), INSTANCES.c.alive.is_(True)),
            {"alive": False},
        )
        for part in chunks(frames)
    )


def _say(work: Work, images: Sequence[Fields]) -> int:
    """Values of whole frames; a frame that says so already is left alone."""
    wanted: dict[str, dict[int, dict[str, str | None]]] = {}
    for image in images:
        video, frame, values = _said(image)
        wanted.setdefault(video, {})[frame] = values
    changed = 0
    for video, by_frame in sorted(wanted.items()):
        check_frames(work, "images", video, sorted(by_frame))
        alike: dict[tuple[int, int], list[int]] = {}
        for part in chunks(sorted(by_frame)):
            inside = and_(FRAMES.c.video == video, FRAMES.c.frame.in_(part))
            for row in work.rows(select(FRAMES.c.frame, FRAMES.c.own, FRAMES.c.label).where(inside)):
                change = said_change(work, row.own, row.label, by_frame[row.frame])
                if change["label"] != row.label:
                    alike.setdefault((change["own"], change["label"]), []).append(row.frame)
        for (own, label), frames in sorted(alike.items()):
            for part in chunks(sorted(frames)):
                where = and_(FRAMES.c.video == video, FRAMES.c.frame.in_(part))
                changed += work.touch(FRAMES, where, {"own": own, "label": label})
    return changed


def _flag(work: Work, flags: Sequence[Fields]) -> int:
    """Problem frames; one that is flagged for that reason already stays as it is."""
    rows: dict[tuple[str, int, str], dict[str, Any]] = {}
    for flag in flags:
        video, frame, reason, note = _flagged(flag)
        row = {"video": video, "frame": frame, "reason": reason, "note": note, "author": work.author}
        rows[video, frame, reason] = row
    for video in sorted({key[0] for key in rows}):
        check_frames(work, "flags", video, sorted({key[1] for key in rows if key[0] == video}))
    flag_key = tuple_(FLAGS.c.video, FLAGS.c.frame, FLAGS.c.reason)
    changed, new = 0, dict(rows)
    for part in chunks(sorted(rows)):
        for known in work.rows(select(FLAGS).where(flag_key.in_(part))):
            key = (known.video, known.frame, known.reason)
            row = new.pop(key)
            if not known.alive:
                change = {"note": row["note"], "author": row["author"], "alive": True}
                changed += work.touch(FLAGS, flag_key.in_([key]), change)
    return changed + work.insert(FLAGS, list(new.values()))


def _keep_words(work: Work, words: Sequence[Fields]) -> None:
    """What files said of frames beyond labels, for writing back."""
    rows: dict[str, dict[str, Any]] = {}
    for frame_words in words:
        key, value = _kept(frame_words)
        rows[key] = {"owner": WORDS, "key": key, "value": value}
    known: set[str] = set()
    for part in chunks(sorted(rows)):
        query = select(SETTINGS.c.key).where(SETTINGS.c.owner == WORDS, SETTINGS.c.key.in_(part))
        known |= {row.key for row in work.rows(query)}
    for key in sorted(known):
        work.touch(SETTINGS, and_(SETTINGS.c.owner == WORDS, SETTINGS.c.key == key),
                   {"value": rows[key]["value"], "alive": True})  # fmt: skip
    work.insert(SETTINGS, [row for key, row in sorted(rows.items()) if key not in known])


def _said(fields: Fields) -> tuple[str, int, dict[str, str | None]]:
    fields.only("video", "frame", "values")
    return fields.id("video"), fields.whole("frame"), fields.values(required=True)


def _flagged(fields: Fields) -> tuple[str, int, str, str]:
    fields.only("video", "frame", "reason", "note")
    return fields.id("video"), fields.whole("frame"), fields.text("reason"), fields.text("note", "", 500, empty=True)


def _kept(fields: Fields) -> tuple[str, str]:
    """The key of a frame's words, and these as text."""
    fields.only("video", "frame", "words")
    value = json.dumps(fields.data.get("words"), ensure_ascii=False, sort_keys=True)
    if not isinstance(fields.data.get("words"), dict) or len(value) > _MAX_WORDS or "\\u0000" in value:
        raise fields.error("words", f"{len(value)} characters", f"an object of at most {_MAX_WORDS}")
    return words_key(fields.id("video"), fields.whole("frame")), value
