"""Protocol `triplets`: score surgical action triplets ⟨instrument, verb, target⟩ that a model detected or recognised.

`score_triplets` reads a dataset and a prediction file and gives every table of the ProstaTD paper (4, 5, 8, 12–15)
with an interval over videos on every headline number. Boxes are scored under a named convention (`coco`, `ivtd`,
`ivtd-legacy`), because they differ. For data that is already in arrays see `from_arrays`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.console import progress_bar
from surgeval.console.commands import Help, common
from surgeval.console.panels import READING, RUNNING, SCORING
from surgeval.datasets import Dataset, OnProblem, Sources, name_sources, raise_errors
from surgeval.datasets.predictions import GroundTruth, ground_truth
from surgeval.errors import BadInput, SurgevalError
from surgeval.metrics import Convention, Ties, choose_convention, evaluate_detection, rare_classes
from surgeval.protocols.pictures import PICTURES
from surgeval.protocols.triplets.assemble import (
    ScoringPlan,
    assemble_detection,
    assemble_recognition,
    choose_ties,
    grid_notes,
)
from surgeval.protocols.triplets.evidence import kept_pictures
from surgeval.protocols.triplets.result import TripletScores, load_triplets
from surgeval.protocols.triplets.scoring.constant import SEVERAL_BOXES
from surgeval.protocols.triplets.scoring.groups import Folds, VideoGroups, choose_videos
from surgeval.protocols.triplets.scoring.inputs import (
    Predictions,
    Source,
    Task,
    class_totals,
    find_task,
    open_data,
    truth_fingerprint,
)
from surgeval.protocols.triplets.scoring.numbers import Progress
from surgeval.protocols.triplets.scoring.objects import box_objects, label_objects
from surgeval.protocols.triplets.scoring.recognition import FrameScores
from surgeval.protocols.triplets.tables import class_labels, frame_labels

__all__ = ["DETECTION", "RECOGNITION", "score_triplets"]

RECOGNITION = ("i", "v", "t", "iv", "it", "vt", "ivt")
DETECTION = ("i", "v", "t", "ivt")


def score_triplets(
    predictions: Annotated[
        Source | None,
        Help("Predictions: CSV, Parquet, COCO results, YOLO lines, CholecT50 JSON, rows.", name="--pred --predictions"),
    ],
    data: Annotated[Dataset | str | Path, Help("The dataset folder or file.")],
    out: Annotated[str | Path | None, Help("Folder for report.html, tables, figures, scores.")] = None,
    *,
    constant: Annotated[bool, Help("Score the constant baseline: the same prediction for every frame.")] = False,
    task: Annotated[Task | None, Help("Default: seen from the predictions.")] = None,
    convention: Annotated[
        Convention | None, Help("How boxes are matched and averaged. Default: as coco.", SCORING)
    ] = None,
    ties: Annotated[
        Ties | None,
        Help(
            "How equal scores are ranked. free: no number depends on the order of rows; reference: as the convention's "
            "reference does. Default: reference if --convention is given and scores differ, else free.",
            SCORING,
        ),
    ] = None,
    components: Annotated[
        Sequence[str] | str | None,
        Help("Some of i,v,t,iv,it,vt,ivt. Default: all the labels have.", SCORING, kind=str),
    ] = None,
    split: Annotated[str | None, Help("Score only the videos of this split.")] = None,
    folds: Annotated[
        Folds | None, Help("prostatd, cholect50-cv, … or a JSON file of folds and test videos.", kind=str)
    ] = None,
    leave_source_out: Annotated[bool, Help("Score each source (hospital) alone.", SCORING)] = False,
    sources: Annotated[Sources | None, common("sources", panel=SCORING)] = None,
    rare: Annotated[int, Help("Classes with fewer instances are rare.", SCORING, least=1)] = 300,
    rare_from: Annotated[Literal["dataset", "train"], Help("Where instances count.", SCORING)] = "dataset",
    threshold_from: Annotated[
        str | Path | None,
        Help("Take P/R/F1's threshold from a scored folder or an unscored split.", SCORING, kind=str),
    ] = None,
    name: Annotated[str | None, Help("What to call the method. Default: the folder's name, or the file's.")] = None,
    replace: Annotated[bool, Help("Write over scores of other predictions or settings in --out.", RUNNING)] = False,
    pictures: Annotated[
        int | None,
        Help(f"Frames the page keeps a picture of, the worst first. Default: {PICTURES} with --out.", least=0,
             most=20_000),
    ] = None,
    pred_format: Annotated[
        str | None, Help("table, coco, yolo, cholect50, rows or json. Default: detected.", READING)
    ] = None,
    classes: Annotated[
        Literal["triplet", "instrument"] | None,
        Help("How to interpret a bare class ID in the predictions.", READING),
    ] = None,
    format: str | None = None,
    labels: str | Path | None = None,
    progress: bool = False,
    on_problem: OnProblem = raise_errors,
) -> TripletScores:  # fmt: skip
    """Score detected or recognised triplets, with an interval over videos on every headline number.

    `predictions` is a file or a table; `constant` scores the constant baseline instead. With `out` the scores are saved
    there as a run; scores of other predictions or settings in that folder are kept unless `replace` is set.

    Boxes are matched as under convention `coco` unless another is named. `ties` says how equal scores are ranked: with
    `free` no number depends on the order of videos, frames and rows, with `reference` they keep the order of the
    convention's reference. The default is `free` if no convention is named or all predictions have the same score.

    `folds` is a published scheme (`prostatd`, `cholect50-cv`, …), a JSON file or a mapping of folds to test videos.
    `sources` says which videos are of which source for `leave_source_out`, where the dataset does not
    (`name_sources`). `threshold_from` names where the score threshold of P/R/F1 comes from: a scored folder, or a
    split of the dataset that is not scored. `rare` classes have fewer instances in the whole dataset, or in the
    training videos. `pictures` of the worst frames are kept for the page (by default only with `out`). `on_problem`
    is called with each error and warning about the predictions; warnings are also among the notes.

    >>> import polars as pl
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> seen = Instance(Triplet(*space.triplets[17]), Box(100, 120, 60, 80))
    >>> frames = [Frame(video, "000016", 16, None, None, 854, 480, (seen,)) for video in ("VID68", "VID70")]
    >>> found = pl.DataFrame({"video": ["VID68"], "frame": ["000016"], "triplet": [17], "score": [0.9],
    ...                       "x": [101.0], "y": [120.0], "w": [60.0], "h": [80.0]})
    >>> print(score_triplets(found, MemoryDataset(space, frames)).number("ivt", "mAP50"))
    0.505 [0.000, 1.000] (few clusters: 2)
    """
    if (predictions is None) != constant:
        raise BadInput("predictions or constant: give one of the two, and only one.")
    folder = None if out is None else Path(out)
    name = name or (folder.resolve().name if folder is not None else None)
    kept = (0 if folder is None else PICTURES) if pictures is None else pictures
    parts = tuple(components.split(",")) if isinstance(components, str) else components
    with progress_bar("videos left out", show=progress) as bar:
        bar.phase("reading and matching", None)
        scores = _score(
            predictions, data, task=task, convention=convention, ties=ties, components=parts, split=split, folds=folds,
            leave_source_out=leave_source_out, sources=sources, rare=rare, rare_from=rare_from,
            threshold_from=threshold_from, name=name, format=format, labels=labels, pred_format=pred_format,
            classes=classes, pictures=kept, progress=bar.advance, on_problem=on_problem,
        )  # fmt: skip
    if folder is not None:
        if not replace and (earlier := _other_scores(scores, folder)):
            raise BadInput(f"{folder} holds {earlier}. Name a new folder, or set replace to write over them.")
        scores.save(folder)
    return scores


def _other_scores(scores: TripletScores, out: Path) -> str | None:
    """What finished scores of other predictions or settings are there; the same ones may be written again."""
    if not (out / "run.json").is_file():
        return None
    try:
        earlier = load_triplets(out)
    except SurgevalError:  # damaged: not usable as a result
        return None
    if earlier.name != scores.name:
        return f"the scores of {earlier.name}"
    both = [run.to_json() for run in (earlier, scores)]  # NaN, which equals nothing, is None there
    same = all(both[0][part] == both[1][part] for part in ("numbers", "settings"))
    return None if same else "scores of other predictions or settings"


def _score(
    predictions: Source | None, data: Dataset | str | Path, *, task: Task | None, convention: Convention | None,
    ties: Ties | None, components: Sequence[str] | None, split: str | None, folds: Folds | None, leave_source_out: bool,
    sources: Sources | None, rare: int, rare_from: Literal["dataset", "train"], threshold_from: str | Path | None,
    name: str | None, format: str | None, labels: str | Path | None, pred_format: str | None,
    classes: Literal["triplet", "instrument"] | None, pictures: int, progress: Progress, on_problem: OnProblem,
) -> TripletScores:  # fmt: skip
    choose_convention(convention, ties)
    if predictions is None and task is None:
        task = "detection"
    source = Predictions(predictions, pred_format, classes, on_problem)
    task = task or find_task(predictions)
    if task not in ("detection", "recognition"):
        raise BadInput(f"task {task!r}: expected detection or recognition")
    options = {
        "threshold_from": threshold_from is not None, f"convention {convention}": convention not in (None, "coco"),
        f"ties {ties}": ties == "reference",
    }  # fmt: skip
    if task == "recognition" and any(options.values()):
        option = next(name for name, given in options.items() if given)
        raise BadInput(
            f"{option}: found recognition scores, expected detections: only boxes are matched and thresholded"
        )
    dataset = open_data(data, format, labels)
    if sources is not None and not leave_source_out:
        raise BadInput("sources: used only with leave_source_out, which scores each source alone.")
    videos = name_sources(dataset.videos(), sources)
    scheme = choose_videos(videos, split=split, folds=folds, leave_source_out=leave_source_out)
    truth = ground_truth(dataset, scheme.videos)
    settings = {
        "task": task, "data": truth_fingerprint(truth), "label_space": truth.space.name, "videos": list(scheme.videos),
        "scheme": scheme.to_json(), "rare": rare, "rare_from": rare_from,
    }  # fmt: skip
    title = name or ("constant" if predictions is None else _title(predictions))

    def plan(notes: tuple[str, ...], main: str, more: Mapping[str, Any]) -> ScoringPlan:
        totals = class_totals(truth, main, task)
        return ScoringPlan(
            title, scheme, {**settings, **more}, _rare(truth, scheme, main, task, rare, rare_from, totals), totals,
            notes, progress,
        )  # fmt: skip

    if task == "recognition":
        answers = source.recognition(truth)
        scored = tuple(components) if components else (RECOGNITION if truth.space.triplets else ("i",))
        frames = FrameScores(
            answers.targets, answers.scores, answers.video, answers.answered, answers.space, "i",
            names=truth.space.instruments,
        )  # fmt: skip
        scores = assemble_recognition(
            plan((*source.warnings, *answers.notes()), frames.main, {"components": list(scored)}), frames, scored
        )
        names = frame_labels(frames, scores.main, frames.of(scores.main)[0].shape[1])
        return _with_evidence(scores, label_objects(_scored(truth), frames, scores.main, names), dataset, pictures)
    detections = source.detections(truth)
    scored = tuple(components) if components else tuple(c for c in DETECTION if c in detections.components())
    boxes, sizes = detections.data(scored), detections.n_classes(scored)
    matched, equal, alike = choose_ties(convention, ties, boxes.predictions.score)
    thresholds, origin, off_grid = _thresholds(threshold_from, source, dataset, scheme, truth, scored, matched, equal)
    more = {
        "components": list(scored), "convention": matched, "ties": equal, "iou": 0.5,
        "threshold": origin.split(":")[0],
    }  # fmt: skip
    notes = (
        *source.warnings,
        *detections.notes(scored),
        *alike,
        *((f"P, R and F1 are read at {origin}",) if thresholds else ()),
        *off_grid,
    )
    if predictions is None and "ivt" in scored and len(scored) > 1:
        notes += (SEVERAL_BOXES,)
    if truth.assumed_size:
        notes += ("no image told the frame size, which was assumed: predictions must use the same",)
    main = "ivt" if "ivt" in scored else scored[0]
    scores = assemble_detection(plan(notes, main, more), boxes, sizes, truth.space, matched, equal, thresholds)
    names = class_labels(truth.space, main, sizes[main])
    objects = box_objects(_scored(truth), boxes, main, names, _cuts(scores, scheme, main))
    return _with_evidence(scores, objects, dataset, pictures)


def _scored(truth: GroundTruth) -> pl.DataFrame:
    return truth.frames.filter(pl.col("number") >= 0)


def _cuts(scores: TripletScores, scheme: VideoGroups, component: str) -> Floats:
    """The score threshold of each video: that of its group; NaN where everything counts."""
    groups = dict(scores.sheets["thresholds"].select("group", component).iter_rows())
    own = {video: groups.get(group.name) for group in scheme.groups for video in group.videos}
    return np.array([np.nan if own[video] is None else own[video] for video in scheme.videos], dtype=np.float64)


def _with_evidence(scores: TripletScores, objects: pl.DataFrame, dataset: Dataset, pictures: int) -> TripletScores:
    return dataclasses.replace(scores, objects=objects, pictures=kept_pictures(dataset, objects, pictures))


def _title(predictions: Source) -> str:
    return Path(predictions).stem if isinstance(predictions, str | Path) else "predictions"


def _rare(
    truth: GroundTruth, scheme: VideoGroups, main: str, task: Task, fewer_than: int, where: str,
    totals: Ints,
) -> list[Ints]:  # fmt: skip
    if where == "dataset":
        return [rare_classes(totals, fewer_than)] * len(scheme.groups)
    if where != "train":
        raise BadInput(f"rare_from {where!r}: expected dataset or train")
    known = {*truth.videos, *truth.others}
    for group in scheme.groups:
        if not known & set(group.train):
            raise BadInput(f"rare_from train: {group.name}: found no training video in the dataset, expected some")
    return [rare_classes(class_totals(truth, main, task, group.train), fewer_than) for group in scheme.groups]


def _thresholds(
    origin: str | Path | None, source: Predictions, dataset: Dataset, scheme: VideoGroups, truth: GroundTruth,
    components: Sequence[str], convention: Convention, ties: Ties,
) -> tuple[dict[str, float], str, tuple[str, ...]]:  # fmt: skip
    """Thresholds by component (none: chosen on the scored data), where they come from in words, and notes."""
    if origin is None:
        return {}, "the scored data", ()
    if Path(origin).is_dir():
        return (*_stored_thresholds(origin, truth, components, convention), ())
    videos = tuple(video.name for video in dataset.videos() if video.split == str(origin))
    if not videos:
        raise BadInput(f"threshold_from {origin}: found neither a scored folder nor a split, expected one of them")
    if set(videos) & set(scheme.videos):
        both = next(video for video in videos if video in scheme.videos)
        raise BadInput(f"threshold_from {origin}: found video {both} among the scored ones, expected others: "
                       "choose the scored videos by split")  # fmt: skip
    if scheme.kind != "all":
        raise BadInput(f"threshold_from {origin}: found several {scheme.kind}, expected a scored folder: "
                       "each has a model of its own")  # fmt: skip
    detections = source.detections(ground_truth(dataset, videos))
    boxes = detections.data(components)
    evaluated = evaluate_detection(boxes, detections.n_classes(components), convention=convention, ties=ties)
    values = {component: evaluated[component].overall.threshold for component in components}
    notes = grid_notes(boxes.predictions.score, convention)
    return _defined(values, origin), f"thresholds chosen on other videos: split {origin}", notes


def _stored_thresholds(
    folder: str | Path, truth: GroundTruth, components: Sequence[str], convention: Convention
) -> tuple[dict[str, float], str]:
    stored = load_triplets(folder)
    wanted = {"task": "detection", "convention": convention, "label_space": truth.space.name}
    for key, value in wanted.items():
        if stored.settings.get(key) != value:
            raise BadInput(f"threshold_from {folder}: {key}: found {stored.settings.get(key)}, expected {value}")
    both = set(truth.videos) & set(stored.settings.get("videos") or ())
    if both:
        raise BadInput(f"threshold_from {folder}: found video {min(both)} in both, expected thresholds of other videos")
    values = {component: stored.thresholds.get(component, float("nan")) for component in components}
    return _defined(values, folder), f"thresholds chosen on other videos: {stored.name}"


def _defined(values: dict[str, float], origin: object) -> dict[str, float]:
    for component, value in values.items():
        if value != value:
            raise BadInput(f"threshold_from {origin}: found no threshold for component {component}, expected one")
    return values
