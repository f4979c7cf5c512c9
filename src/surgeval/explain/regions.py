"""The attended region of many maps at once, where the maps are: the device twin of `surgeval.metrics.grounding`.

Pixels not below the (1 − keep_top) quantile, by selection instead of sorting; then whole-number overlaps with labelled
pixels. Every mask, flag and count equals what `top_region` and `box_mask` give for the same map.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from surgeval.errors import BadInput
from surgeval.explain.select import count, kth_lowest
from surgeval.metrics.grounding import FLAT, kept_pixels

__all__ = ["Regions", "box_masks", "fixed_regions", "overlap", "top_regions"]


@dataclass(frozen=True)
class Regions:
    """The regions of `maps` maps; all tensors are on the maps' device."""

    masks: torch.Tensor  # (maps, rows, columns) bool
    sizes: torch.Tensor  # (maps,) attended pixels
    fractions: torch.Tensor  # (maps,) sizes / area, float64
    thresholds: torch.Tensor  # (maps,) the lowest value kept, float64
    empty: torch.Tensor  # (maps,) R1: no pixel attended
    constant: torch.Tensor  # (maps,) R2: a flat map
    sparse: torch.Tensor  # (maps,) R3: fewer positive pixels than were asked for
    ties: torch.Tensor  # (maps,) R4: equal values made the region larger than asked for

    def repeated(self, times: int) -> Regions:
        """One region, for so many frames, without a copy."""
        return Regions(*(value.expand(times, *value.shape[1:]) for value in vars(self).values()))

    def flags(self, number: int) -> frozenset[str]:
        """The flags of one map, in the words of `metrics.grounding`."""
        raised = {
            "empty_region": self.empty,
            "constant": self.constant,
            "sparse": self.sparse,
            "ties": self.ties,
        }
        return frozenset(name for name, flag in raised.items() if bool(flag[number]))


def top_regions(maps: torch.Tensor, keep_top: float = 0.2, positive: bool = True) -> Regions:
    """The top share of each map's pixels: (maps, rows, columns) → `Regions`. With `positive`, only those above 0.

    >>> heat = torch.tensor([[[0, 0, 0, 0, 0], [0, 0, 0, 0, 9.0]]])
    >>> top_regions(heat).sizes.tolist(), top_regions(heat, positive=False).sizes.tolist()
    ([1], [10])
    """
    if maps.ndim != 3 or not maps[0:1].numel() or not maps.dtype.is_floating_point:
        found = f"{maps.dtype} of shape {tuple(maps.shape)}"
        raise BadInput(f"maps: found {found}, expected numbers of shape (maps, rows, columns)")
    flat = maps.reshape(len(maps), -1)
    area = flat.shape[1]
    wanted = kept_pixels(area, keep_top)
    low, high = flat.aminmax(dim=1)
    ends = torch.stack([low, high]).double()
    if not bool(torch.isfinite(ends).all()):
        raise BadInput("maps: found a value that is not a number or infinite, expected finite values")
    constant = ends[1] - ends[0] <= FLAT * ends.abs().amax(dim=0)
    # The k-th highest pixel is a value of the map itself, so comparing in the map's own precision is exact.
    threshold = torch.where(constant, low, kth_lowest(flat, area - wanted + 1))
    # One comparison for both conditions: above the next lower number is "not below"; above 0 is "positive".
    under = torch.nextafter(threshold, torch.full_like(threshold, -math.inf))
    mask = flat > (under.clamp(min=0) if positive else under)[:, None]
    size = count(mask)
    return Regions(
        masks=mask.reshape(maps.shape),
        sizes=size,
        fractions=size.double() / area,
        thresholds=threshold.double(),
        empty=size == 0,
        constant=constant,
        sparse=(threshold <= 0) & ~constant,
        ties=~constant & (size > wanted),
    )


def fixed_regions(maps: torch.Tensor, threshold: float = 0.3, strict: bool = False) -> Regions:
    """The pixels at or above `threshold` of each min-max scaled map; `strict` leaves those equal to it out.

    >>> fixed_regions(torch.tensor([[[0.0, 3, 10]], [[5, 5, 5]]])).sizes.tolist()
    [2, 0]
    """
    if not 0 < threshold <= 1:
        raise BadInput(f"threshold: found {threshold}, expected a number above 0 and at most 1")
    flat = maps.reshape(len(maps), -1).double()
    low, high = flat.aminmax(dim=1)
    constant = (high - low) <= FLAT * torch.maximum(low.abs(), high.abs())
    scaled = (flat - low[:, None]) / torch.where(constant, 1.0, high - low)[:, None]
    mask = ((scaled > threshold) if strict else (scaled >= threshold)) & ~constant[:, None]
    size, never = mask.sum(dim=1), torch.zeros_like(constant)
    return Regions(
        masks=mask.reshape(maps.shape),
        sizes=size,
        fractions=size.double() / flat.shape[1],
        thresholds=torch.full_like(low, threshold),
        empty=size == 0,
        constant=constant,
        sparse=never,
        ties=never,
    )


def overlap(masks: torch.Tensor, truths: torch.Tensor) -> torch.Tensor:
    """Pixels in both: masks (maps, rows, columns), truths (maps, kinds, rows, columns) → whole numbers (maps, kinds).

    >>> overlap(torch.tensor([[[True, True, False]]]), torch.tensor([[[[True, False, True]], [[True, True, True]]]]))
    tensor([[1, 2]])
    """
    return count((masks[:, None] & truths).flatten(2))


def box_masks(boxes: torch.Tensor, window: tuple[int, int, int, int]) -> torch.Tensor:
    """The union of each set of boxes as pixels of a window of the frame: (…, boxes, 4) → (…, rows, columns).

    Boxes are x1, y1, x2, y2 in frame pixels; a row of NaN is no box. A pixel is in when its centre is.

    >>> box_masks(torch.tensor([[[0.0, 0, 2, 1], [torch.nan] * 4]]), (0, 0, 3, 2)).int().tolist()
    [[[1, 1, 0], [0, 0, 0]]]
    """
    x1, y1, x2, y2 = window
    edges = boxes.double()[..., None]
    across = torch.arange(x1, x2, device=boxes.device, dtype=torch.float64) + 0.5
    down = torch.arange(y1, y2, device=boxes.device, dtype=torch.float64) + 0.5
    columns = (across >= edges[..., 0, :]) & (across < edges[..., 2, :])  # (…, boxes, columns)
    rows = (down >= edges[..., 1, :]) & (down < edges[..., 3, :])
    # How many boxes cover a pixel is a product of its row's and its column's memberships; half floats count to 2 048.
    kind = torch.float16 if boxes.device.type != "cpu" and boxes.shape[-2] <= 2048 else torch.float32
    return torch.matmul(rows.to(kind).transpose(-1, -2), columns.to(kind)) > 0
