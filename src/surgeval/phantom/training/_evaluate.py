"""The examination of a trained network on held-out videos: is it right, where does it look, what does it lose?

*Accuracy* is the share of frames whose best instrument prompt names an instrument that is to be seen (frames without
one are left out): fair to a model that names the working instrument and to one that names another. Region metrics
follow the benchmark: the top fifth of the map of the best prompt, against the boxes of all instruments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import interpolate

from surgeval.models._clip_resnet import PhantomClipResnet
from surgeval.phantom.training._clip import image_vectors, text_vectors
from surgeval.phantom.training._data import FRAME, SIZE, Frames
from surgeval.phantom.training._prompts import benchmark_sentences, encode

Floats = npt.NDArray[np.float64]
KEEP_TOP = 0.2


@dataclass(frozen=True, slots=True)
class Examination:
    """One number per frame with an instrument in it; `nan` where a question does not apply."""

    video: npt.NDArray[np.int32]
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
    f1: Floats  # per instrument class that occurs, not per frame


def examine(model: Any, frames: Frames, device: str, batch: int = 128, seed: int = 0) -> Examination:
    """Ask a network about every frame that shows an instrument."""
    model = model.to(device).eval()
    sentences = benchmark_sentences()
    with torch.no_grad():
        texts = text_vectors(model, torch.tensor(encode(sentences.instruments), device=device))
        triplet_texts = text_vectors(model, torch.tensor(encode(sentences.triplets), device=device))
    rows = np.flatnonzero((frames.instrument >= 0).any(1))
    chance = torch.Generator().manual_seed(seed)
    parts = [
        _examine_some(model, frames, rows[k : k + batch], texts, triplet_texts, chance)
        for k in range(0, len(rows), batch)
    ]
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    best = columns.pop("best").astype(int)
    present = np.stack([(frames.instrument[rows] == k).any(1) for k in range(len(texts))], 1)
    return Examination(video=frames.video[rows], f1=_f1(best, present), **columns)


def _examine_some(
    model: Any,
    frames: Frames,
    rows: npt.NDArray[np.int64],
    texts: torch.Tensor,
    triplet_texts: torch.Tensor,
    chance: torch.Generator,
) -> dict[str, Floats]:
    device = texts.device
    pixels = torch.from_numpy(frames.images[rows]).to(device).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.no_grad():
        vectors = image_vectors(model, pixels)
        best = (vectors @ texts.T).argmax(1)
        top5 = (vectors @ triplet_texts.T).topk(5, 1).indices.cpu().numpy()
    instrument, triplet = frames.instrument[rows], frames.triplet[rows]
    slot = frames.working[rows].astype(int)
    at_work = np.where(slot >= 0, instrument[np.arange(len(rows)), np.maximum(slot, 0)], -1)

    def right(choice: torch.Tensor) -> Floats:
        found: Floats = (instrument == choice.cpu().numpy()[:, None]).any(1).astype(np.float64)
        return found

    grid = heatmaps(model, pixels, texts[best])
    region = top_region(interpolate(grid[:, None], FRAME, mode="bilinear", align_corners=False)[:, 0])
    boxes = torch.from_numpy(_box_masks(frames.boxes[rows], instrument)).to(device)
    small = top_region(interpolate(grid[:, None], (SIZE, SIZE), mode="bilinear", align_corners=False)[:, 0])
    masks = torch.from_numpy((frames.tools[rows] & 31) >= 16).to(device)
    turns = torch.randint(SIZE // 4, 3 * SIZE // 4, (2,), generator=chance).tolist()
    hidden_boxes = interpolate(boxes[:, None].float(), (SIZE, SIZE), mode="area")[:, 0] > 0
    known = triplet >= 0
    hit = ((triplet[:, :, None] == top5[:, None, :]).any(2) & known).any(1).astype(np.float64)

    def answer_without(mask: torch.Tensor) -> Floats:
        with torch.no_grad():
            blacked = torch.where(mask[:, None], -torch.ones_like(pixels), pixels)
            return right((image_vectors(model, blacked) @ texts.T).argmax(1))

    return {
        "best": best.cpu().numpy().astype(np.float64),
        "right": right(best),
        "right_working": np.where(at_work >= 0, best.cpu().numpy() == at_work, np.nan),
        "always_grasper": right(torch.zeros_like(best)),
        "triplet_top5": np.where(known.any(1), hit, np.nan),
        "inside": _share(region, boxes),
        "chance": boxes.float().mean((1, 2)).cpu().numpy().astype(np.float64),
        "inside_mask": _share(small, masks),
        "chance_mask": masks.float().mean((1, 2)).cpu().numpy().astype(np.float64),
        "right_without_attended": answer_without(small),
        "right_without_other": answer_without(torch.roll(small, turns, (1, 2))),
        "right_without_tools": answer_without(hidden_boxes),
    }


def heatmaps(model: Any, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Grad-CAM for the residual tower, gradient-weighted rollout over all blocks for the transformer."""
    if isinstance(model, PhantomClipResnet):
        with torch.no_grad():
            features = model.trunk(pixels)
        features = features.requires_grad_()
        score = (torch.nn.functional.normalize(model.head(features), dim=-1) * targets).sum()
        (gradient,) = torch.autograd.grad(score, features)
        return (gradient.mean((2, 3), keepdim=True) * features).sum(1).relu().detach()
    with torch.enable_grad():
        seen = model.vision_model(pixel_values=pixels, output_attentions=True)
        vectors = torch.nn.functional.normalize(model.visual_projection(seen.pooler_output), dim=-1)
        gradients = torch.autograd.grad((vectors * targets).sum(), seen.attentions)
    row = torch.zeros(len(pixels), 1, seen.attentions[0].shape[-1], device=pixels.device)
    row[:, :, 0] = 1
    for attention, gradient in zip(reversed(seen.attentions), reversed(gradients), strict=True):
        row = row + row @ (attention * gradient).clamp(min=0).mean(1)
    side = round((row.shape[-1] - 1) ** 0.5)
    return row[:, 0, 1:].reshape(-1, side, side).detach()


