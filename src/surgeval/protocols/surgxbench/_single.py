"""One image, a few prompts: scores, maps and a picture to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch

from surgeval.arrays import Image
from surgeval.datasets import read_image
from surgeval.errors import BadInput
from surgeval.explain._maps import Maps
from surgeval.explain._paste import Paste
from surgeval.explain.heatmaps import Method, heatmaps
from surgeval.explain.regions import Regions, top_regions
from surgeval.models import Contrastive, open_contrastive
from surgeval.protocols.surgxbench._gallery import draw_overlay
from surgeval.protocols.surgxbench._labels import fold, line_height, write
from surgeval.records import ImageRef

__all__ = ["Explained", "ExplainedPrompt", "explain_image"]


_NARROWEST, _TALLEST = 360, 1080  # pixels of a panel: a smaller picture is enlarged
_LINES, _COLUMNS = 3, 3  # of a caption; of panels


@dataclass(frozen=True, slots=True)
class ExplainedPrompt:
    """What the model made of one prompt."""

    prompt: str
    score: float
    area: float  # attended share of what the model saw
    flags: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The picture (the frame, then one panel per prompt) and the numbers."""

    picture: Image
    prompts: tuple[ExplainedPrompt, ...]
    model: str
    visible: float  # share of the frame that the model saw
    method: Mapping[str, object]
    unknown: tuple[str, ...] = ()  # words of the prompts that the model does not know


def explain_image(
    image: str | Path, model: str, prompts: Sequence[str], *, method: Method | None = None, keep_top: float = 0.2,
    device: str = "cpu",
) -> Explained:  # fmt: skip
    """Score the prompts on an image and draw where the model looks for each."""
    if not prompts or not all(prompt.strip() for prompt in prompts):
        raise BadInput("prompt: found an empty one, expected a sentence such as 'The hook is in the image'")
    frame = read_image(ImageRef(Path(image)))
    net = open_contrastive(model, device=device)
    bank = net.texts(tuple(prompts))
    pixels = torch.from_numpy(net.preparation(frame))[None].to(net.device)
    maps = heatmaps(net, pixels, bank, torch.arange(len(bank))[None], method)
    measured = _attended(frame, net, maps, keep_top)
    scores = net.scores(pixels, bank)[0].tolist()
    found = tuple(
        ExplainedPrompt(prompt, float(scores[k]), float(measured.regions.fractions[k]), measured.regions.flags(k))
        for k, prompt in enumerate(prompts)
    )
    shown = _enlarged(frame)
    drawn = measured if shown is frame else _attended(shown, net, maps, keep_top)
    picture = _panels([shown, *drawn.overlays()], ["frame", *(f"{one.score:+.3f} · {one.prompt}" for one in found)])
    visible = net.preparation.view(*frame.shape[:2]).fraction
    return Explained(picture, found, net.name, visible, dict(maps.method), bank.unknown)


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
    """The pictures, at most three in a row, each below its caption; letters grow with the picture."""
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
    return np.vstack(rows)
