"""The tables of both papers, each number worked by hand from a few cases; then small runs and their identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from tests.unit.protocols.surgxbench_runs import complete

from surgeval.protocols.surgxbench import tables
from surgeval.protocols.surgxbench.numbers import headline_numbers

pytestmark = pytest.mark.usefixtures("one_thread")


def _cases(*rows: Mapping[str, Any], **same: Any) -> pl.DataFrame:
    """Cases as a run stores them: every column of the protocol, null where a row does not say."""
    plain = {"excluded": "", "flags": "", "cluster": "a", **same}
    return complete(
        pl.DataFrame([{"id": f"{n}", **plain, **row} for n, row in enumerate(rows)], infer_schema_length=None)
    )


def _row(table: pl.DataFrame, key: str) -> dict[str, Any]:
    (found,) = table.filter(pl.nth(0) == key).to_dicts()
    return found


def _numbers(row: Mapping[str, Any], **wanted: Any) -> None:
    for name, value in wanted.items():
        assert row[name] == (value if value is None else pytest.approx(value)), name


# instruments

TP, FP, FN = ({"predicted": p, "present": q} for p, q in ((True, True), (True, False), (False, True)))
SAID = _cases(
    {**TP, "class": "hook", "ac": 0.8, "aa": 0.6, "chance": 0.2, "area": 0.2},
    {**FP, "class": "hook", "ac": 0.1, "aa": 0.0, "chance": 0.3, "area": 0.1},
    {**FN, "class": "hook", "excluded": "no_map"},
    {**TP, "class": "hook", "ac": 0.5, "aa": 0.5, "chance": 0.5, "area": 1.0, "excluded": "constant"},
    {**TP, "class": "grasper", "ac": 0.4, "aa": 0.3, "chance": 0.1, "area": 0.2},
    {**TP, "class": "hook", "ac": 0.6, "aa": 0.2, "chance": 0.3, "area": 0.15, "cluster": "b"},
    {**FN, "class": "hook", "excluded": "no_map", "cluster": "b"},
    {**FP, "class": "grasper", "ac": 0.9, "aa": 0.0, "chance": 0.5, "area": 0.1, "cluster": "b"},
    {**FP, "class": "grasper", "ac": 0.0, "aa": 0.0, "chance": 0.0, "area": 0.2, "excluded": "no_gt", "cluster": "b"},
    {**FP, "class": "scissors", "ac": 0.2, "aa": 0.0, "chance": 0.4, "area": 0.2, "cluster": "b"},
    task="instruments",
)


def test_the_classes_table_is_worked_by_hand() -> None:
    """Of the hook 3 right, 1 false alarm, 2 missed; its flat map counts as an answer, not as a place looked at."""
    table = tables.classes_table(SAID, ("grasper", "hook", "scissors", "clipper"))
    hook = _row(table, "hook")
    _numbers(hook, frames=5, predicted=4, excluded=1, precision=3 / 4, recall=3 / 5, f1=6 / 9)
    _numbers(hook, tp_ac=(0.8 + 0.6) / 2, tp_aa=(0.6 + 0.2) / 2, tp_chance=0.25, tp_lift=1.4 / 0.5)
    _numbers(hook, fp_ac=0.1, fp_chance=0.3, area=(0.2 + 0.1 + 0.15) / 3)
    grasper = _row(table, "grasper")
    _numbers(grasper, frames=1, predicted=3, excluded=1, precision=1 / 3, recall=1, f1=2 / 4, area=0.15)
    _numbers(grasper, tp_ac=0.4, tp_aa=0.3, tp_lift=4, fp_ac=0.9)  # 0.9, not the 0 of the frame without a label


def test_a_share_that_the_settings_fix_has_no_interval() -> None:
    """Each map attends a fifth of its view, up to a pixel: no other video could show another share."""
    rows = [{**TP, "class": "hook", "area": 0.2 + n * 1e-5, "cluster": video} for n, video in enumerate("aabbcc")]
    fixed, moving = (headline_numbers(_cases(*some, task="instruments"))["area"] for some in (rows, [
        {**row, "area": 0.1 * (n + 1)} for n, row in enumerate(rows)]))  # fmt: skip
    assert fixed.cell("share") == "20.0 %" and fixed.note == "the settings fix it"
    assert moving.low < moving.estimate < moving.high


def test_no_table_gives_an_interval_to_an_area_that_the_settings_fix() -> None:
    fixed = [{**TP, "class": name, "ac": 0.5, "chance": 0.2, "ras": 0.5, "area": area, "cluster": video}
             for video in "abcdef" for name, area in (("hook", 0.2), ("grasper", 0.20004))]  # fmt: skip
    said = _cases(*fixed, task="instruments")
    maps = _cases(*({**row, "reference": "centre"} for row in fixed), task="reference")
    matched = _cases(*({**row, "level": "IVT"} for row in fixed), task="triplets")
    every = {
        "classes": tables.classes_table(said, ("hook", "grasper")), "references": tables.reference_table(maps),
        "matches": tables.match_table(matched).filter(pl.col("match") == "IVT"),
        "table1": tables.early_instruments(said),
    }  # fmt: skip
    for name, table in every.items():
        assert table["area"].to_list() == pytest.approx([0.2] * table.height, abs=1e-4), name
        assert table["area_low"].null_count() == table["area_high"].null_count() == table.height, name
    assert every["classes"]["tp_ac_low"].null_count() == 0  # where it looks is measured, and the same only by chance


def test_the_mean_is_over_instruments_that_occur_and_never_over_frames() -> None:
    table = tables.classes_table(SAID, ("grasper", "hook", "scissors", "clipper"))
    mean = _row(table, "mean")
    # The scissors are named and never labelled: precision and F1 of 0 count, a recall does not exist.
    _numbers(mean, precision=(3 / 4 + 1 / 3) / 3, recall=(3 / 5 + 1) / 2, f1=(2 / 3 + 1 / 2) / 3)
    _numbers(mean, tp_ac=(0.7 + 0.4) / 2, tp_aa=(0.4 + 0.3) / 2, tp_lift=(2.8 + 4) / 2, fp_ac=(0.1 + 0.9 + 0.2) / 3)
    _numbers(mean, frames=None, predicted=None, excluded=None)  # no sums beside means
    _numbers(_row(table, "scissors"), precision=0, recall=None, tp_ac=None, fp_ac=0.2)
    _numbers(_row(table, "clipper"), frames=0, predicted=0, precision=None, f1=None, area=None)


def test_false_alarms_of_a_class_that_is_never_labelled_lower_the_mean() -> None:
    """2 of 10 hooks are found, and 8 frames are said to show a bag, which none does."""
    hooks = [{**TP, "class": "hook", "ac": 0.5, "chance": 0.1}] * 2 + [{**FN, "class": "hook"}] * 8
    bags = [{**FP, "class": "bag", "ac": 0.75, "chance": 0.1}] * 8
    table = tables.classes_table(_cases(*hooks, *bags, task="instruments"), ("hook", "bag"))
    _numbers(_row(table, "mean"), precision=(1 + 0) / 2, recall=2 / 10, f1=(4 / 12 + 0) / 2, fp_ac=0.75)
    _numbers(_row(table, "pooled"), precision=2 / 10, recall=2 / 10, f1=2 / 10, fp_ac=0.75)


def test_pooled_numbers_sum_over_the_instruments_before_they_divide() -> None:
    """SurgXBench, D.1: 4 right, 4 false alarms and 2 misses over all instruments."""
    table = tables.classes_table(SAID, ("grasper", "hook", "scissors", "clipper"))
    _numbers(_row(table, "pooled"), precision=4 / 8, recall=4 / 6, f1=8 / 14, tp_ac=1.8 / 3, fp_ac=1.2 / 3)
    assert table["class"].to_list()[-2:] == ["mean", "pooled"]


def test_the_headline_pools_all_predictions() -> None:
    found = {name: one.estimate for name, one in headline_numbers(SAID).items()}
    _numbers(found, tp_ac=1.8 / 3, tp_aa=1.1 / 3, tp_chance=0.6 / 3, tp_lift=1.8 / 0.6)
    _numbers(found, fp_ac=1.2 / 3, fp_chance=1.2 / 3, area=(0.2 + 0.1 + 0.2 + 0.15 + 0.1 + 0.2) / 6)


def test_table_1_counts_the_agreement_of_a_false_alarm_as_zero() -> None:
    """Equation 3 gives 0 where the predicted class is not there; a frame that is excluded is in no mean."""
    table = tables.early_instruments(SAID)
    assert table["video"].to_list() == ["a", "b", "overall"]
    _numbers(_row(table, "a"), frames=4, excluded=1, ac=1.3 / 3, aa=(0.6 + 0 + 0.3) / 3, chance=0.2, area=0.5 / 3)
    _numbers(_row(table, "b"), frames=4, excluded=1, ac=1.7 / 3, aa=0.2 / 3, chance=1.2 / 3, area=0.45 / 3)
    _numbers(_row(table, "overall"), frames=8, excluded=2, ac=3 / 6, aa=1.1 / 6, chance=1.8 / 6, area=0.95 / 6)


# what was hidden


def _hidden(**kept_and_change: tuple[bool, float]) -> dict[str, Any]:
    kept = {f"kept_{name}": value[0] for name, value in kept_and_change.items()}
    return {**kept, **{f"change_{name}": value[1] for name, value in kept_and_change.items()}}


LOST, KEPT = False, True
HIDDEN = _cases(
    {**_hidden(attended=(LOST, -0.4), random=(KEPT, -0.1), least=(KEPT, 0.0)),
     **_hidden(boxes=(LOST, -0.5), boxes_moved=(LOST, -0.2))},
    {**_hidden(attended=(KEPT, -0.2), random=(KEPT, -0.3), least=(KEPT, 0.1)),
     **_hidden(boxes=(KEPT, -0.1), boxes_moved=(LOST, -0.4))},
    _hidden(attended=(LOST, -0.6), random=(LOST, -0.2), least=(KEPT, -0.4)),  # no box to hide
    _hidden(boxes=(LOST, -0.7), boxes_moved=(LOST, -0.3)),  # a flat map
    {},  # not tried
    task="instruments", present=True, predicted=True, best=False, shown=1, grounded=True,
)  # fmt: skip


def test_what_hiding_costs_is_worked_by_hand() -> None:
    """Each place is compared with its own shape elsewhere: the region with the region moved, boxes with boxes moved."""
    table = tables.occlusion_table(HIDDEN, "instruments")
    assert table["predictions"].to_list() == [3] * 5
    titles = tables.CONTROLS
    attended, boxes = (_row(table, titles[name]) for name in ("attended", "boxes"))
    _numbers(attended, lost=2 / 3, lost_more_than_elsewhere=(2 - 1) / 3, change_if_kept=-0.2, change=-1.2 / 3)
    _numbers(boxes, lost=2 / 3, lost_more_than_elsewhere=(2 - 3) / 3, change_if_kept=-0.1, change=-1.3 / 3)
    least = _row(table, titles["least"])
    _numbers(least, lost=0, lost_more_than_elsewhere=(0 - 1) / 3, change_if_kept=-0.1, change=-0.1)
    elsewhere, moved = (_row(table, titles[name]) for name in ("random", "boxes_moved"))
    _numbers(elsewhere, lost=1 / 3, lost_more_than_elsewhere=None, change_if_kept=-0.2, change=-0.2)
    _numbers(moved, lost=1, lost_more_than_elsewhere=None, change_if_kept=None, change=-0.3)


def test_the_headline_effects_are_differences_of_losses() -> None:
    found = {name: one.estimate for name, one in headline_numbers(HIDDEN).items()}
    _numbers(found, lost_attended=2 / 3, lost_attended_minus_random=1 / 3, lost_attended_minus_least=2 / 3)
    _numbers(found, lost_boxes_minus_moved=-1 / 3)


def test_a_frame_that_keeps_any_complete_match_is_not_lost() -> None:
    """SurgXBench, 5.4: 1 of 4 frames has no complete match left, though 3 of 4 lose the one whose region is hidden."""
    ends = [(LOST, LOST, -0.6), (LOST, KEPT, -0.4), (LOST, KEPT, -0.2), (KEPT, KEPT, -0.3)]
    cases = _cases(
        *({"frame": f"{n}", "score": 0.5, "level": "IVT", "kept_attended": kept, "matched_attended": matched,
           "change_attended": change, "kept_random": True, "matched_random": True}
          for n, (kept, matched, change) in enumerate(ends)),
        task="triplets",
    )  # fmt: skip
    row = _row(tables.occlusion_table(cases, "triplets"), tables.CONTROLS["attended"])
    _numbers(row, predictions=4, lost=1 / 4, best_match_lost=3 / 4, lost_more_than_elsewhere=1 / 4)
    _numbers(row, change_if_kept=(-0.4 - 0.2 - 0.3) / 3, change=-1.5 / 4)


def test_a_frame_with_two_complete_matches_counts_once_by_the_better_scored_one() -> None:
    lost, kept = (
        {**_hidden(attended=(value, -0.1), random=(True, 0.0)), "matched_attended": value, "matched_random": True}
        for value in (False, True)
    )
    cases = _cases(
        {**lost, "frame": "1", "score": 0.3, "level": "IVT"},
        {**kept, "frame": "1", "score": 0.5, "level": "IVT"},
        {**lost, "frame": "1", "score": 0.2, "level": "IVT", "cluster": "b"},  # another video's first frame
        {"frame": "1", "score": 0.9, "level": "IV"},  # no complete match: nothing was hidden
        task="triplets",
    )
    row = _row(tables.occlusion_table(cases, "triplets"), tables.CONTROLS["attended"])
    _numbers(row, predictions=2, lost=1 / 2, lost_more_than_elsewhere=1 / 2, best_match_lost=1 / 2)
    same = cases.with_columns(pl.lit("instruments").alias("task"))
    assert tables.occlusion_table(same, "instruments")["predictions"].to_list()[0] == 3


# triplets and references


def test_matches_show_ras_beside_chance_and_the_attended_share() -> None:
    cases = _cases(
        {"level": "IVT", "ras": 0.6, "chance": 0.2, "area": 0.2},
        {"level": "IVT", "ras": 0.4, "chance": 0.3, "area": 0.1, "cluster": "b"},
        {"level": "IVT", "area": 0.9, "excluded": "gap", "cluster": "b"},
        {"level": "missed", "ras": 0.1, "chance": 0.2, "area": 0.2},
        task="triplets",
    )
    table = tables.match_table(cases)
    _numbers(_row(table, "IVT"), triplets=3, excluded=1, share=3 / 4, ras=0.5, chance=0.25, lift=1 / 0.5, area=0.15)
    _numbers(_row(table, "missed"), triplets=1, excluded=0, share=1 / 4, ras=0.1, lift=0.5)
    _numbers(_row(table, "IT"), triplets=0, share=0, ras=None, chance=None, area=None)


def test_references_have_ras_its_chance_and_what_was_left_out() -> None:
    cases = _cases(
        {"reference": "oracle", "ac": 1.0, "aa": 1.0, "chance": 0.1, "ras": 1.0, "ras_chance": 0.3, "area": 0.1},
        {"reference": "oracle", "ac": 1.0, "aa": 0.5, "chance": 0.3, "area": 0.2, "cluster": "b"},  # nothing follows it
        {"reference": "oracle", "area": 0.0, "excluded": "empty_region", "cluster": "b"},
        {"reference": "uniform", "ac": 0.2, "aa": 0.1, "chance": 0.2, "ras": 0.4, "ras_chance": 0.4, "area": 1.0},
        task="reference",
    )
    table = tables.reference_table(cases)
    assert table["map"].to_list() == ["uniform", "oracle"]
    _numbers(_row(table, "oracle"), rows=2, excluded=1, ac=1, aa=0.75, chance=0.2, lift=5, area=0.15)
    _numbers(_row(table, "oracle"), ras=1, ras_chance=0.3)
    _numbers(_row(table, "uniform"), rows=1, excluded=0, ras=0.4, ras_chance=0.4, lift=1, area=1)


def test_table_2_says_how_large_the_attended_region_is_where_ars_counts() -> None:
    matched = {f"match_{name}": True for name in ("instrument", "verb", "target", "triplet")}
    cases = _cases(
        {**matched, "valid": True, "ars": 0.5, "area": 0.2},
        {**matched, "valid": True, "ars": 0.0, "area": 0.4},
        {**matched, "valid": True, "area": 0.9, "excluded": "no_gt"},
        {**matched, "valid": False, "area": 0.7},
        task="ars",
    )
    _numbers(_row(tables.early_triplets(cases), "overall"), area=0.3, ars=0.25, valid=3 / 4, zero=1 / 3)
