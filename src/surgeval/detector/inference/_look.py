"""From decoded frames to boxes on them: letterbox, network, choice, and back, with one transfer each way per batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch.nn.functional import interpolate

from surgeval.arrays import Image
from surgeval.detector.geometry import Fit
from surgeval.detector.inference._network import Network, Raw
from surgeval.detector.nms import Found, Selecting, select
from surgeval.errors import RunError

__all__ = ["Looker", "fetch", "letterbox_on_device"]

_THREADS = 8  # that copy or resize the frames of a batch


class Looker:
    """A detector with its settings; `look` takes frames as they were decoded, `look_at` squares that are ready.

    On a GPU frames of one size are made square there; `letterbox_on_device` says how exactly.

    >>> from surgeval.detector import Classes, Loaded, build_tdnet
    >>> from surgeval.detector.inference import TDNetDetector
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("cholec80"))
    >>> detector = TDNetDetector(Loaded(build_tdnet("p", classes), classes, "p", 64, {}))
    >>> found = Looker(detector, Selecting(confidence=0.0, most=5)).look([np.zeros((48, 64, 3), np.uint8)])
    >>> found[0].boxes.shape
    torch.Size([5, 4])
    """

    def __init__(self, network: Network, selecting: Selecting | None = None) -> None:
        self.network, self.selecting = network, selecting or Selecting()
        self._parts = torch.as_tensor(network.classes.parts.copy(), device=network.device)
        self._pinned: dict[tuple[int, ...], torch.Tensor] = {}
        self._pool = ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1), "frames")

    def look(self, frames: Sequence[Image]) -> list[Found]:
        """What is on each frame, in its pixels."""
        side, fill = self.network.image_size, self.network.fill
        fits = [Fit.of(frame.shape[0], frame.shape[1], side) for frame in frames]
        if self.network.device.type == "cuda" and len({frame.shape for frame in frames}) == 1:
            squares = letterbox_on_device(self._upload(frames), fits[0], fill)
        else:
            squares = self._upload(list(self._pool.map(lambda fit, frame: fit.image(frame, fill), fits, frames)))
        return self.look_at(squares, fits)

    def look_at(self, squares: torch.Tensor, fits: Sequence[Fit]) -> list[Found]:
        """What is on frames that lie on the device as squares of bytes (batch, side, side, 3); their fits undo that."""
        raw = self.network.raw(squares.permute(0, 3, 1, 2)).first(len(fits))
        return _on_frames(self.choose(raw), fits)

    def choose(self, raw: Raw) -> list[Found]:
        """The boxes to report of every picture, on the CPU, in pixels of the network's input."""
        main = self.network.classes.main
        # A sum shows NaN and infinity; without this look they would pass for pictures with nothing on them.
        if not bool((raw.boxes.sum() + raw.probabilities[main].sum()).isfinite()):
            raise RunError(f"{self.network.name}: found numbers that overflow, expected finite boxes and scores: full "
                           "precision may hold them")  # fmt: skip
        return fetch(select(raw.boxes, dict(raw.probabilities), main, self._parts, self.selecting))

    def _upload(self, pictures: Sequence[Image]) -> torch.Tensor:
        """Pictures of one size on the device, through memory that the GPU can read by itself."""
        device = self.network.device
        if device.type != "cuda":
            return torch.from_numpy(np.stack(pictures)).to(device)
        shape = (len(pictures), *pictures[0].shape)
        if shape not in self._pinned:
            self._pinned.clear()
            self._pinned[shape] = torch.empty(shape, dtype=torch.uint8, pin_memory=True)
        staging = self._pinned[shape]
        list(self._pool.map(np.copyto, staging.numpy(), pictures))
        # The boxes of this batch are fetched, and so waited for, before the staging memory is written again.
        return staging.to(device, non_blocking=True)


def letterbox_on_device(frames: torch.Tensor, fit: Fit, fill: int) -> torch.Tensor:
    """Frames of bytes (batch, height, width, 3) as squares, as `Fit.image` makes them on the CPU.

    Both interpolate between the four nearest pixels; OpenCV rounds its weights to 1/2048 and this does not, so a pixel
    differs by at most one grey level.

    >>> frames = torch.full((1, 2, 4, 3), 9, dtype=torch.uint8)
    >>> letterbox_on_device(frames, Fit.of(2, 4, 4), 114)[0, :, 0, 0].tolist()
    [114, 9, 9, 114]
    """
    height, width = fit.resized_hw
    square = torch.full((len(frames), fit.size, fit.size, 3), fill, dtype=torch.uint8, device=frames.device)
    inner = frames
    if (height, width) != (fit.height, fit.width):
        planes = frames.permute(0, 3, 1, 2).float()
        resized = interpolate(planes, (height, width), mode="bilinear", align_corners=False)
        inner = resized.add_(0.5).to(torch.uint8).permute(0, 2, 3, 1)
    square[:, fit.top : fit.top + height, fit.left : fit.left + width] = inner
    return square


def fetch(found: Sequence[Found]) -> list[Found]:
    """The same on the CPU, by a single transfer.

    >>> one = Found(torch.ones(2, 4), torch.tensor([0.5, 0.25]), torch.tensor([3, 1]), {"i": torch.ones(2, 7)})
    >>> back = fetch([one, one])
    >>> len(back), back[1].classes.tolist(), back[0].heads["i"].shape
    (2, [3, 1], torch.Size([2, 7]))
    """
    return list(found) if not found or found[0].boxes.device.type == "cpu" else unpacked(found)


def unpacked(found: Sequence[Found]) -> list[Found]:
    """All pictures' columns side by side in one table, moved to the CPU, and taken apart again."""
    heads = list(found[0].heads)
    widths = [4, 1, 1, *(found[0].heads[head].shape[1] for head in heads)]
    columns = [torch.cat([one.boxes for one in found]).float()]
    columns += [torch.cat([getattr(one, name) for one in found])[:, None].float() for name in ("scores", "classes")]
    columns += [torch.cat([one.heads[head] for one in found]).float() for head in heads]
    table = torch.cat(columns, 1).cpu()  # class ids are small whole numbers: exact in float32
    result = []
    for rows in table.split([len(one) for one in found]):
        boxes, scores, classes, *rest = rows.split(widths, 1)
        result.append(Found(boxes, scores[:, 0], classes[:, 0].long(), dict(zip(heads, rest, strict=True))))
    return result


def _on_frames(found: Sequence[Found], fits: Sequence[Fit]) -> list[Found]:
    """The boxes in pixels of their frames; what lies in the bars beside a frame has no area there and is left out."""
    if len(set(fits)) == 1:  # frames of a film: all boxes at once, as each operation costs more than its numbers
        boxes = fits[0].back(torch.cat([one.boxes for one in found]).double())
        placed = boxes.split([len(one) for one in found])
    else:
        placed = tuple(fit.back(one.boxes.double()) for one, fit in zip(found, fits, strict=True))
        boxes = torch.cat(placed)
    kept = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    whole = [Found(at, one.scores, one.classes, one.heads) for one, at in zip(found, placed, strict=True)]
    if bool(kept.all()):
        return whole
    inside = kept.split([len(one) for one in found])
    return [one if bool(k.all()) else _some(one, k) for one, k in zip(whole, inside, strict=True)]


def _some(found: Found, kept: torch.Tensor) -> Found:
    heads = {head: values[kept] for head, values in found.heads.items()}
    return Found(found.boxes[kept], found.scores[kept], found.classes[kept], heads)
