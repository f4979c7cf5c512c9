"""One image, a few prompts: scores, maps and a picture to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import torch

from surgeval.datasets import read_image
from surgeval.errors import BadInput
from surgeval.explain._paste import Paste
from surgeval.explain.heatmaps import Method, heatmaps
from surgeval.explain.regions import top_regions
from surgeval.models import open_contrastive
from surgeval.protocols._surgxbench.gallery import draw_overlay
from surgeval.records import ImageRef

__all__ = ["Explained", "ExplainedPrompt", "explain_image"]

_BAND = 26  # pixels for a line of text above each picture


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

    picture: npt.NDArray[np.uint8]
    prompts: tuple[ExplainedPrompt, ...]
    model: str
    visible: float  # share of the frame that the model saw
    method: Mapping[str, object]


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
    view = net.preparation.view(*frame.shape[:2])
    paste = Paste.of(view, (maps.values.shape[2], maps.values.shape[3]))
    heat = paste.upsample_torch(maps.values[0])
    regions = top_regions(heat, keep_top)
    scores = net.scores(pixels, bank)[0].tolist()
    panels, found = [_titled(frame, "frame")], []
    for k, prompt in enumerate(prompts):
        overlay = draw_overlay(frame, paste, heat[k].cpu().numpy(), regions.masks[k].cpu().numpy())
        panels.append(_titled(overlay, f"{scores[k]:+.3f}  {prompt}"))
        found.append(ExplainedPrompt(prompt, float(scores[k]), float(regions.fractions[k]), regions.flags(k)))
    return Explained(_side_by_side(panels), tuple(found), net.name, view.fraction, maps.method)


def _titled(image: npt.NDArray[np.uint8], text: str) -> npt.NDArray[np.uint8]:
    band = np.full((_BAND, image.shape[1], 3), 255, dtype=np.uint8)
    plain = text.encode("ascii", "replace").decode()
    room = max(8, image.shape[1] // 8)
    short = plain if len(plain) <= room else f"{plain[: room - 3]}..."
    cv2.putText(band, short, (4, _BAND - 9), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (30, 30, 30), 1, cv2.LINE_AA)
    return np.vstack([band, image])


def _side_by_side(panels: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    """At most three in a row."""
    rows = [list(panels[k : k + 3]) for k in range(0, len(panels), 3)]
    width = max(len(row) for row in rows)
    blank = np.full_like(panels[0], 255)
    return np.vstack([np.hstack([*row, *([blank] * (width - len(row)))]) for row in rows])
