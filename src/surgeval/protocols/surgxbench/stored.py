"""What the page of a run shows beside its numbers, as files of the run: `page.json` and pictures in `gallery/`.

Pictures are named by their place in page.json (`item_001.jpg`), never after data, and page.json holds their hashes. A
run folder may come from a stranger: sizes are bounded before anything is decoded, and what cannot be used is left out
with a note, because the numbers do not depend on it.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import cv2
import numpy as np

from surgeval.arrays import AnyArray
from surgeval.errors import BadInput, DataError, RunError
from surgeval.figures import FlowPipeline
from surgeval.files import failure_reason, make_folder, read_bounded, read_json_object, write_atomically
from surgeval.pages import jpeg_bytes
from surgeval.protocols.surgxbench.item import NO_EXTRAS, Extras, Hiding, Item

__all__ = ["MOST_ITEMS", "StoredPage", "load_page", "save_page"]

Part = TypeVar("Part")
MOST_ITEMS = 1000
_FORMAT = 1
_FILE, _FOLDER = "page.json", "gallery"
_JSON_BYTES, _PICTURE_BYTES, _FLOW_BYTES = 1 << 24, 1 << 22, 1 << 25
_SIDE, _FLOW_SIDE = 4096, 1024  # pixels
_FLOW_WIDTH = 448  # of the stored figure: a page shows its panels at about half of that
_FLOWS = ("before", "camera", "after")
_TEXT, _NUMBER, _MAYBE = str, (int, float), (int, float, type(None))
_ITEM: Mapping[str, Any] = {
    "video": _TEXT, "frame": _TEXT, "predicted": _TEXT, "present": list, "score": _NUMBER, "ac": _MAYBE, "aa": _MAYBE,
    "chance": _MAYBE, "right": bool, "grounded": (bool, type(None)), "flags": _TEXT,
}  # fmt: skip
_HIDING: Mapping[str, Any] = {"video": _TEXT, "frame": _TEXT, "truth": _TEXT, "before": list, "after": list}


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredPage:
    """What a run's page was made with; `notes` name what was stored and cannot be used."""

    name: str | None = None
    items: tuple[Item, ...] = ()
    extras: Extras = NO_EXTRAS
    notes: tuple[str, ...] = ()


def save_page(folder: Path, items: Sequence[Item], extras: Extras, *, name: str | None) -> None:
    """Store a run's pictures and the choices of its page, in place of what was stored before."""
    if len(items) > MOST_ITEMS:
        raise BadInput(f"gallery: found {len(items)} pictures, expected at most {MOST_ITEMS}")
    pictures = folder / _FOLDER
    if pictures.is_symlink():
        raise RunError(f"{pictures}: found a link, expected a folder of the run's own")
    files = {
        **{_item_file(number): _encoded(item) for number, item in enumerate(items)},
        **{_hiding_file(number): _encoded(hiding) for number, hiding in enumerate(extras.hidings)},
        **({} if extras.flow is None else _flow_files(extras.flow)),
    }
    content = {
        "format": _FORMAT, "name": name,
        "items": [_plain(item) for item in items], "hidings": [_plain(hiding) for hiding in extras.hidings],
        "flow": None if extras.flow is None else extras.flow.title,
        "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
    }  # fmt: skip
    try:
        (folder / _FILE).unlink(missing_ok=True)  # killed from here on, the run has no pictures rather than wrong ones
        if files:
            make_folder(pictures)
        for file, data in files.items():
            write_atomically(pictures / file, data)
        write_atomically(folder / _FILE, (json.dumps(content, indent=1) + "\n").encode())
        for path in pictures.iterdir() if pictures.is_dir() else ():
            if path.name not in files:
                path.unlink()
    except OSError as error:
        raise RunError(f"{folder}: the gallery cannot be written: {failure_reason(error)}") from error


