"""A line of `items.jsonl`: every field checked, and the links between items."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from surgeval.datasets.io.fixations import FixationReader
from surgeval.datasets.io.json import UNREAD, read_lines, told_json
from surgeval.datasets.io.layout import inside
from surgeval.files import Location, OnProblem, format_value, raise_errors
from surgeval.records import IntentQuestion, OptionLabel

SKILLS = {"spatial": ("absolute", "relative"), "temporal": ("prospective", "retrospective"),
          "standard": ("discrete", "continuous")}  # fmt: skip
LINKS = ("untrapped", "twin")
_LONGEST_OPTION = 10_000  # characters: replies are searched for each option's text
_LABELS = ("visible", "absent", "accepts", "rejects")


def read_intent_items(
    path: str | Path, on_problem: OnProblem = raise_errors, root: str | Path | None = None
) -> Iterator[IntentQuestion]:
    """The questions of a file, line by line; media must lie inside `root` (default: `media_home` of the file).

    >>> import json, tempfile
    >>> item = {"id": "i1", "scenario": "chest_xray", "cluster": "P1", "media": [], "dimension": "spatial",
    ...         "skill": "absolute", "question": "Where is it?", "options": ["left", "right"], "answer": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.jsonl").write_text(json.dumps(item))
    ...     [(item.id, item.options[item.answer]) for item in read_intent_items(f"{folder}/items.jsonl")]
    [('i1', 'right')]
    >>> list(read_intent_items(Path("no/such/items.jsonl")))
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/items.jsonl: found no such file, expected a file
    """
    path = Path(path)
    root = None if root is None else Path(root)
    place = Location(str(path), on_problem)
    seen: dict[str, IntentQuestion] = {}
    lines: dict[str, Location] = {}
    home, fixations = root or media_home(path), FixationReader()
    for number, line in read_lines(path, on_problem):
        here = place.at(f"line {number}")
        value = told_json(line, here)
        record = here.mapping(value) if value is not UNREAD else None
        item = _item(record, here, path.parent, home, fixations) if record is not None else None
        if item and item.id in seen:
            here.error("id-duplicate", f"found {format_value(item.id)}, expected each question once", "id")
        elif item:
            seen[item.id], lines[item.id] = item, here
            yield item
    fixations.report(place)
    for item in seen.values():
        _check_links(item, seen, lines[item.id])


def _check_links(item: IntentQuestion, items: Mapping[str, IntentQuestion], place: Location) -> None:
    """Twins are in the file, and a true-premise twin has the options of its trap and another right one."""
    for field in LINKS:
        name = getattr(item, field)
        if name is not None and (name not in items or name == item.id):
            place.error(
                "reference-missing", f"found {format_value(name)}, expected the id of another item of this file", field
            )
        elif name is not None and field == "twin":
            twin = items[name]
            if set(twin.options) != set(item.options) or twin.options[twin.answer] == item.options[item.answer]:
                expected = "the same options as here, and another right one"
                place.error(
                    "labels-differ",
                    f"found {format_value(name)} with {format_value(list(twin.options))}, expected {expected}",
                    field,
                )


def media_home(path: Path) -> Path:
    """The folder that media may not leave: the phantom around the file, else the file's own folder."""
    for steps in range(3):
        folder = Path(os.path.normpath(path.parent.joinpath(*[".."] * steps)))
        if (folder / "phantom.json").is_file():
            return folder
    return path.parent


def _item(
    record: dict[str, Any], place: Location, folder: Path, home: Path, fixations: FixationReader
) -> IntentQuestion | None:
    name = place.text(record.get("id"), "id")
    if name is None:
        return None
    here = place.at(f"{place.record}, item {name[:60]}")
    texts = [here.text(record.get(key), key) for key in ("scenario", "cluster", "dimension", "skill", "question")]
    media = _media(record.get("media"), here, folder, home)
    options = _options(record.get("options"), here)
    trap = record.get("trap")
    if trap not in (None, "perceptual", "cognitive"):
        here.error("wrong-value", f"found {format_value(trap)}, expected null, perceptual or cognitive", "trap")
        return None
    known = [text for text in texts if text is not None]
    if len(known) < 5 or media is None or options is None:
        return None
    scenario, cluster, dimension, skill, question = known
    if skill not in SKILLS.get(dimension, ()):
        here.error(
            "wrong-value",
            f"found {format_value(dimension)} / {format_value(skill)}, expected one of the six skills",
            "skill",
        )
        return None
    answer = here.whole(record.get("answer"), "answer", 0, len(options) - 1, "wrong-value")
    if answer is None:
        return None
    start, end = (here.number(record[key], key) if record.get(key) is not None else None for key in ("start", "end"))
    if start is not None and end is not None and end < start:
        here.error("time-order", f"found {end:g}, expected seconds from {start:g} (start) on", "end")
        return None
    style: Literal["perceptual", "cognitive"] | None = trap
    return IntentQuestion(
        name, scenario, cluster, media, dimension, skill, question, options, answer, start, end,
        tuple(fixations.read(_rows(record.get("gaze"), here, "gaze"), here)),
        _mapping(record.get("context"), here, "context") or {}, style,
        **{key: _text(record.get(key), here, key) for key in (*LINKS, "source")},
        review=_mapping(record.get("review"), here, "review"),
        labels=_labels(record.get("labels"), here, len(options)),
        gaze_dependent=_truth(record.get("gaze_dependent"), here, "gaze_dependent"),
        observable=_truth(record.get("observable"), here, "observable"),
    )  # fmt: skip


def _text(value: Any, place: Location, field: str) -> str | None:
    return place.text(value, field) if value is not None else None


def _truth(value: Any, place: Location, field: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    place.error("wrong-value", f"found {format_value(value)}, expected true or false", field)
    return None


def _labels(value: Any, place: Location, count: int) -> tuple[OptionLabel, ...]:
    """A label per option: text, or an object with `label` and `reason`."""
    rows = place.items(value, "labels") if value is not None else None
    if not rows:
        return ()
    result = []
    for row in rows:
        entry = row if isinstance(row, dict) else {"label": row}
        label, reason = entry.get("label"), place.text(entry.get("reason", ""), "labels reason", empty=True) or ""
        if label not in _LABELS:
            place.error("wrong-value", f"found {format_value(label)}, expected one of {', '.join(_LABELS)}", "labels")
            return ()
        result.append(OptionLabel(label, reason))
    if len(result) != count:
        place.error(
            "wrong-shape", f"found {len(result)} labels, expected one for each of the {count} options", "labels"
        )
        return ()
    return tuple(result)


def _mapping(value: Any, place: Location, field: str) -> dict[str, Any] | None:
    return place.mapping(value, field) if value is not None else None


def _rows(value: Any, place: Location, field: str) -> list[Any]:
    return (place.items(value, field) or []) if value is not None else []


def _media(value: Any, place: Location, folder: Path, home: Path) -> tuple[str, ...] | None:
    rows = [value] if isinstance(value, str) else place.items(value, "media")
    texts = [place.text(item, "media") for item in rows or ()]
    paths = [inside(home, folder, text, place, "media") for text in texts if text is not None]
    if rows is None or None in texts or None in paths:
        return None
    return tuple(text for text in texts if text is not None)


def _options(value: Any, place: Location) -> tuple[str, ...] | None:
    rows = place.items(value, "options")
    texts = [place.text(item, "options") for item in rows or ()]
    known = tuple(text for text in texts if text is not None)
    if rows is None or len(known) < len(texts):
        return None
    longest = max(map(len, known), default=0)
    if longest > _LONGEST_OPTION:
        place.error("wrong-value", f"found {longest} characters, expected at most {_LONGEST_OPTION} in each", "options")
        return None
    if not 2 <= len(known) <= 8 or len(set(known)) < len(known):
        place.error(
            "wrong-value",
            f"found {len(known)} options, {len(set(known))} different, expected 2 to 8 different ones",
            "options",
        )
        return None
    return known
