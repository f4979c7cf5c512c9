"""From a frame to a model's pixels, and back: which part of the frame the model saw.

A map made in the model's square belongs to a window of the frame, often a small one (SurgVLP sees 21.8 % of a 16:9
frame); `Preparation.view` says which. The window reaches beyond a frame that is padded to a square, as LLaVA's may be.
Resizing is Pillow's, so the pixels equal those of the transformers processors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import PIL.Image

from surgeval.arrays import Bools, Image, Singles
from surgeval.errors import BadInput, DataError

__all__ = ["CLIP_MEAN", "CLIP_STD", "IMAGENET_MEAN", "IMAGENET_STD", "Preparation", "View"]

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Resample = Literal["bilinear", "bicubic"]
_FILTERS = {"bilinear": PIL.Image.Resampling.BILINEAR, "bicubic": PIL.Image.Resampling.BICUBIC}
_CODES: dict[int, Resample] = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers, as configuration files write them
_LARGEST = 4096  # pixels along an edge: no model reads more, and a hostile file may ask for it
_LONGEST = 16384  # pixels along the longer edge of a frame that is padded to a square
_STRIP = 512  # rows that are copied at a time
_PADDING = ("LlavaImageProcessor", "LlavaImageProcessorFast", "LlavaImageProcessorPil")  # to a square, in the middle


@dataclass(frozen=True)
class View:
    """What a model saw of a frame: `window` = (x1, y1, x2, y2) in pixels of a frame of (height, width)."""

    frame: tuple[int, int]
    window: tuple[float, float, float, float]

    @property
    def inside(self) -> tuple[float, float, float, float]:
        """The part of the window that is frame, in pixels of the frame; the rest of it is padding."""
        (height, width), (x1, y1, x2, y2) = self.frame, self.window
        return max(x1, 0.0), max(y1, 0.0), min(x2, float(width)), min(y2, float(height))

    @property
    def fraction(self) -> float:
        """The share of the frame's area inside the window."""
        x1, y1, x2, y2 = self.inside
        return (x2 - x1) * (y2 - y1) / (self.frame[0] * self.frame[1])

    @property
    def padding(self) -> float:
        """The share of the window that is no frame: the model's own colour around it.

        >>> View((1080, 1920), (0.0, -420.0, 1920.0, 1500.0)).padding
        0.4375
        """
        x1, y1, x2, y2 = self.window
        left, top, right, bottom = self.inside
        return 1 - (right - left) * (bottom - top) / ((x2 - x1) * (y2 - y1))

    def touched(self, rows: int, columns: int) -> Bools:
        """Which cells of a grid over the window hold a piece of the frame; the others hold padding only.

        >>> View((1080, 1920), (0.0, -420.0, 1920.0, 1500.0)).touched(24, 24).sum().item()
        336
        """
        down, across = self._parts()
        return _cells(rows, *down)[:, None] & _cells(columns, *across)[None, :]

    def pixels(self, rows: int, columns: int) -> tuple[slice, slice]:
        """Rows and columns of a model's input over the window whose centres lie in the frame: all but the padding.

        >>> View((1080, 1920), (0.0, -420.0, 1920.0, 1500.0)).pixels(336, 336)
        (slice(73, 262, None), slice(0, 336, None))
        """
        down, across = self._parts()
        return _centres(rows, *down), _centres(columns, *across)

    def _parts(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """From where to where the frame lies in the window, 0 … 1, down and across."""
        x1, y1, x2, y2 = self.window
        left, top, right, bottom = self.inside
        return (
            ((top - y1) / (y2 - y1), (bottom - y1) / (y2 - y1)),
            ((left - x1) / (x2 - x1), (right - x1) / (x2 - x1)),
        )


def _centres(count: int, low: float, high: float) -> slice:
    """Which of `count` equal pixels of 0 … 1 have their centre in low … high."""
    first, stop = (min(max(math.ceil(edge * count - 0.5), 0), count) for edge in (low, high))
    return slice(first, max(first, stop))


def _cells(count: int, low: float, high: float) -> Bools:
    """Which of `count` equal cells of 0 … 1 overlap low … high by more than a rounding error."""
    edges = np.arange(count + 1) / count
    return np.asarray((edges[1:] > low + 1e-12) & (edges[:-1] < high - 1e-12))


@dataclass(frozen=True)
class Preparation:
    """Pad, resize, centre crop, rescale, normalise.

    `resize` is (height, width), which squashes, or the length of the shorter edge, which keeps the aspect and therefore
    needs a crop. With a colour to `pad` with, the frame is first made a square around its middle: nothing is cut off.

    >>> prep = Preparation(resize=224, crop=(224, 224))
    >>> prep(np.zeros((1080, 1920, 3), np.uint8)).shape
    (3, 224, 224)
    >>> view = prep.view(1080, 1920)
    >>> [round(edge) for edge in view.window], round(view.fraction, 3)
    ([420, 0, 1500, 1080], 0.563)
    """

    resize: tuple[int, int] | int
    crop: tuple[int, int] | None = None
    resample: Resample = "bicubic"
    rescale: float = 1 / 255
    mean: tuple[float, float, float] = CLIP_MEAN
    std: tuple[float, float, float] = CLIP_STD
    pad: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        if self.resample not in _FILTERS:
            raise BadInput(f"resample: found {self.resample!r}, expected one of {', '.join(_FILTERS)}")
        edges = (self.resize,) if isinstance(self.resize, int) else self.resize
        if not all(1 <= edge <= _LARGEST for edge in (*edges, *(self.crop or ()))):
            raise BadInput(f"preparation: found edges {edges} and crop {self.crop}, expected 1 to {_LARGEST} pixels")
        if isinstance(self.resize, int) and self.crop is None:
            raise BadInput(
                "preparation: found a resize of the shorter edge without a crop, expected a fixed input size"
            )
        if self.crop is not None:
            height, width = (self.resize,) * 2 if isinstance(self.resize, int) else self.resize
            if self.crop[0] > height or self.crop[1] > width:
                raise BadInput(f"preparation: found a crop {self.crop} larger than the resized image {height}×{width}")
        if not all(math.isfinite(value) for value in (self.rescale, *self.mean, *self.std)) or 0 in self.std:
            raise BadInput("preparation: found a rescale, mean or std that is not finite or a std of 0")
        if self.pad is not None and not all(0 <= value <= 255 for value in self.pad):
            raise BadInput(f"preparation: found padding in {self.pad}, expected three values from 0 to 255")

    @property
    def input_size(self) -> tuple[int, int]:
        """Rows and columns of the model's input."""
        if self.crop is not None:
            return self.crop
        if isinstance(self.resize, int):  # pragma: no cover (refused on construction)
            raise BadInput("preparation: expected a crop")
        return self.resize

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns after resizing, before the crop; the longer edge is rounded down, as transformers does."""
        if not isinstance(self.resize, int):
            return self.resize
        if width <= height:
            return int(self.resize * height / width), self.resize
        return self.resize, int(self.resize * width / height)

    def view(self, height: int, width: int) -> View:
        """The window of a frame that ends up in the model's input."""
        if height < 1 or width < 1:
            raise BadInput(f"frame: found {height}×{width} pixels, expected at least 1×1")
        if self.pad is not None:
            side, above, before = _square(height, width)
            x1, y1, x2, y2 = self._window(side, side)
            return View((height, width), (x1 - before, y1 - above, x2 - before, y2 - above))
        return View((height, width), self._window(height, width))

    def _window(self, height: int, width: int) -> tuple[float, float, float, float]:
        rows, columns = self.resized(height, width)
        if self.crop is None:
            return (0.0, 0.0, float(width), float(height))
        top, left = (rows - self.crop[0]) // 2, (columns - self.crop[1]) // 2
        x, y = width / columns, height / rows
        return left * x, top * y, (left + self.crop[1]) * x, (top + self.crop[0]) * y

    def __call__(self, image: Image) -> Singles:
        """An RGB frame (height, width, 3) as the model's input (3, rows, columns)."""
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
            raise BadInput(f"image: found {image.dtype} of shape {image.shape}, expected uint8 (height, width, 3)")
        height, width = image.shape[:2]
        if self.pad is not None:
            height = width = _square_side(height, width)
        rows, columns = self.resized(height, width)
        if rows > 64 * _LARGEST or columns > 64 * _LARGEST:
            raise BadInput(f"image: found {height}×{width} pixels, expected an aspect a model can be shown")
        whole = PIL.Image.fromarray(np.ascontiguousarray(image)) if self.pad is None else _padded(image, self.pad)
        small = whole.resize((columns, rows), _FILTERS[self.resample])
        if self.crop is not None:
            top, left = (rows - self.crop[0]) // 2, (columns - self.crop[1]) // 2
            small = small.crop((left, top, left + self.crop[1], top + self.crop[0]))
        pixels = np.asarray(small)
        return np.stack([self._table[channel][pixels[..., channel]] for channel in range(3)])

    @cached_property
    def _table(self) -> Singles:
        # 256 values per channel, by the processors' arithmetic: a float64 product, then a float32 difference.
        values = (np.arange(256, dtype=np.float64) * self.rescale).astype(np.float32)
        mean, std = (np.asarray(three, np.float32)[:, None] for three in (self.mean, self.std))
        return np.asarray((values - mean) / std, np.float32)

    @classmethod
    def from_processor(cls, config: Mapping[str, Any], file: object = "preprocessor_config.json") -> Preparation:
        """The preparation that a transformers image processor's configuration describes (CLIP or BLIP kind).

        >>> Preparation.from_processor({"image_processor_type": "BlipImageProcessor"}).input_size
        (384, 384)
        """
        return _from_processor(config, file)


def _square(height: int, width: int) -> tuple[int, int, int]:
    """The side of the square around a frame, and the rows above and the columns before it."""
    side = max(height, width)
    return side, (side - height) // 2, (side - width) // 2


def _square_side(height: int, width: int) -> int:
    side = max(height, width)
    if side > _LONGEST:
        raise BadInput(f"image: found {height}×{width} pixels, expected at most {_LONGEST} a side to pad to a square")
    return side


def _padded(image: Image, colour: tuple[int, int, int]) -> PIL.Image.Image:
    """The frame in the middle of a square; a strip at a time, as Pillow copies what it is given."""
    height, width = image.shape[:2]
    side, above, before = _square(height, width)
    square = PIL.Image.new("RGB", (side, side), colour)
    for top in range(0, height, _STRIP):
        strip = np.ascontiguousarray(image[top : top + _STRIP])
        square.paste(PIL.Image.fromarray(strip), (before, above + top))
    return square


def _from_processor(config: Mapping[str, Any], file: object) -> Preparation:
    kind = config.get("image_processor_type", config.get("feature_extractor_type", ""))
    blip = isinstance(kind, str) and kind.startswith("Blip")
    if not _switch(config, "do_resize", True, file):
        raise DataError(file, "found false, expected true: a model reads one fixed size", field="do_resize")
    padded = _switch(config, "do_pad", False, file)
    if padded and kind not in _PADDING:
        raise DataError(file, f"found true, expected no padding, or a {_PADDING[0]}", field="do_pad")
    resize = _resize(config.get("size", {"height": 384, "width": 384} if blip else 224), blip, file)
    crop = None
    if _switch(config, "do_center_crop", not blip, file):
        side = config.get("crop_size", 224)
        crop = _rectangle({"height": side, "width": side} if isinstance(side, int) else side, "crop_size", file)
    code = config.get("resample", 3)
    if not isinstance(code, int) or isinstance(code, bool) or code not in _CODES:
        raise DataError(file, f"found {code!r}, expected 2 (bilinear) or 3 (bicubic)", field="resample")
    rescale = _number(config.get("rescale_factor", 1 / 255), "rescale_factor", file)
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    colour = _colour(_three(config.get("image_mean", CLIP_MEAN), "image_mean", file)) if padded else None
    if _switch(config, "do_normalize", True, file):
        mean = _three(config.get("image_mean", CLIP_MEAN), "image_mean", file)
        std = _three(config.get("image_std", CLIP_STD), "image_std", file)
    try:
        return Preparation(
            resize, crop, _CODES[code], rescale if _switch(config, "do_rescale", True, file) else 1.0, mean, std, colour
        )
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from error


def _colour(mean: tuple[float, float, float]) -> tuple[int, int, int]:
    """The padding: the mean colour, cut to whole values, whether or not the pixels are normalised by it."""
    red, green, blue = (int(255 * value) for value in mean)
    return red, green, blue


def _resize(size: object, square: bool, file: object) -> tuple[int, int] | int:
    if isinstance(size, int) and not isinstance(size, bool):  # the old way of writing it
        size = {"height": size, "width": size} if square else {"shortest_edge": size}
    if isinstance(size, Mapping):
        sides = {name: value for name, value in size.items() if value is not None}
        if set(sides) == {"shortest_edge"}:
            return _edge(sides["shortest_edge"], "size.shortest_edge", file)
    return _rectangle(size, "size", file)


def _rectangle(size: object, field: str, file: object) -> tuple[int, int]:
    if not isinstance(size, Mapping) or {name for name, value in size.items() if value is not None} != {
        "height",
        "width",
    }:
        wanted = "height and width" + (" or shortest_edge" if field == "size" else "")
        raise DataError(file, f"found {repr(size)[:80]}, expected {wanted}", field=field)
    return _edge(size["height"], f"{field}.height", file), _edge(size["width"], f"{field}.width", file)


def _edge(edge: object, field: str, file: object) -> int:
    if not isinstance(edge, int) or isinstance(edge, bool) or not 1 <= edge <= _LARGEST:
        raise DataError(file, f"found {repr(edge)[:80]}, expected a whole number from 1 to {_LARGEST}", field=field)
    return edge


def _number(number: object, field: str, file: object) -> float:
    if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) <= sys.float_info.max:
        raise DataError(file, f"found {repr(number)[:80]}, expected a finite number", field=field)
    return float(number)


def _three(numbers: object, field: str, file: object) -> tuple[float, float, float]:
    if not isinstance(numbers, list | tuple) or len(numbers) != 3:
        raise DataError(file, f"found {repr(numbers)[:80]}, expected three numbers", field=field)
    red, green, blue = (_number(value, field, file) for value in numbers)
    return red, green, blue


def _switch(config: Mapping[str, Any], field: str, default: bool, file: object) -> bool:
    value = config.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise DataError(file, f"found {repr(value)[:80]}, expected true or false", field=field)
    return value
