"""Tables 9 and 11: what the parts of TDnet add, each configuration trained with several seeds: `run_ablation`.

Every configuration and seed is a folder of folds, so what is finished is not trained again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, get_args

from surgeval.datasets import Dataset, Sources
from surgeval.engine import Manifest, scored_record
from surgeval.errors import BadInput, RunError
from surgeval.files import path_inside
from surgeval.metrics import Convention, Ties
from surgeval.protocols.result import refuse_dataset, write_run
from surgeval.protocols.training.ablation.result import (
    ABLATIONS,
    AblationScores,
    Configuration,
    ablation_home,
    load_ablation,
)
from surgeval.protocols.training.detectors import Tell, TrainableDetector
from surgeval.protocols.training.method import run_training
from surgeval.protocols.training.scheme import SchemeSpec
from surgeval.protocols.training.stored import SCORES, AblationFile, AblationName, save_plan
from surgeval.protocols.triplets import load_triplets

__all__ = ["run_ablation"]

ModelOf: TypeAlias = Callable[[Configuration, int], TrainableDetector]


def run_ablation(
    data: Dataset | str | Path,
    model_of: ModelOf,
    out: str | Path,
    *,
    table: AblationName = "components",
    seeds: Sequence[int] = (0, 1, 2),
    scheme: SchemeSpec = "prostatd",
    sources: Sources | None = None,
    convention: Convention | None = None,
    ties: Ties | None = None,
    format: str | None = None,
    labels: str | Path | None = None,
    progress: Tell = lambda _text: None,
) -> AblationScores:
    """Train every configuration with every seed on every fold of `scheme`; what is finished is not trained again.

    `model_of(configuration, seed)` gives the detector to train, usually `trainable_tdnet` with changed settings.

    >>> import tempfile
    >>> import polars as pl
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.phantom import simulate_detector
    >>> from surgeval.protocols.training import FoldDetections, TrainableDetector, load_ablation
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("phantom")
    >>> seen = Instance(Triplet(*space.triplets[0]), Box(100, 60, 80, 60))
    >>> data = MemoryDataset(space, [Frame(video, "000001", 1, None, None, 448, 256, (seen,)) for video in "AB"])
    >>> def detect(dataset, videos, trained):  # knows the labels, and learns nothing
    ...     found = simulate_detector(dataset, "good").filter(pl.col("video").is_in(videos))
    ...     return FoldDetections(found, frames=len(videos), seconds=0.1)
    >>> def model_of(configuration, seed):  # a real one trains by the settings that `configuration.changes` names
    ...     return TrainableDetector(configuration.name, {"seed": seed}, learn=lambda *fold: None, detect=detect)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scores = run_ablation(data, model_of, folder, seeds=[0], scheme={"test": ["A"]})
    ...     again = load_ablation(folder)
    >>> list(scores.runs), again.reference, again.seeds
    (['TDnet w/o self-distill', 'TDnet w/o MTL', 'TDnet'], 'TDnet', (0,))
    >>> run_ablation("no/dataset", lambda configuration, seed: None, "out", table="table 10")
    Traceback (most recent call last):
    surgeval.errors.BadInput: ablation 'table 10': expected one of components, fusion
    """
    if table not in ABLATIONS:
        raise BadInput(f"ablation {table!r}: expected one of {', '.join(get_args(AblationName))}")
    if not seeds or len(set(seeds)) != len(seeds):
        raise BadInput(f"seeds: found {list(seeds)}, expected at least one, each once")
    ablation, folder = ABLATIONS[table], Path(out)
    names = tuple(configuration.name for configuration in ablation.configurations)
    plan = AblationFile(table=table, configurations=names, seeds=tuple(seeds))
    _claim(folder, plan)
    for configuration in ablation.configurations:
        for seed in seeds:
            home = ablation_home(folder, configuration.name, seed)
            path_inside(folder, *home.relative_to(folder).parts)  # refuses links
            progress(f"{configuration.name}, seed {seed}")
            run_training(
                data,
                model_of(configuration, seed),
                home,
                scheme=scheme,
                sources=sources,
                convention=convention,
                ties=ties,
                format=format,
                labels=labels,
                pages=False,
                progress=progress,
            )
    first = load_triplets(ablation_home(folder, ablation.reference, seeds[0]) / SCORES)
    manifest = Manifest(
        "training",
        config={"kind": "ablation", "convention": first.settings["convention"], **plan.model_dump(mode="json")},
        dataset=first.settings["data"],
        model="TDnet",
    )
    with write_run(folder, scored_record(manifest, cases=first.settings["frames"])):
        pass  # the folds are there
    return load_ablation(folder)


def _claim(folder: Path, plan: AblationFile) -> None:
    """Write the plan, or check that the folder's is the same but for more seeds."""
    if (folder / plan.file_name).exists():
        there = AblationFile.load(folder)
        if there.table != plan.table:
            raise RunError(f"{folder}: found the ablation {there.table}, expected {plan.table} or a new folder")
    else:
        refuse_dataset(folder)
    save_plan(plan, folder)
