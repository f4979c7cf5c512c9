"""`BoxMap`: what the columns of somebody's table of boxes mean, written down in a TOML or JSON file.

For labels in a layout that nobody documented: the user says which column holds video, frame, class and box, how a box
is spelled and where the images lie. `_box_table` reads the table by it; `_cholec80_bbox` is one such map, built in.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from surgeval.datasets.io.json import UNREAD, read_text, told_json
from surgeval.datasets.io.values import MAX_SIDE, check_size
from surgeval.errors import DataError
from surgeval.files import Location, as_float, format_value, raise_errors

LAYOUTS = ("xywh", "xyxy", "cxcywh")
UNLISTED = ("skip", "empty", "unlabelled")
MAX_BYTES = 1 << 20
_FIELD = re.compile(r"\{([^{}:]+)(?::0?(\d{1,2})d)?\}")
_COLUMNS = ("video", "frame", "class", "verb", "target", "track", "score", "source")
_TEXTS = (*_COLUMNS, "table", "rows", "separator", "name", "labels")
_KEYS = frozenset({*_TEXTS, "box", "layout", "normalised", "image", "size", "fps", "first", "unlisted", "classes"})


class MappingFile:
    """What a mapping of any kind of table is read from."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """From a `.toml` or `.json` file."""
        return cls.from_json(mapping_table(path), str(path))

    @classmethod
    def from_json(cls, data: Mapping[str, Any], file: str = "mapping") -> Self:
        """From parsed TOML or JSON, every key checked."""
        raise NotImplementedError


@dataclass(frozen=True)
class BoxMap(MappingFile):
    """Which column is what. Empty text means "there is no such column"; templates are filled by `filled`.

    >>> boxes = BoxMap.from_json({"video": "op", "frame": "file", "class": "tool", "box": ["x1", "y1", "x2", "y2"],
    ...                           "layout": "xyxy", "image": "frames/{op}/{file}"})
    >>> sorted(boxes.columns)
    ['file', 'op', 'tool', 'x1', 'x2', 'y1', 'y2']
    """

    video: str
    frame: str  # a number, or a name whose last digits are the number
    label: str  # the class; `class` in the file
    box: tuple[str, ...]  # four columns, or one that holds four numbers
    layout: str = "xywh"
    normalised: bool = False  # parts of the frame instead of pixels
    table: str = ""  # path inside the dataset's folder
    rows: str = ""  # JSON: the key under which the list of rows is
    separator: str = ""  # CSV; found out when it is not given
    image: tuple[str, ...] = ()  # templates; the first under which images are found counts
    name: str = "{video}"  # template of the video's name
    size: tuple[int, int] | None = None  # of the frames, where no image is at hand
    fps: float | None = None  # frame numbers per second; 0 finds it out for labels at 1 Hz (`auto` in the file)
    first: int = 0  # the frame number at time zero
    unlisted: str = "skip"  # images of a video that no row names: skip them, or frames that are empty or unlabelled
    labels: str = ""  # a packaged label space, or a JSON file in the dataset's folder
    classes: Mapping[str, str] = field(default_factory=dict)  # the table's name → the label space's; "" leaves it out
    verb: str = ""
    target: str = ""
    track: str = ""
    score: str = ""
    source: str = ""  # the hospital or dataset of the video, the same in all of its rows

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the table must have."""
        named = (self.video, self.frame, self.label, self.verb, self.target, self.track, self.score, self.source)
        return frozenset(name for name in (*named, *self.box) if name)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], file: str = "mapping") -> Self:
        """From parsed TOML or JSON, every key checked."""
        place = place_of_mapping(data, _KEYS, file)
        texts: dict[str, str] = {}
        for key in _TEXTS:
            needed = key in ("video", "frame", "class")
            texts[key] = place.text(data.get(key, None if needed else ""), key, empty=not needed) or ""
        texts["label"] = texts.pop("class")
        texts["name"] = texts["name"] or "{video}"
        if len(texts["separator"].encode("utf-8", "replace")) > 1:  # tables are split at bytes
            place.error(
                "wrong-value", f"found {format_value(texts['separator'])}, expected one ASCII character", "separator"
            )
        box = _texts(data.get("box"), "box", place)
        if len(box) not in (1, 4):
            place.error(
                "wrong-value", f"found {len(box)} columns, expected four columns, or one that holds four numbers", "box"
            )
        normalised = data.get("normalised", False)
        if not isinstance(normalised, bool):
            place.error("wrong-value", f"found {format_value(normalised)}, expected true or false", "normalised")
        fps = data.get("fps")
        rate = 0.0 if fps == "auto" else as_float(fps)
        if fps is not None and (rate is None or not math.isfinite(rate) or not (0 < rate <= 1000 or fps == "auto")):
            place.error("wrong-value", f'found {format_value(fps)}, expected a number up to 1000, or "auto"', "fps")
        classes = place.mapping(data.get("classes", {}), "classes") or {}
        for key, value in classes.items():
            place.text(value, f"classes.{key}", empty=True)
        return cls(
            **texts, box=box, normalised=normalised, fps=rate, classes=dict(classes),
            layout=one_of(data.get("layout", "xywh"), LAYOUTS, "layout", place),
            unlisted=one_of(data.get("unlisted", "skip"), UNLISTED, "unlisted", place),
            image=_texts(data.get("image", []), "image", place), size=frame_size(data.get("size"), place),
            first=place.whole(data.get("first", 0), "first", 0, 10**9) or 0,
        )  # fmt: skip


