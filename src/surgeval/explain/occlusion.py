"""Occlusion: black out the attended region and score again, beside two controls of equal area.

Everything happens in the model's own pixels, which the map covers exactly, so no second geometry is needed.
Controls: the region itself moved to a random place (same shape, same area, wrapped at the border) and the least
attended pixels. Deletion and insertion curves do the same for growing areas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from surgeval.errors import BadInput
from surgeval.explain.paste import whole
from surgeval.explain.regions import top_regions
from surgeval.stats import stream

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank
    from surgeval.models.preparation import Preparation

__all__ = [
    "Occlusion",
    "OcclusionCurves",
    "attention_order",
    "fill_colour",
    "least_attended",
    "occlude",
    "occlusion",
    "occlusion_curves",
    "score_curves",
]


@dataclass(frozen=True)
class Occlusion:
    """Scores (images, prompts) of the images unchanged and with a region blacked out; `area` is its share."""

    before: torch.Tensor
    attended: torch.Tensor
    random: torch.Tensor
    least: torch.Tensor
    area: torch.Tensor  # (images,) the same for all three
    empty: torch.Tensor  # (images,) the map has no region, so nothing was blacked out


@dataclass(frozen=True)
class OcclusionCurves:
    """Scores of one prompt per image as the most attended pixels are removed (deletion) or added (insertion)."""

    fractions: torch.Tensor  # (steps + 1,) from 0 to 1
    deletion: torch.Tensor  # (images, steps + 1)
    insertion: torch.Tensor
    deletion_area: torch.Tensor  # (images,) by trapezoids; low if the pixels removed first mattered
    insertion_area: torch.Tensor  # high if the pixels added first mattered


def fill_colour(preparation: Preparation, fill: Literal["black", "mean"] = "black") -> torch.Tensor:
    """The fill in the model's normalised pixels: black, or the model's mean colour (zero).

    >>> from surgeval.models import open_contrastive
    >>> fill_colour(open_contrastive("phantom-clip").preparation, "mean").tolist()
    [0.0, 0.0, 0.0]
    """
    if fill not in ("black", "mean"):
        raise BadInput(f"Unknown fill {fill!r}. Use black or mean.")
    mean, std = torch.tensor(preparation.mean), torch.tensor(preparation.std)
    return torch.zeros(3) if fill == "mean" else (-mean / std).float()


def occlude(pixels: torch.Tensor, masks: torch.Tensor, colour: torch.Tensor) -> torch.Tensor:
    """Fill the masked pixels (images, rows, columns) of images (images, 3, rows, columns) with one colour.

    >>> image, hidden = torch.ones(1, 3, 1, 2), torch.tensor([[[True, False]]])
    >>> occlude(image, hidden, torch.tensor([0.0, 0.5, 0.0]))[0].tolist()
    [[[0.0, 1.0]], [[0.5, 1.0]], [[0.0, 1.0]]]
    """
    return torch.where(masks[:, None], colour.to(pixels)[None, :, None, None], pixels)


def shifted(masks: torch.Tensor, seed: int, names: Sequence[str]) -> torch.Tensor:
    """Move each region by its own random offset, wrapped at the border: same area and shape, another place.

    The offset depends only on the seed and the image's name, not on its number in a batch.

    >>> region = torch.tensor([[[True, True, False, False], [False, False, False, False]]])
    >>> moved = shifted(region, 0, ["VID68 000016"])
    >>> int(moved.sum()), bool((moved == region).all())
    (2, False)
    """
    if len(names) != len(masks):
        raise BadInput(f"{len(names)} names for {len(masks)} images. Give one name for each image.")
    height, width = masks.shape[1:]
    moved = []
    for mask, name in zip(masks, names, strict=True):
        step = int(stream(seed, "occlusion", name).random() * (height * width - 1)) + 1  # never the offset (0, 0)
        moved.append(mask.roll((step // width, step % width), dims=(0, 1)))
    return torch.stack(moved) if moved else masks


def attention_order(maps: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """The rank of every pixel (images, rows, columns), 0 = most attended.

    Equal values are ordered at random (by the seed, the same for all images): otherwise the zeros of a sparse map would
    begin at its top left corner.

    >>> attention_order(torch.tensor([[[0.2, 0.9], [0.5, 0.1]]])).tolist()
    [[[2, 0], [1, 3]]]
    """
    flat = maps.reshape(len(maps), -1)
    mixed = torch.from_numpy(stream(seed, "ties").random(flat.shape[1])).argsort().to(maps.device)
    best = mixed[flat[:, mixed].argsort(dim=1, descending=True, stable=True)]
    places = torch.arange(flat.shape[1], device=maps.device).expand_as(best)
    return torch.empty_like(best).scatter_(1, best, places).reshape(maps.shape)


def least_attended(maps: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """The `sizes` pixels of each map (maps, rows, columns) with the lowest values.

    Many maps are zero almost everywhere. Of equal pixels those with the lowest surroundings come first, so that the
    hidden pixels are connected: the same number of scattered pixels would be noise that disturbs any model.

    >>> least_attended(torch.tensor([[[0.9, 0.5], [0.0, 0.1]]]), torch.tensor([2])).tolist()
    [[[False, False], [True, True]]]
    """
    height, width = maps.shape[1:]
    reach = max(1, min(height, width) // 8)
    around = _average_along(
        _average_along(maps.float(), reach).mT, reach
    ).mT  # rows, then columns: a square at once is slow
    by_place = around.flatten(1).argsort(dim=1, stable=True)
    by_value = maps.flatten(1).gather(1, by_place).argsort(dim=1, stable=True)
    lowest = by_place.gather(1, by_value)
    places = torch.arange(height * width, device=maps.device).expand_as(lowest)
    rank = torch.empty_like(lowest).scatter_(1, lowest, places)
    return (rank < sizes[:, None]).reshape(maps.shape)


def _average_along(maps: torch.Tensor, reach: int) -> torch.Tensor:
    """The mean along the last axis over what lies within `reach` and inside the map."""
    flat = maps.flatten(0, 1)[:, None]
    return torch.nn.functional.avg_pool1d(
        flat, 2 * reach + 1, stride=1, padding=reach, count_include_pad=False
    ).reshape(maps.shape)


def occlusion(
    model: Contrastive,
    pixels: torch.Tensor,
    texts: TextBank,
    maps: torch.Tensor,
    names: Sequence[str],
    *,
    keep_top: float = 0.2,
    positive: bool = True,
    fill: Literal["black", "mean"] = "black",
    seed: int = 0,
) -> Occlusion:
    """All prompts' scores before and after: one map (grid rows, grid columns) per image, one name per image.

    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip-resnet")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> texts = clip.texts(["a hook", "a grasper"])
    >>> heat = torch.zeros(1, 4, 4); heat[0, 1, 2] = 1.0  # all attention on one patch
    >>> found = occlusion(clip, image, texts, heat, ["VID68 000016"], keep_top=0.05)
    >>> tuple(found.before.shape), round(float(found.area), 2), bool((found.attended != found.before).any())
    ((1, 2), 0.05, True)
    """
    pixels = pixels.to(model.device)
    large = _enlarge(maps, pixels)
    regions = top_regions(large, keep_top, positive)
    masks = {
        "attended": regions.masks,
        "random": shifted(regions.masks, seed, names),
        "least": least_attended(large, regions.sizes),
    }
    colour = fill_colour(model.preparation, fill)
    after = {name: model.scores(occlude(pixels, mask, colour), texts) for name, mask in masks.items()}
    return Occlusion(model.scores(pixels, texts), **after, area=regions.fractions, empty=regions.empty)


def occlusion_curves(
    model: Contrastive,
    pixels: torch.Tensor,
    texts: TextBank,
    maps: torch.Tensor,
    which: torch.Tensor,
    *,
    steps: int = 20,
    fill: Literal["black", "mean"] = "black",
    seed: int = 0,
) -> OcclusionCurves:
    """Deletion and insertion of image b's pixels in its map's order, scored by prompt `which[b]`.

    >>> from surgeval.explain.heatmaps import heatmaps
    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip-resnet")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> texts = clip.texts(["a hook", "a grasper"])
    >>> maps = heatmaps(clip, image, texts, [[0]]).values[:, 0]
    >>> result = occlusion_curves(clip, image, texts, maps, torch.tensor([0]), steps=2)
    >>> tuple(result.deletion.shape), bool(result.deletion[0, -1] == result.insertion[0, 0])
    ((1, 3), True)
    """
    pixels = pixels.to(model.device)
    prompt = torch.as_tensor(which, dtype=torch.long, device=pixels.device)[:, None]
    colour = fill_colour(model.preparation, fill)
    return score_curves(
        lambda images: model.scores(images, texts).gather(1, prompt)[:, 0], pixels, maps, colour, steps=steps, seed=seed
    )


def score_curves(
    score: Callable[[torch.Tensor], torch.Tensor], pixels: torch.Tensor, maps: torch.Tensor, colour: torch.Tensor, *,
    steps: int = 20, seed: int = 0, inside: torch.Tensor | None = None,
) -> OcclusionCurves:  # fmt: skip
    """The curves of any `score` of images (images, 3, rows, columns) → (images,); one map for each image.

    Pixels that are not `inside` (images, rows, columns) are padding: they are not changed and not counted.

    >>> image, heat = torch.ones(1, 3, 2, 2), torch.tensor([[[4.0, 3.0], [2.0, 1.0]]])
    >>> found = score_curves(lambda images: images.mean(dim=(1, 2, 3)), image, heat, torch.zeros(3), steps=2)
    >>> found.deletion.tolist(), found.deletion_area.tolist()
    ([[1.0, 0.5, 0.0]], [0.5])
    """
    if steps < 1:
        raise BadInput(f"steps must be at least 1, not {steps}.")
    large = _enlarge(maps, pixels)
    mask = torch.ones_like(large, dtype=torch.bool) if inside is None else inside.to(pixels.device)
    order = attention_order(torch.where(mask, large, -torch.inf), seed)
    area = mask.flatten(1).sum(dim=1)[:, None, None]

    def shown(hidden: torch.Tensor) -> torch.Tensor:
        return score(occlude(pixels, hidden & mask, colour))

    nothing, everything = shown(order < 0), shown(order >= 0)
    deletion, insertion = [nothing], [everything]  # each ends where the other begins
    for step in range(1, steps):
        gone = order < torch.round(area * step / steps)
        deletion.append(shown(gone))
        insertion.append(shown(~gone))
    deletion.append(everything)
    insertion.append(nothing)
    falls, rises = torch.stack(deletion, dim=1).float(), torch.stack(insertion, dim=1).float()
    fractions = torch.linspace(0, 1, steps + 1, device=pixels.device)
    return OcclusionCurves(
        fractions, falls, rises, torch.trapezoid(falls, fractions), torch.trapezoid(rises, fractions)
    )


def _enlarge(maps: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
    if maps.ndim != 3 or pixels.ndim != 4 or len(maps) != len(pixels):
        found = f"maps {tuple(maps.shape)} and pixels {tuple(pixels.shape)}"
        raise BadInput(f"Occlusion needs one map (rows, columns) for each image (3, rows, columns), not {found}.")
    height, width = pixels.shape[2:]
    return whole((maps.shape[1], maps.shape[2]), height, width).upsample_torch(maps.to(pixels.device))
