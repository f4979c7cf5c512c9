"""Occlusion of one region per image, beside its controls: does the prediction depend on what was hidden?

Hidden in the model's own pixels: the attended region; the same shape elsewhere; the least attended pixels; the
annotated boxes; the boxes' shape elsewhere. If hiding the attended region costs no more than hiding another place, the
map did not say what the score depends on; if hiding the instrument itself costs nothing, the score was not about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from surgeval.explain import box_masks, top_regions, whole
from surgeval.explain.occlusion import fill_colour, least_attended, occlude, shifted
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.protocols.surgxbench.tables import CONTROLS

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank
    from surgeval.models.preparation import Preparation, View
    from surgeval.protocols.surgxbench.settings import SurgXSettings

__all__ = ["Hidden", "hidden_images", "hidden_scores"]


@dataclass(frozen=True, slots=True)
class Hidden:
    """Scores (images, prompts) with a region hidden; `hides` (images,) is False where there was nothing to hide."""

    scores: torch.Tensor
    hides: tuple[bool, ...]


def hidden_scores(
    model: Contrastive, bank: TextBank, seen: Sequence[PreparedFrame], pixels: torch.Tensor, maps: torch.Tensor,
    instruments: Sequence[int], settings: SurgXSettings,
) -> dict[str, Hidden]:  # fmt: skip
    """Each region hidden in turn, and the prompts scored again."""
    hidden = hidden_images(model.preparation, seen, pixels, maps, instruments, settings)
    return {name: Hidden(model.scores(images, bank).float().cpu(), hides) for name, images, hides in hidden}


def hidden_images(
    preparation: Preparation, seen: Sequence[PreparedFrame], pixels: torch.Tensor, maps: torch.Tensor,
    instruments: Sequence[int], settings: SurgXSettings,
) -> Iterator[tuple[str, torch.Tensor, tuple[bool, ...]]]:  # fmt: skip
    """The name of each region, the images without it, and for which of them there was something to hide.

    `maps` has one map per image, `instruments` one class each. A map without a region or without any contrast, and a
    class without a visible box, hide nothing that could be compared with another place: those images count in no
    share. Padding around a frame is never hidden: regions are sought, and moved, in what is frame.
    """
    height, width = pixels.shape[2:]
    boxes = _boxes(seen, instruments, height, width, pixels.device)
    masks = {name: torch.zeros_like(boxes) for name in CONTROLS}
    says = torch.zeros(len(seen), dtype=torch.bool, device=pixels.device)
    views: dict[View, list[int]] = {}
    for number, prepared in enumerate(seen):
        views.setdefault(prepared.view, []).append(number)
    for view, rows in views.items():
        names = [f"{seen[n].frame.video}/{seen[n].frame.name}" for n in rows]
        inside = view.pixels(height, width)
        enlarged = whole((maps.shape[1], maps.shape[2]), height, width).upsample_torch(maps[rows])
        large, boxed = (every[:, *inside] for every in (enlarged, boxes[rows]))
        regions = top_regions(large, settings.keep_top, settings.positive)
        hidden = {
            "attended": regions.masks,
            "random": shifted(regions.masks, settings.seed, names),
            "least": least_attended(large, regions.sizes),
            "boxes": boxed,
            "boxes_moved": shifted(boxed, settings.seed + 1, names),
        }
        for name, mask in hidden.items():
            masks[name][rows, *inside] = mask
        says[rows] = ~(regions.empty | regions.constant)
    colour = fill_colour(preparation)
    shows = masks["boxes"].flatten(1).any(dim=1)
    for name, mask in masks.items():
        yield name, occlude(pixels, mask, colour), tuple((shows if name.startswith("boxes") else says).tolist())


def _boxes(
    seen: Sequence[PreparedFrame], instruments: Sequence[int], height: int, width: int, device: torch.device
) -> torch.Tensor:
    """The boxes of one instrument per image as pixels of the model's input."""
    rows = []
    for prepared, number in zip(seen, instruments, strict=True):
        x1, y1, x2, y2 = prepared.view.window
        across, down = width / (x2 - x1), height / (y2 - y1)
        rows.append(
            [((left - x1) * across, (top - y1) * down, (right - x1) * across, (bottom - y1) * down)
             for left, top, right, bottom in (instance.box.corners for instance in prepared.frame.instances
                                              if instance.box is not None and instance.triplet.instrument == number)]
        )  # fmt: skip
    most = max((len(row) for row in rows), default=0)
    table = torch.full((len(rows), most, 4), torch.nan, dtype=torch.float64)
    for index, row in enumerate(rows):
        if row:
            table[index, : len(row)] = torch.tensor(row, dtype=torch.float64)
    return box_masks(table.to(device), (0, 0, width, height))
