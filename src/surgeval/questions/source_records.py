"""Source records, from which questions are generated: one JSON object per line of `records.jsonl`.

A record is one scene: images, where the clinician looked, and facts. The facts (`scene`) are for the generator and the
checks; they never become part of an item, where they would give the answer away. `encode_media` makes the images of a
record parts of a chat message.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import cv2
import numpy as np

from surgeval.datasets import OnProblem, raise_errors, read_image, video_index
from surgeval.datasets.io import SUFFIXES, UNREAD, FixationReader, read_lines
from surgeval.errors import BadInput
from surgeval.files import BrokenJson, Location, format_value, leads_out, parse_json, write_atomically
from surgeval.records import Gaze, ImageRef

__all__ = ["LONGEST_TEXT", "Scene", "SourceRecord", "encode_media", "read_fact", "read_source_records", "stays_inside",
           "write_source_records"]  # fmt: skip

LONGEST_TEXT, LONGEST_NAME = 4_000, 200  # characters of one field; of the name of a thing
_MOST = {"media": 256, "gaze": 20_000, "names": 500}
_NAMES = ("visible", "absent", "actions", "locations")
_FACTS = ("diagnosis", "findings", "birads", "view")


@dataclass(frozen=True, slots=True)
class Scene:
    """Facts about a scene: what is visible and absent, actions, locations of findings, and other facts as text.

    >>> Scene(visible=("hook",), facts={"birads": "4"}).visible
    ('hook',)
    """

    visible: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One scene to ask about.

    >>> SourceRecord("op1-3", "open_surgery", "op1", ("op1/3.jpg",), phase="closure").phase
    'closure'
    """

    id: str
    scenario: str
    cluster: str
    media: tuple[str, ...]
    procedure: str = ""
    phase: str = ""
    site: str = ""
    start: float | None = None
    end: float | None = None
    gaze: tuple[Gaze, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    scene: Scene = field(default_factory=Scene)


def read_source_records(path: str | Path, on_problem: OnProblem = raise_errors) -> Iterator[SourceRecord]:
    """Read the records of a file line by line; media paths are relative to the file and must stay in its folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "records.jsonl"
    ...     gaze = (Gaze(0, 0.5, 0.2, 1),)
    ...     write_source_records(path, [SourceRecord("op1-3", "open_surgery", "op1", ("3.jpg",), gaze=gaze)])
    ...     [record.gaze[0].y for record in read_source_records(path)]
    [0.2]
    """
    path = Path(path)
    place = Location(str(path), on_problem)
    seen: set[str] = set()
    fixations = FixationReader()
    for number, line in read_lines(path, on_problem):
        here = place.at(f"line {number}")
        value = _object(line, here)
        record = _record(value, here, path.parent, fixations) if value is not None else None
        if record is not None and record.id in seen:
            here.error("id-duplicate", f"{format_value(record.id)} occurs twice", "id")
        elif record is not None:
            seen.add(record.id)
            yield record
    fixations.report(place)


def write_source_records(path: str | Path, records: Iterable[SourceRecord]) -> None:
    r"""Write `records.jsonl` atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_source_records(Path(folder) / "records.jsonl", [SourceRecord("a", "chest_xray", "p1", ("a.png",))])
    ...     (Path(folder) / "records.jsonl").read_text()
    '{"id": "a", "scenario": "chest_xray", "cluster": "p1", "media": ["a.png"]}\n'
    """
    lines = [json.dumps(_to_json(record), ensure_ascii=False) + "\n" for record in records]
    write_atomically(path, "".join(lines).encode())


def _to_json(record: SourceRecord) -> dict[str, Any]:
    """One line of the file, without empty values."""
    scene = {key: list(getattr(record.scene, key)) for key in _NAMES} | dict(record.scene.facts)
    values: dict[str, Any] = {
        "id": record.id, "scenario": record.scenario, "cluster": record.cluster, "media": list(record.media),
        "procedure": record.procedure, "phase": record.phase, "site": record.site, "start": record.start,
        "end": record.end, "gaze": [{"t": g.t, "x": g.x, "y": g.y, "duration": g.duration} for g in record.gaze],
        "context": dict(record.context), "scene": {key: value for key, value in scene.items() if value},
    }  # fmt: skip
    return {key: value for key, value in values.items() if value not in ("", None, [], {})}


def _object(line: str, place: Location) -> dict[str, Any] | None:
    try:
        value = parse_json(line, finite=True)
    except BrokenJson as error:
        place.error("file-broken", f"not valid JSON: {error}")
        value = UNREAD
    return None if value is UNREAD else place.mapping(value)


def _record(value: dict[str, Any], place: Location, folder: Path, fixations: FixationReader) -> SourceRecord | None:
    name = _text(value.get("id"), place, "id")
    if not name:
        return None
    here = place.at(f"{place.record}, record {name[:60]}")
    scenario, cluster = (
        _text(value.get("scenario"), here, "scenario"),
        _text(value.get("cluster", name), here, "cluster"),
    )
    media = _media(value.get("media"), here, folder)
    procedure, phase, site = (_optional(value, key, here) for key in ("procedure", "phase", "site"))
    start, end = (here.number(value[key], key) if value.get(key) is not None else None for key in ("start", "end"))
    gaze, scene = _gaze(value.get("gaze"), here, fixations), _scene(value.get("scene"), here)
    context = _texts(value.get("context"), here, "context")
    if not scenario or not cluster or media is None or gaze is None or scene is None or context is None:
        return None
    if procedure is None or phase is None or site is None:
        return None
    return SourceRecord(name, scenario, cluster, media, procedure, phase, site, start, end, gaze, context, scene)


def _text(value: Any, place: Location, field: str, longest: int = LONGEST_TEXT) -> str | None:
    text = place.text(value, field)
    if text is not None and len(text) > longest:
        place.error("not-text", f"{len(text)} characters; at most {longest} are allowed", field)
        return None
    return text


def _optional(value: Mapping[str, Any], key: str, place: Location) -> str | None:
    return _text(value[key], place, key) if value.get(key) not in (None, "") else ""


def _read_list(value: Any, place: Location, field: str, most: int) -> list[Any] | None:
    rows = place.items(value, field) if value is not None else []
    if rows is not None and len(rows) > most:
        place.error("wrong-shape", f"{len(rows)} entries; at most {most} are allowed", field)
        return None
    return rows


def _media(value: Any, place: Location, folder: Path) -> tuple[str, ...] | None:
    rows = [value] if isinstance(value, str) else _read_list(value, place, "media", _MOST["media"])
    if rows is None:
        return None
    paths: list[str] = []
    for row in rows:
        text = _text(row, place, "media")
        if text is None:
            return None
        if not stays_inside(folder, text):
            place.error("path-escape", f"{format_value(text)} is not a path inside the folder of the file", "media")
            return None
        paths.append(text)
    return tuple(paths)


def stays_inside(folder: str | Path, name: str) -> bool:
    """Whether a path stays in a folder, on every operating system and behind links.

    >>> [stays_inside(Path("data"), name) for name in ("a/1.png", "../1.png", "/etc/passwd", "C:/x")]
    [True, False, False, False]
    """
    parts = PurePosixPath(name.replace("\\", "/"))
    odd = parts.is_absolute() or ".." in parts.parts or ":" in name or "\0" in name
    return not odd and not leads_out(Path(folder) / name, folder)


def _gaze(value: Any, place: Location, fixations: FixationReader) -> tuple[Gaze, ...] | None:
    rows = _read_list(value, place, "gaze", _MOST["gaze"])
    return None if rows is None else tuple(fixations.read(rows, place))


def _scene(value: Any, place: Location) -> Scene | None:
    if value is None:
        return Scene()
    scene = place.mapping(value, "scene")
    if scene is None:
        return None
    lists: dict[str, tuple[str, ...]] = {}
    for key in _NAMES:
        rows = _read_list(scene.get(key), place, f"scene {key}", _MOST["names"])
        texts = [_text(row, place, f"scene {key}", LONGEST_NAME) for row in rows or ()]
        if rows is None or None in texts:
            return None
        lists[key] = tuple(text for text in texts if text is not None)
    facts = _texts({key: scene[key] for key in scene if key not in _NAMES}, place, "scene")
    return None if facts is None else Scene(**lists, facts=facts)


def _texts(value: Any, place: Location, field: str) -> dict[str, str] | None:
    """An object with short texts as values; numbers become texts."""
    if value is None:
        return {}
    entries = place.mapping(value, field)
    if entries is None:
        return None
    if len(entries) > 64:
        place.error("wrong-shape", f"{len(entries)} entries; at most 64 are allowed", field)
        return None
    texts: dict[str, str] = {}
    for key, entry in entries.items():
        number = isinstance(entry, int | float) and not isinstance(entry, bool)
        text = f"{entry:g}" if number else _text(entry, place, f"{field} {key[:60]}")
        if text is None:
            return None
        texts[key] = text
    return texts


def read_fact(record: SourceRecord, key: str) -> str:
    """The value of a record's field for a template's placeholder; "" if it is not known.

    >>> record = SourceRecord("a", "open_surgery", "p1", ("1.jpg", "2.jpg"), phase="dissection")
    >>> read_fact(record, "phase"), read_fact(record, "frames")
    ('dissection', '2')
    """
    if key in ("procedure", "phase", "site"):
        return str(getattr(record, key))
    if key == "frames":
        return str(len(record.media)) if record.media else ""
    if key in _FACTS:
        return record.scene.facts.get(key) or record.context.get(key, "")
    raise BadInput(f"Unknown field {key!r} of a placeholder. Use procedure, phase, site, frames, gaze or a fact.")


_JPEG_QUALITY = 90


def encode_media(
    folder: Path, media: tuple[str, ...], window: tuple[float | None, float | None], *, most: int, longest_edge: int
) -> list[dict[str, object]]:
    """At most `most` evenly spaced images of a scene as message parts: JPEG data URLs, in order."""
    refs = [ref for name in media for ref in _select_frames(folder / name, window, most)]
    spread = sorted({round(k) for k in np.linspace(0, len(refs) - 1, min(most, len(refs)))}) if refs else []
    return [_encode_image(refs[number], longest_edge) for number in spread]


def _select_frames(path: Path, window: tuple[float | None, float | None], most: int) -> list[ImageRef]:
    if path.suffix.casefold() not in SUFFIXES:
        return [ImageRef(path)]
    times = video_index(path).times
    start, end = window
    inside = np.flatnonzero((times >= (start or 0.0) - 1e-6) & (times <= (np.inf if end is None else end) + 1e-6))
    if not inside.size:
        raise BadInput(f"{path}: no frame from {start or 0:g} s on, but a record has its clip there")
    return [ImageRef(path, int(inside[round(k)])) for k in np.linspace(0, len(inside) - 1, min(most, len(inside)))]


def _encode_image(ref: ImageRef, longest_edge: int) -> dict[str, object]:
    image = read_image(ref)
    scale = longest_edge / max(image.shape[:2])
    if scale < 1:
        size = max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    coded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1]
    url = f"data:image/jpeg;base64,{base64.b64encode(coded.tobytes()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}
