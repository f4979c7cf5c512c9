"""From decoded frames to boxes on them: letterbox, network, choice, and back, with one transfer each way per batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch.nn.functional import interpolate

from surgeval.arrays import Image
from surgeval.detector.geometry import Fit
from surgeval.detector.inference.choice import Listing, choose_listed, found_of, list_candidates, on_frames
from surgeval.detector.inference.recorded import Slot
from surgeval.detector.inference.tdnet import TDNetDetector
from surgeval.detector.interface import Network, Raw
from surgeval.detector.nms import Found, Selecting, class_groups, select
from surgeval.errors import RunError

__all__ = ["Looker", "Pending", "fetch", "letterbox_on_device"]

_THREADS = 8  # that copy or resize the frames of a batch
_SLOTS = 2  # of one shape: the frames of one batch go to the device while another is looked at
_MOST_SLOTS = 8  # each keeps the memory of one pass


@dataclass
class Pending:
    """Frames on their way through a detector; `Looker.finish` waits for what is on them."""

    fits: Sequence[Fit]
    source: Slot[Raw] | Raw
    detections: list[Found] | None = None


class Looker:
    """A detector with its settings; `look` takes frames as they were decoded, `look_at` squares that are ready.

    On a GPU frames of one size are made square there; `letterbox_on_device` says how exactly. A detector that records
    has all from the bytes of the frames to its candidates in one recording. To keep a GPU busy, `submit` the next
    frames before you `finish` the ones before.

    >>> from surgeval.detector import Classes, Loaded, build_tdnet
    >>> from surgeval.detector.inference import TDNetDetector
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("cholec80"))
    >>> detector = TDNetDetector(Loaded(build_tdnet("p", classes), classes, "p", 64, {}))
    >>> looker = Looker(detector, Selecting(confidence=0.0, most=5))
    >>> looker.look([np.zeros((48, 64, 3), np.uint8)])[0].boxes.shape
    torch.Size([5, 4])
    >>> first, second = (looker.submit([np.zeros((48, 64, 3), np.uint8)]) for _ in range(2))
    >>> len(looker.finish(first)), len(looker.finish(second))
    (1, 1)
    """

    def __init__(self, network: Network, selecting: Selecting | None = None) -> None:
        self.network, self.selecting = network, selecting or Selecting()
        parts = torch.as_tensor(network.classes.parts.copy())
        self._parts = parts.to(network.device)
        self._groups = class_groups(parts, self.selecting.mode, len(parts)).numpy()
        self._raw: Callable[[torch.Tensor], Raw] = network.raw
        self._recording = False
        if isinstance(network, TDNetDetector) and network.recording:
            self._raw, self._recording = network.plain, True
        self._slots: dict[tuple[int, ...], list[Slot[Raw]]] = {}  # by shape
        self._busy: set[Slot[Raw]] = set()
        self._pool = ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1), "frames")

    def look(self, frames: Sequence[Image]) -> list[Found]:
        """What is on each frame, in its pixels."""
        return self.finish(self.submit(frames))

    def look_at(self, squares: torch.Tensor, fits: Sequence[Fit]) -> list[Found]:
        """What is on frames that lie on the device as squares of bytes (batch, side, side, 3); their fits undo that."""
        slot = self._slot(tuple(squares.shape))
        if slot is None:
            return self.finish(Pending(fits, self._raw(squares.permute(0, 3, 1, 2)).first(len(fits))))
        return self.finish(self._started(slot, fits, squares))

    def submit(self, frames: Sequence[Image]) -> Pending:
        """Begin to look; the frames may be changed as soon as this returns."""
        side, fill = self.network.image_size, self.network.fill
        if self.network.device.type == "cuda" and len({frame.shape for frame in frames}) == 1:
            return self._submit(frames, [Fit.of(frames[0].shape[0], frames[0].shape[1], side)] * len(frames))
        fits = [Fit.of(frame.shape[0], frame.shape[1], side) for frame in frames]
        return self._submit(list(self._pool.map(lambda fit, frame: fit.image(frame, fill), fits, frames)), fits)

    def submit_squares(self, squares: Sequence[Image], fits: Sequence[Fit], *, batch: int = 0) -> Pending:
        """Begin to look at frames that are squares already.

        Fewer than `batch` of them go through the recording of a whole batch, where there is one.
        """
        return self._submit(squares, fits, batch)

    def finish(self, pending: Pending) -> list[Found]:
        """What is on the frames that were submitted, in their pixels; waits for the device."""
        if pending.detections is None:
            source = pending.source
            if isinstance(source, Slot):
                self._busy.discard(source)  # also where what follows fails
                pending.detections = self._listed_by(source, pending.fits)
            else:
                pending.detections = _on_frames(self.choose(source), pending.fits)
        return pending.detections

    def choose(self, raw: Raw) -> list[Found]:
        """The boxes to report of every picture, on the CPU, in pixels of the network's input."""
        main = self.network.classes.main
        # A sum shows NaN and infinity; without this look they would pass for pictures with nothing on them.
        self._expect_finite(bool((raw.boxes.sum() + raw.probabilities[main].sum()).isfinite()))
        return fetch(select(raw.boxes, dict(raw.probabilities), main, self._parts, self.selecting))

    def _listed_by(self, slot: Slot[Raw], fits: Sequence[Fit]) -> list[Found]:
        """What is on the frames, from the candidates that a pass listed; from all it said where those do not do."""
        row, raw = slot.wait(), slot.kept
        heads = {head: of.shape[-1] for head, of in raw.probabilities.items()}
        listing = Listing.of(row, len(raw.boxes), heads).first(len(fits))
        self._expect_finite(bool(np.isfinite(listing.checks).all()))
        choice = choose_listed(listing, self._groups, self.selecting)
        if choice is None:
            return _on_frames(self.choose(raw.first(len(fits))), fits)
        return found_of(listing, choice, fits)

    def _expect_finite(self, finite: bool) -> None:
        if not finite:
            raise RunError(f"{self.network.name}: found numbers that overflow, expected finite boxes and scores: full "
                           "precision may hold them")  # fmt: skip

    def _submit(self, pictures: Sequence[Image], fits: Sequence[Fit], batch: int = 0) -> Pending:
        """Pictures of one size: frames, which the device makes square, or squares."""
        slot = self._slot((max(batch, len(pictures)), *pictures[0].shape))
        if slot is not None:
            self._stage(pictures, slot.staging)
            return self._started(slot, fits)
        staging = torch.empty((len(pictures), *pictures[0].shape), dtype=torch.uint8,
                              pin_memory=self.network.device.type == "cuda")  # fmt: skip
        self._stage(pictures, staging.numpy())
        return Pending(fits, self._said_of(staging.to(self.network.device, non_blocking=True)))

    def _started(self, slot: Slot[Raw], fits: Sequence[Fit], squares: torch.Tensor | None = None) -> Pending:
        slot.start(squares)
        self._busy.add(slot)
        return Pending(fits, slot)

    def _said_of(self, frames: torch.Tensor) -> Raw:
        """What the network says of bytes (batch, height, width, 3) on the device."""
        side = self.network.image_size
        height, width = frames.shape[1:3]
        if (height, width) != (side, side):
            frames = letterbox_on_device(frames, Fit.of(height, width, side), self.network.fill)
        return self._raw(frames.permute(0, 3, 1, 2))

    def _recordable(self, frames: torch.Tensor) -> tuple[torch.Tensor, Raw]:
        raw = self._said_of(frames)
        return list_candidates(raw, self.network.classes.main, self.selecting), raw

    def _slot(self, shape: tuple[int, ...]) -> Slot[Raw] | None:
        """A free slot for input of this shape; none where nothing is recorded, or too much already or on its way."""
        if not self._recording:
            return None
        slots = self._slots.setdefault(shape, [])
        free = next((slot for slot in slots if slot not in self._busy), None)
        if free is None and len(slots) < _SLOTS and sum(map(len, self._slots.values())) < _MOST_SLOTS:
            free = Slot(self._recordable, shape, self.network.device)
            slots.append(free)
        return free

    def _stage(self, pictures: Sequence[Image], rows: Image) -> None:
        """Copy pictures to where the device can read them by itself."""
        step = min(len(pictures), _THREADS)
        if step == 1:
            _copy(pictures, rows, 1, 0)  # no thread is as near as this one
        else:
            list(self._pool.map(partial(_copy, pictures, rows, step), range(step)))


