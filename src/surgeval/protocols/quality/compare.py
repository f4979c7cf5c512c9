"""Two quality runs over the same videos, for instance before and after cleaning: paired by video."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl

from surgeval.arrays import Floats
from surgeval.errors import BadInput
from surgeval.protocols.contract import Compared, Comparison, few_video_notes
from surgeval.protocols.quality.result import QualityScores, load_quality
from surgeval.protocols.quality.tables import SHARES
from surgeval.stats import Difference, paired_statistic

__all__ = ["compare_quality"]

RESAMPLES = 2000


def compare_quality(
    a: QualityScores | str | Path, b: QualityScores | str | Path, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """The share of frames to drop and the mean of each measure, a − b; the frames themselves may differ.

    `resamples` is how many exchanges of videos are drawn at most; where there are no more, all of them are used.

    >>> import tempfile
    >>> from PIL import Image
    >>> from surgeval.protocols.quality import run_quality
    >>> sharp = np.random.default_rng(0).integers(0, 256, (256, 448, 3), np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, picture in (("sharp", sharp), ("black", 0 * sharp)):
    ...         for part in ("images", "labels"):
    ...             Path(folder, name, part).mkdir(parents=True)
    ...         Image.fromarray(picture).save(f"{folder}/{name}/images/VID01_000001.png")
    ...         _ = Path(f"{folder}/{name}/labels/VID01_000001.txt").write_text("")
    ...         _ = run_quality(f"{folder}/{name}", f"{folder}/runs/{name}", labels="cholec80", progress=False)
    ...     compare_quality(f"{folder}/runs/sharp", f"{folder}/runs/black")
    sharp − black: frames proposed to drop, share 0.000 − 1.000 = -1.000 [no interval] (few clusters: 1), not testable
    >>> compare_quality("first", "second")
    Traceback (most recent call last):
    surgeval.errors.DataError: first: no such folder
    """
    first, second = (run if isinstance(run, QualityScores) else load_quality(run) for run in (a, b))
    names = f"{first.name} and {second.name}"
    if first.limits != second.limits:
        raise BadInput(f"{names}: found different limits, expected the same ones")
    known = [set(run.cases["video"].unique()) for run in (first, second)]
    videos = sorted(known[0] & known[1])
    if not videos:
        raise BadInput(f"{names}: found no video in both, expected runs over the same videos")
    return Comparison(
        protocol="quality", a=first.name, b=second.name,
        numbers=tuple(
            Compared(headline.key, headline.label, _difference(first, second, headline.key, videos, resamples, seed),
                     higher_is_better=headline.higher_is_better, unit=headline.unit)
            for headline in first.headlines()
        ),
        settings={"videos": videos, "resamples": resamples, "seed": seed},
        notes=(*few_video_notes(len(videos)), *_notes(first, second, len(known[0] ^ known[1]))),
    )  # fmt: skip


def _notes(first: QualityScores, second: QualityScores, alone: int) -> tuple[str, ...]:
    notes = [f"{alone} video{'s are' if alone > 1 else ' is'} in one run only and left out"] if alone else []
    if first.record.dataset != second.record.dataset:
        notes.append("the runs are of different data: videos are paired by their names alone")
    return tuple(notes)


def _difference(
    first: QualityScores, second: QualityScores, measure: str, videos: list[str], resamples: int, seed: int
) -> Difference:
    sums = [_sums(run.cases, measure, videos) for run in (first, second)]
    total, frames = np.concatenate([part[0] for part in sums]), np.concatenate([part[1] for part in sums])
    bounds = (-1.0, 1.0) if measure in SHARES else (-math.inf, math.inf)
    return paired_statistic(
        lambda counted: np.asarray((counted @ total) / (counted @ frames)), videos, batched=True, sizes=sums[0][1],
        bounds=bounds, resamples=resamples, seed=seed,
    )  # fmt: skip


def _sums(cases: pl.DataFrame, measure: str, videos: list[str]) -> tuple[Floats, Floats]:
    """Each video's sum of a measure, and its frames."""
    sums = cases.group_by("video").agg(pl.col(measure).cast(pl.Float64).sum().alias("sum"), pl.len().alias("frames"))
    rows = {video: (total, frames) for video, total, frames in sums.iter_rows()}
    total, frames = (np.array([rows[video][k] for video in videos], dtype=np.float64) for k in (0, 1))
    return total, frames
