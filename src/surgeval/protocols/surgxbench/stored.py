"""What the page of a run shows beside its numbers, as files of the run: `page.json` and pictures in `gallery/`.

Pictures are named by their place in page.json (`item_001.jpg`), never after data. What cannot be used is left out with
a note, because the numbers do not depend on it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import cv2
import numpy as np
from pydantic import Field

from surgeval.arrays import AnyArray
from surgeval.errors import BadInput, DataError, RunError
from surgeval.figures import FlowPipeline
from surgeval.files import (
    StoredFile,
    StoredPart,
    failure_reason,
    leads_out,
    make_folder,
    path_inside,
    read_bounded,
    write_atomically,
)
from surgeval.protocols.surgxbench.item import NO_EXTRAS, Extras, Hiding, Item

__all__ = ["MOST_ITEMS", "PageFile", "StoredPage", "load_page", "save_page"]

Part = TypeVar("Part")
MOST_ITEMS = 1000
_FOLDER = "gallery"
_PICTURE_BYTES, _FLOW_BYTES = 1 << 22, 1 << 25
_FLOW_SIDE = 1024  # pixels
_FLOW_WIDTH = 448  # of the stored figure: a page shows its panels at about half of that
_FLOWS = ("before", "camera", "after")


class StoredItem(StoredPart):
    """A prediction to look at, without its picture."""

    video: str
    frame: str
    predicted: str
    present: tuple[str, ...]
    score: float
    ac: float | None
    aa: float | None
    chance: float | None
    right: bool
    grounded: bool | None
    flags: str

    @classmethod
    def of(cls, item: Item) -> StoredItem:
        """What is stored of an item."""
        return cls(**{name: getattr(item, name) for name in cls.model_fields})


class StoredHiding(StoredPart):
    """A match whose attended region was hidden, without its picture."""

    video: str
    frame: str
    truth: str
    before: tuple[tuple[str, float], ...]
    after: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, hiding: Hiding) -> StoredHiding:
        """What is stored of a hiding."""
        return cls(**{name: getattr(hiding, name) for name in cls.model_fields})


class PageFile(StoredFile, name="page.json", format=1):
    """The content of page.json; `flow` is the title of the figure about motion."""

    name: str | None
    items: Annotated[tuple[StoredItem, ...], Field(max_length=MOST_ITEMS)]
    hidings: Annotated[tuple[StoredHiding, ...], Field(max_length=MOST_ITEMS)]
    flow: str | None


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
        raise BadInput(f"gallery: {len(items)} pictures; the limit is {MOST_ITEMS}")
    pictures = path_inside(folder, _FOLDER)
    files = {
        **{_item_file(number): _encoded(item) for number, item in enumerate(items)},
        **{_hiding_file(number): _encoded(hiding) for number, hiding in enumerate(extras.hidings)},
        **({} if extras.flow is None else _flow_files(extras.flow)),
    }
    content = PageFile(
        name=name, items=tuple(map(StoredItem.of, items)), hidings=tuple(map(StoredHiding.of, extras.hidings)),
        flow=None if extras.flow is None else extras.flow.title,
    )  # fmt: skip
    try:
        # Delete page.json first and write it before stale pictures go: a killed run has no gallery, never a wrong one.
        (folder / PageFile.file_name).unlink(missing_ok=True)
        if files:
            make_folder(pictures)
        for file, data in files.items():
            write_atomically(pictures / file, data)
        content.save(folder)
        for path in pictures.iterdir() if pictures.is_dir() else ():
            if path.name not in files:
                path.unlink()
    except OSError as error:
        raise RunError(f"{folder}: the gallery cannot be written: {failure_reason(error)}") from error


def load_page(folder: Path) -> StoredPage:
    """What `save_page` stored; nothing for a run without it."""
    if not (folder / PageFile.file_name).exists():
        return StoredPage()
    try:
        content = PageFile.load(folder)
    except DataError as error:
        return StoredPage(notes=(f"{error}: the page has no gallery",))
    notes: list[str] = []

    def usable(make: Callable[..., Part], *values: object) -> list[Part]:
        try:
            return [make(folder, *values)]
        except (DataError, BadInput) as error:
            notes.append(f"{error}: left out of the page")
            return []

    items = [item for number, stored in enumerate(content.items) for item in usable(_load_item, number, stored)]
    hidings = [one for number, stored in enumerate(content.hidings) for one in usable(_load_hiding, number, stored)]
    flow = [] if content.flow is None else usable(_load_flow, content.flow)
    extras = Extras(tuple(hidings), flow[0] if flow else None)
    return StoredPage(name=content.name, items=tuple(items), extras=extras, notes=tuple(notes))


def _load_item(folder: Path, number: int, stored: StoredItem) -> Item:
    return Item(_picture(folder, _item_file(number)), **dict(stored))


def _load_hiding(folder: Path, number: int, stored: StoredHiding) -> Hiding:
    return Hiding(_picture(folder, _hiding_file(number)), **dict(stored))


def _item_file(number: int) -> str:
    return f"item_{number + 1:03d}.jpg"


def _hiding_file(number: int) -> str:
    return f"hiding_{number + 1:03d}.jpg"


def _flow_file(name: str) -> str:
    return f"flow_{name}.png"


def _encoded(shown: Item | Hiding) -> bytes:
    from surgeval.pages import jpeg_bytes

    return shown.picture if isinstance(shown.picture, bytes) else jpeg_bytes(shown.picture)


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


def _picture(folder: Path, name: str, most: int = _PICTURE_BYTES) -> bytes:
    path = folder / _FOLDER / name
    if leads_out(path, folder):
        raise DataError(path, "leads out of the run's folder", code="path-escape")
    return read_bounded(path, most)


def _load_flow(folder: Path, title: str) -> FlowPipeline:
    frame = _pixels(folder, _flow_file("frame"), np.uint8)
    flows = [_pixels(folder, _flow_file(name), np.uint16) for name in _FLOWS]
    before, camera, after = ((flow[..., :2].astype(np.float32) - (1 << 15)) / 64 for flow in flows)
    mask = flows[0][..., 2] > 0
    return FlowPipeline(title, np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)), before, camera, after, mask)


def _pixels(folder: Path, name: str, dtype: type) -> AnyArray:
    """A stored PNG, which is decoded here: its header says beforehand how large it is."""
    path, data = folder / _FOLDER / name, _picture(folder, name, _FLOW_BYTES)
    size = struct.unpack(">II", data[16:24]) if len(data) > 24 else (0, 0)
    if max(size) > _FLOW_SIDE:
        sentence = f"{size[0]} × {size[1]} pixels; the limit is {_FLOW_SIDE} a side"
        raise DataError(path, sentence, code="file-too-large")
    array = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_UNCHANGED) if data else None
    if array is None or array.dtype != dtype or array.ndim != 3 or array.shape[2] != 3:
        bits = np.dtype(dtype).itemsize * 8
        raise DataError(path, f"expected a PNG image of three channels of {bits} bits", code="image-broken")
    return np.asarray(array)