def load_page(folder: Path) -> StoredPage:
    """What `save_page` stored; nothing for a run without it."""
    if not (folder / _FILE).exists():
        return StoredPage()
    try:
        content = _content(folder / _FILE)
    except DataError as error:
        return StoredPage(notes=(f"{error}: the page has no gallery",))
    notes: list[str] = []

    def usable(make: Callable[[], Part]) -> list[Part]:
        try:
            return [make()]
        except (DataError, BadInput) as error:
            notes.append(f"{error}: left out of the page")
            return []

    reader = _StoredFiles(folder, content["sha256"])
    items = [item for number, row in enumerate(content["items"])
             for item in usable(lambda n=number, row=row: reader.item(n, row))]  # type: ignore[misc]  # fmt: skip
    hidings = [hiding for number, row in enumerate(content["hidings"])
               for hiding in usable(lambda n=number, row=row: reader.hiding(n, row))]  # type: ignore[misc]  # fmt: skip
    flow = usable(lambda: reader.flow(content["flow"])) if content["flow"] is not None else []
    extras = Extras(tuple(hidings), flow[0] if flow else None)
    return StoredPage(name=content["name"], items=tuple(items), extras=extras, notes=tuple(notes))


def _item_file(number: int) -> str:
    return f"item_{number + 1:03d}.jpg"


def _hiding_file(number: int) -> str:
    return f"hiding_{number + 1:03d}.jpg"


def _flow_file(name: str) -> str:
    return f"flow_{name}.png"


def _encoded(shown: Item | Hiding) -> bytes:
    return shown.picture if isinstance(shown.picture, bytes) else jpeg_bytes(shown.picture)


def _plain(shown: Item | Hiding) -> dict[str, Any]:
    return {field.name: getattr(shown, field.name) for field in fields(shown) if field.name != "picture"}


def _flow_files(figure: FlowPipeline) -> dict[str, bytes]:
    """The frame, and the flows as KITTI writes them: 16 bits a channel, (u, v) in 1/64 pixel from −512, then the mask.

    A large frame is made smaller; its flows stay in pixels of the frame.
    """
    height, width = figure.mask.shape
    scale = min(1.0, _FLOW_WIDTH / width)
    size = (max(1, round(width * scale)), max(1, min(round(height * scale), _FLOW_SIDE)))

    def small(array: AnyArray) -> AnyArray:
        return array if size == (width, height) else np.asarray(cv2.resize(array, size, interpolation=cv2.INTER_AREA))

    mask = small(figure.mask.astype(np.float32)) > 0.5
    files = {_flow_file("frame"): _png(cv2.cvtColor(small(figure.frame), cv2.COLOR_RGB2BGR))}
    for name in _FLOWS:
        flow = small(getattr(figure, name).astype(np.float32))
        coded = np.clip(np.rint(flow * 64) + (1 << 15), 0, (1 << 16) - 1).astype(np.uint16)
        files[_flow_file(name)] = _png(np.dstack([coded, mask.astype(np.uint16)]))
    return files


def _png(array: AnyArray) -> bytes:
    _, data = cv2.imencode(".png", array)
    return data.tobytes()


def _content(path: Path) -> dict[str, Any]:
    """page.json, checked as far as `_StoredFiles` does not."""
    _refuse_link(path)
    content = read_json_object(path, limit=_JSON_BYTES)
    if content.get("format") != _FORMAT:
        raise DataError(path, f"found {repr(content.get('format'))[:60]}, expected {_FORMAT}", field="format")
    kinds: Mapping[str, Any] = {
        "name": (str, type(None)), "items": list, "hidings": list, "flow": (str, type(None)), "sha256": dict,
    }  # fmt: skip
    _check(path, "", content, kinds)
    if max(len(content["items"]), len(content["hidings"])) > MOST_ITEMS:
        raise DataError(path, f"found too many, expected at most {MOST_ITEMS}", field="items")
    return content


