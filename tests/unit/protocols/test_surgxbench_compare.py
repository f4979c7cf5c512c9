"""Two runs on the same frames: differences worked by hand, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.unit.protocols.surgxbench_runs import scores_of

from surgeval import compare
from surgeval.engine import Manifest, RunRecord
from surgeval.errors import BadInput
from surgeval.protocols.contract import by_key
from surgeval.protocols.surgxbench import SurgXScores, outcomes, profile_settings
from surgeval.protocols.surgxbench.numbers import MEASURES

CLASSES = ("hook", "bag")
# video, frame, right, AC; two frames in each of two videos, chance 0.2 everywhere
GOOD = (("A", "1", True, 0.8), ("A", "2", True, 0.6), ("B", "1", True, 0.7), ("B", "2", False, 0.1))
POOR = (("A", "1", True, 0.3), ("A", "2", False, 0.2), ("B", "1", True, 0.1), ("B", "2", False, 0.1))


def _model(name: str, seen: tuple[tuple[Any, ...], ...], tasks: tuple[str, ...] = ("instruments",)) -> SurgXScores:
    rows = [
        {"id": f"{video}/{frame}", "cluster": video, "frame": frame, "task": "instruments", "class": "hook",
         "score": 0.3, "best": True, "predicted": True, "present": right, "shown": 1, "ac": ac, "aa": ac,
         "chance": 0.2, "area": 0.2, "grounded": ac > 0.5, "flags": "", "excluded": ""}
        for video, frame, right, ac in seen
    ]  # fmt: skip
    config = {**profile_settings("surgxbench", tasks=tasks).record(), "classes": list(CLASSES), "motion": {}}
    data = {"name": "films", "format": "phantom", "content": "ab"}
    manifest = Manifest("surgxbench", config=config, dataset=data,
                        model={"name": name, "family": "clip", "identity": f"hash of {name.split()[-1]}"})  # fmt: skip
    record = RunRecord(**manifest.stored(), status="done", units=1, finished=1, failed=0, cases=len(rows))
    return scores_of(name, record, pl.DataFrame(rows))


def test_the_same_weights_under_two_names_are_told() -> None:
    good, copy = _model("good", GOOD), _model("copy of good", GOOD)
    assert "both runs are of the same model (weights hash of good), whatever it is called" in (
        compare(good, copy).notes
    )
    model = {"name": "good", "family": "clip", "identity": "ff"}
    other = replace(copy, record=copy.record.model_copy(update={"model": model}))
    assert not any("same model" in note for note in compare(good, other).notes)


def _with(one: SurgXScores, **config: Any) -> SurgXScores:
    return replace(one, record=one.record.model_copy(update={"config": {**one.record.config, **config}}))


def test_every_difference_is_that_of_the_two_ratios() -> None:
    found = compare(_model("good", GOOD), _model("poor", POOR))
    said = {one.key: one.difference for one in found.numbers}
    assert said["accuracy"].a == 3 / 4 and said["accuracy"].b == 2 / 4
    assert said["accuracy"].estimate == pytest.approx(1 / 4)
    # when right: (0.8 + 0.6 + 0.7) / 3 against (0.3 + 0.1) / 2; chance is 0.2 in all frames
    assert said["tp_ac"].estimate == pytest.approx(0.7 - 0.2)
    assert said["tp_lift"].estimate == pytest.approx(3.5 - 1.0)
    assert said["grounded_when_right"].estimate == 1.0
    assert said["fp_ac"].estimate == pytest.approx(0.1 - 0.15)
    # Two videos tell next to nothing: t with one degree of freedom reaches past what a share can be.
    assert (said["accuracy"].interval.low, said["accuracy"].interval.high) == (-1.0, 1.0)
    assert said["accuracy"].interval.clusters == 2 and np.isnan(said["accuracy"].p)
    assert by_key(found.numbers, "fp_ac").higher_is_better is None
    assert "tp_chance" not in said  # chance is no property of a model
    # good is wrong in video B only: what one video makes up has no interval
    assert np.isnan(said["fp_ac"].interval.low) and said["fp_ac"].interval.clusters == 1
    assert max(len(number.label) for number in MEASURES) <= 36  # figures shorten longer names


def test_a_run_against_itself_differs_by_exactly_nothing() -> None:
    one = _model("good", GOOD)
    spread = 0
    for compared in compare(one, one).numbers:
        difference = compared.difference
        assert difference.estimate == 0, compared.key
        if difference.interval.clusters > 1:
            assert (difference.interval.low, difference.interval.high) == (0, 0), compared.key
            spread += 1
    assert spread > 3


def test_what_makes_numbers_incomparable_is_named() -> None:
    one, other = _model("good", GOOD), _model("poor", POOR)
    elsewhere = {**other.record.dataset, "content": "cd"}
    refused = {
        "keep_top": _with(other, keep_top=0.3),
        "data": replace(other, record=other.record.model_copy(update={"dataset": elsewhere})),
        "instruments": replace(other, classes=("hook", "clipper")),
        "only good has 1 of the frames": _model("poor", POOR[:3]),
        "share no number": replace(other, cases=other.cases.head(0), numbers={}),
    }
    for told, second in refused.items():
        with pytest.raises(BadInput, match=told):
            compare(one, second)
    more = (*POOR, ("C", "1", True, 0.3))
    with pytest.raises(BadInput, match="such as C/1"):
        compare(one, _model("poor", more))


def test_models_may_differ_in_their_heatmap_and_runs_in_their_tasks() -> None:
    one, other = _model("good", GOOD, ("instruments", "triplets")), _model("poor", POOR)
    found = compare(one, _with(other, method={"name": "gradcam"}, dtype="bfloat16", curves=0, flow="raft"))
    assert found.numbers and any("gradcam" in note for note in found.notes)
    assert not any("gradcam" in note or "heatmap" in note for note in compare(one, other).notes)


def test_outcomes_hold_a_row_for_every_frame_that_shows_an_instrument() -> None:
    one = _model("good", GOOD)
    table = outcomes(one)
    assert table.columns == ["qID", "video", "group", "ood", "correctness"]
    assert table["qID"].to_list() == ["A/1", "A/2", "B/1", "B/2"]
    assert table["correctness"].to_list() == [True, True, True, False]
    empty = one.cases.with_columns(pl.lit(0, pl.Int64).alias("shown"))
    with pytest.raises(BadInput, match="no frame with an instrument"):
        outcomes(replace(one, cases=empty))


def test_headlines_tell_chance_and_direction() -> None:
    one = _model("good", GOOD)
    said = {headline.key: headline for headline in one.headlines()}
    assert said["accuracy"].chance == 1 / 2  # one of two instruments is there
    assert said["tp_ac"].chance == pytest.approx(0.2)
    assert said["tp_lift"].chance == 1 and said["tp_lift"].interval.estimate == pytest.approx(3.5)
    assert said["area"].higher_is_better is None
    assert next(iter(said)) == "accuracy"
    assert "; top-1 right 75.0 %" in repr(one)
    assert "<table" in one._repr_html_() and one.to_frame()["number"][0] == "accuracy"
    assert next(iter(one.figures)) == "four_way" and one.plot().title == "Right or wrong, grounded or not"
    assert {"headline", "classes", "four_way"} <= set(one.tables)
