"""The agreement study: who answers on which segments, their answers, and what was decided where they differ.

Answers are rows of their own beside the labels. Only a decision changes labels, by the same means as any other edit.
Sentences that an annotator may get to read never name the class of an instance: the study is blind.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sqlalchemy import Row, and_, func, select

from surgeval.studio.schema import instrument_group
from surgeval.studio.store.checks import Fields
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.kinds.identity import set_track
from surgeval.studio.store.kinds.values import admitted, classify, set_values
from surgeval.studio.store.labels import Values, canonical, overlaid
from surgeval.studio.store.select import check_frames, instance_rows
from surgeval.studio.store.tables import ANSWERS, DECISIONS, INSTANCES, STUDIES
from surgeval.studio.store.work import Work, chunks

__all__ = ["add", "answer", "decide", "remove"]

_MOST_SEGMENTS = 1000
_CHOICES = ("keep", "annotator", "other")


def add(work: Work, fields: Fields) -> Effect:
    """A study: segments that do not overlap, and the annotators who are shown their boxes."""
    fields.only("id", "title", "group", "annotators", "segments", "seed")
    id = fields.id("id")
    if work.count(STUDIES, STUDIES.c.id == id):
        raise fields.error("id", id, "an id that no study had before")
    groups = work.schema.groups
    group = fields.text("group", instrument_group(work.schema))
    if group not in groups:
        raise fields.error("group", group, f"one of {', '.join(groups)}")
    row = {
        "id": id,
        "title": fields.text("title", id),
        "grp": group,
        "annotators": canonical(fields.people("annotators")),
        "segments": canonical(_segments(work, fields)),
        "seed": fields.whole("seed", 0),
        "author": work.author,
        "time": work.time,
    }
    return Effect(work.insert(STUDIES, [row]), created=(id,))


def remove(work: Work, fields: Fields) -> Effect:
    """Take a study away; its answers stay stored, and an undo brings it back."""
    row = _study(work, fields.only("study"))
    return Effect(work.touch(STUDIES, STUDIES.c.id == row.id, {"alive": False}))


def answer(work: Work, fields: Fields) -> Effect:
    """The author's answer on instances: their class, their values, or both; null takes one away."""
    fields.only("study", "ids", "name", "values")
    study = _study(work, fields)
    if work.author not in json.loads(study.annotators):
        raise fields.error("study", study.id, f"one that names {work.author} as an annotator")
    values, named = fields.values(), "name" in fields.data
    if not named and not values:
        raise fields.error("values", "nothing", "a class, values or both")
    name = fields.text("name") if fields.data.get("name") is not None else ""
    if name:
        work.schema.require(study.grp, name)
    ids = fields.ids("ids")
    _check_shown(work, fields, study, ids)
    known = _known_answers(work, study.id, ids)
    ids_by_answer: dict[tuple[str, str], list[str]] = defaultdict(list)
    skipped = 0
    for id in ids:
        row = known.get(id)
        old_name, old = (row.name, json.loads(row.vals)) if row is not None and row.alive else ("", {})
        new_name = name if named else old_name
        allowed = admitted(work, study.grp, new_name, values)
        skipped += len(allowed) < len(values)
        if allowed or named:
            ids_by_answer[new_name, canonical(overlaid(old, allowed))].append(id)
    if not ids_by_answer:
        raise fields.error(
            "values", ", ".join(map(str, values.values())), "values of the class that was answered before"
        )
    changed = sum(_write(work, study.id, those, known, *answer) for answer, those in sorted(ids_by_answer.items()))
    return Effect(changed, skipped)


def decide(work: Work, fields: Fields) -> Effect:
    """What holds for an instance on which people differ: the label as it is, an annotator's answer, or another."""
    fields.only("study", "instance", "choice", "annotator", "name", "values", "note")
    study, id = _study(work, fields), fields.id("instance")
    row = instance_rows(work, fields.path, [id])[0]
    if row.grp != study.grp or not _inside(study, row):
        raise fields.error("instance", id, "an instance that the study shows")
    same = and_(DECISIONS.c.study == study.id, DECISIONS.c.instance == id)
    work.check(DECISIONS, same)
    choice = fields.choice("choice", _CHOICES)
    name, values = _decided(work, fields, study, choice)
    before = work.labels.values(row.label)
    differing = {key: value for key, value in values.items() if before.get(key) != value}
    changed = _relabel(work, fields, row, name, differing)
    after = instance_rows(work, fields.path, [id])[0]
    number = work.connection.execute(select(func.coalesce(func.max(DECISIONS.c.number), 0)).where(same)).scalar_one()
    decision = {
        "study": study.id,
        "instance": id,
        "number": int(number) + 1,
        "choice": choice,
        "annotator": fields.text("annotator") if choice == "annotator" else "",
        "name_before": row.name,
        "vals_before": canonical(before),
        "name_after": after.name,
        "vals_after": canonical(work.labels.values(after.label)),
        "note": fields.text("note", "", 2000, empty=True),
        "author": work.author,
        "time": work.time,
    }
    work.insert(DECISIONS, [decision])
    return Effect(changed)


