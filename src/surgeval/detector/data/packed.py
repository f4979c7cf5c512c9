"""A training set as one file: scaled pictures and labels, for a machine that has neither the dataset nor its readers.

Pictures are kept as JPEG (or, without loss, PNG) of the size that the detector sees. The file is read as a stranger's:
every number is checked before it is used, and a picture is decoded only when its header names the expected size.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pillow

from surgeval.arrays import AnyArray, Image, Ints
from surgeval.detector.classes import Classes
from surgeval.detector.data.pictures import CACHE_BYTES, ScaledPictures, decode_all
from surgeval.detector.data.problems import Problems
from surgeval.detector.data.training_set import TrainingSet, check_size
from surgeval.detector.geometry import Fit
from surgeval.detector.state import StateFile, save_state
from surgeval.errors import BadInput, DataError
from surgeval.files import EARLIER_VERSION

__all__ = ["load_packed", "save_packed"]

_KIND, _FORMAT = "training-set", 1
_EXPECTED = "a training set packed by surgeval"
_LIMIT = 64 << 30  # bytes
_MAX_SIDE = 20_000
_QUALITY = 92
_TENSORS = {
    "pictures": torch.uint8,  # one encoded picture after the other
    "ends": torch.int64,  # where each one ends
    "frame_sizes": torch.int64,  # (frames, 2) height and width of the original frame
    "offsets": torch.int64,
    "boxes": torch.float32,
    "main": torch.uint8,  # (rows, classes / 8) bits
}
# What Pillow's two decoders were seen to raise on damaged files.
_DECODING = (OSError, ValueError, SyntaxError, TypeError, EOFError, IndexError, KeyError, MemoryError, OverflowError)


def save_packed(path: str | Path, data: TrainingSet, *, quality: int | None = _QUALITY) -> None:
    """Write a training set; `quality` is JPEG's (1 to 100), None keeps every pixel as PNG.

    >>> import tempfile
    >>> from surgeval.detector.data import toy_set
    >>> data = toy_set(5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_packed(Path(folder) / "train.safetensors", data, quality=None)
    ...     again = load_packed(Path(folder) / "train.safetensors")
    >>> again.fingerprint == data.fingerprint, bool((again.sample(3).image == data.sample(3).image).all())
    (True, True)
    """
    path = Path(path)
    if quality is not None and not 1 <= quality <= 100:
        raise BadInput(f"packed training set: found quality {quality}, expected 1 to 100, or none for PNG")
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1), "surgeval-pack") as pool:
        encoded = list(pool.map(lambda number: _encoded(data.pictures[number], quality), data.numbers.tolist()))
    arrays: dict[str, AnyArray] = {
        "pictures": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "ends": np.cumsum([len(picture) for picture in encoded], dtype=np.int64),
        "frame_sizes": np.array([(fit.height, fit.width) for fit in data.fits], dtype=np.int64).reshape(-1, 2),
        "offsets": data.offsets,
        "boxes": data.boxes,
        "main": np.packbits(data.main, axis=1),
    }
    metadata = {
        "format": _FORMAT,
        "kind": _KIND,
        "classes": data.classes.to_json(),
        "image_size": data.image_size,
        "fill": data.fill,
        "videos": list(data.videos),
        "names": list(data.names),
        "problems": {"counts": dict(data.problems.counts),
                     "examples": {kind: list(names) for kind, names in data.problems.examples.items()}},
    }  # fmt: skip
    save_state(path, {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, metadata)


def _encoded(image: Image, quality: int | None) -> bytes:
    out = BytesIO()
    if quality is None:
        Pillow.fromarray(image).save(out, "PNG", compress_level=1)
    else:
        Pillow.fromarray(image).save(out, "JPEG", quality=quality)
    return out.getvalue()


def load_packed(path: str | Path, *, cache_bytes: int = CACHE_BYTES, workers: int | None = None) -> TrainingSet:
    """Read a training set; every picture is decoded once, and kept as far as `cache_bytes` goes.

    >>> import tempfile
    >>> from surgeval.detector.data import toy_set
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_packed(f"{folder}/train.safetensors", toy_set(5))
    ...     len(load_packed(f"{folder}/train.safetensors"))
    5
    >>> load_packed(Path("nowhere.safetensors"))
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere.safetensors: found no such file, expected a training set packed by surgeval
    """
    path = Path(path)
    with StateFile(path, expected=_EXPECTED, limit=_LIMIT) as file:
        for name, kind in _TENSORS.items():
            if name not in file.entries or file.entries[name].dtype != kind:
                raise file.refusal(f"no tensor of type {str(kind).removeprefix('torch.')}", field=name)
        facts, arrays = file.metadata, {name: tensor.numpy() for name, tensor in file.tensors().items()}
    if facts.get("kind") != _KIND:
        raise DataError(path, f"found {str(facts.get('kind'))[:40]}, expected {_KIND}", field="kind")
    if facts.get("format") != _FORMAT:
        raise DataError(path, EARLIER_VERSION, code="format-version")
    return _Unpacked(path, facts, arrays).data(cache_bytes, workers)


class _Unpacked:
    """The parts of a file on their way to a training set."""

    def __init__(self, path: Path, facts: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        self.path, self.facts, self.arrays = path, facts, arrays
        self.classes = Classes.from_json(facts.get("classes"), path)

    def data(self, cache_bytes: int, workers: int | None) -> TrainingSet:
        size, fill = self._whole("image_size", 4096), self._whole("fill", 255)
        try:
            check_size(size)
        except BadInput as error:
            raise DataError(self.path, f"found {error}, expected {_EXPECTED}", field="image_size") from None
        names, videos = self._names("names"), self._names("videos")
        fits = self._fits(len(names), size)
        offsets = self._steps("offsets", len(names) + 1, first=0)
        boxes, main = self._rows(int(offsets[-1]), size)
        if len(videos) != len(names):
            raise self._refusal("videos", f"{len(videos)} names", f"{len(names)}")
        pictures = ScaledPictures(self._reader(fits))
        for _, broken in decode_all(pictures, fits, cache_bytes, workers):
            raise broken
        return TrainingSet(
            self.classes, size, fill, videos, names, tuple(fits), offsets, boxes, main,
            np.arange(len(names)), pictures, self._problems(),
        )  # fmt: skip

    def _refusal(self, field: str, found: object, expected: str) -> DataError:
        return DataError(self.path, f"found {found}, expected {expected}", field=field)

    def _whole(self, field: str, most: int) -> int:
        value = self.facts.get(field)
        if type(value) is not int or not 0 <= value <= most:
            raise self._refusal(field, repr(value)[:40], f"a whole number up to {most}")
        return value

    def _names(self, field: str) -> tuple[str, ...]:
        value = self.facts.get(field)
        if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
            raise self._refusal(field, f"a {type(value).__name__}", "a list of names")
        return tuple(value)

    def _fits(self, count: int, size: int) -> list[Fit]:
        sizes = self.arrays["frame_sizes"]
        if sizes.shape != (count, 2) or sizes.min() < 1 or sizes.max() > _MAX_SIDE:
            raise self._refusal("frame_sizes", f"shape {sizes.shape}", f"{count} sizes of 1 to {_MAX_SIDE} pixels")
        return [Fit.of(height, width, size) for height, width in sizes.tolist()]

    def _steps(self, field: str, count: int, first: int | None = None) -> Ints:
        steps = self.arrays[field]
        if (
            steps.shape != (count,)
            or (np.diff(steps, prepend=0) < 0).any()
            or (first is not None and steps[0] != first)
        ):
            raise self._refusal(field, f"shape {steps.shape}", f"{count} rising numbers")
        return steps

    def _rows(self, count: int, size: int) -> tuple[AnyArray, AnyArray]:
        boxes, bits = self.arrays["boxes"], self.arrays["main"]
        classes = len(self.classes.heads[self.classes.main])
        if (
            boxes.shape != (count, 4)
            or not ((boxes >= 0) & (boxes <= size)).all()
            or (boxes[:, 2:] <= boxes[:, :2]).any()
        ):
            raise self._refusal("boxes", f"shape {boxes.shape}", f"{count} boxes inside {size} pixels")
        if bits.shape != (count, -(-classes // 8)):
            raise self._refusal("main", f"shape {bits.shape}", f"{count} rows of {classes} bits")
        return boxes, np.unpackbits(bits, axis=1, count=classes).astype(bool)

    def _reader(self, fits: list[Fit]) -> Callable[[int], Image]:
        data, ends = self.arrays["pictures"], self._steps("ends", len(fits))
        if ends[-1] != data.size or data.ndim != 1:
            raise self._refusal("pictures", f"{data.size} bytes", f"{int(ends[-1])} bytes")

        def read(number: int) -> Image:
            begin = int(ends[number - 1]) if number else 0
            height, width = fits[number].resized_hw
            stored = data[begin : int(ends[number])].tobytes()
            try:
                with Pillow.open(BytesIO(stored), formats=("JPEG", "PNG")) as image:
                    if image.size != (width, height):
                        found = f"a picture of {image.size[0]} × {image.size[1]}"
                        raise self._refusal(f"picture {number}", found, f"{width} × {height} pixels")
                    return np.array(image.convert("RGB"))
            except _DECODING as error:
                found = f"what cannot be decoded ({str(error)[:80]})"
                raise self._refusal(f"picture {number}", found, "a JPEG or PNG picture") from None

        return read

    def _problems(self) -> Problems:
        problems = self.facts.get("problems")
        counts = problems.get("counts") if isinstance(problems, dict) else None
        examples = problems.get("examples") if isinstance(problems, dict) else None
        if not isinstance(counts, dict) or not all(type(number) is int for number in counts.values()):
            raise self._refusal("problems", f"a {type(counts).__name__}", "counts by kind")
        if not isinstance(examples, dict) or not all(isinstance(names, list) for names in examples.values()):
            raise self._refusal("problems", f"a {type(examples).__name__}", "names by kind")
        return Problems(counts, {kind: tuple(map(str, names)) for kind, names in examples.items()})
