"""Two runs on the same frames: paired differences of the headline numbers, exchanged video by video.

Only the model may differ, and with it the kind of heatmap and the precision of its numbers. Whatever else changes what
a number means is named and refused.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from surgeval.errors import BadInput
from surgeval.protocols.contract import Compared, Comparison, few_video_notes
from surgeval.protocols.surgxbench.area import area_is_set
from surgeval.protocols.surgxbench.numbers import MEASURES
from surgeval.protocols.surgxbench.result import SurgXScores, load_surgxbench
from surgeval.protocols.surgxbench.tables import attended_areas
from surgeval.stats import measure_differences, task_cases

__all__ = ["RESAMPLES", "compare_surgxbench"]

RESAMPLES = 2000
_MODELS_OWN = ("method", "dtype", "questions", "max_tokens", "causal")
_UNUSED = ("tasks", "motion", "curves", "sanity", "split", "videos")  # frames and tasks are compared themselves
_MOTION = ("flow", "flow_source", "flow_gap", "fit", "motion_top", "motion_floor")  # only RAS depends on these

_OWN_ANSWERS = (
    "numbers over right or wrong answers are over each model's own, so the frames of the two differ; "
    "beside each number stands in how many videos both have such answers"
)


def compare_surgxbench(
    a: SurgXScores | str | Path, b: SurgXScores | str | Path, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Differences a − b of every headline number that both runs have; run folders or loaded runs.

    `resamples` is how many exchanges of videos are drawn at most; where there are no more, all of them are used.

    The example of `run_surgxbench` compares two.

    >>> compare_surgxbench("runs/clip", "runs/shortcut")
    Traceback (most recent call last):
    surgeval.errors.DataError: runs/clip: no such folder
    """
    first, second = (run if isinstance(run, SurgXScores) else load_surgxbench(run) for run in (a, b))
    _require_comparable(first, second)
    cases = [run.cases for run in (first, second)]
    parts, others = (task_cases(MEASURES, own) for own in cases)
    for task in (task for task in parts if task in others):
        _require_same_frames(task, first, second)
    named = [own.get("instruments", first.cases.clear()) for own in (parts, others)]
    fixed = ["area"] if all(area_is_set(attended_areas(own)) for own in named) else []
    shared = [
        measure for measure in MEASURES
        if measure.headline and measure.key in first.numbers and measure.key in second.numbers
        and measure.key not in fixed
    ]  # fmt: skip
    differences = measure_differences(shared, *cases, resamples=resamples, seed=seed)
    numbers = [Compared.of(measure, differences[measure.key]) for measure in shared]
    if not numbers:
        raise BadInput(
            f"{first.name} and {second.name}: found no number that both have, expected runs of the same task"
        )
    videos = {number.difference.interval.clusters for number in numbers}
    own = (_OWN_ANSWERS,) if len(videos) > 1 else ()
    return Comparison(
        protocol="surgxbench", a=first.name, b=second.name, numbers=tuple(numbers),
        measures=MEASURES, settings={"resamples": resamples, "seed": seed},
        notes=(*few_video_notes(max(videos)), *own, *_notes(first, second)),
    )  # fmt: skip


def _require_comparable(first: SurgXScores, second: SurgXScores) -> None:
    names = f"{first.name} and {second.name}"
    if first.classes != second.classes:
        raise BadInput(f"{names}: found different instruments, expected runs on the same label space")
    known = [dict(run.settings) for run in (first, second)]
    without = {*_MODELS_OWN, *_UNUSED}
    if not all("triplets" in settings["tasks"] for settings in known):
        without |= set(_MOTION)
    keys = sorted((known[0].keys() | known[1].keys()) - without)
    other = [f"{key} ({known[0].get(key)} and {known[1].get(key)})" for key in keys
             if known[0].get(key) != known[1].get(key)]  # fmt: skip
    if (
        "triplets" in known[0]["tasks"]
        and "triplets" in known[1]["tasks"]
        and (known[0].get("motion") != known[1].get("motion"))
    ):
        other.append("ways to find motion")
    if first.record.dataset != second.record.dataset:
        other.append("data")
    if other:
        raise BadInput(f"{names}: found different {', '.join(other)[:300]}, expected the same data and settings")


def _require_same_frames(task: str, first: SurgXScores, second: SurgXScores) -> None:
    frames = [run.cases.filter(pl.col("task") == task).select("cluster", "frame").unique() for run in (first, second)]
    alone = [x.join(y, on=["cluster", "frame"], how="anti").sort("cluster", "frame")
             for x, y in (frames, frames[::-1])]  # fmt: skip
    for own, other, rows in ((first, second, alone[0]), (second, first, alone[1])):
        if rows.height:
            video, frame = rows.row(0)
            raise BadInput(f"{own.name} and {other.name}: found {rows.height} frames that only {own.name} has "
                           f"({video}/{frame}), expected the same frames")  # fmt: skip


def _notes(first: SurgXScores, second: SurgXScores) -> tuple[str, ...]:
    notes = []
    methods = [run.settings["method"] for run in (first, second)]
    if methods[0] != methods[1]:
        names = " and ".join(str(method["name"]) for method in methods)
        notes.append(f"the maps are of different kinds ({names}): differences in where the models look include theirs")
    weights = [run.record.model["identity"] for run in (first, second)]
    if weights[0] == weights[1]:
        notes.append(f"both runs are of the same model (weights {str(weights[0])[:12]}), whatever it is called")
    return tuple(notes)
