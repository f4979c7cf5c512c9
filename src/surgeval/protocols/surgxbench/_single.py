"""One image, a few prompts: scores, maps and a picture to look at."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from PIL.Image import Image as Picture

from surgeval.arrays import Image
from surgeval.datasets import read_image
from surgeval.errors import BadInput
from surgeval.explain import Maps, Method, Paste, Regions, top_regions
from surgeval.explain.heatmaps import heatmaps
from surgeval.models import Contrastive, open_contrastive
from surgeval.pages import jpeg_bytes
from surgeval.protocols.surgxbench._gallery import draw_overlay
from surgeval.protocols.surgxbench._labels import fold, line_height, write
from surgeval.protocols.surgxbench._legend import legend_band
from surgeval.records import ImageRef
from surgeval.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

__all__ = ["Explained", "ExplainedPrompt", "explain_image"]


_NARROWEST, _TALLEST = 360, 1080  # pixels of a panel: a smaller picture is enlarged
_LARGEST = 20_000  # pixels a side, as of a file
_LINES, _COLUMNS = 3, 3  # of a caption; of panels


@dataclass(frozen=True, slots=True)
class ExplainedPrompt:
    """What the model made of one prompt."""

    prompt: str
    score: float
    area: float  # attended share of what the model saw
    flags: frozenset[str]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explained(Result):
    """The picture (the frame, then one panel per prompt), the maps and the numbers."""

    picture: Image
    prompts: tuple[ExplainedPrompt, ...]
    heatmaps: npt.NDArray[np.float32]  # (prompts, height, width); NaN where the model saw nothing
    model: str
    visible: float  # share of the frame that the model saw
    method: Mapping[str, object]
    unknown: tuple[str, ...] = ()  # words of the prompts that the model does not know

    @property
    def heatmap(self) -> npt.NDArray[np.float32]:
        """The map of the first prompt, (height, width) of the frame; NaN where the model saw nothing."""
        first: npt.NDArray[np.float32] = self.heatmaps[0]
        return first

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`prompts`: score, attended share of what the model saw, and flags of each prompt."""
        rows = [(one.prompt, one.score, one.area, " ".join(sorted(one.flags))) for one in self.prompts]
        schema = {"prompt": pl.String, "score": pl.Float64, "area": pl.Float64, "flags": pl.String}
        return {"prompts": pl.DataFrame(rows, schema=schema, orient="row")}

    def plot(self, name: str | None = None) -> MatplotlibFigure:
        """The picture as a figure, with the prompts above their maps."""
        from matplotlib.figure import Figure

        if name not in (None, "picture"):
            raise BadInput(f"figure {name!r}: expected one of picture")
        height, width = self.picture.shape[:2]
        figure = Figure(figsize=(width / 100, height / 100), dpi=100)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.imshow(self.picture)
        axes.set_axis_off()
        return figure

    def __repr__(self) -> str:
        said = "; ".join(f"{one.score:+.3f} {one.prompt!r}" for one in self.prompts[:3])
        return f"Explained by {self.model}: {said}{'; …' if len(self.prompts) > 3 else ''}"

    def _repr_html_(self) -> str:
        data = base64.b64encode(jpeg_bytes(self.picture)).decode("ascii")
        return f'<img src="data:image/jpeg;base64,{data}" alt="{escape(repr(self))}">{self.to_frame()._repr_html_()}'