def _copy(pictures: Sequence[Image], rows: Image, step: int, start: int) -> None:
    for number in range(start, len(pictures), step):
        np.copyto(rows[number], pictures[number])


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


def fetch(detections: Sequence[Found]) -> list[Found]:
    """The same on the CPU, by a single transfer.

    >>> picture = Found(torch.ones(2, 4), torch.tensor([0.5, 0.25]), torch.tensor([3, 1]), {"i": torch.ones(2, 7)})
    >>> back = fetch([picture, picture])
    >>> len(back), back[1].classes.tolist(), back[0].heads["i"].shape
    (2, [3, 1], torch.Size([2, 7]))
    """
    return list(detections) if not detections or detections[0].boxes.device.type == "cpu" else unpacked(detections)


def unpacked(detections: Sequence[Found]) -> list[Found]:
    """All pictures' columns side by side in one table, moved to the CPU, and taken apart again."""
    heads = list(detections[0].heads)
    widths = [4, 1, 1, *(detections[0].heads[head].shape[1] for head in heads)]
    columns = [torch.cat([picture.boxes for picture in detections]).float()]
    columns += [
        torch.cat([getattr(picture, name) for picture in detections])[:, None].float() for name in ("scores", "classes")
    ]
    columns += [torch.cat([picture.heads[head] for picture in detections]).float() for head in heads]
    table = torch.cat(columns, 1).cpu()  # class ids are small whole numbers: exact in float32
    result = []
    for rows in table.split([len(picture) for picture in detections]):
        boxes, scores, classes, *rest = rows.split(widths, 1)
        result.append(Found(boxes, scores[:, 0], classes[:, 0].long(), dict(zip(heads, rest, strict=True))))
    return result


def _on_frames(detections: Sequence[Found], fits: Sequence[Fit]) -> list[Found]:
    """The boxes in pixels of their frames; what has no area there is left out."""
    counts = np.array([len(picture) for picture in detections], np.int64)
    placed, inside = on_frames(torch.cat([picture.boxes for picture in detections]).double().numpy(), counts, fits)
    pieces = zip(*(torch.from_numpy(values).split(counts.tolist()) for values in (placed, inside)), strict=True)
    whole = [
        (Found(at, picture.scores, picture.classes, picture.heads), k)
        for picture, (at, k) in zip(detections, pieces, strict=True)
    ]
    return [picture if bool(k.all()) else _some(picture, k) for picture, k in whole]


def _some(detections: Found, rows: torch.Tensor) -> Found:
    heads = {head: values[rows] for head, values in detections.heads.items()}
    return Found(detections.boxes[rows], detections.scores[rows], detections.classes[rows], heads)
