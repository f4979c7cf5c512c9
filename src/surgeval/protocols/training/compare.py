"""Two detectors trained on the same folds, or two ablations of the same data: paired by video, as their scores are.

Two ablations are compared row by row: a configuration with itself, each the mean over its seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from surgeval.errors import BadInput
from surgeval.protocols.contract import Compared, Comparison, few_video_notes
from surgeval.protocols.training.ablation.result import AblationScores, label_of
from surgeval.protocols.training.result import TrainingScores, load_training
from surgeval.protocols.triplets import RESAMPLES, compare_triplets
from surgeval.results import counted

__all__ = ["compare_training"]


Trained: TypeAlias = TrainingScores | AblationScores | str | Path


def compare_training(a: Trained, b: Trained, *, resamples: int = RESAMPLES, seed: int = 0) -> Comparison:
    """Every number of a minus that of b; both must be folds, or both ablations, of the same data.

    `resamples` is how many exchanges of videos are drawn at most; a comparison of ablations draws none.

    The example of `run_training` compares two.

    >>> compare_training("first", "second")
    Traceback (most recent call last):
    surgeval.errors.DataError: first: no such folder
    """
    first, second = (load_training(side) if isinstance(side, str | Path) else side for side in (a, b))
    names = [side.folder.name if side.folder and first.name == second.name else side.name for side in (first, second)]
    if isinstance(first, TrainingScores) and isinstance(second, TrainingScores):
        comparison = compare_triplets(first.scores, second.scores, resamples=resamples, seed=seed)
        return replace(comparison, protocol="training", a=names[0], b=names[1])
    if isinstance(first, AblationScores) and isinstance(second, AblationScores):
        return _ablations(first, second, names)
    kinds = ["trained folds" if isinstance(side, TrainingScores) else "an ablation" for side in (first, second)]
    places = [str(side.folder or side.name) for side in (first, second)]
    raise BadInput(f"{places[0]} and {places[1]}: found {kinds[0]} and {kinds[1]}, expected two of a kind")


def _ablations(first: AblationScores, second: AblationScores, names: Sequence[str]) -> Comparison:
    """Each configuration that both have with itself; their triplets first."""
    _require_same(first, second)
    numbers = [
        Compared(f"{row}|{column[0]}|{column[1]}", f"{row}: {label_of(column)}", difference)
        for row in first.runs
        for column, difference in reversed(first.difference(row, second, row).items())
    ]
    seeds = f"means over {counted(len(first.seeds), 'seed')} and {counted(len(second.seeds), 'seed')}"
    return Comparison(
        protocol="training", a=names[0], b=names[1], numbers=tuple(numbers), settings={"table": first.table},
        notes=(*few_video_notes(len(first.videos)), f"{seeds}: intervals are over videos, not over seeds"),
    )  # fmt: skip


def _require_same(first: AblationScores, second: AblationScores) -> None:
    both = f"{first.folder or first.name} and {second.folder or second.name}"
    if first.table != second.table:
        found = f"the ablations {first.table} and {second.table}, which share no configuration"
        raise BadInput(f"{both}: found {found}, expected two of the same")
    ours, theirs = (side.runs[side.reference][0].settings for side in (first, second))
    other = [name for name in ("data", "scheme", "convention", "ties", "components") if ours[name] != theirs[name]]
    if other:
        raise BadInput(f"{both}: found different {', '.join(other)}, expected ablations of the same data and videos")
