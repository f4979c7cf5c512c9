"""Two runs on the same frames. Only the model may differ, and with it the kind of heatmap and the precision of numbers.

Whatever else changes what a number means is named and refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from surgeval.errors import BadInput
from surgeval.protocols.comparison import Compared, Pair, refuse_different, shared_settings
from surgeval.protocols.surgxbench.area import area_is_set
from surgeval.protocols.surgxbench.numbers import MEASURES
from surgeval.protocols.surgxbench.result import SurgXScores
from surgeval.protocols.surgxbench.tables import attended_areas

__all__ = ["pair_surgxbench"]

_MODELS_OWN = ("method", "dtype", "questions", "max_tokens", "causal")
_UNUSED = ("tasks", "motion", "curves", "sanity", "split", "videos")  # frames and tasks are compared themselves
_MOTION = ("flow", "flow_source", "flow_gap", "fit", "motion_top", "motion_floor")  # only RAS depends on these

_OWN_ANSWERS = (
    "numbers over right or wrong answers are over each model's own, so the frames of the two differ; "
    "beside each number stands in how many videos both have such answers"
)


def pair_surgxbench(first: SurgXScores, second: SurgXScores) -> Pair:
    """Every headline number that both runs have, on the same frames; the example of `run_surgxbench` compares two."""
    refuse_different(first, second, *(_settings_of(run, second if run is first else first) for run in (first, second)))
    tasks = [set(run.cases["task"].unique()) for run in (first, second)]
    measures = [
        measure for measure in MEASURES
        if measure.headline and measure.key in first.numbers and measure.key in second.numbers
    ]  # fmt: skip
    for task in dict.fromkeys(measure.task for measure in measures):
        if task in tasks[0] & tasks[1]:
            _require_same_frames(task, first, second)
    instruments = [run.cases.filter(pl.col("task") == "instruments") for run in (first, second)]
    if all(area_is_set(attended_areas(cases)) for cases in instruments):
        measures = [measure for measure in measures if measure.key != "area"]
    return Pair(
        measures=measures, cases=(first.cases, second.cases), settings=shared_settings(first, second),
        notes=lambda numbers: _notes(first, second, numbers),
    )  # fmt: skip


def _settings_of(run: SurgXScores, other: SurgXScores) -> dict[str, object]:
    """What must be the same: instruments, data, and all settings but those of the model."""
    triplets = all("triplets" in scores.settings["tasks"] for scores in (run, other))
    without = {*_MODELS_OWN, *_UNUSED, *(() if triplets else _MOTION)}
    settings = {key: value for key, value in run.settings.items() if key not in without}
    motion = {"ways to find motion": run.settings.get("motion")} if triplets else {}
    return {"instruments": run.classes, **settings, **motion, "data": run.record.dataset}


def _require_same_frames(task: str, first: SurgXScores, second: SurgXScores) -> None:
    frames = [run.cases.filter(pl.col("task") == task).select("cluster", "frame").unique() for run in (first, second)]
    alone = [x.join(y, on=["cluster", "frame"], how="anti").sort("cluster", "frame")
             for x, y in (frames, frames[::-1])]  # fmt: skip
    for own, other, rows in ((first, second, alone[0]), (second, first, alone[1])):
        if rows.height:
            video, frame = rows.row(0)
            raise BadInput(f"{own.name} and {other.name}: only {own.name} has {rows.height} of the frames of task "
                           f"{task!r}, such as {video}/{frame}. Compare runs on the same frames.")  # fmt: skip


def _notes(first: SurgXScores, second: SurgXScores, numbers: Sequence[Compared]) -> tuple[str, ...]:
    notes = [_OWN_ANSWERS] if len({number.difference.interval.clusters for number in numbers}) > 1 else []
    methods = [run.settings["method"] for run in (first, second)]
    if methods[0] != methods[1]:
        names = " and ".join(str(method["name"]) for method in methods)
        notes.append(f"the maps are of different kinds ({names}): differences in where the models look include theirs")
    weights = [run.record.model["identity"] for run in (first, second)]
    if weights[0] == weights[1]:
        notes.append(f"both runs are of the same model (weights {str(weights[0])[:12]}), whatever it is called")
    return tuple(notes)
