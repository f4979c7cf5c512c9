"""Two detectors trained on the same folds, or two ablations of the same data: paired by video, as their scores are.

Two ablations are compared row by row: a configuration with itself, each the mean over its seeds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from surgeval.errors import BadInput
from surgeval.protocols.comparison import Pair, refuse_different
from surgeval.protocols.training.ablation.result import AblationScores, label_of
from surgeval.protocols.training.result import TrainingScores
from surgeval.protocols.triplets import pair_triplets
from surgeval.results import counted
from surgeval.stats import Combine, Measure

__all__ = ["pair_training"]

Trained: TypeAlias = TrainingScores | AblationScores


def pair_training(first: Trained, second: Trained) -> Pair:
    """Every number of two folders of folds, or of two ablations; the example of `run_training` compares two."""
    names = [side.folder.name if side.folder and first.name == second.name else side.name for side in (first, second)]
    if isinstance(first, TrainingScores) and isinstance(second, TrainingScores):
        return replace(pair_triplets(first.scores, second.scores), names=(names[0], names[1]))
    if isinstance(first, AblationScores) and isinstance(second, AblationScores):
        return replace(_pair_ablations(first, second), names=(names[0], names[1]))
    kinds = ["trained folds" if isinstance(side, TrainingScores) else "an ablation" for side in (first, second)]
    places = [str(side.folder or side.name) for side in (first, second)]
    raise BadInput(f"{places[0]} holds {kinds[0]}, {places[1]} {kinds[1]}. Compare two of a kind.")


def _pair_ablations(first: AblationScores, second: AblationScores) -> Pair:
    """Each configuration that both have with itself; their triplets first."""
    _require_same(first, second)
    differences = {
        f"{row}|{column[0]}|{column[1]}": (f"{row}: {label_of(column)}", difference)
        for row in first.runs
        for column, difference in reversed(first.difference(row, second, row).items())
    }
    measures = [
        Measure(key=key, label=label, combine=Combine(classes="mean of present"),
                explanation="A number of one configuration, the mean over its seeds.")
        for key, (label, _) in differences.items()
    ]  # fmt: skip
    seeds = f"means over {counted(len(first.seeds), 'seed')} and {counted(len(second.seeds), 'seed')}"
    return Pair(
        measures=measures, settings={"table": first.table},
        differences=lambda _resamples, _seed: {key: difference for key, (_, difference) in differences.items()},
        notes=lambda _numbers: (f"{seeds}: intervals are over videos, not over seeds",),
    )  # fmt: skip


def _require_same(first: AblationScores, second: AblationScores) -> None:
    if first.table != second.table:
        raise BadInput(f"{first.folder or first.name} and {second.folder or second.name} are the ablations "
                       f"{first.table} and {second.table}, which share no configuration. Compare two of the "
                       "same.")  # fmt: skip
    ours, theirs = (side.runs[side.reference][0].settings for side in (first, second))
    names = ("data", "scheme", "convention", "ties", "components")
    refuse_different(first, second, *({name: settings[name] for name in names} for settings in (ours, theirs)))