def _check(path: Path, record: str, row: Any, kinds: Mapping[str, Any]) -> None:
    for key, kind in kinds.items():
        value = row.get(key, ...) if isinstance(row, dict) else ...  # absent is not null
        if not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, _NUMBER, _MAYBE)):
            found = "nothing" if value is ... else repr(value)[:60]
            raise DataError(path, f"found {found}, expected another value", record=record or None, field=key)


def _refuse_link(path: Path) -> None:
    """A link would let a stranger's run show a picture of its reader's."""
    if path.is_symlink():
        raise DataError(path, "found a link, expected what the run stored")


@dataclass(frozen=True)
class _StoredFiles:
    """Reads single pictures of a run; what is wrong with one is a DataError."""

    folder: Path
    hashes: Mapping[str, Any]

    def item(self, number: int, row: Any) -> Item:
        _check(self.folder / _FILE, f"item {number + 1}", row, _ITEM)
        values = {key: row[key] for key in _ITEM}
        present = self._texts(f"item {number + 1}", "present", values.pop("present"))
        return Item(self._jpeg(_item_file(number)), present=present, **values)

    def hiding(self, number: int, row: Any) -> Hiding:
        record = f"hiding {number + 1}"
        _check(self.folder / _FILE, record, row, _HIDING)
        before, after = (self._prompts(record, key, row[key]) for key in ("before", "after"))
        return Hiding(self._jpeg(_hiding_file(number)), row["video"], row["frame"], row["truth"], before, after)

    def flow(self, title: str) -> FlowPipeline:
        frame = self._pixels(_flow_file("frame"), np.uint8)
        flows = [self._pixels(_flow_file(name), np.uint16) for name in _FLOWS]
        before, camera, after = ((flow[..., :2].astype(np.float32) - (1 << 15)) / 64 for flow in flows)
        mask = flows[0][..., 2] > 0
        return FlowPipeline(title, np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)), before, camera, after, mask)

    def _texts(self, record: str, key: str, values: list[Any]) -> tuple[str, ...]:
        if not all(isinstance(value, str) for value in values):
            raise DataError(self.folder / _FILE, "found other values, expected texts", record=record, field=key)
        return tuple(values)

    def _prompts(self, record: str, key: str, rows: list[Any]) -> tuple[tuple[str, float], ...]:
        fits = all(isinstance(row, list) and len(row) == 2 and isinstance(row[0], str)
                   and isinstance(row[1], float) for row in rows)  # fmt: skip
        if not fits:
            raise DataError(
                self.folder / _FILE, "found other values, expected prompts with their scores", record=record, field=key
            )
        return tuple((prompt, score) for prompt, score in rows)

    def _file(self, name: str, kind: str, most: int, side: int) -> bytes:
        """The bytes of a picture that is what was stored, of this kind and of bounded size."""
        from PIL import Image

        path, expected = self.folder / _FOLDER / name, f"the {kind} that was stored"
        _refuse_link(path.parent)
        _refuse_link(path)
        data = read_bounded(path, most)
        if hashlib.sha256(data).hexdigest() != self.hashes.get(name):
            raise DataError(path, f"found other bytes than were stored, expected {expected}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of large pictures: refused below
                with Image.open(io.BytesIO(data), formats=[kind]) as header:
                    size = header.size
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            raise DataError(path, f"found a damaged picture, expected {expected}") from None
        if max(size) > side:
            raise DataError(path, f"found {size[0]} × {size[1]} pixels, expected at most {side} a side")
        return data

    def _jpeg(self, name: str) -> bytes:
        return self._file(name, "JPEG", _PICTURE_BYTES, _SIDE)

    def _pixels(self, name: str, dtype: type) -> AnyArray:
        data = np.frombuffer(self._file(name, "PNG", _FLOW_BYTES, _FLOW_SIDE), dtype=np.uint8)
        array = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
        if array is None or array.dtype != dtype or array.ndim != 3 or array.shape[2] != 3:
            raise DataError(
                self.folder / _FOLDER / name,
                f"found a picture of another kind, expected three channels of {np.dtype(dtype).itemsize * 8} bits",
            )
        return np.asarray(array)
