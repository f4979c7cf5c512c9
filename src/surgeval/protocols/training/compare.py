"""Two detectors trained on the same folds: paired by video, as their scores are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from surgeval.errors import BadInput
from surgeval.protocols.contract import Comparison
from surgeval.protocols.training.result import TrainingScores, load_training
from surgeval.protocols.triplets import compare_triplets

__all__ = ["compare_training"]


def compare_training(a: TrainingScores | str | Path, b: TrainingScores | str | Path) -> Comparison:
    """Every number of a minus that of b; both must be folds of the same data.

    >>> import tempfile
    >>> import polars as pl
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.phantom import simulate_detector
    >>> from surgeval.protocols.training import FoldDetections, TrainableDetector, train_folds
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("phantom")
    >>> seen = Instance(Triplet(*space.triplets[0]), Box(100, 60, 80, 60))
    >>> data = MemoryDataset(space, [Frame(video, "000001", 1, None, None, 448, 256, (seen,)) for video in "ABCD"])
    >>> def train(quality, out):
    ...     def detect(dataset, videos, trained):  # knows the labels, and learns nothing
    ...         found = simulate_detector(dataset, quality).filter(pl.col("video").is_in(videos))
    ...         return FoldDetections(found, frames=len(videos), seconds=0.1)
    ...     stub = TrainableDetector(quality, {}, learn=lambda dataset, fold, out, tell: None, detect=detect)
    ...     return train_folds(data, out, stub, scheme={"test": ["A", "B", "C"]}, resamples=20, pages=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     compare_training(train("good", f"{folder}/good"), train("poor", f"{folder}/poor"))
    good − poor: IVT mAP50 1.000 − 0.337 = 0.663 [-0.785, 2.112] (few clusters: 3), not testable
    >>> compare_training("first", "second")
    Traceback (most recent call last):
    surgeval.errors.DataError: first/run.json: found no such file, expected the record of a run
    """
    first, second = (_folds(one) for one in (a, b))
    made = compare_triplets(first.scores, second.scores)
    names = [one.folder.name if one.folder and first.name == second.name else one.name for one in (first, second)]
    return replace(made, protocol="training", a=names[0], b=names[1])


def _folds(one: TrainingScores | str | Path) -> TrainingScores:
    loaded = load_training(one) if isinstance(one, str | Path) else one
    if not isinstance(loaded, TrainingScores):
        raise BadInput(f"{loaded.folder or loaded.name}: found an ablation, expected trained folds")
    return loaded
