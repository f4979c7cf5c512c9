"""Protocol `triplets`: score surgical action triplets ⟨instrument, verb, target⟩ that a model detected or recognised.

`score_triplets` reads a dataset and a prediction file and gives every table of the ProstaTD paper (4, 5, 8, 12–15)
with a video-bootstrap interval on every headline number; `compare_triplets` pairs two of them. Boxes are scored under
a named convention (`coco`, `ivtd`, `ivtd-legacy`), because they differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surgeval.datasets import Dataset
from surgeval.datasets.predictions import GroundTruth, ground_truth
from surgeval.errors import BadInput
from surgeval.metrics import CONVENTIONS, Convention, evaluate, rare_classes
from surgeval.protocols.triplets._assemble import ScoringPlan, assemble_detection, assemble_recognition
from surgeval.protocols.triplets._groups import Folds, Group, VideoGroups, choose_videos
from surgeval.protocols.triplets._inputs import (
    Predictions,
    Source,
    Task,
    array_fingerprint,
    class_totals,
    find_task,
    open_data,
    truth_fingerprint,
)
from surgeval.protocols.triplets._numbers import Progress
from surgeval.protocols.triplets._recognition import FrameScores
from surgeval.protocols.triplets.compare import TripletComparison, compare_triplets
from surgeval.protocols.triplets.result import TripletScores, load_scores
from surgeval.vocab import LabelSpace

__all__ = ["RESAMPLES", "TripletComparison", "TripletScores", "compare_triplets", "score_recognition", "score_triplets"]

RESAMPLES = 1000
RECOGNITION = ("i", "v", "t", "iv", "it", "vt", "ivt")
DETECTION = ("i", "v", "t", "ivt")


def score_triplets(
    data: Dataset | str | Path,
    predictions: Source | None,
    *,
    task: Task | None = None,
    convention: Convention = "coco",
    components: Sequence[str] | None = None,
    split: str | None = None,
    folds: Folds | None = None,
    leave_source_out: bool = False,
    rare: int = 300,
    rare_from: Literal["dataset", "train"] = "dataset",
    threshold_from: str | Path | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    name: str | None = None,
    format: str | None = None,
    labels: str | Path | None = None,
    pred_format: str | None = None,
    classes: Literal["triplet", "instrument"] | None = None,
    progress: Progress | None = None,
) -> TripletScores:
    """Score predictions against a dataset; `predictions=None` scores the constant predictor, the floor of any model.

    `folds` is a published scheme (`prostatd`, `cholect50-cv`, …), a JSON file or a mapping of folds to test videos.
    `threshold_from` names where the score threshold of P/R/F1 comes from: a scored folder, or a split of the dataset
    that is not scored. `rare` classes have fewer instances in the whole dataset, or in the training videos.
    """
    if convention not in CONVENTIONS:
        raise BadInput(f"convention {convention!r}: expected one of {', '.join(CONVENTIONS)}")
    if predictions is None and task is None:
        task = "detection"
    source = Predictions(predictions, pred_format, classes)
    task = task or find_task(predictions)
    if task not in ("detection", "recognition"):
        raise BadInput(f"task {task!r}: expected detection or recognition")
    if task == "recognition" and (threshold_from is not None or convention != "coco"):
        said = "--threshold-from" if threshold_from is not None else f"--convention {convention}"
        raise BadInput(f"{said}: found recognition scores, expected detections: only boxes are matched and thresholded")
    dataset = open_data(data, format, labels)
    scheme = choose_videos(dataset.videos(), split=split, folds=folds, leave_source_out=leave_source_out)
    truth = ground_truth(dataset, scheme.videos)
    main = "ivt" if truth.space.triplets and (components is None or "ivt" in components) else "i"
    totals = class_totals(truth, main, task)
    settings = {
        "task": task, "data": truth_fingerprint(truth), "label_space": truth.space.name, "videos": list(scheme.videos),
        "scheme": scheme.to_json(), "rare": rare, "rare_from": rare_from, "resamples": resamples, "seed": seed,
    }  # fmt: skip
    title = name or ("constant" if predictions is None else _title(predictions))

    def plan(notes: tuple[str, ...], more: Mapping[str, Any]) -> ScoringPlan:
        return ScoringPlan(
            title, scheme, {**settings, **more}, _rare(truth, scheme, main, task, rare, rare_from, totals), totals,
            resamples, seed, notes, progress,
        )  # fmt: skip

    if task == "recognition":
        answers = source.recognition(truth)
        chosen = tuple(components) if components else (RECOGNITION if truth.space.triplets else ("i",))
        frames = FrameScores(answers.targets, answers.scores, answers.video, answers.answered, answers.space, "i")
        return assemble_recognition(plan(answers.notes(), {"components": list(chosen)}), frames, chosen)
    joined = source.detections(truth)
    chosen = tuple(components) if components else tuple(c for c in DETECTION if c in joined.components())
    thresholds, origin = _thresholds(threshold_from, source, dataset, scheme, truth, chosen, convention)
    more = {"components": list(chosen), "convention": convention, "iou": 0.5, "threshold": origin.split(":")[0]}
    notes = (*joined.notes(chosen), *((f"P, R and F1 are read at {origin}",) if thresholds else ()))
    if truth.size_assumed:
        notes += ("no image told the frame size, which was assumed: predictions must use the same",)
    return assemble_detection(
        plan(notes, more), joined.data(chosen), joined.n_classes(chosen), truth.space, convention, thresholds
    )


def score_recognition(
    targets: npt.NDArray[Any],
    scores: npt.NDArray[Any],
    videos: Sequence[str],
    *,
    space: LabelSpace | None = None,
    components: Sequence[str] | None = None,
    rare: int = 300,
    resamples: int = RESAMPLES,
    seed: int = 0,
    name: str = "scores",
    progress: Progress | None = None,
) -> TripletScores:
    """The same for labels and scores already in arrays (frames × classes), with the video of each frame.

    >>> import numpy as np
    >>> labels = np.eye(2)[[0, 1, 0, 1]]
    >>> print(score_recognition(labels, labels * 0.8, ["v1", "v1", "v2", "v2"]).number())
    1.000 [1.000, 1.000] (few clusters: 2)
    """
    names = tuple(dict.fromkeys(videos))
    place = {video: number for number, video in enumerate(names)}
    labels = np.asarray(targets).astype(bool)
    if labels.ndim != 2 or labels.shape != np.shape(scores) or len(labels) != len(videos) or not len(labels):
        raise BadInput(f"found targets {labels.shape}, scores {np.shape(scores)} and {len(videos)} video names, "
                       "expected two frames × classes arrays and a video for each frame")  # fmt: skip
    chosen = tuple(components) if components else (RECOGNITION if space is not None else ("ivt",))
    video = np.array([place[one] for one in videos], dtype=np.int64)
    frames = FrameScores(labels, np.asarray(scores), video, np.ones(len(labels), bool), space)
    totals = labels.sum(axis=0)
    scheme = VideoGroups("all", "all", (Group("all", names),))
    settings = {
        "task": "recognition", "data": array_fingerprint(labels, video), "videos": list(names),
        "label_space": space.name if space else "", "scheme": scheme.to_json(), "rare": rare, "rare_from": "dataset",
        "resamples": resamples, "seed": seed, "components": list(chosen),
    }  # fmt: skip
    plan = ScoringPlan(name, scheme, settings, [rare_classes(totals, rare)], totals, resamples, seed, (), progress)
    return assemble_recognition(plan, frames, chosen)


def _title(predictions: Source) -> str:
    return Path(predictions).stem if isinstance(predictions, str | Path) else "predictions"


def _rare(
    truth: GroundTruth, scheme: VideoGroups, main: str, task: Task, fewer_than: int, where: str,
    totals: npt.NDArray[np.int64],
) -> list[npt.NDArray[np.int64]]:  # fmt: skip
    if where == "dataset":
        return [rare_classes(totals, fewer_than)] * len(scheme.groups)
    if where != "train":
        raise BadInput(f"rare_from {where!r}: expected dataset or train")
    known = {*truth.videos, *truth.others}
    for group in scheme.groups:
        if not known & set(group.train):
            raise BadInput(f"--rare-from train: {group.name}: found no training video in the dataset, expected some")
    return [rare_classes(class_totals(truth, main, task, group.train), fewer_than) for group in scheme.groups]


def _thresholds(
    origin: str | Path | None, source: Predictions, dataset: Dataset, scheme: VideoGroups, truth: GroundTruth,
    components: Sequence[str], convention: Convention,
) -> tuple[dict[str, float], str]:  # fmt: skip
    """Thresholds by component (none: chosen on the scored data) and a few words about where they come from."""
    if origin is None:
        return {}, "the scored data"
    if Path(origin).is_dir():
        return _stored_thresholds(origin, truth, components, convention)
    videos = tuple(video.name for video in dataset.videos() if video.split == str(origin))
    if not videos:
        raise BadInput(f"--threshold-from {origin}: found neither a scored folder nor a split, expected one of them")
    if set(videos) & set(scheme.videos):
        both = next(video for video in videos if video in scheme.videos)
        raise BadInput(f"--threshold-from {origin}: found video {both} among the scored ones, expected others: "
                       "choose the scored videos with --split")  # fmt: skip
    if scheme.kind != "all":
        raise BadInput(f"--threshold-from {origin}: found several {scheme.kind}, expected a scored folder: "
                       "each has a model of its own")  # fmt: skip
    joined = source.detections(ground_truth(dataset, videos))
    found = evaluate(joined.data(components), joined.n_classes(components), convention=convention)
    values = {component: found[component].overall.threshold for component in components}
    return _defined(values, origin), f"thresholds chosen on other videos: split {origin}"


def _stored_thresholds(
    folder: str | Path, truth: GroundTruth, components: Sequence[str], convention: Convention
) -> tuple[dict[str, float], str]:
    stored = load_scores(folder)
    wanted = {"task": "detection", "convention": convention, "label_space": truth.space.name}
    for key, value in wanted.items():
        if stored.settings.get(key) != value:
            raise BadInput(f"--threshold-from {folder}: {key}: found {stored.settings.get(key)}, expected {value}")
    both = set(truth.videos) & set(stored.settings.get("videos") or ())
    if both:
        raise BadInput(
            f"--threshold-from {folder}: found video {min(both)} in both, expected thresholds of other videos"
        )
    values = {component: stored.thresholds.get(component, float("nan")) for component in components}
    return _defined(values, folder), f"thresholds chosen on other videos: {stored.name}"


def _defined(values: dict[str, float], origin: object) -> dict[str, float]:
    for component, value in values.items():
        if value != value:
            raise BadInput(f"--threshold-from {origin}: found no threshold for component {component}, expected one")
    return values
