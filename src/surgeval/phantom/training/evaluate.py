"""The examination of a trained network on held-out videos: is it right, where does it look, what does it lose?

*Accuracy* is the share of frames whose best instrument prompt names an instrument that is to be seen (frames without
one are left out): fair to a model that names the working instrument and to one that names another. Region metrics
follow the benchmark: the top fifth of the map of the best prompt, against the boxes of all instruments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from surgeval.arrays import Bools, Floats, Int16s, Int32s, Ints, Singles
from surgeval.errors import BadInput
from surgeval.models.contrastive import Contrastive, ConvTower, TextBank
from surgeval.phantom.training.data import FRAME, SIZE, Frames
from surgeval.phantom.training.prompts import benchmark_sentences

KEEP_TOP = 0.2


@dataclass(frozen=True, slots=True)
class Examination:
    """One number per frame with an instrument in it; `nan` where a question does not apply."""

    video: Int32s
    guess: Ints  # instrument of the best prompt
    present: Bools  # (frames, instruments)
    right: Floats  # the best prompt's instrument is there
    right_working: Floats  # … and it is the one at work
    always_grasper: Floats  # what saying "grasper" every time would score
    triplet_top5: Floats  # one of the frame's triplets is among the five best prompts
    inside: Floats  # AC: share of the attended region inside boxes
    chance: Floats  # share of the frame inside boxes
    inside_mask: Floats  # the same with the tools' own pixels
    chance_mask: Floats
    right_without_attended: Floats  # the attended fifth blacked out
    right_without_other: Floats  # an equal region elsewhere blacked out
    right_without_tools: Floats  # the tools' boxes blacked out
    working_without_tools: Floats  # … and is the one at work still named?
    working_without_moved: Floats  # the same boxes blacked out elsewhere


def examine(model: Contrastive, frames: Frames, batch: int = 32, seed: int = 0) -> Examination:
    """Ask a network about every frame that shows an instrument."""
    sentences = benchmark_sentences()
    instruments = len(sentences.instruments)
    texts = model.texts([*sentences.instruments, *sentences.triplets])
    rows = np.flatnonzero((frames.instrument >= 0).any(1))
    # Drawn for all frames at once: the batch size must not decide what is blacked out.
    turns = torch.randint(SIZE // 4, 3 * SIZE // 4, (len(rows), 2), generator=torch.Generator().manual_seed(seed))
    parts = [
        _examine_some(model, frames, rows[k : k + batch], texts, instruments, turns[k : k + batch])
        for k in range(0, len(rows), batch)
    ]
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    present = np.stack([(frames.instrument[rows] == k).any(1) for k in range(instruments)], 1)
    return Examination(video=frames.video[rows], guess=columns.pop("guess").astype(int), present=present, **columns)


def _examine_some(
    model: Contrastive,
    frames: Frames,
    rows: Ints,
    texts: TextBank,
    instruments: int,
    turns: torch.Tensor,
) -> dict[str, Floats]:
    device = model.device
    pixels = torch.from_numpy(frames.images[rows]).to(device).permute(0, 3, 1, 2).float() / 127.5 - 1
    scores = model.scores(pixels, texts)
    best = scores[:, :instruments].argmax(1)
    top5 = scores[:, instruments:].topk(5, 1).indices.cpu().numpy()
    guess = best.cpu().numpy()
    instrument, triplet = frames.instrument[rows], frames.triplet[rows]
    slot = frames.working[rows].astype(int)
    at_work = np.where(slot >= 0, instrument[np.arange(len(rows)), np.maximum(slot, 0)], -1)

    def right(choice: Ints) -> Floats:
        hits: Floats = (instrument == choice[:, None]).any(1).astype(np.float64)
        return hits

    if texts.vectors is None:
        raise BadInput(f"model {model.name!r}: found a matching head, expected a model with prompt vectors")
    grid = heatmaps(model, pixels, texts.vectors[best])
    region = top_share(interpolate(grid[:, None], FRAME, mode="bilinear", align_corners=False)[:, 0])
    boxes = torch.from_numpy(_box_masks(frames.boxes[rows], instrument)).to(device)
    small = top_share(interpolate(grid[:, None], (SIZE, SIZE), mode="bilinear", align_corners=False)[:, 0])
    masks = torch.from_numpy((frames.tools[rows] & 31) >= 16).to(device)
    hidden_boxes = interpolate(boxes[:, None].float(), (SIZE, SIZE), mode="area")[:, 0] > 0
    known = triplet >= 0
    hit = ((triplet[:, :, None] == top5[:, None, :]).any(2) & known).any(1).astype(np.float64)

    def working(choice: Ints) -> Floats:
        return np.where(at_work >= 0, choice == at_work, np.nan)

    def said_without(mask: torch.Tensor) -> Ints:
        blacked = torch.where(mask[:, None], -torch.ones_like(pixels), pixels)
        choice: Ints = model.scores(blacked, texts)[:, :instruments].argmax(1).cpu().numpy()
        return choice

    without_tools = said_without(hidden_boxes)
    turns = turns.to(device)
    return {
        "guess": guess.astype(np.float64),
        "right": right(guess),
        "right_working": working(guess),
        "always_grasper": right(np.zeros_like(guess)),
        "triplet_top5": np.where(known.any(1), hit, np.nan),
        "inside": _share(region, boxes),
        "chance": boxes.float().mean((1, 2)).cpu().numpy().astype(np.float64),
        "inside_mask": _share(small, masks),
        "chance_mask": masks.float().mean((1, 2)).cpu().numpy().astype(np.float64),
        "right_without_attended": right(said_without(small)),
        "right_without_other": right(said_without(_rolled(small, turns))),
        "right_without_tools": right(without_tools),
        "working_without_tools": working(without_tools),
        "working_without_moved": working(said_without(_rolled(hidden_boxes, turns))),
    }


def heatmaps(model: Any, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Grad-CAM for the residual tower, gradient-weighted rollout over all blocks for the transformer.

    `surgeval.explain` has the general forms; it is a neighbour of this package, not below it.
    """
    if isinstance(model, ConvTower):
        features = model.trunk(pixels).requires_grad_()
        (gradient,) = torch.autograd.grad((model.head(features) * targets).sum(), features)
        return (gradient.mean((2, 3), keepdim=True) * features).sum(1).relu().detach()
    vectors, attentions = model.attend(pixels)
    gradients = torch.autograd.grad((vectors * targets).sum(), attentions)
    row = torch.zeros(len(pixels), 1, attentions[0].shape[-1], device=pixels.device)
    row[:, :, 0] = 1
    for attention, gradient in zip(reversed(attentions), reversed(gradients), strict=True):
        row = row + row @ (attention * gradient).clamp(min=0).mean(1)
    return row[:, 0, 1:].reshape(-1, *model.grid).detach()


