"""The examination of trained CLIPs on test videos: accuracy, attention to instruments, effect of hiding regions.

*Accuracy* is the share of frames whose best instrument prompt names a visible instrument; frames without one are left
out. It treats a model that names the working instrument and one that names another alike. Region metrics follow the
benchmark: the top fifth of the heatmap of the best prompt, against the boxes of all instruments.

The videos are phantom-v1's test videos and, on request, others of another seed, each rendered with the tint that
follows the working instrument and with a random one. Intervals are over videos. docs/embedded-models.md quotes these
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from studies.embedded_models.prompts import benchmark_sentences
from studies.embedded_models.recipes import CLIPS
from studies.embedded_models.render import (
    FRAME,
    SIZE,
    Frames,
    held_out_plans,
    log_progress,
    plan_examination,
    render_videos,
)
from torch.nn.functional import interpolate

from surgeval.arrays import Bools, Floats, Int16s, Int32s, Ints, Singles
from surgeval.console import print_table
from surgeval.errors import BadInput
from surgeval.models import open_contrastive
from surgeval.models.contrastive import AttentionTower, Contrastive, ConvTower, TextBank
from surgeval.phantom.dataset.edition import VideoPlan, edition, plan_videos
from surgeval.results import counted
from surgeval.stats import Difference, Interval, Intervals, bootstrap_mean, bootstrap_statistic, paired_difference

KEEP_TOP = 0.2


@dataclass(frozen=True, slots=True)
class Examination:
    """One row per frame with an instrument; `nan` where a measure does not apply."""

    video: Int32s
    guess: Ints  # instrument of the best prompt
    present: Bools  # (frames, instruments)
    right: Floats  # the instrument of the best prompt is visible
    right_working: Floats  # … and is the working one
    always_grasper: Floats  # accuracy of always answering "grasper"
    triplet_top5: Floats  # one of the frame's triplets is among the five best prompts
    inside: Floats  # AC: share of the attended region inside boxes
    chance: Floats  # share of the frame inside boxes
    inside_mask: Floats  # as `inside`, with masks instead of boxes
    chance_mask: Floats
    right_without_attended: Floats  # with the attended fifth blacked out
    right_without_other: Floats  # with an equal region elsewhere blacked out
    right_without_tools: Floats  # with the boxes of the instruments blacked out
    working_without_tools: Floats  # … the working instrument is still named
    working_without_moved: Floats  # … with the same boxes blacked out elsewhere


def examine_model(model: Contrastive, frames: Frames, batch: int = 32, seed: int = 0) -> Examination:
    """Examine a network on every frame that shows an instrument."""
    sentences = benchmark_sentences()
    instruments = len(sentences.instruments)
    texts = model.texts([*sentences.instruments, *sentences.triplets])
    rows = np.flatnonzero((frames.instrument >= 0).any(1))
    # Drawn for all frames at once, so that the batch size does not change what is blacked out.
    shifts = torch.randint(SIZE // 4, 3 * SIZE // 4, (len(rows), 2), generator=torch.Generator().manual_seed(seed))
    parts = [
        _examine_batch(model, frames, rows[k : k + batch], texts, instruments, shifts[k : k + batch])
        for k in range(0, len(rows), batch)
    ]
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    present = np.stack([(frames.instrument[rows] == k).any(1) for k in range(instruments)], 1)
    return Examination(video=frames.video[rows], guess=columns.pop("guess").astype(int), present=present, **columns)


def _examine_batch(
    model: Contrastive,
    frames: Frames,
    rows: Ints,
    texts: TextBank,
    instruments: int,
    shifts: torch.Tensor,
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
        raise BadInput(f"Model {model.name!r} has a matching head; the examination needs a model with prompt vectors.")
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

    def guess_without(mask: torch.Tensor) -> Ints:
        blacked = torch.where(mask[:, None], -torch.ones_like(pixels), pixels)
        choice: Ints = model.scores(blacked, texts)[:, :instruments].argmax(1).cpu().numpy()
        return choice

    without_tools = guess_without(hidden_boxes)
    shifts = shifts.to(device)
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
        "right_without_attended": right(guess_without(small)),
        "right_without_other": right(guess_without(_shift_masks(small, shifts))),
        "right_without_tools": right(without_tools),
        "working_without_tools": working(without_tools),
        "working_without_moved": working(guess_without(_shift_masks(hidden_boxes, shifts))),
    }


def heatmaps(model: Any, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return Grad-CAM of the residual tower, or gradient-weighted rollout over all blocks of the transformer.

    `surgeval.explain` has the general forms; the published numbers come from these.
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
    """Select the pixels above zero from the 80th percentile up."""
    flat = maps.flatten(1).double()
    level = torch.quantile(flat, 1 - KEEP_TOP, dim=1)[:, None, None]
    return (maps.double() >= level) & (maps > 0)


def _shift_masks(masks: torch.Tensor, shifts: torch.Tensor) -> torch.Tensor:
    """Shift each mask by its own (rows, columns), around the edges."""
    at = torch.arange(SIZE, device=masks.device)
    rows, columns = ((at[None] - shifts[:, k : k + 1]) % SIZE for k in (0, 1))
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


TINTS = ("by_instrument", "random")
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ComparedModels:
    """All models on one set of videos; `differences` holds the first model's accuracy minus that of each other."""

    videos: str
    tint: str
    models: Mapping[str, Intervals]
    differences: Mapping[str, Difference]


