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

    >>> compare_training("first", "second")
    Traceback (most recent call last):
    surgeval.errors.DataError: first: found no such folder, expected the folder of a run
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
