"""The attended regions of many maps at once, on the maps' device; `surgeval.metrics.grounding` does the same in numpy.

A region holds the pixels not below the (1 − keep_top) quantile. Every mask, flag and count equals that of `top_region`
and `box_mask` for the same map.

On a GPU `kthvalue` reads a row sixteen times, which for half a frame of pixels costs a fifth of computing the map.
`kth_smallest` instead sorts a sample of the row, which brackets the answer; two counts prove that the bracket holds it,
and only the few values inside are sorted. It is always exact: where the proof fails, `kthvalue` is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch

from surgeval.errors import BadInput
from surgeval.metrics.grounding import FLAT, kept_pixels

__all__ = [
    "Regions",
    "box_masks",
    "count_pixels",
    "fixed_regions",
    "kth_smallest",
    "overlap",
    "select_by_bracket",
    "top_regions",
]


@dataclass(frozen=True)
class Regions:
    """The regions of a batch of maps; all tensors are on the maps' device."""

    masks: torch.Tensor  # (maps, rows, columns) bool
    sizes: torch.Tensor  # (maps,) attended pixels
    fractions: torch.Tensor  # (maps,) sizes / area, float64
    thresholds: torch.Tensor  # (maps,) the lowest value kept, float64
    empty: torch.Tensor  # (maps,) R1: no pixel attended
    constant: torch.Tensor  # (maps,) R2: a flat map
    sparse: torch.Tensor  # (maps,) R3: fewer positive pixels than were asked for
    ties: torch.Tensor  # (maps,) R4: equal values made the region larger than asked for

    def repeated(self, times: int) -> Regions:
        """Repeat one region for this number of frames, without copying it."""
        return Regions(*(value.expand(times, *value.shape[1:]) for value in vars(self).values()))

    def flags(self, number: int) -> frozenset[str]:
        """The flags of one map, named as in `metrics.grounding`."""
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
        raise BadInput(f"Maps must be numbers of shape (maps, rows, columns), not {found}.")
    flat = maps.reshape(len(maps), -1)
    area = flat.shape[1]
    wanted = kept_pixels(area, keep_top)
    low, high = flat.aminmax(dim=1)
    ends = torch.stack([low, high]).double()
    if not bool(torch.isfinite(ends).all()):
        raise BadInput("A map contains NaN or infinity.")
    constant = ends[1] - ends[0] <= FLAT * ends.abs().amax(dim=0)
    # The k-th highest pixel is a value of the map itself, so comparing in the map's own precision is exact.
    threshold = torch.where(constant, low, kth_smallest(flat, area - wanted + 1))
    # One comparison for both conditions: above the next lower number is "not below"; above 0 is "positive".
    under = torch.nextafter(threshold, torch.full_like(threshold, -math.inf))
    mask = flat > (under.clamp(min=0) if positive else under)[:, None]
    size = count_pixels(mask)
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
    """The pixels at or above `threshold` of each min-max scaled map; `strict` excludes those equal to it.

    >>> fixed_regions(torch.tensor([[[0.0, 3, 10]], [[5, 5, 5]]])).sizes.tolist()
    [2, 0]
    """
    if not 0 < threshold <= 1:
        raise BadInput(f"threshold must be above 0 and at most 1, not {threshold}.")
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
    """Count pixels in both: masks (maps, rows, columns), truths (maps, kinds, rows, columns) → (maps, kinds).

    >>> overlap(torch.tensor([[[True, True, False]]]), torch.tensor([[[[True, False, True]], [[True, True, True]]]]))
    tensor([[1, 2]])
    """
    return count_pixels((masks[:, None] & truths).flatten(2))


