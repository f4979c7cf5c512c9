"""The numbers that the documentation quotes, computed again from saved weights: `surgeval phantom examine`.

The videos are phantom-v1's own test videos and, if asked for, further ones of another seed, each filmed with the tint
that betrays the instrument and with a random one. Intervals resample whole videos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Bools, Floats, Int32s, Ints
from surgeval.errors import BadInput
from surgeval.models import open_contrastive
from surgeval.models.contrastive import AttentionTower, Contrastive, ConvTower
from surgeval.phantom.dataset.edition import VideoPlan, edition, plan_videos
from surgeval.phantom.training.data import SIZE, Frames, examination_shoots, film_all, held_out_plans
from surgeval.phantom.training.embedded import progress
from surgeval.phantom.training.evaluate import Examination, examine
from surgeval.phantom.training.recipes import CLIPS
from surgeval.stats import Difference, Interval, Intervals, bootstrap_mean, bootstrap_statistic, paired_difference

__all__ = ["Examined", "examine_embedded"]

TINTS = ("by_instrument", "random")
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Examined:
    """All models on one set of videos; `leads` holds the first model's accuracy minus that of each other."""

    videos: str
    tint: str
    models: Mapping[str, Intervals]
    leads: Mapping[str, Difference]


def examine_embedded(
    models: Sequence[str] = CLIPS,
    *,
    held_out: int = 0,
    device: str = "cpu",
    workers: int = 1,
    log: Log = lambda line: None,
) -> list[Examined]:
    """Examine models (embedded names, or folders that training wrote) on videos that none was trained on.

    >>> examine_embedded(["phantom-clip"], held_out=-1)
    Traceback (most recent call last):
    surgeval.errors.BadInput: held-out videos: found -1, expected 0 to 300
    """
    if not 0 <= held_out <= 300:
        raise BadInput(f"held-out videos: found {held_out}, expected 0 to 300")
    opened = {name: _open(name, device) for name in dict.fromkeys(models)}
    results = []
    for videos, plans in _sets(held_out).items():
        for tint in TINTS:
            say = progress(f"{videos} {tint} video", log)
            frames = film_all(examination_shoots(plans, tint), workers, say)
            results.append(compare_models(opened, frames, videos, tint))
    return results


def compare_models(models: Mapping[str, Contrastive], frames: Frames, videos: str, tint: str) -> Examined:
    """Examine models on the same frames."""
    exams = {name: examine(model, frames) for name, model in models.items()}
    first, *others = exams
    leads = {
        name: paired_difference(exams[first].right, exams[name].right, exams[first].video, name=f"{first} − {name}")
        for name in others
    }
    return Examined(videos, tint, {name: measure(exam) for name, exam in exams.items()}, leads)


def measure(exam: Examination) -> Intervals:
    """Every number of an examination with its 95 % interval."""
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
    """Mean of `top` over mean of `bottom`, over the frames that have both."""
    both = np.isfinite(top) & np.isfinite(bottom)
    names, codes = np.unique(video[both], return_inverse=True)
    over, under = (np.bincount(codes, values[both]) for values in (top, bottom))
    return bootstrap_statistic(
        lambda m: (m @ over) / (m @ under), names.tolist(), batched=True, name=name, bounds=(0.0, np.inf)
    )


def _macro_f1(exam: Examination) -> Interval:
    """The mean F1 of the classes that occur; a class that a resample lacks is left out of its mean."""
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


def _sets(held_out: int) -> dict[str, Sequence[VideoPlan]]:
    fixed = edition("phantom-v1")
    sets: dict[str, Sequence[VideoPlan]] = {
        "phantom-v1": [plan for plan in plan_videos(fixed.seed, fixed.videos) if plan.split == "test"]
    }
    return {**sets, "held-out": held_out_plans(held_out)} if held_out else sets


def _open(name: str, device: str) -> Contrastive:
    model = open_contrastive(name, device)
    if not isinstance(model, AttentionTower | ConvTower):
        raise BadInput(f"model {name!r}: found no tower with attention or feature maps, expected an embedded model")
    if model.preparation.input_size != (SIZE, SIZE):
        rows, columns = model.preparation.input_size
        raise BadInput(f"model {name!r}: found an input of {rows}×{columns}, expected {SIZE}×{SIZE}")
    return model