def examine_models(
    models: Sequence[str] = CLIPS,
    *,
    held_out: int = 0,
    device: str = "cpu",
    workers: int = 1,
    log: Log = lambda line: None,
) -> list[ComparedModels]:
    """Examine models (embedded names, or folders that `train` wrote) on test videos.

    >>> examine_embedded(["phantom-clip"], held_out=-1)
    Traceback (most recent call last):
    surgeval.errors.BadInput: --held-out must be from 0 to 300, got -1.
    """
    if not 0 <= held_out <= 300:
        raise BadInput(f"--held-out must be from 0 to 300, got {held_out}.")
    opened = {name: _open_clip(name, device) for name in dict.fromkeys(models)}
    results = []
    for videos, plans in _video_sets(held_out).items():
        for tint in TINTS:
            progress = log_progress(f"{videos} {tint} video", log)
            frames = render_videos(plan_examination(plans, tint), workers, progress)
            results.append(compare_models(opened, frames, videos, tint))
    return results


def compare_models(models: Mapping[str, Contrastive], frames: Frames, videos: str, tint: str) -> ComparedModels:
    """Examine models on the same frames."""
    exams = {name: examine_model(model, frames) for name, model in models.items()}
    first, *others = exams
    differences = {
        name: paired_difference(exams[first].right, exams[name].right, exams[first].video, name=f"{first} − {name}")
        for name in others
    }
    return ComparedModels(videos, tint, {name: measure_examination(exam) for name, exam in exams.items()}, differences)


def measure_examination(exam: Examination) -> Intervals:
    """Compute every number of an examination with its 95 % interval."""
    means = {
        "accuracy": exam.right,
        "accuracy_working": exam.right_working,
        "always_grasper": exam.always_grasper,
        "blind_guess": exam.present.mean(1),
        "triplet_top5": exam.triplet_top5,
        "ac": exam.inside,
        "chance": exam.chance,
        "loss_without_attended": exam.right - exam.right_without_attended,
        "loss_without_other": exam.right - exam.right_without_other,
        "occlusion_effect": exam.right_without_other - exam.right_without_attended,
        "loss_without_tools": exam.right - exam.right_without_tools,
        "tool_effect": exam.working_without_moved - exam.working_without_tools,
    }
    measured = {name: _mean(values, exam.video, name) for name, values in means.items()}
    measured["macro_f1"] = _macro_f1(exam)
    measured["ac_lift"] = _ratio(exam.inside, exam.chance, exam.video, "ac_lift")
    measured["mask_lift"] = _ratio(exam.inside_mask, exam.chance_mask, exam.video, "mask_lift")
    return Intervals(items=tuple(measured.values()))