def top_share(maps: torch.Tensor) -> torch.Tensor:
    """The pixels from the 80th percentile up, zeros left out."""
    flat = maps.flatten(1).double()
    level = torch.quantile(flat, 1 - KEEP_TOP, dim=1)[:, None, None]
    return (maps.double() >= level) & (maps > 0)


def _rolled(masks: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Each mask moved by its own (rows, columns), around the edges."""
    at = torch.arange(SIZE, device=masks.device)
    rows, columns = ((at[None] - turns[:, k : k + 1]) % SIZE for k in (0, 1))
    return masks[torch.arange(len(masks), device=masks.device)[:, None, None], rows[:, :, None], columns[:, None, :]]


def _share(region: torch.Tensor, truth: torch.Tensor) -> Floats:
    inside, size = (region & truth).sum((1, 2)), region.sum((1, 2))
    share: Floats = torch.where(size > 0, inside / size.clamp(min=1), torch.nan).cpu().numpy().astype(np.float64)
    return share


def _box_masks(boxes: Singles, instrument: Int16s) -> Bools:
    y, x = (np.arange(size) + 0.5 for size in FRAME)
    x1, y1, x2, y2 = (boxes[..., k, None] for k in range(4))
    columns, rows = (x >= x1) & (x < x2), (y >= y1) & (y < y2)
    each = rows[..., :, None] & columns[..., None, :] & (instrument >= 0)[..., None, None]
    union: Bools = np.logical_or.reduce(each, axis=1)
    return union