def filled(template: str, values: Mapping[str, object]) -> str:
    """A template with its fields filled in: `{column}`, or `{column:05d}` for a number with leading zeros.

    >>> filled("Images/Video_{video:02d}/{frame}", {"video": "7", "frame": "a.png"})
    'Images/Video_07/a.png'
    """

    def value(match: re.Match[str]) -> str:
        text = str(values.get(match[1], ""))
        return text.zfill(int(match[2])) if match[2] and text.isdecimal() else text

    return _FIELD.sub(value, template)


def fields(template: str) -> frozenset[str]:
    """The names that a template asks for.

    >>> sorted(fields("{video}/{number:06d}.png"))
    ['number', 'video']
    """
    return frozenset(match[1] for match in _FIELD.finditer(template))


def mapping_table(path: Path) -> dict[str, Any]:
    """The content of a mapping file, which must be a table."""
    data = parsed(path)
    if data is None:
        text = read_text(path, raise_errors, MAX_BYTES) or ""
        raise DataError(path, f"found {_why(path, text)}, expected a mapping in TOML (or JSON, named .json)")
    return data


def parsed(path: Path) -> dict[str, Any] | None:
    """The content of a mapping file, or None where it is no TOML (JSON) table; a file that cannot be read raises."""
    text = read_text(path, raise_errors, MAX_BYTES) or ""
    data: Any = None
    if path.suffix.lower() == ".json":
        data = told_json(text, Location(str(path), lambda _: None))
    else:
        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError):
            return None
    return data if data is not UNREAD and isinstance(data, dict) else None


def _why(path: Path, text: str) -> str:
    if path.suffix.lower() == ".json":
        return "no JSON object"
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return f"broken TOML ({str(error).splitlines()[0]})"
    return "no table"


def place_of_mapping(data: Mapping[str, Any], keys: frozenset[str], file: str) -> Location:
    """Where a mapping's values are checked from; a key that is none of `keys` is refused."""
    place = Location(file, raise_errors)
    unknown = sorted(str(key) for key in data.keys() - keys)
    if unknown:
        place.error("key-unknown", f"found {format_value(unknown[0])}, expected one of {', '.join(sorted(keys))}")
    return place


def one_of(value: Any, allowed: tuple[str, ...], key: str, place: Location) -> str:
    """The value of a key that allows only these."""
    if value not in allowed:
        place.error("wrong-value", f"found {format_value(value)}, expected one of {', '.join(allowed)}", key)
    return str(value)


def _texts(value: Any, key: str, place: Location) -> tuple[str, ...]:
    """One text or a list of texts."""
    items = [value] if isinstance(value, str) else place.items(value, key) or []
    return tuple(place.text(item, key) or "" for item in items)


def frame_size(value: Any, place: Location) -> tuple[int, int] | None:
    """Width and height of the frames, where the mapping says them."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        place.error("wrong-value", f"found {format_value(value)}, expected [width, height] up to {MAX_SIDE}", "size")
        return None
    return check_size(place, *value)
