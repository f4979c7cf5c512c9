"""Saying what an instance or a frame is: values by hand, another class, and one value replaced over the project."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, select

from surgeval.studio.schema import IMAGE, refine, rules_from
from surgeval.studio.store.checks import Fields
from surgeval.studio.store.cover import refresh
from surgeval.studio.store.effect import Effect
from surgeval.studio.store.kinds.identity import check_collisions, freeze
from surgeval.studio.store.kinds.instances import fill_from_spans
from surgeval.studio.store.labels import Own, Values, canonical, overlaid
from surgeval.studio.store.records import Track
from surgeval.studio.store.select import CORRECTED, check_frames, instance_rows
from surgeval.studio.store.tables import FRAMES, INSTANCES, SPANS
from surgeval.studio.store.work import Work, chunks

__all__ = [
    "admitted", "classify", "refine_labels", "replace", "replace_several", "said_change", "set_image_values",
    "set_values",
]  # fmt: skip


def admitted(work: Work, group: str, name: str, values: Mapping[str, str | None]) -> dict[str, str | None]:
    """The values that the schema lets this class have; taking a value away is always allowed."""
    return {key: value for key, value in values.items() if value is None or work.schema.admits(group, name, key, value)}


def set_values(work: Work, fields: Fields) -> Effect:
    """Values of instances, where their class admits them; refused where none does."""
    fields.only("ids", "values")
    values = fields.values(required=True)
    rows = instance_rows(work, fields.path, fields.ids("ids"))
    kinds = sorted({(row.grp, row.name, row.own, row.label) for row in rows})
    allowed = {(group, name): admitted(work, group, name, values) for group, name, _, _ in kinds}
    skipped = sum(len(allowed[row.grp, row.name]) < len(values) for row in rows)
    if not any(allowed.values()):
        listed = ", ".join(f"{key} {value}" for key, value in values.items())
        raise fields.error("values", listed, f"values that the schema admits for {rows[0].grp}.{rows[0].name}")
    changed = 0
    for group, name, own, label in kinds:
        if not allowed[group, name]:
            continue
        change = {**said_change(work, own, label, allowed[group, name]), **CORRECTED}
        ids = [row.id for row in rows if (row.grp, row.name, row.own, row.label) == (group, name, own, label)]
        changed += sum(work.touch(INSTANCES, INSTANCES.c.id.in_(part), change) for part in chunks(ids))
    return Effect(changed, skipped)


def set_image_values(work: Work, fields: Fields) -> Effect:
    """Values of whole frames, by hand."""
    fields.only("video", "first", "last", "values")
    video, (first, last) = fields.id("video"), fields.frames()
    values = fields.values(required=True)
    check_frames(work, fields.path, video, [first, last])
    if admitted(work, IMAGE, IMAGE, values) != values:
        listed = ", ".join(f"{key} {value}" for key, value in values.items())
        raise fields.error("values", listed, "values that the schema admits for the image")
    inside = and_(FRAMES.c.video == video, FRAMES.c.frame.between(first, last), FRAMES.c.alive.is_(True))
    kinds = work.rows(select(FRAMES.c.own, FRAMES.c.label).where(inside).distinct())
    changed = 0
    for own, label in sorted(tuple(kind) for kind in kinds):
        where = and_(inside, FRAMES.c.own == own, FRAMES.c.label == label)
        changed += work.touch(FRAMES, where, said_change(work, own, label, values))
    return Effect(changed)


def classify(work: Work, fields: Fields) -> Effect:
    """Another class for instances. Their values and number stay; what the new class does not admit is marked."""
    fields.only("ids", "group", "name")
    member = work.schema.require(fields.text("group"), fields.text("name"))
    ids = fields.ids("ids")
    instance_rows(work, fields.path, ids)
    changed = 0
    for part in chunks(ids):
        where = INSTANCES.c.id.in_(part)
        changed += work.touch(INSTANCES, where, {"grp": member.group, "name": member.name, **CORRECTED})
        freeze(work, where)
    check_collisions(work, fields.path)
    fill_from_spans(work, ((row.video, Track(row.grp, row.name, row.track), row.frame)
                           for row in instance_rows(work, fields.path, ids)))  # fmt: skip
    return Effect(changed)


def replace(work: Work, fields: Fields) -> Effect:
    """One value, or one class (without `attribute`), replaced wherever it occurs, in spans too."""
    fields.only("group", "name", "attribute", "old", "new")
    group, old, new = fields.text("group"), fields.text("old", longest=2000), fields.text("new", longest=2000)
    if not fields.data.get("attribute"):
        return _replace_class(work, fields, group, old, new)
    name, attribute = fields.text("name"), fields.text("attribute")
    if not work.schema.admits(group, name, attribute, new):
        raise fields.error("new", new, f"a value that the schema admits for {group}.{name}.{attribute}")

    def replaced(_values: Values, own: Own) -> Own:
        return {key: (new, stamp) if (key, value) == (attribute, old) else (value, stamp)
                for key, (value, stamp) in own.items()}  # fmt: skip

    _replace_in_spans(work, f"{group}.{name}", attribute, old, new)
    changed = _rewrite(work, group, name, replaced, lambda values: _swapped(values, attribute, old, new))
    return Effect(changed)


def replace_several(work: Work, fields: Fields) -> Effect:
    """Several values or classes replaced at once: what a switch of schema left unknown gets its new names."""
    fields.only("rows")
    return Effect(sum(replace(work, row).changed for row in fields.objects("rows")))


def refine_labels(work: Work, fields: Fields) -> Effect:
    """Merge values by rules (appendix A.4), as one operation."""
    fields.only("rules")
    rules = rules_from({"rules": fields.items("rules")}, fields.path)
    changed = 0
    for group, name in sorted({(rule.group, rule.name) for rule in rules}):

        def own_after(values: Values, own: Own, group: str = group, name: str = name) -> Own:
            after = refine(rules, group, name, values)
            return work.labels.said(own, {key: after[key] for key in after if after[key] != values.get(key)}, work.seq)

        def after(values: Values, group: str = group, name: str = name) -> Values:
            return refine(rules, group, name, values)

        changed += _rewrite(work, group, name, own_after, after)
    return Effect(changed)


def _rewrite(
    work: Work,
    group: str,
    name: str,
    own_after: Callable[[Values, Own], Own],
    label_after: Callable[[Values], Values],
) -> int:
    """Change own and label of every row of a class, one statement per combination that occurs."""
    table, where = _class_rows(group, name)
    kinds = work.rows(select(table.c.own, table.c.label).where(where).distinct())
    work.labels.load(number for kind in kinds for number in kind)
    changed = 0
    for own, label in sorted(tuple(kind) for kind in kinds):
        values = work.labels.values(label)
        new_own = work.labels.own_number(own_after(values, work.labels.own(own)))
        new_label = work.labels.number(label_after(values))
        if (new_own, new_label) != (own, label):
            rows = and_(where, table.c.own == own, table.c.label == label)
            changed += work.touch(table, rows, {"own": new_own, "label": new_label})
    return changed


def _class_rows(group: str, name: str) -> tuple[Table, ColumnElement[bool]]:
    if group == IMAGE:
        return FRAMES, FRAMES.c.alive.is_(True)
    return INSTANCES, and_(INSTANCES.c.grp == group, INSTANCES.c.name == name, INSTANCES.c.alive.is_(True))


def _replace_class(work: Work, fields: Fields, group: str, old: str, new: str) -> Effect:
    work.schema.require(group, new)
    where = and_(INSTANCES.c.grp == group, INSTANCES.c.name == old, INSTANCES.c.alive.is_(True))
    changed = work.touch(INSTANCES, where, {"name": new})
    check_collisions(work, fields.path)
    touched: set[tuple[str, Track, int, int]] = set()
    for row in work.rows(select(SPANS).where(SPANS.c.alive.is_(True)).order_by(SPANS.c.id)):
        tracks, written = json.loads(row.tracks), json.loads(row.written)
        if not any(track[:2] == [group, old] for track in tracks):
            continue
        renamed = [[g, new if (g, n) == (group, old) else n, number] for g, n, number in tracks]
        unique = [track for position, track in enumerate(renamed) if track not in renamed[:position]]
        values = written.pop(f"{group}.{old}", {})
        written = {**written, f"{group}.{new}": {**values, **written.get(f"{group}.{new}", {})}}
        change = {
            "tracks": json.dumps(unique, ensure_ascii=False, separators=(",", ":")),
            "written": canonical(written),
        }
        work.touch(SPANS, SPANS.c.id == row.id, change)
        touched |= {(row.video, Track(*track), row.first, row.last) for track in unique}
    for video, track, first, last in sorted(touched, key=str):
        refresh(work, video, track, first, last)
    return Effect(changed)


def _replace_in_spans(work: Work, key: str, attribute: str, old: str, new: str) -> None:
    for row in work.rows(select(SPANS).where(SPANS.c.alive.is_(True)).order_by(SPANS.c.id)):
        written, values = json.loads(row.written), json.loads(row.vals)
        if written.get(key, {}).get(attribute) != old:
            continue
        written[key][attribute] = new
        change: dict[str, Any] = {"written": canonical(written)}
        if set(written) == {key}:
            change["vals"] = canonical(_swapped(values, attribute, old, new))
        work.touch(SPANS, SPANS.c.id == row.id, change)


def _swapped(values: Mapping[str, str], attribute: str, old: str, new: str) -> Values:
    return {key: new if (key, value) == (attribute, old) else value for key, value in values.items()}


def said_change(work: Work, own: int, label: int, values: Mapping[str, str | None]) -> dict[str, int]:
    """The columns of a row after more was said of it."""
    new_own = work.labels.own_number(work.labels.said(work.labels.own(own), values, work.seq))
    return {"own": new_own, "label": work.labels.number(overlaid(work.labels.values(label), values))}
