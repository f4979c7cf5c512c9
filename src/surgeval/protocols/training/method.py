"""Train and test a detector on every fold, then score all folds together: `run_training`.

A folder of folds holds `folds.json` (the plan), `folds/NAME/` for each fold (its training, the boxes it found in its
test videos, and `fold.json` when it is finished), and in the end `scores/`, a run of `triplets`. A finished fold is not
trained again, and folds do not know of each other, so they may be trained by several machines on a shared disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from surgeval._version import __version__
from surgeval.datasets import Dataset, Sources, dataset_fingerprint, open_dataset
from surgeval.engine import Manifest, fingerprint, scored_record
from surgeval.errors import RunError
from surgeval.files import (
    check_stored,
    folder_lock,
    make_folder,
    path_inside,
    read_parquet_file,
    write_parquet_file,
)
from surgeval.metrics import Convention, Ties, choose_convention
from surgeval.protocols.result import refuse_dataset, write_run
from surgeval.protocols.training.detectors import Tell, TrainableDetector
from surgeval.protocols.training.result import TrainingScores, load_folds
from surgeval.protocols.training.scheme import Fold, Scheme, SchemeSpec, choose_folds
from surgeval.protocols.training.stored import (
    BOXES,
    SCORES,
    TRAINING,
    FoldFile,
    PlanFile,
    fold_home,
    load_fold,
    save_plan,
)
from surgeval.protocols.triplets import TripletScores, score_triplets
from surgeval.protocols.triplets.page import write_page_of
from surgeval.results import counted

__all__ = ["run_training"]


def run_training(
    data: Dataset | str | Path,
    model: TrainableDetector,
    out: str | Path,
    *,
    scheme: SchemeSpec = "prostatd",
    sources: Sources | None = None,
    only: Sequence[str] | None = None,
    convention: Convention | None = None,
    ties: Ties | None = None,
    rare: int = 300,
    format: str | None = None,
    labels: str | Path | None = None,
    pages: bool = True,
    progress: Tell = lambda _text: None,
) -> TrainingScores | None:
    """Train what is not trained yet, detect in the test videos, score every fold on its own: mean ± std over folds.

    `only` trains the folds of these names and scores nothing (None is returned): jobs of a cluster do that, and one
    call without it scores. `convention` is how boxes are matched and averaged; another one scores finished folds anew
    without training them. `scheme` and `sources` are what `choose_folds` takes; `pages` also writes the scores' own
    page.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.phantom import simulate_detector
    >>> from surgeval import compare
    >>> from surgeval.protocols.training import FoldDetections, TrainableDetector, load_training
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("phantom")
    >>> seen = Instance(Triplet(*space.triplets[0]), Box(100, 60, 80, 60))
    >>> data = MemoryDataset(space, [Frame(video, "000001", 1, None, None, 448, 256, (seen,)) for video in "ABCDEF"])
    >>> def detect(dataset, videos, trained):  # knows the labels, and learns nothing
    ...     found = simulate_detector(dataset, "good").filter(pl.col("video").is_in(videos))
    ...     return FoldDetections(found, frames=len(videos), seconds=0.1)
    >>> stub = TrainableDetector("stub", {}, learn=lambda dataset, fold, out, tell: None, detect=detect)
    >>> tested = {"1": ["A", "B"], "2": ["C", "D"]}  # the test videos of each fold
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folds = run_training(data, stub, folder, scheme=tested, pages=False)
    ...     again = load_training(folder)
    >>> folds.tables["folds"].select("fold", "test videos", "mAP50").rows()
    [('1', 2, 1.0), ('2', 2, 1.0), ('mean', None, 1.0), ('std', None, 0.0)]
    >>> compare(folds, again).numbers[0].difference.estimate
    0.0
    >>> run_training("no/dataset", None, "out")
    Traceback (most recent call last):
    surgeval.errors.BadInput: no/dataset: found no such file or folder, expected a dataset
    """
    choose_convention(convention, ties)  # refuse an unknown one before training
    dataset = open_dataset(data, format=format, labels=labels) if isinstance(data, str | Path) else data
    folds = choose_folds(dataset.videos(), scheme, sources)
    folder = Path(out)
    plan = _claim(folder, dataset, folds, model)
    wanted = [folds.fold(name) for name in only] if only is not None else list(folds.folds)
    for fold in wanted:
        _do_fold(folder, dataset, fold, model, plan, progress)
    if only is not None:
        return None
    progress("scoring all folds")
    scores = _scored(folder, dataset, folds, model.name, convention, ties, rare)
    scores_folder = path_inside(folder, SCORES)
    manifest = Manifest(
        "training",
        config={
            "kind": "folds", "scheme": folds.name, "convention": scores.settings["convention"], "plan": plan,
            "method": dict(model.identity),
        },
        dataset=scores.settings["data"], model=model.name,
    )  # fmt: skip
    with write_run(folder, scored_record(manifest, cases=scores.settings["frames"])):
        scores.save(scores_folder)
        if pages:
            write_page_of([scores], scores_folder)
    return load_folds(folder)


def _claim(folder: Path, dataset: Dataset, scheme: Scheme, method: TrainableDetector) -> str:
    """Write the plan, or check that the folder's is the same; its hash marks what belongs to it."""
    content = {
        "surgeval": __version__, "name": method.name, "method": method.identity, "data": _data_identity(dataset),
        "scheme": scheme.to_json(),
    }  # fmt: skip
    path = folder / PlanFile.file_name
    plan = check_stored(PlanFile, content, path)
    if path.exists():
        known, there = plan.identity(), PlanFile.load(folder).identity()
        differ = [key for key in known if there[key] != known[key]]
        if differ:
            raise RunError(f"{folder}: found folds of another {', '.join(differ)}, expected the same or a new folder")
    else:
        refuse_dataset(folder)
        save_plan(plan, folder)
    return fingerprint(plan.identity())


