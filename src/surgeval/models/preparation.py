"""Turn frames into a model's pixels, and say which part of the frame the model sees.

A heatmap over the model's input belongs to a window of the frame, often a small one (SurgVLP sees 21.8 % of a 16:9
frame); `Preparation.view` computes it. If the model pads frames to a square, as LLaVA may, the window reaches beyond
the frame. Resizing uses Pillow, so the pixels equal those of the transformers processors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import PIL.Image
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from surgeval.arrays import Bools, Image, Singles
from surgeval.errors import BadInput, DataError
from surgeval.files import Location, raise_errors, read_json_object, validate

__all__ = ["CLIP_MEAN", "CLIP_STD", "IMAGENET_MEAN", "IMAGENET_STD", "Preparation", "View", "read_preparation"]

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Resample = Literal["bilinear", "bicubic"]
_FILTERS = {"bilinear": PIL.Image.Resampling.BILINEAR, "bicubic": PIL.Image.Resampling.BICUBIC}
_CONFIG_LIMIT = 4 << 20
_LARGEST = 4096  # pixels along an edge: no model reads more, and an untrusted file may ask for it
_LONGEST = 16384  # pixels along the longer edge of a frame that is padded to a square
_STRIP = 512  # rows that are copied at a time
_PADDING = ("LlavaImageProcessor", "LlavaImageProcessorFast", "LlavaImageProcessorPil")  # pad to a centred square


@dataclass(frozen=True)
class View:
    """The part of a frame that a model sees: `window` = (x1, y1, x2, y2) in pixels of a frame of (height, width)."""

    frame: tuple[int, int]
    window: tuple[float, float, float, float]

    @property
    def inside(self) -> tuple[float, float, float, float]:
        """The part of the window inside the frame, in pixels of the frame; the rest is padding."""
        (height, width), (x1, y1, x2, y2) = self.frame, self.window
        return max(x1, 0.0), max(y1, 0.0), min(x2, float(width)), min(y2, float(height))

    @property
    def fraction(self) -> float:
        """The share of the frame's area inside the window."""
        x1, y1, x2, y2 = self.inside
        return (x2 - x1) * (y2 - y1) / (self.frame[0] * self.frame[1])

    @property
    def padding(self) -> float:
        """The share of the window outside the frame, which the model fills with one colour.

        >>> View((1080, 1920), (0.0, -420.0, 1920.0, 1500.0)).padding
        0.4375
        """
        x1, y1, x2, y2 = self.window
        left, top, right, bottom = self.inside
        return 1 - (right - left) * (bottom - top) / ((x2 - x1) * (y2 - y1))

    def frame_cells(self, rows: int, columns: int) -> Bools:
        """Which cells of a grid over the window overlap the frame; the others hold padding only.

        >>> View((1080, 1920), (0.0, -420.0, 1920.0, 1500.0)).frame_cells(24, 24).sum().item()
        336
        """
        down, across = self._frame_shares()
        return _overlapping_cells(rows, *down)[:, None] & _overlapping_cells(columns, *across)[None, :]

    def pixels(self, rows: int, columns: int) -> tuple[slice, slice]:
        """Rows and columns of a model's input whose centres lie in the frame: all but the padding.

        >>> View((1080, 1920), (0.0, -420.0, 1920.0, 1500.0)).pixels(336, 336)
        (slice(73, 262, None), slice(0, 336, None))
        """
        down, across = self._frame_shares()
        return _centres_between(rows, *down), _centres_between(columns, *across)

    def _frame_shares(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Start and end of the frame in the window, 0 … 1, vertically and horizontally."""
        x1, y1, x2, y2 = self.window
        left, top, right, bottom = self.inside
        return (
            ((top - y1) / (y2 - y1), (bottom - y1) / (y2 - y1)),
            ((left - x1) / (x2 - x1), (right - x1) / (x2 - x1)),
        )


def _centres_between(count: int, low: float, high: float) -> slice:
    """Which of `count` equal pixels of 0 … 1 have their centre between `low` and `high`."""
    first, stop = (min(max(math.ceil(edge * count - 0.5), 0), count) for edge in (low, high))
    return slice(first, max(first, stop))


def _overlapping_cells(count: int, low: float, high: float) -> Bools:
    """Which of `count` equal cells of 0 … 1 overlap `low` … `high` by more than a rounding error."""
    edges = np.arange(count + 1) / count
    return np.asarray((edges[1:] > low + 1e-12) & (edges[:-1] < high - 1e-12))


@dataclass(frozen=True)
class Preparation:
    """Pad, resize, crop the centre, rescale and normalise a frame.

    `resize` is (height, width), which ignores the aspect ratio, or the length of the shorter edge, which keeps it and
    therefore needs a crop. `pad` is a colour: the frame is first padded to a square, so that nothing is cut off.

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
            raise BadInput(f"Unknown resample filter {self.resample!r}. Use one of {', '.join(_FILTERS)}.")
        edges = (self.resize,) if isinstance(self.resize, int) else self.resize
        if not all(1 <= edge <= _LARGEST for edge in (*edges, *(self.crop or ()))):
            raise BadInput(f"Edges {edges} or crop {self.crop} are not between 1 and {_LARGEST} pixels.")
        if isinstance(self.resize, int) and self.crop is None:
            raise BadInput("Resizing the shorter edge without a crop gives no fixed input size.")
        if self.crop is not None:
            height, width = (self.resize,) * 2 if isinstance(self.resize, int) else self.resize
            if self.crop[0] > height or self.crop[1] > width:
                raise BadInput(f"The crop {self.crop} is larger than the resized image {height}×{width}.")
        if not all(math.isfinite(value) for value in (self.rescale, *self.mean, *self.std)) or 0 in self.std:
            raise BadInput("rescale, mean and std must be finite, and std must not be 0.")
        if self.pad is not None and not all(0 <= value <= 255 for value in self.pad):
            raise BadInput(f"The padding colour {self.pad} is not three values from 0 to 255.")

    @property
    def input_size(self) -> tuple[int, int]:
        """Rows and columns of the model's input."""
        if self.crop is not None:
            return self.crop
        if isinstance(self.resize, int):  # pragma: no cover (refused on construction)
            raise BadInput("This preparation has no crop.")
        return self.resize

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns after resizing and before the crop; the longer edge is rounded down, as in transformers."""
        if not isinstance(self.resize, int):
            return self.resize
        if width <= height:
            return int(self.resize * height / width), self.resize
        return self.resize, int(self.resize * width / height)

    def view(self, height: int, width: int) -> View:
        """The window of a frame that becomes the model's input."""
        if height < 1 or width < 1:
            raise BadInput(f"A frame of {height}×{width} pixels has no pixels.")
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
        """Turn an RGB frame (height, width, 3) into the model's input (3, rows, columns)."""
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
            raise BadInput(f"An image must be uint8 of shape (height, width, 3), not {image.dtype} of {image.shape}.")
        height, width = image.shape[:2]
        if self.pad is not None:
            height = width = _square_side(height, width)
        rows, columns = self.resized(height, width)
        if rows > 64 * _LARGEST or columns > 64 * _LARGEST:
            raise BadInput(f"An image of {height}×{width} pixels is too elongated to resize its shorter edge.")
        if self.pad is None:
            whole = PIL.Image.fromarray(np.ascontiguousarray(image))
        else:
            whole = _pad_to_square(image, self.pad)
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
        """Read the configuration of a transformers image processor (CLIP, BLIP or LLaVA); `file` is named in errors.

        >>> Preparation.from_processor({"image_processor_type": "BlipImageProcessor"}).input_size
        (384, 384)
        """
        checked: Any = validate(_ProcessorConfig, dict(config), Location(str(file), raise_errors))
        result: Preparation = checked.to_preparation(file)
        return result


def _square(height: int, width: int) -> tuple[int, int, int]:
    """The side of the square around a frame, and the rows above and the columns before it."""
    side = max(height, width)
    return side, (side - height) // 2, (side - width) // 2


def _square_side(height: int, width: int) -> int:
    side = max(height, width)
    if side > _LONGEST:
        raise BadInput(
            f"An image of {height}×{width} pixels is too large to pad to a square (at most {_LONGEST} a side)."
        )
    return side


def _pad_to_square(image: Image, colour: tuple[int, int, int]) -> PIL.Image.Image:
    """Pad the frame to a square, in strips: Pillow copies every array that it is given."""
    height, width = image.shape[:2]
    side, above, before = _square(height, width)
    square = PIL.Image.new("RGB", (side, side), colour)
    for top in range(0, height, _STRIP):
        strip = np.ascontiguousarray(image[top : top + _STRIP])
        square.paste(PIL.Image.fromarray(strip), (before, above + top))
    return square


def read_preparation(folder: Path) -> Preparation:
    """Read a model folder's preparation: preprocessor_config.json, or processor_config.json of newer versions."""
    path = folder / "preprocessor_config.json"
    if path.is_file():
        return Preparation.from_processor(read_json_object(path, limit=_CONFIG_LIMIT), path)
    newer = folder / "processor_config.json"
    if newer.is_file():
        config = read_json_object(newer, limit=_CONFIG_LIMIT).get("image_processor")
        if isinstance(config, dict):
            return Preparation.from_processor(config, newer)
    raise DataError(path, "no such file; the image processor's configuration is needed", code="file-missing")


def _read_size(value: object) -> object:
    """A size as an object: one number is written as `edge`, and sides that are null are left out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return {"edge": value}
    return {name: side for name, side in value.items() if side is not None} if isinstance(value, Mapping) else value


_Edge = Annotated[int, Field(ge=1, le=_LARGEST)]
_Channel = Annotated[float, Field(ge=-1e6, le=1e6)]
_Three = Annotated[tuple[_Channel, _Channel, _Channel], Field(strict=False)]


class _Size(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    height: _Edge | None = None
    width: _Edge | None = None
    shortest_edge: _Edge | None = None
    edge: _Edge | None = None

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        if self.model_fields_set not in ({"height", "width"}, {"shortest_edge"}, {"edge"}):
            raise ValueError("expected height and width, or shortest_edge")
        return self

    def rectangle(self) -> tuple[int, int] | None:
        """Height and width, or None for a shorter edge."""
        if self.height is not None and self.width is not None:
            return self.height, self.width
        return (self.edge, self.edge) if self.edge is not None else None


_AnySize = Annotated[_Size, BeforeValidator(_read_size)]


class _ProcessorConfig(BaseModel):
    """The fields of a processor's configuration that decide the pixels; a switch that is null has its default."""

    model_config = ConfigDict(strict=True)

    image_processor_type: str | None = None
    feature_extractor_type: str | None = None
    do_resize: bool | None = None
    do_pad: bool | None = None
    do_center_crop: bool | None = None
    do_rescale: bool | None = None
    do_normalize: bool | None = None
    size: _AnySize | None = None
    crop_size: _AnySize = _Size(edge=224)
    resample: Literal[2, 3] = 3
    rescale_factor: FiniteFloat = 1 / 255
    image_mean: _Three = CLIP_MEAN
    image_std: _Three = CLIP_STD

    def to_preparation(self, file: object) -> Preparation:
        """The preparation that this processor does; fields that are absent have the values of its kind."""
        kind = self.image_processor_type or self.feature_extractor_type or ""
        blip = kind.startswith("Blip")
        if self.do_resize is False:
            raise DataError(file, "must be true: a model reads one fixed size", field="do_resize", code="wrong-value")
        if self.do_pad and kind not in _PADDING:
            sentence = f"padding is only supported for a {_PADDING[0]}"
            raise DataError(file, sentence, field="do_pad", code="wrong-value")
        resize = self._resize(blip)
        crop = None
        if self.do_center_crop or (self.do_center_crop is None and not blip):
            crop = self.crop_size.rectangle()
            if crop is None:
                raise DataError(file, "expected height and width", field="crop_size", code="wrong-shape")
        mean, std = self.image_mean, self.image_std
        if self.do_normalize is False:
            mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        # The padding is the mean colour, rounded down, whether or not the pixels are normalised.
        red, green, blue = (int(255 * value) for value in self.image_mean)
        try:
            return Preparation(
                resize, crop, "bilinear" if self.resample == 2 else "bicubic",  # Pillow's numbers
                1.0 if self.do_rescale is False else self.rescale_factor, mean, std,
                (red, green, blue) if self.do_pad else None,
            )  # fmt: skip
        except BadInput as error:
            raise DataError(file, str(error), code="wrong-value") from error

    def _resize(self, blip: bool) -> tuple[int, int] | int:
        size = self.size or (_Size(height=384, width=384) if blip else _Size(shortest_edge=224))
        if size.edge is not None:  # older files: BLIP means a square, the others the shorter edge
            return (size.edge, size.edge) if blip else size.edge
        return size.rectangle() or size.shortest_edge or 0