def _study(work: Work, fields: Fields, name: str = "study") -> Row[Any]:
    id = fields.id(name)
    row = work.connection.execute(select(STUDIES).where(STUDIES.c.id == id, STUDIES.c.alive.is_(True))).first()
    if row is None:
        raise fields.error(name, id, "a study of the project")
    return row


def _segments(work: Work, fields: Fields) -> list[list[Any]]:
    segments: list[list[Any]] = []
    objects = fields.objects("segments")
    if len(objects) > _MOST_SEGMENTS:
        raise fields.error("segments", f"{len(objects)} segments", f"at most {_MOST_SEGMENTS}")
    for segment in objects:
        video, (first, last) = segment.only("video", "first", "last").id("video"), segment.frames()
        check_frames(work, segment.path, video, [first, last])
        segments.append([video, first, last])
    ordered = sorted(segments)
    for (video, _, last), (other, first, _) in pairwise(ordered):
        if video == other and first <= last:
            raise fields.error("segments", f"two that share frame {first} of {video}", "segments that do not overlap")
    return segments


def _inside(study: Row[Any], row: Row[Any]) -> bool:
    return any(row.video == video and first <= row.frame <= last for video, first, last in json.loads(study.segments))


def _check_shown(work: Work, fields: Fields, study: Row[Any], ids: Sequence[str]) -> None:
    rows = {row.id: row for part in chunks(ids) for row in work.rows(select(INSTANCES).where(INSTANCES.c.id.in_(part)))}
    for id in ids:
        row = rows.get(id)
        there = row is not None and row.alive and row.state == "accepted" and row.grp == study.grp
        if row is None or not there or not _inside(study, row):
            raise fields.error("ids", id, "an instance that the study shows")


def _known_answers(work: Work, study: str, ids: Sequence[str]) -> dict[str, Row[Any]]:
    """The author's answers on these instances, also those that were taken back."""
    mine = and_(ANSWERS.c.study == study, ANSWERS.c.annotator == work.author)
    return {
        row.instance: row
        for part in chunks(ids)
        for row in work.rows(select(ANSWERS).where(mine, ANSWERS.c.instance.in_(part)))
    }


def _write(work: Work, study: str, ids: list[str], known: dict[str, Row[Any]], name: str, vals: str) -> int:
    """One answer for several instances; one that says nothing is no answer."""
    mine = and_(ANSWERS.c.study == study, ANSWERS.c.annotator == work.author)
    change = {"name": name, "vals": vals, "alive": bool(name) or vals != canonical({})}
    there = [id for id in ids if id in known]
    changed = sum(work.touch(ANSWERS, and_(mine, ANSWERS.c.instance.in_(part)), change) for part in chunks(there))
    if not change["alive"]:
        return changed
    key = {"study": study, "annotator": work.author, "name": name, "vals": vals}
    return changed + work.insert(ANSWERS, [{**key, "instance": id} for id in ids if id not in known])


def _decided(work: Work, fields: Fields, study: Row[Any], choice: str) -> tuple[str, dict[str, str | None]]:
    """The class and values that are to hold; nothing where all stays as it is."""
    if choice == "keep":
        return "", {}
    if choice == "other":
        name, values = fields.text("name", "", empty=True), fields.values()
        if not name and not values:
            raise fields.error("values", "nothing", "a class, values or both")
        return name, values
    annotator, id = fields.text("annotator"), fields.id("instance")
    where = and_(ANSWERS.c.study == study.id, ANSWERS.c.annotator == annotator, ANSWERS.c.instance == id)
    row = work.connection.execute(select(ANSWERS).where(where, ANSWERS.c.alive.is_(True))).first()
    if row is None:
        raise fields.error("annotator", annotator, "one who gave an answer on this instance")
    answered: Values = json.loads(row.vals)
    return row.name, dict(answered)


def _relabel(work: Work, fields: Fields, row: Row[Any], name: str, values: dict[str, str | None]) -> int:
    """Another class and other values for one instance, as by hand; how many rows that changed: it is one or none."""
    changed = 0
    if name and name != row.name:
        same = [INSTANCES.c[key] == getattr(row, key) for key in ("video", "frame", "grp", "track")]
        if work.count(INSTANCES, and_(*same, INSTANCES.c.name == name, INSTANCES.c.alive.is_(True))):
            set_track(work, Fields(fields.path, {"ids": [row.id], "number": None}))  # its number is taken there
        changed = classify(work, Fields(fields.path, {"ids": [row.id], "group": row.grp, "name": name})).changed
    if values:
        changed = set_values(work, Fields(fields.path, {"ids": [row.id], "values": values})).changed
    return changed
