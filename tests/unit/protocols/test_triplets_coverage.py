"""How far an interval of a long-tailed mAP can be trusted: the claim of docs/triplets.md, simulated.

Each simulated dataset has 60 classes of which most are rare and 18 videos that show a part of them each. The target is
the mAP that such datasets have on average.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from surgeval.metrics import Boxes, DetectionSet, mean_of, rank_detections, weighted_ap
from surgeval.stats import bootstrap_statistic

Statistic: TypeAlias = Callable[[npt.NDArray[np.int64]], float]
CLASSES, VIDEOS, FRAMES = 60, 18, 30
FREQUENCY = 1 / np.arange(1, CLASSES + 1) ** 1.3


def dataset(rng: np.random.Generator) -> DetectionSet:
    """Two instruments per frame in their own places; a detector that is right in 65 % of the cases, give or take."""
    true, said, score = [], [], []
    for _ in range(VIDEOS):
        weight = FREQUENCY * (rng.random(CLASSES) < 6 * FREQUENCY) * rng.gamma(1, 1, CLASSES) + 1e-12
        classes = rng.choice(CLASSES, 2 * FRAMES, p=weight / weight.sum())
        right = rng.random(2 * FRAMES) < np.clip(rng.normal(0.65, 0.05), 0.2, 0.95)
        other = rng.choice(CLASSES, 2 * FRAMES, p=FREQUENCY / FREQUENCY.sum())
        true.append(classes)
        said.append(np.where(right, classes, other))
        score.append(np.clip(rng.normal(np.where(right, 0.65, 0.45), 0.15), 0, 1))
    frame = np.repeat(np.arange(VIDEOS * FRAMES), 2)
    boxes = np.tile([[0.0, 0, 50, 50], [60, 0, 50, 50]], (VIDEOS * FRAMES, 1))
    return DetectionSet.of(
        Boxes.of(frame, {"ivt": np.concatenate(said)}, boxes, np.concatenate(score)),
        Boxes.of(frame, {"ivt": np.concatenate(true)}, boxes),
        np.repeat(np.arange(VIDEOS), FRAMES),
    )


def mean_ap(data: DetectionSet) -> Statistic:
    """The mAP of a resample of videos."""
    ranked = rank_detections(data, "ivt", CLASSES)
    return lambda multiplicity: mean_of(weighted_ap(ranked, multiplicity)[:, 0])


@pytest.mark.slow
def test_leaving_out_videos_covers_a_long_tailed_map_and_percentiles_do_not(long: bool) -> None:
    rng = np.random.default_rng(11)
    trials, resamples = (400, 150) if long else (60, 100)
    estimates, ends = [], []
    for _ in range(trials):
        statistic = mean_ap(dataset(rng))
        left_out = bootstrap_statistic(statistic, range(VIDEOS))
        drawn = bootstrap_statistic(statistic, range(VIDEOS), method="percentile", resamples=resamples)
        estimates.append(drawn.estimate)
        ends.append((left_out.low, left_out.high, drawn.low, drawn.high))
    target, (low, high, least, most) = np.mean(estimates), np.array(ends).T
    assert np.mean((low <= target) & (target <= high)) >= 0.93
    assert 0.70 < np.mean((least <= target) & (target <= most)) < 0.93
    # Resamples lack classes that one video shows: the estimate lies in the lower half of its interval.
    assert np.mean((least + most) / 2) > target