def _mean(values: Floats, video: Int32s, name: str) -> Interval:
    asked = np.isfinite(values)
    return bootstrap_mean(values[asked], video[asked].tolist(), name=name)


def _ratio(top: Floats, bottom: Floats, video: Int32s, name: str) -> Interval:
    """Compute the mean of `top` over the mean of `bottom`, for frames that have both."""
    both = np.isfinite(top) & np.isfinite(bottom)
    names, codes = np.unique(video[both], return_inverse=True)
    over, under = (np.bincount(codes, values[both]) for values in (top, bottom))
    return bootstrap_statistic(
        lambda m: (m @ over) / (m @ under), names.tolist(), batched=True, name=name, bounds=(0.0, np.inf)
    )


def _macro_f1(exam: Examination) -> Interval:
    """Compute the mean F1 of the classes that occur; a class absent from a resample is left out of its mean."""
    names, codes = np.unique(exam.video, return_inverse=True)
    guess = np.eye(exam.present.shape[1], dtype=bool)[exam.guess]

    def counts(table: Bools) -> Floats:
        return np.stack([np.bincount(codes, column) for column in table.T], 1)

    both, claimed, there = counts(guess & exam.present), counts(guess), counts(exam.present)

    def f1(m: Ints) -> Floats:
        occurs = m @ there > 0
        each = 2 * (m @ both) / np.maximum(m @ claimed + m @ there, 1)
        mean: Floats = (each * occurs).sum(1) / occurs.sum(1)
        return mean

    return bootstrap_statistic(f1, names.tolist(), batched=True, name="macro_f1")


def _video_sets(held_out: int) -> dict[str, Sequence[VideoPlan]]:
    fixed = edition("phantom-v1")
    sets: dict[str, Sequence[VideoPlan]] = {
        "phantom-v1": [plan for plan in plan_videos(fixed.seed, fixed.videos) if plan.split == "test"]
    }
    return {**sets, "held-out": held_out_plans(held_out)} if held_out else sets


def _open_clip(name: str, device: str) -> Contrastive:
    model = open_contrastive(name, device)
    if not isinstance(model, AttentionTower | ConvTower):
        raise BadInput(f"Model {name!r} has no tower with attention or feature maps. Name an embedded model.")
    if model.preparation.input_size != (SIZE, SIZE):
        rows, columns = model.preparation.input_size
        raise BadInput(f"Model {name!r} has an input of {rows}×{columns}; the examination needs {SIZE}×{SIZE}.")
    return model


# ── output ──────────────────────────────────────────────────────────────────────────────────────────────────────


def print_comparison(result: ComparedModels) -> None:
    """Print a table with a row per measure and a column per model."""
    first = next(iter(result.models.values()))
    rows = [[row.name, *(str(scores[row.name]) for scores in result.models.values())] for row in first]
    accuracy = first["accuracy"]
    counts = f"{counted(accuracy.n, 'frame')} of {counted(accuracy.clusters, 'video')}"
    print_table(f"{result.videos}, tint {result.tint}: {counts}", ("", *result.models), rows)
    for difference in result.differences.values():
        print(f"accuracy, {difference.interval.name}: {difference}")
    print()


def comparison_as_json(result: ComparedModels) -> dict[str, Any]:
    """Return the numbers as JSON values."""
    return {
        "videos": result.videos,
        "tint": result.tint,
        "models": {name: {row.name: _interval_as_json(row) for row in rows} for name, rows in result.models.items()},
        "differences": {
            difference.interval.name: _interval_as_json(difference.interval)
            for difference in result.differences.values()
        },
    }


def _interval_as_json(interval: Interval) -> dict[str, float | int | None]:
    ends = {key: getattr(interval, key) for key in ("estimate", "low", "high")}
    known = {key: value if value == value else None for key, value in ends.items()}  # NaN becomes null
    return {**known, "n": interval.n, "videos": interval.clusters}