def box_masks(boxes: torch.Tensor, window: tuple[int, int, int, int]) -> torch.Tensor:
    """The union of each set of boxes in a window of the frame: (…, boxes, 4) → bool (…, rows, columns).

    Boxes are x1, y1, x2, y2 in frame pixels; a row of NaN means no box. A pixel belongs to a box if its centre does.

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


_LARGE = 1 << 16  # pixels: below this kthvalue is as fast
_SAMPLE = 4096
_MARGIN = 48  # places of the sample: ±1.2 %, seldom missed by a smooth map


def kth_smallest(rows: torch.Tensor, k: int) -> torch.Tensor:
    """The k-th smallest value (from 1) of every row of (rows, values)."""
    if rows.device.type == "cpu" or rows.shape[1] < _LARGE:
        return rows.kthvalue(k, dim=1).values
    return select_by_bracket(rows, k)


def select_by_bracket(rows: torch.Tensor, k: int, sample: int = _SAMPLE, margin: int = _MARGIN) -> torch.Tensor:
    """`kth_smallest` by a bracket from a sorted sample."""
    size = rows.shape[1]
    step = max(size // sample, 1)
    while math.gcd(step, size) > 1 and step > 1:  # a step that divides the width would sample only a few columns
        step -= 1
    some = rows[:, ::step].contiguous().sort(dim=1).values
    offset = (k - 1) / max(size - 1, 1) * (some.shape[1] - 1)
    first, last = math.floor(offset) - margin, math.ceil(offset) + margin
    low = some[:, first] if first >= 0 else torch.full_like(some[:, 0], -math.inf)
    high = some[:, last] if last < some.shape[1] else torch.full_like(some[:, 0], math.inf)
    below, up_to = rows < low[:, None], rows <= high[:, None]
    n_below, n_up_to = count_pixels(below), count_pixels(up_to)
    holds = (n_below < k) & (k <= n_up_to)
    tied = holds & (low == high)  # a plateau, such as the zeros of a sparse map
    few = holds & ~tied & (n_up_to - n_below <= size // 8)
    lengths = (n_up_to - n_below) * few
    # One transfer from the device instead of many: how much is inside, and whether every row is settled.
    total, longest, settled, usual = torch.stack([lengths.sum(), lengths.max(), (tied | few).sum(), few.sum()]).tolist()
    value = low  # correct where a plateau is the answer
    if total:
        inside = up_to.logical_xor_(below)
        if usual < len(rows):
            inside &= few[:, None]
        at = inside.flatten().nonzero()[:, 0]
        row = at // size
        offset = torch.arange(total, device=rows.device) - (lengths.cumsum(0) - lengths)[row]
        table = rows.new_full((len(rows), longest), math.inf)
        table[row, offset] = rows.flatten()[at]
        rank = (k - 1 - n_below).clamp(0, longest - 1)
        value = torch.where(few, table.sort(dim=1).values.gather(1, rank[:, None])[:, 0], value)
    if settled < len(rows):
        hard = ~(tied | few)
        value[hard] = rows[hard].kthvalue(k, dim=1).values
    return value


def count_pixels(masks: torch.Tensor) -> torch.Tensor:
    """Count the true values of each row: bool (…, values) → int64 (…).

    On a GPU eight values are read as one 64-bit number and its bytes added, at most 255 so that no byte overflows.

    >>> count_pixels(torch.tensor([[True, False, True]])).tolist()
    [2]
    """
    group = _group(masks.shape[-1]) if masks.device.type != "cpu" and masks.is_contiguous() else 0
    return count_packed(masks, group) if group and masks.numel() else masks.sum(dim=-1)


def count_packed(masks: torch.Tensor, group: int) -> torch.Tensor:
    """`count_pixels` of contiguous rows, `group` words of eight at a time."""
    return masks.view(torch.int64).unflatten(-1, (-1, group)).sum(dim=-1).view(torch.uint8).sum(dim=-1)


@lru_cache(maxsize=64)
def _group(values: int) -> int:
    """The most words of eight, at most 255, that a row divides into; 0 where adding words would not pay."""
    words, left = divmod(values, 8)
    return 0 if left else max((size for size in range(16, 256) if words % size == 0), default=0)
