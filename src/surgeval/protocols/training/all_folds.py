"""Train a detector by name on every fold of a dataset, or the rows of an ablation: `train_folds`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from surgeval.console.commands import Help, common
from surgeval.console.panels import RUNNING, SCORING
from surgeval.datasets import Dataset, Sources
from surgeval.errors import BadInput
from surgeval.metrics import Convention, Ties
from surgeval.progress import phases
from surgeval.protocols.training.ablation.result import AblationScores
from surgeval.protocols.training.detectors import (
    TrainableDetector,
    default_settings,
    trainable_rtdetr,
    trainable_tdnet,
)
from surgeval.protocols.training.method import run_training
from surgeval.protocols.training.result import TrainingScores
from surgeval.protocols.training.scheme import SchemeSpec
from surgeval.protocols.training.settings import with_changes
from surgeval.protocols.training.stored import AblationName
from surgeval.protocols.training.train import DetectorName
from surgeval.results import Result

if TYPE_CHECKING:
    from surgeval.protocols.training.ablation.result import Configuration

__all__ = ["TrainedFolds", "train_folds"]


def printed_tables(scores: TrainingScores | AblationScores) -> dict[str, pl.DataFrame]:
    """What the command prints: the paper's tables with our rows only."""
    tables = scores.own_tables()
    return {f"As Table {table.paper.number}: {table.paper.title}": table.readable() for table in tables}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainedFolds(Result):
    """Some of the folds, trained and not scored: the call that trains all of them scores them."""

    folds: tuple[str, ...]
    out: Path

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`folds` by name."""
        return {"folds": pl.DataFrame({"fold": self.folds}, schema={"fold": pl.String})}

    def to_json(self) -> dict[str, Any]:
        """The folds and their folder."""
        return {"folds": list(self.folds), "out": str(self.out)}

    def __str__(self) -> str:
        return f"{self.out}: trained {', '.join(self.folds)}; the same without only_fold scores all folds"


def train_folds(
    data: Annotated[Dataset | str | Path, Help("A dataset with boxes.")],
    out: Annotated[str | Path, Help("Folder of the folds: new, or one to resume.")],
    *,
    detector: Annotated[DetectorName, Help("What is trained.")] = "tdnet",
    folds: Annotated[
        SchemeSpec,
        Help(
            "prostatd, prostatd-noval, cholect50-cv …; sources, videos (leave one out), split; or a JSON file of "
            "train, val and test videos.",
            kind=str,
        ),
    ] = "prostatd",
    sources: Sources | None = None,
    only_fold: Annotated[
        Sequence[str] | None, Help("Train only this fold (several times: these) and score nothing.", RUNNING)
    ] = None,
    ablation: Annotated[
        AblationName | None, Help("Train the rows of Table 9 (components) or 11 (fusion).", "Ablation")
    ] = None,
    seeds: Annotated[int, Help("Seeds of an ablation: 0, 1, 2 …", "Ablation", least=1, most=100)] = 3,
    size: Annotated[str | None, Help("TDnet's size: p, n, s, m or l.")] = None,
    epochs: Annotated[int | None, Help("Epochs of each training.", least=1)] = None,
    minutes: Annotated[float | None, Help("Minutes of each training instead.")] = None,
    batch: Annotated[int | None, common("batch", "Images at once.")] = None,
    image_size: Annotated[int | None, Help("Input side, a multiple of 32.", RUNNING)] = None,
    changes: Annotated[
        Mapping[str, Any] | None, Help("Any other setting of the training, as NAME=VALUE.", RUNNING, name="--set")
    ] = None,
    weights: Annotated[str | Path | None, Help("A detector to begin with, in every fold.", RUNNING, kind=str)] = None,
    device: Annotated[str, common("device", panel=RUNNING)] = "cpu",
    name: Annotated[str | None, Help("What to call the detector.", RUNNING)] = None,
    convention: Annotated[
        Convention | None,
        Help(
            "How boxes are matched and averaged. Default: as coco. The paper's rows were computed with ivtdmetrics: "
            "compare them under ivtd.",
            SCORING,
        ),
    ] = None,
    ties: Annotated[
        Ties | None,
        Help(
            "How equal scores are ranked. free: no number depends on the order of rows; reference: as the convention's "
            "reference does. Default: reference if --convention is given, else free.",
            SCORING,
        ),
    ] = None,
    seed: Annotated[int, common("seed", panel="")] = 0,
    format: str | None = None,
    labels: str | Path | None = None,
    progress: bool = True,
) -> TrainingScores | AblationScores | TrainedFolds:
    """Train a detector on every fold of a dataset and score it on the videos that it never saw.

    `folds` is what `choose_folds` takes. Settings that are None are the detector's own; `changes` names others. With
    `only_fold` those folds are trained and nothing is scored: jobs of a cluster do that, and one call without it
    scores. `ablation` trains the rows of a table of the paper instead, `seeds` times each. `run_training` takes any
    `TrainableDetector`.

    >>> import tempfile
    >>> from surgeval.phantom import write_phantom
    >>> short = {"student_epochs": 0, "workers": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_phantom(f"{folder}/phantom", videos=2, seconds=2, progress=False)
    ...     one = train_folds(f"{folder}/phantom", f"{folder}/runs", folds="videos", only_fold=["A1"], size="p",
    ...                       epochs=1, batch=4, image_size=64, changes=short, progress=False)
    >>> one.to_frame().row(0)
    ('A1',)
    """
    if ablation is not None and (detector != "tdnet" or only_fold):
        other = f"detector {detector}" if detector != "tdnet" else "only_fold"
        raise BadInput(f"ablation and {other} exclude each other: an ablation trains TDnet on every fold.")
    options = {"size": size, "epochs": epochs, "minutes": minutes, "batch": batch, "image_size": image_size}
    chosen = {key: value for key, value in options.items() if value is not None}
    settings = with_changes(default_settings(detector), {**chosen, "device": device, "seed": seed, **(changes or {})})
    shared: dict[str, Any] = {
        "scheme": folds, "sources": sources, "convention": convention, "ties": ties, "format": format, "labels": labels,
    }  # fmt: skip
    with phases(show=progress, eager=True) as shown:
        shown.phase("reading the dataset")
        if ablation is not None:
            from surgeval.protocols.training.ablation.method import run_ablation

            def model_of(configuration: Configuration, seed: int) -> TrainableDetector:
                own = with_changes(settings, {**configuration.changes, "seed": seed})
                return trainable_tdnet(own, weights=weights, name=configuration.name)

            return run_ablation(data, model_of, out, table=ablation, seeds=range(seeds), progress=shown.note, **shared)
        trainable = trainable_tdnet if detector == "tdnet" else trainable_rtdetr
        model = trainable(settings, weights=weights, name=name)
        scores = run_training(data, model, out, only=only_fold or None, progress=shown.note, **shared)
        return scores or TrainedFolds(folds=tuple(only_fold or ()), out=Path(out))