def top_region(maps: torch.Tensor) -> torch.Tensor:
    """The pixels from the 80th percentile up, zeros left out."""
    flat = maps.flatten(1).double()
    level = torch.quantile(flat, 1 - KEEP_TOP, dim=1)[:, None, None]
    return (maps.double() >= level) & (maps > 0)


def summary(exam: Examination, resamples: int = 2000, seed: int = 0) -> dict[str, Any]:
    """Every number with its 95 % interval, whole videos resampled."""
    ratio = {"ac_lift": (exam.inside, exam.chance), "mask_lift": (exam.inside_mask, exam.chance_mask)}
    means = {
        "accuracy": exam.right,
        "accuracy_working": exam.right_working,
        "always_grasper": exam.always_grasper,
        "triplet_top5": exam.triplet_top5,
        "ac": exam.inside,
        "chance": exam.chance,
        "loss_without_attended": exam.right - exam.right_without_attended,
        "loss_without_other": exam.right - exam.right_without_other,
        "occlusion_effect": exam.right_without_other - exam.right_without_attended,
        "loss_without_tools": exam.right - exam.right_without_tools,
    }
    ones = np.ones(len(exam.video))
    pairs = {**{name: (values, ones) for name, values in means.items()}, **ratio}
    result: dict[str, Any] = {name: _interval(*pair, exam.video, resamples, seed) for name, pair in pairs.items()}
    return {**result, "macro_f1": round(float(exam.f1.mean()), 4), "frames": len(exam.video),
            "videos": len(np.unique(exam.video))}  # fmt: skip


def _interval(top: Floats, bottom: Floats, video: npt.NDArray[np.int32], resamples: int, seed: int) -> list[float]:
    """Ratio of sums (a mean where `bottom` is one) and its percentile interval over videos.

    `surgeval.stats` has the general form; it needs polars, which a training machine may lack.
    """
    fine = np.isfinite(top)
    _, codes = np.unique(video[fine], return_inverse=True)
    sums = np.stack([np.bincount(codes, values[fine]) for values in (top, bottom)])
    drawn = np.random.default_rng(seed).integers(sums.shape[1], size=(resamples, sums.shape[1]))
    totals = sums[:, drawn].sum(2)
    low, high = np.quantile(totals[0] / totals[1], [0.025, 0.975])
    return [round(float(value), 4) for value in (sums[0].sum() / sums[1].sum(), low, high)]


def _share(region: torch.Tensor, truth: torch.Tensor) -> Floats:
    inside, size = (region & truth).sum((1, 2)), region.sum((1, 2))
    share: Floats = torch.where(size > 0, inside / size.clamp(min=1), torch.nan).cpu().numpy().astype(np.float64)
    return share


def _box_masks(boxes: npt.NDArray[np.float32], instrument: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    y, x = (np.arange(size) + 0.5 for size in FRAME)
    x1, y1, x2, y2 = (boxes[..., k, None] for k in range(4))
    columns, rows = (x >= x1) & (x < x2), (y >= y1) & (y < y2)
    each = rows[..., :, None] & columns[..., None, :] & (instrument >= 0)[..., None, None]
    union: npt.NDArray[np.bool_] = np.logical_or.reduce(each, axis=1)
    return union


def _f1(best: npt.NDArray[np.int64], present: npt.NDArray[np.bool_]) -> Floats:
    said = np.eye(present.shape[1], dtype=bool)[best]
    both = (said & present).sum(0)
    f1: Floats = (2 * both / np.maximum(said.sum(0) + present.sum(0), 1))[present.any(0)]
    return f1
