"""Many maps against their frames' labels at once, on the model's device: pixel counts in, `Grounding`s out.

Frames of one size seen through one view are a `LabelledScene`. All regions of a batch are selected and counted there;
only whole numbers come back, and `metrics.grounding` makes the ratios and flags of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from surgeval.arrays import Ints
from surgeval.explain import Paste, count_pixels
from surgeval.explain.regions import Regions, box_masks, fixed_regions, top_regions
from surgeval.metrics.grounding import Grounding, ground_counts, pixel_window
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.protocols.surgxbench.settings import SurgXSettings
from surgeval.records import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LabelledScene", "classes_present", "regions_of"]


_PIXELS = 24_000_000  # of masks at a time: bounds memory whatever the frame size


def classes_present(frame: Frame, classes: int) -> list[int]:
    """The instruments labelled in a frame, in the order of the label space."""
    instruments = {instance.triplet.instrument for instance in frame.instances}
    return sorted(number for number in instruments if 0 <= number < classes)


def regions_of(maps: torch.Tensor, settings: SurgXSettings, *, strict: bool = False) -> Regions:
    """The attended regions of maps (maps, rows, columns) as the settings define them."""
    if settings.region == "fixed":
        return fixed_regions(maps, settings.threshold, strict=strict)
    return top_regions(maps, settings.keep_top, settings.positive)


@dataclass(frozen=True, eq=False)
class LabelledScene:
    """The labels of frames of one size as pixels of what the model saw."""

    seen: Sequence[PreparedFrame]
    paste: Paste
    shown: tuple[int, ...]  # the classes labelled in any of the frames: the others have no pixel
    masks: torch.Tensor  # (frames, 2 + shown, rows, columns): nothing, all boxes, then each class shown
    moving: torch.Tensor | None  # the same joined with what moves; None without motion
    flags: tuple[frozenset[str], ...]
    present: tuple[frozenset[int], ...]
    settings: SurgXSettings

    @classmethod
    def of(
        cls,
        seen: Sequence[PreparedFrame],
        grid: tuple[int, int],
        classes: int,
        settings: SurgXSettings,
        device: torch.device,
    ) -> LabelledScene:
        """From frames of one size; `grid` is the maps'."""
        paste = Paste.of(seen[0].view, grid, settings.geometry)
        window = paste.pixels
        present = tuple(frozenset(classes_present(prepared.frame, classes)) for prepared in seen)
        shown = tuple(sorted(frozenset().union(*present)))
        union = box_masks(_boxes(seen, None, device), window)
        by_class = [box_masks(_boxes(seen, number, device), window) for number in shown]
        masks = torch.stack([torch.zeros_like(union), union, *by_class], dim=1)
        moving = None
        if any(prepared.motion is not None for prepared in seen):
            rows, columns = paste.visible
            blank = np.zeros(seen[0].size, dtype=bool)
            moved = np.stack(
                [(blank if prepared.motion is None else prepared.motion)[rows, columns] for prepared in seen]
            )
            moving = masks | torch.from_numpy(moved).to(device)[:, None]
        visible = union.flatten(1).any(dim=1).tolist()
        flags = tuple(_label_flags(prepared, sees) for prepared, sees in zip(seen, visible, strict=True))
        return cls(seen, paste, shown, masks, moving, flags, present, settings)

    def ground(
        self,
        maps: torch.Tensor,
        predicted: Sequence[Sequence[int]],
        *,
        strict: bool = False,
        matched: bool | None = None,
    ) -> list[list[Grounding]]:
        """The values of map k of frame b for the class `predicted[b][k]`; maps are (frames, k, rows, columns)."""
        regions = [self._counted(part, first, strict) for first, part in self._parts(maps)]
        return [
            [
                self._grounding(b, predicted[b][k], row[k], flags[k], matched)
                for k in range(len(predicted[b]))
            ]
            for b, (row, flags) in enumerate(pair for part in regions for pair in part)
        ]  # fmt: skip

    def ground_regions(
        self, regions: Regions, owners: Sequence[int], predicted: Sequence[Sequence[int]]
    ) -> list[list[Grounding]]:
        """As `ground` for regions of the visible rectangle: region n, of frame `owners[n]`, for each of its classes."""
        counts = self._counts(regions, torch.tensor(owners, device=regions.masks.device))
        flags = _raised(regions)
        return [
            [self._grounding(frame, number, counts[n], flags[n], None) for number in predicted[n]]
            for n, frame in enumerate(owners)
        ]

    def _parts(self, maps: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        height, width = self.paste.shape
        step = max(1, _PIXELS // (max(1, maps.shape[1]) * height * width))
        for first in range(0, len(maps), step):
            yield first, maps[first : first + step]

    def _counted(self, maps: torch.Tensor, first: int, strict: bool) -> list[tuple[Ints, list[frozenset[str]]]]:
        frames, each = maps.shape[:2]
        pixels = self.paste.upsample_torch(maps).flatten(0, 1)
        regions = regions_of(pixels, self.settings, strict=strict)
        owner = torch.arange(first, first + frames, device=maps.device).repeat_interleave(each)
        counts = self._counts(regions, owner).reshape(frames, each, -1)
        flags = _raised(regions)
        return [(counts[b], flags[b * each : (b + 1) * each]) for b in range(frames)]

    def _counts(self, regions: Regions, owner: torch.Tensor) -> Ints:
        """(maps, 1 + targets or 1 + 2·targets): attended pixels, then hits of every target, without and with motion."""
        kinds = [targets for targets in (self.masks, self.moving) if targets is not None]
        if regions.masks.device.type != "cpu":
            hits = [count_pixels((regions.masks & targets[owner, t]).flatten(1))[:, None]
                    for targets in kinds for t in range(targets.shape[1])]  # fmt: skip
            return np.asarray(torch.cat([regions.sizes[:, None], *hits], dim=1).cpu().numpy(), dtype=np.int64)
        # On a CPU numpy counts bits ten times faster than torch sums them, and most classes are absent.
        masks, arrays = regions.masks.numpy(), [targets.numpy() for targets in kinds]
        counts = np.zeros((len(masks), 1 + sum(array.shape[1] for array in arrays)), dtype=np.int64)
        counts[:, 0] = regions.sizes.numpy()
        for row, (region, frame) in enumerate(zip(masks, owner.tolist(), strict=True)):
            column = 1
            for array, sizes in zip(arrays, (size for size in self._sizes if size is not None), strict=True):
                for t in range(array.shape[1]):
                    if sizes[frame, t]:
                        counts[row, column + t] = np.count_nonzero(region & array[frame, t])
                column += array.shape[1]
        return counts

    def _grounding(
        self, frame: int, predicted: int, counts: Ints, flags: frozenset[str], matched: bool | None
    ) -> Grounding:
        area, targets = self.paste.shape[0] * self.paste.shape[1], self.masks.shape[1]
        own = 2 + self.shown.index(predicted) if predicted in self.shown else 0
        plain, united = self._sizes
        sizes = {"all": int(plain[frame, 1]), "class": int(plain[frame, own])}
        hits = {"all": int(counts[1 + 1]), "class": int(counts[1 + own])}
        more: set[str] = set()
        if united is not None and self.seen[frame].motion is not None:
            sizes |= {"global": int(united[frame, 1]), "local": int(united[frame, own])}
            hits |= {"global": int(counts[1 + targets + 1]), "local": int(counts[1 + targets + own])}
            more = set() if united[frame, 0] else {"motion_empty"}  # the first target is motion joined with nothing
        if own and not sizes["class"] and _boxes_without_pixel(self.seen[frame], predicted):
            more |= {"gt_empty"}
        return ground_counts(
            predicted, area=area, region=int(counts[0]), sizes=sizes, hits=hits,
            present=predicted in self.present[frame], matched=matched, flags=flags | self.flags[frame] | more,
        )  # fmt: skip

    @cached_property
    def _sizes(self) -> tuple[Ints, Ints | None]:
        """Pixels of every target, (frames, 2 + shown), without and with motion."""
        return _pixels(self.masks), None if self.moving is None else _pixels(self.moving)


def _raised(regions: Regions) -> list[frozenset[str]]:
    """The flags of all regions, in one message from the device."""
    raised = torch.stack([regions.empty, regions.constant, regions.sparse, regions.ties], dim=1).cpu().numpy()
    names = np.array(["empty_region", "constant", "sparse", "ties"])
    return [frozenset(names[row].tolist()) for row in raised]


def _pixels(masks: torch.Tensor) -> Ints:
    if masks.device.type != "cpu":
        return np.asarray(count_pixels(masks.flatten(2)).cpu().numpy(), dtype=np.int64)
    return np.array([[np.count_nonzero(mask) for mask in frame] for frame in masks.numpy()], dtype=np.int64)


def _boxes(seen: Sequence[PreparedFrame], number: int | None, device: torch.device) -> torch.Tensor:
    """(frames, boxes, 4) corners of one class or of all, padded with NaN."""
    rows = [
        [instance.box.corners for instance in item.frame.instances
         if instance.box is not None and (number is None or instance.triplet.instrument == number)]
        for item in seen
    ]  # fmt: skip
    most = max((len(row) for row in rows), default=0)
    table = np.full((len(rows), most, 4), np.nan)
    for index, row in enumerate(rows):
        if row:
            table[index, : len(row)] = row
    return torch.from_numpy(table).to(device)


def _label_flags(prepared: PreparedFrame, visible: bool) -> frozenset[str]:
    if not any(instance.box is not None for instance in prepared.frame.instances):
        return frozenset({"no_gt"})
    if visible:
        return frozenset()
    return frozenset({"gt_empty" if _boxes_without_pixel(prepared, None) else "gt_not_visible"})


def _boxes_without_pixel(prepared: PreparedFrame, number: int | None) -> bool:
    """Whether a class (or any, with None) has boxes of which none holds a pixel of the frame."""
    boxes = [instance.box for instance in prepared.frame.instances
             if instance.box is not None and number in (None, instance.triplet.instrument)]  # fmt: skip
    # A box thinner than a pixel may hold no pixel's centre: what counts is pixels, not area.
    windows = [pixel_window(box.corners, *prepared.size) for box in boxes]
    return bool(boxes) and not any(x1 < x2 and y1 < y2 for x1, y1, x2, y2 in windows)
