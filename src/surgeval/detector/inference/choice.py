"""Boxes chosen in two steps: a fixed number of candidates listed on the device, suppression on the host.

`select` asks the device how many candidates there are before it goes on, and every such question costs a wait; a list
of a fixed length can be recorded and comes in one transfer. Both choose the same boxes in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from surgeval.arrays import AnyFloats, Bools, Floats, Ints, Singles
from surgeval.detector.geometry import Fit
from surgeval.detector.interface import Raw
from surgeval.detector.nms import Found, Selecting
from surgeval.detector.tensors import gather_rows, wide

__all__ = ["LISTED", "ChosenBoxes", "Listing", "choose_listed", "found_of", "list_candidates", "on_frames"]

# Of each picture. About 1000 scores pass a cut of 0.001 with a trained network; twice that is still a megabyte with
# what all heads say. A picture with more is mostly decided by the highest, and else left to `select`.
LISTED = 2048


def list_candidates(raw: Raw, main: str, settings: Selecting, most: int = LISTED) -> torch.Tensor:
    """The highest candidates of every picture, by falling score and then by place, as one row of float32 numbers.

    Nothing in it waits for the device. `Listing.of` takes the row apart.

    >>> raw = Raw(torch.ones(1, 2, 4), {"i": torch.tensor([[[0.9, 0.2], [0.0, 0.95]]])})
    >>> listing = Listing.of(list_candidates(raw, "i", Selecting(), most=4).numpy(), 1, {"i": 2})
    >>> listing.kinds.tolist(), listing.passed.tolist()
    ([[1.0, 0.0, 1.0, 0.0]], [3.0])
    """
    scores = wide(raw.probabilities[main])
    flat, best = (scores.flatten(1), None) if settings.multi_label else scores.max(-1)
    wanted = flat > settings.confidence
    values, places = flat.masked_fill(~wanted, -1.0).topk(min(most, flat.shape[1]), sorted=False)
    places, by_place = places.sort(dim=1)
    values, by_score = values.gather(1, by_place).sort(dim=1, descending=True, stable=True)
    places = places.gather(1, by_score)
    point = places if best is not None else places // scores.shape[-1]
    kind = best.gather(1, places) if best is not None else places % scores.shape[-1]
    # A sum shows NaN and infinity anywhere in the picture.
    checks = wide(raw.boxes).sum((1, 2)) + scores.sum((1, 2))
    columns = [wanted.sum(1), checks, values, kind, gather_rows(raw.boxes, point)]
    columns += [gather_rows(of, point) for of in raw.probabilities.values()]
    return torch.cat([column.float().flatten() for column in columns])  # numbers of classes are exact in float32


@dataclass(frozen=True)
class Listing:
    """What `list_candidates` made, on the host: views of one row of numbers."""

    passed: Singles  # (pictures,) how many candidates are above the confidence, listed or not
    checks: Singles  # (pictures,) finite where all numbers are
    scores: Singles  # (pictures, listed), -1 where there is no candidate
    kinds: Singles  # (pictures, listed)
    boxes: Singles  # (pictures, listed, 4)
    heads: Mapping[str, Singles]  # each (pictures, listed, classes)

    @classmethod
    def of(cls, row: Singles, pictures: int, heads: Mapping[str, int]) -> Listing:
        """The row of that many pictures; `heads` gives the number of classes by head."""
        length = (len(row) // pictures - 2) // (6 + sum(heads.values()))
        widths = [1, 1, length, length, 4 * length, *(length * count for count in heads.values())]
        passed, checks, scores, kinds, boxes, *rest = (
            part.reshape(pictures, -1) for part in np.split(row, np.cumsum(widths[:-1]) * pictures)
        )
        probabilities = {head: of.reshape(pictures, length, -1) for head, of in zip(heads, rest, strict=True)}
        return cls(passed[:, 0], checks[:, 0], scores, kinds, boxes.reshape(pictures, length, 4), probabilities)

    def first(self, count: int) -> Listing:
        """The first pictures: the others only filled the batch up."""
        heads = {head: of[:count] for head, of in self.heads.items()}
        return Listing(self.passed[:count], self.checks[:count], self.scores[:count], self.kinds[:count],
                       self.boxes[:count], heads)  # fmt: skip


@dataclass(frozen=True)
class ChosenBoxes:
    """Which candidates of a listing are reported: its rows, those of all pictures one after the other."""

    rows: Ints  # picture x listed + place in its list
    counts: Ints  # (pictures,)


def choose_listed(listing: Listing, groups: Ints, settings: Selecting) -> ChosenBoxes | None:
    """The candidates that `select` would report, or nothing where the list is too short to be sure of them.

    `groups` has what each class suppresses (`class_groups`).
    """
    from surgeval.detector.greedy import greedy  # numba is loaded only where it works

    usable, complete = _usable(listing, settings)
    used = int(usable.max(initial=0))
    boxes = np.ascontiguousarray(listing.boxes[:, :used])
    valid: Bools = np.arange(used) < usable[:, None]
    if not np.isfinite(listing.checks).all():
        valid &= np.isfinite(boxes).all(-1)
    survivors = np.zeros((len(usable), min(settings.most, used)), np.int64)
    kinds = listing.kinds[:, :used].astype(np.int64)
    counts = greedy(boxes, groups[kinds], valid, np.float32(settings.iou), survivors)
    if not (complete | (counts == settings.most)).all():
        return None
    survivors += np.arange(len(usable))[:, None] * listing.scores.shape[1]
    return ChosenBoxes(survivors[np.arange(survivors.shape[1]) < counts[:, None]], counts)


def _usable(listing: Listing, settings: Selecting) -> tuple[Ints, Bools]:
    """How many candidates of each picture are certain to be the first ones, and whether no other could matter.

    Where more passed than are listed, which ones of the lowest listed score are there is left to chance.
    """
    length = listing.scores.shape[1]
    certain, complete = listing.passed.astype(np.int64), listing.passed <= length
    if not complete.all():
        above = (listing.scores > listing.scores[:, -1:]).sum(1)
        certain = np.where(complete, certain, above)
    return np.minimum(certain, settings.candidates), complete | (certain >= settings.candidates)


def found_of(listing: Listing, choice: ChosenBoxes, fits: Sequence[Fit]) -> list[Found]:
    """What was chosen, on the frames. Of all pictures at once, as each operation costs more than its numbers."""

    def taken(values: Singles) -> AnyFloats:
        return values.reshape(-1, *values.shape[2:]).take(choice.rows, 0)

    boxes, inside = on_frames(taken(listing.boxes), choice.counts, fits)
    if not inside.all():
        pictures = np.repeat(np.arange(len(fits)), choice.counts)[inside]
        choice, boxes = ChosenBoxes(choice.rows[inside], np.bincount(pictures, minlength=len(fits))), boxes[inside]
    scores, classes = taken(listing.scores), taken(listing.kinds).astype(np.int64)
    heads = {head: taken(of) for head, of in listing.heads.items()}
    ends = choice.counts.cumsum()
    result = []
    for own in (slice(end - count, end) for end, count in zip(ends.tolist(), choice.counts.tolist(), strict=True)):
        at, score, kind = (torch.from_numpy(values[own]) for values in (boxes, scores, classes))
        result.append(Found(at, score, kind, {head: torch.from_numpy(of[own]) for head, of in heads.items()}))
    return result


def on_frames(boxes: AnyFloats, counts: Ints, fits: Sequence[Fit]) -> tuple[Floats, Bools]:
    """Boxes of all pictures in pixels of their frames; and which of them have an area there.

    What lies in the bars beside a frame has none.

    >>> on_frames(np.array([[0.0, 0, 64, 15], [0.0, 10, 32, 32]]), np.array([2]), [Fit.of(64, 128, 64)])
    (array([[  0.,   0., 128.,   0.],
           [  0.,   0.,  64.,  32.]]), array([False,  True]))
    """
    exact = boxes.astype(np.float64)
    if all(fit is fits[0] or fit == fits[0] for fit in fits):  # frames of a film
        placed = fits[0].back(exact)
    else:
        own = np.split(exact, counts.cumsum()[:-1])
        placed = np.concatenate([fit.back(some) for fit, some in zip(fits, own, strict=True)])
    return placed, (placed[:, 2] > placed[:, 0]) & (placed[:, 3] > placed[:, 1])