def explain_image(
    image: str | Path | Image | Picture, model: str, prompts: str | Sequence[str], *, method: Method | None = None,
    keep_top: float = 0.2, device: str = "cpu",
) -> Explained:  # fmt: skip
    """Score prompts on an image (a file, an RGB array of uint8, a PIL image) and draw where the model looks for each.

    >>> found = explain_image(np.zeros((64, 96, 3), np.uint8), "phantom-clip", "The hook is in the image")
    >>> found.heatmap.shape, found.to_frame().columns
    ((64, 96), ['prompt', 'score', 'area', 'flags'])
    """
    asked = (prompts,) if isinstance(prompts, str) else tuple(prompts)
    if not asked or not all(prompt.strip() for prompt in asked):
        raise BadInput("prompt: found an empty one, expected a sentence such as 'The hook is in the image'")
    frame = _pixels(image)
    net = open_contrastive(model, device=device)
    bank = net.texts(asked)
    pixels = torch.from_numpy(net.preparation(frame))[None].to(net.device)
    maps = heatmaps(net, pixels, bank, torch.arange(len(bank))[None], method)
    measured = _attended(frame, net, maps, keep_top)
    scores = net.scores(pixels, bank)[0].tolist()
    said = tuple(
        ExplainedPrompt(prompt, float(scores[k]), float(measured.regions.fractions[k]), measured.regions.flags(k))
        for k, prompt in enumerate(asked)
    )
    shown = _enlarged(frame)
    drawn = measured if shown is frame else _attended(shown, net, maps, keep_top)
    return Explained(
        picture=_panels([shown, *drawn.overlays()], ["frame", *(f"{one.score:+.3f} · {one.prompt}" for one in said)]),
        prompts=said,
        heatmaps=measured.paste.full(measured.heat.float().cpu().numpy()),
        model=net.name,
        visible=net.preparation.view(*frame.shape[:2]).fraction,
        method=dict(maps.method),
        unknown=bank.unknown,
    )


def _pixels(image: str | Path | Image | Picture) -> Image:
    if isinstance(image, str | Path):
        return read_image(ImageRef(Path(image)))
    if isinstance(image, Picture):
        image = np.asarray(image.convert("RGB"))
    if not isinstance(image, np.ndarray):
        raise BadInput(f"image: found {type(image).__name__}, expected a file, an RGB array or a PIL image")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise BadInput(f"image: found {image.dtype} of shape {image.shape}, expected uint8 of (height, width, 3), RGB")
    if max(image.shape) > _LARGEST:
        raise BadInput(f"image: found {image.shape[1]} × {image.shape[0]} pixels, expected at most {_LARGEST} a side")
    return np.ascontiguousarray(image)


@dataclass(frozen=True, slots=True, eq=False)
class _Attended:
    """The maps at the size of an image, one for each prompt, and their regions."""

    image: Image
    paste: Paste
    heat: torch.Tensor
    regions: Regions

    def overlays(self) -> list[Image]:
        heat, masks = self.heat.cpu().numpy(), self.regions.masks.cpu().numpy()
        return [draw_overlay(self.image, self.paste, *pair) for pair in zip(heat, masks, strict=True)]


def _attended(image: Image, net: Contrastive, maps: Maps, keep_top: float) -> _Attended:
    paste = Paste.of(net.preparation.view(*image.shape[:2]), (maps.values.shape[2], maps.values.shape[3]))
    heat = paste.upsample_torch(maps.values[0])
    return _Attended(image, paste, heat, top_regions(heat, keep_top))


def _enlarged(frame: Image) -> Image:
    """A frame wide enough for its caption, unless it would become very tall."""
    height, width = frame.shape[:2]
    scale = max(1.0, min(_NARROWEST / width, _TALLEST / height))
    size = (round(width * scale), round(height * scale))
    return frame if scale == 1 else cv2.resize(frame, size, interpolation=cv2.INTER_CUBIC)


def _panels(images: Sequence[Image], captions: Sequence[str]) -> Image:
    """The pictures, at most three in a row, each below its caption, and what their colours mean.

    Letters grow with the picture.
    """
    width = max(_NARROWEST, images[0].shape[1])
    size = min(max(14, width // 44), 96)
    step = line_height(size)
    folded = [fold(caption, size, width - size, _LINES) for caption in captions]
    rows = []
    for first in range(0, len(images), _COLUMNS):
        here = slice(first, first + _COLUMNS)
        band = size // 2 + step * max(len(lines) for lines in folded[here])
        row = np.full((band + images[0].shape[0], width * min(_COLUMNS, len(images)), 3), 255, dtype=np.uint8)
        for left, image, lines in zip(range(0, row.shape[1], width), images[here], folded[here], strict=False):
            for number, line in enumerate(lines):
                write(row, line, (left + size // 2, size // 4 + number * step), size, (30, 30, 30))
            row[band:, left : left + image.shape[1]] = image
        rows.append(row)
    return np.vstack([*rows, legend_band(rows[0].shape[1], size)])
