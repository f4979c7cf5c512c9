"""Boxes from heatmaps: what a model that was never shown a box would detect, in the style of Tripnet-Det and RDV-Det.

A prompt's map is cut at a share of its range, every connected piece becomes a box, boxes of one class that overlap are
thinned out. A box scores the probability of its class times the mean heat of its piece. The table is scored like that
of any detector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, starmap
from typing import TYPE_CHECKING, Literal, TypeAlias

import cv2
import numpy as np
import polars as pl
import torch

from surgeval.arrays import AnyArray, Singles
from surgeval.datasets import Dataset, read_image
from surgeval.datasets.predictions import COLUMNS
from surgeval.detector.nms import nms
from surgeval.errors import BadInput, DataError
from surgeval.explain import Paste
from surgeval.explain.heatmaps import heatmaps
from surgeval.models import Contrastive, CrossAttention, open_contrastive
from surgeval.progress import advance
from surgeval.records import Box, Frame, Triplet
from surgeval.vocab import instrument_prompts, triplet_prompts

if TYPE_CHECKING:
    from surgeval.explain import Method
    from surgeval.models import TextBank, View
    from surgeval.vocab import LabelSpace

__all__ = ["HotBox", "WeakBoxes", "WeakSettings", "hot_boxes", "weak_boxes"]

Prompts: TypeAlias = Literal["paired", "triplets", "instruments"]
_PROMPTS = ("paired", "triplets", "instruments")
_FLAT = 1e-6  # range of a map, relative to its largest value, below which it points nowhere


@dataclass(frozen=True)
class WeakSettings:
    """How maps become boxes.

    `prompts` says what is asked and whose map has the box: `paired` scores triplets and looks at the map of their
    instrument, as Tripnet-Det does; `triplets` takes the triplet's own map; `instruments` names no verb and target.

    >>> WeakSettings(threshold=1.5)
    Traceback (most recent call last):
    surgeval.errors.BadInput: weak boxes: threshold: found 1.5, expected a number above 0 and at most 1
    """

    prompts: Prompts = "paired"
    top: int = 5  # prompts of a frame, the most likely ones, that get boxes
    threshold: float = 0.5  # of a map's range from its lowest to its highest value
    least: float = 0.002  # share of what the model saw: smaller pieces are noise
    most: int = 3  # boxes of one map, the hottest
    iou: float = 0.5  # boxes of one class that overlap more are thinned out
    batch: int = 16
    method: Method | None = None  # None: what the model's tower allows

    def __post_init__(self) -> None:
        if self.prompts not in _PROMPTS:
            raise BadInput(f"weak boxes: prompts: found {self.prompts!r}, expected one of {', '.join(_PROMPTS)}")
        for name in ("top", "most", "batch"):
            if getattr(self, name) < 1:
                raise BadInput(f"weak boxes: {name}: found {getattr(self, name)}, expected 1 or more")
        for name, value, low in (("threshold", self.threshold, "above 0"), ("least", self.least, "from 0"),
                                 ("iou", self.iou, "above 0")):  # fmt: skip
            if not (0 <= value <= 1 and (value > 0 or low == "from 0")):
                raise BadInput(f"weak boxes: {name}: found {value}, expected a number {low} and at most 1")


@dataclass(frozen=True, slots=True)
class HotBox(Box):
    """The bounding box of one connected piece of a map, in whole pixels, and the mean heat (0 to 1) of its pixels."""

    heat: float


def hot_boxes(heat: AnyArray, *, threshold: float = 0.5, least: float = 0.002, most: int = 3) -> list[HotBox]:
    """The pieces of a map that reach `threshold` of its range, hottest first; pixels touch at sides and corners.

    A flat map has none.

    >>> heat = np.zeros((6, 8))
    >>> heat[1:3, 2:5] = 1.0
    >>> heat[4, 6] = 0.4
    >>> hot_boxes(heat)
    [HotBox(x=2, y=1, w=3, h=2, heat=1.0)]
    """
    values = np.asarray(heat, dtype=np.float64)
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise BadInput(
            f"heatmap: found {values.dtype} of shape {values.shape}, expected rows and columns of finite numbers"
        )
    low, high = float(values.min()), float(values.max())
    if high - low <= _FLAT * max(abs(low), abs(high)):
        return []
    scaled = (values - low) / (high - low)
    count, pieces, stats, _ = cv2.connectedComponentsWithStats((scaled >= threshold).astype(np.uint8), connectivity=8)
    heats = np.bincount(pieces.ravel(), weights=scaled.ravel(), minlength=count) / stats[:, cv2.CC_STAT_AREA].clip(1)
    large = [n for n in range(1, count) if stats[n, cv2.CC_STAT_AREA] >= least * values.size]
    hottest = sorted(large, key=lambda n: (-heats[n], n))[:most]
    places = {n: [int(value) for value in stats[n]] for n in hottest}
    return [HotBox(x, y, w, h, float(heats[n])) for n, (x, y, w, h, _) in places.items()]


@dataclass(frozen=True)
class WeakBoxes:
    """The table of boxes (`datasets.predictions.COLUMNS`), how many frames were looked at, and those without a picture.

    `unread` holds one sentence per frame that could not be read.
    """

    table: pl.DataFrame
    frames: int
    model: str
    unread: tuple[str, ...] = field(default=())


def weak_boxes(
    model: Contrastive | str, dataset: Dataset, settings: WeakSettings | None = None, *,
    videos: Sequence[str] | None = None, device: str = "cpu",
) -> WeakBoxes:  # fmt: skip
    """Look at every frame of a dataset (or of the chosen videos) and turn the maps of the likeliest prompts into boxes.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.vocab import load_labels
    >>> empty = MemoryDataset(load_labels("phantom"), [Frame("v", "1", 0, None, None, 64, 48)])
    >>> weak_boxes("phantom-clip", empty).unread
    ('v/1: found no image, expected one',)
    """
    use = settings or WeakSettings()
    net = open_contrastive(model, device=device) if isinstance(model, str) else model
    asked = _Asked.of(net, dataset.space, use)
    names = tuple(videos) if videos is not None else tuple(video.name for video in dataset.videos())
    rows: list[tuple[object, ...]] = []
    unread: list[str] = []
    count = 0
    waiting = (frame for video in names for frame in dataset.frames(video))
    while frames := list(islice(waiting, use.batch)):
        seen = list(_pictures(frames, net, unread))
        for frame, boxes in zip((view.frame for view in seen), asked.look(net, seen, use), strict=True):
            rows.extend((frame.video, frame.name, *row) for row in boxes)
        count += len(seen)
        advance("frames", len(frames))
    schema = {name: pl.String if name in ("video", "frame") else pl.Int32 if name in _IDS else pl.Float64
              for name in COLUMNS}  # fmt: skip
    return WeakBoxes(pl.DataFrame(rows, schema=schema, orient="row"), count, net.name, tuple(unread))


_IDS = ("triplet", "instrument", "verb", "target")


@dataclass(frozen=True, slots=True, eq=False)
class _SeenFrame:
    """A frame as the model is shown it."""

    frame: Frame
    pixels: Singles
    view: View


def _pictures(frames: Sequence[Frame], model: Contrastive, unread: list[str]) -> Iterator[_SeenFrame]:
    for frame in frames:
        if frame.image is None:
            unread.append(f"{frame.video}/{frame.name}: found no image, expected one")
            continue
        try:
            image = read_image(frame.image)
        except DataError as error:
            unread.append(str(error))
            continue
        yield _SeenFrame(frame, model.preparation(image), model.preparation.view(*image.shape[:2]))


@dataclass(frozen=True)
class _Asked:
    """The prompts that are scored, the prompts whose maps are drawn, and which map belongs to which score."""

    scored: TextBank
    mapped: TextBank
    map_of: tuple[int, ...]  # of each scored prompt: the number of the mapped one
    classes: tuple[tuple[int, Triplet], ...]  # of each scored prompt: triplet id (−1: none) and parts

    @classmethod
    def of(cls, model: Contrastive, space: LabelSpace, use: WeakSettings) -> _Asked:
        instruments = instrument_prompts(space, "surgxbench")
        if use.prompts == "instruments":
            bank = model.texts(instruments)
            classes = tuple((-1, Triplet(number, -1, -1)) for number in range(len(instruments)))
            return cls(bank, bank, tuple(range(len(instruments))), classes)
        triplets = triplet_prompts(space, "valid")
        scored = model.texts(triplets.texts)
        classes = tuple(enumerate(starmap(Triplet, triplets.ids)))
        if use.prompts == "triplets":
            return cls(scored, scored, tuple(range(len(classes))), classes)
        return cls(scored, model.texts(instruments), tuple(instrument for instrument, _, _ in triplets.ids), classes)

    def look(self, model: Contrastive, seen: Sequence[_SeenFrame], use: WeakSettings) -> list[list[tuple[object, ...]]]:
        """For each frame its rows: ids, score and box."""
        if not seen:
            return []
        pixels = torch.from_numpy(np.stack([view.pixels for view in seen])).to(model.device)
        sure = _probabilities(model, pixels, self.scored)
        best = sure.topk(min(use.top, sure.shape[1]), dim=1)
        prompts = best.indices.tolist()
        wanted = [sorted({self.map_of[p] for p in row}) for row in prompts]
        width = max(len(row) for row in wanted)
        which = torch.tensor([row + [-1] * (width - len(row)) for row in wanted])
        maps = heatmaps(model, pixels, self.mapped, which, use.method).values.float().cpu().numpy()
        boxes = []
        for view, row, classes, scores, drawn in zip(seen, prompts, wanted, best.values.tolist(), maps, strict=True):
            paste = Paste.of(view.view, (drawn.shape[1], drawn.shape[2]))
            left, top, _, _ = paste.pixels
            hot = {number: hot_boxes(paste.upsample(grid), threshold=use.threshold, least=use.least, most=use.most)
                   for number, grid in zip(classes, drawn, strict=False)}  # fmt: skip
            rows = [
                (p, score * box.heat, float(box.x + left), float(box.y + top), float(box.w), float(box.h))
                for p, score in zip(row, scores, strict=True)
                for box in hot[self.map_of[p]]
            ]
            boxes.append([self._row(*rows[n]) for n in _kept(rows, use.iou)])
        return boxes

    def _row(self, prompt: int, *numbers: float) -> tuple[object, ...]:
        triplet, parts = self.classes[prompt]
        return (triplet, parts.instrument, parts.verb, parts.target, *numbers)


def _probabilities(model: Contrastive, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
    """(images, prompts) from 0 to 1: a matching head says so itself, cosines are scaled as in training."""
    scores = model.scores(pixels, texts).float()
    return scores if isinstance(model, CrossAttention) else (scores * model.logit_scale).softmax(dim=1)


def _kept(rows: Sequence[tuple[int, float, float, float, float, float]], iou: float) -> list[int]:
    """Which rows stay when overlapping boxes of one class are thinned out, by falling score."""
    if not rows:
        return []
    table = torch.tensor([row[1:] for row in rows], dtype=torch.float64)
    boxes = torch.cat([table[:, 1:3], table[:, 1:3] + table[:, 3:5]], dim=1)
    survivors: list[int] = nms(boxes, table[:, 0], torch.tensor([row[0] for row in rows]), iou=iou).tolist()
    return survivors