def _data_identity(dataset: Dataset) -> str:
    """The files of a dataset; of one made in memory its labels."""
    if dataset.root.exists():
        return dataset_fingerprint(dataset)
    frames = {video.name: [repr(frame.instances) for frame in dataset.frames(video.name)] for video in dataset.videos()}
    return fingerprint({"space": dataset.space.to_json(), "frames": frames})


def _do_fold(folder: Path, dataset: Dataset, fold: Fold, method: TrainableDetector, plan: str, progress: Tell) -> None:
    home = fold_home(folder, fold.name)
    if load_fold(home, plan) is not None:
        progress(f"{fold.name}: finished before")
        return
    make_folder(path_inside(folder, "folds", fold.name))
    with folder_lock(home):
        progress(f"{fold.name}: training on {counted(len(fold.train), 'video')}")
        method.learn(dataset, fold, path_inside(home, TRAINING), progress)
        progress(f"{fold.name}: detecting in {counted(len(fold.test), 'video')}")
        detections = method.detect(dataset, fold.test, home / TRAINING)
        write_parquet_file(detections.table, home / BOXES)
        FoldFile(
            plan=plan, fold=fold.name, boxes=detections.table.height, frames=detections.frames,
            seconds=detections.seconds, device=detections.device,
        ).save(home)  # fmt: skip


def _scored(
    folder: Path, dataset: Dataset, scheme: Scheme, name: str, convention: Convention | None, ties: Ties | None,
    rare: int,
) -> TripletScores:  # fmt: skip
    """Every video's boxes come from the model that did not see it, so one table serves all folds."""
    tables = [read_parquet_file(fold_home(folder, fold.name) / BOXES) for fold in scheme.folds]
    groups: dict[str, Any] = (
        {"leave_source_out": True,
         "sources": {video: fold.name for fold in scheme.folds for video in fold.test}} if scheme.kind == "sources"
        else {"folds": {fold.name: fold.test for fold in scheme.folds}}
    )  # fmt: skip
    return score_triplets(
        pl.concat(tables, how="vertical_relaxed"),
        dataset,
        task="detection",
        name=name,
        convention=convention,
        ties=ties,
        rare=rare,
        **groups,
    )
