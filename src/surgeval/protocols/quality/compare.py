"""Two quality runs over the same videos, for instance before and after cleaning: paired by video."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from surgeval.errors import BadInput
from surgeval.protocols.contract import Compared, Comparison, few_video_notes
from surgeval.protocols.quality.result import QualityScores, load_quality
from surgeval.protocols.quality.tables import MEASURES
from surgeval.stats import measure_differences

__all__ = ["compare_quality"]

RESAMPLES = 2000


def compare_quality(
    a: QualityScores | str | Path, b: QualityScores | str | Path, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """The share of frames to drop and the mean of each measure, a − b; the frames themselves may differ.

    `resamples` is how many exchanges of videos are drawn at most; where there are no more, all of them are used.

    >>> import tempfile
    >>> import numpy as np
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
    cases = [run.cases.filter(pl.col("video").is_in(videos)).rename({"video": "cluster"}) for run in (first, second)]
    differences = measure_differences(MEASURES, *cases, resamples=resamples, seed=seed)
    return Comparison(
        protocol="quality", a=first.name, b=second.name,
        numbers=tuple(Compared.of(measure, differences[measure.key]) for measure in MEASURES),
        measures=MEASURES, settings={"videos": videos, "resamples": resamples, "seed": seed},
        notes=(*few_video_notes(len(videos)), *_notes(first, second, len(known[0] ^ known[1]))),
    )  # fmt: skip


def _notes(first: QualityScores, second: QualityScores, alone: int) -> tuple[str, ...]:
    notes = [f"{alone} video{'s are' if alone > 1 else ' is'} in one run only and left out"] if alone else []
    if first.record.dataset != second.record.dataset:
        notes.append("the runs are of different data: videos are paired by their names alone")
    return tuple(notes)
