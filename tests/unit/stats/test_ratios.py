"""Ratios of sums over frames, resampled by video: against sums worked by hand and against the mean's own bootstrap."""

from __future__ import annotations

import functools
import operator
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.stats import (
    MacroMean,
    Ratio,
    VideoSums,
    bootstrap_mean,
    mean_ratio,
    paired_difference,
    ratio_intervals,
    share_ratio,
    wilson,
)

EVERY = pl.lit(True)
HAND = pl.DataFrame(
    {
        "cluster": ["a", "a", "a", "b", "b"],
        "ac": [0.2, 0.4, None, 0.9, float("nan")],
        "chance": [0.1, 0.1, 0.5, 0.3, 0.5],
        "right": [True, False, True, True, False],
    }
)


def test_estimates_are_the_sums_worked_by_hand() -> None:
    used = pl.col("ac").is_finite()
    lift = Ratio(pl.when(used).then(pl.col("ac")), pl.when(used).then(pl.col("chance")))
    wanted: dict[str, Ratio | list[Ratio]] = {
        "mean": mean_ratio("ac", EVERY),
        "right": share_ratio(pl.col("right"), EVERY),
        "lift": lift,
        "macro": [mean_ratio("ac", pl.col("cluster") == "a"), mean_ratio("ac", pl.col("cluster") == "b")],
        "none": mean_ratio("ac", pl.lit(False)),
    }
    found = ratio_intervals(HAND, wanted)
    assert found["mean"].estimate == pytest.approx((0.2 + 0.4 + 0.9) / 3)  # neither null nor NaN is a 0
    assert found["right"].estimate == 3 / 5
    assert found["lift"].estimate == pytest.approx((0.2 + 0.4 + 0.9) / (0.1 + 0.1 + 0.3))
    assert found["macro"].estimate == pytest.approx((0.3 + 0.9) / 2)
    assert np.isnan(found["none"].estimate)


def test_a_number_that_one_video_alone_makes_up_has_no_interval() -> None:
    wanted = {"b": mean_ratio("ac", pl.col("cluster") == "b"), "both": mean_ratio("ac", EVERY)}
    found = ratio_intervals(HAND, wanted)
    assert np.isnan(found["b"].low)
    assert found["b"].clusters == 1
    assert found["both"].low < found["both"].estimate < found["both"].high
    alone = ratio_intervals(HAND.filter(pl.col("cluster") == "a"), {"mean": mean_ratio("ac", EVERY)})
    assert alone["mean"].estimate == pytest.approx(0.3)
    assert np.isnan(alone["mean"].high)


def test_a_mean_has_the_interval_of_the_cluster_bootstrap() -> None:
    rng = np.random.default_rng(1)
    videos = [f"v{k}" for k in rng.integers(0, 9, 120)]
    values = np.clip(rng.normal(0.5, 0.2, 120) + np.array([int(v[1:]) for v in videos]) * 0.03, 0, 1)
    cases = pl.DataFrame({"cluster": videos, "ac": values})
    ours = ratio_intervals(cases, {"mean": mean_ratio("ac", EVERY)})["mean"]
    theirs = bootstrap_mean(values, videos, resamples=4000, seed=5)
    assert ours.estimate == pytest.approx(theirs.estimate, abs=1e-12)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.1 * theirs.width)
    assert ours.clusters == theirs.clusters == 9


def test_adding_a_number_leaves_the_others_as_they_were() -> None:
    one = ratio_intervals(HAND, {"mean": mean_ratio("ac", EVERY)})["mean"]
    both = {"right": share_ratio(pl.col("right"), EVERY), "mean": mean_ratio("ac", EVERY)}
    assert ratio_intervals(HAND, both)["mean"] == one


def test_without_any_row_every_number_is_undefined() -> None:
    found = ratio_intervals(HAND.clear(), {"mean": mean_ratio("ac", EVERY)})["mean"]
    assert (found.estimate != found.estimate, found.clusters) == (True, 0)


def test_a_share_of_all_rows_of_few_videos_is_not_certain() -> None:
    rows = pl.DataFrame({"cluster": ["a", "a", "b", "b", "c"], "right": [True] * 5})
    found = ratio_intervals(rows, {"right": share_ratio(pl.col("right"), EVERY)})["right"]
    assert found.low < wilson(5, 5)[0]  # three videos are fewer than five answers
    assert (found.estimate, found.high) == (1.0, 1.0)
    assert found.method == "wilson t"


def test_a_mean_over_classes_of_which_one_is_always_found_is_no_surer_than_that_class() -> None:
    rows = pl.DataFrame(
        {
            "cluster": [v for v in "abcdef" for _ in range(4)],
            "kind": ["hook", "hook", "clipper", "clipper"] * 6,
            "right": [True, True, True, False] * 6,
        }
    )
    each = {kind: share_ratio(pl.col("right"), pl.col("kind") == kind) for kind in ("hook", "clipper")}
    found = ratio_intervals(rows, {"mean": list(each.values()), **each})
    mean, hook, clipper = found["mean"], found["hook"], found["clipper"]
    assert (mean.estimate, hook.estimate, clipper.estimate) == (0.75, 1.0, 0.5)  # in every video
    assert 0.75 - mean.low == pytest.approx(np.hypot(1 - hook.low, 0.5 - clipper.low) / 2)
    assert mean.high - 0.75 == pytest.approx((clipper.high - 0.5) / 2)
    both = ratio_intervals(rows.filter(pl.col("right")), {"F1": list(each.values())})["F1"]
    assert both.estimate == both.high == 1.0 and both.low < 0.9


def test_a_share_of_all_names_that_no_video_has_gets_no_interval() -> None:
    rows = pl.DataFrame({"cluster": list("abcdef"), "unread": [0] * 6, "names": [900] * 6})
    asked = Ratio(pl.col("unread"), pl.col("names"), of_whole=True)
    never = ratio_intervals(rows, {"unread": asked})["unread"]
    assert (never.estimate, never.method) == (0.0, "none")
    assert np.isnan(never.low) and np.isnan(never.high)
    once = ratio_intervals(rows.with_columns(unread=pl.Series([3, 0, 0, 0, 0, 0])), {"unread": asked})["unread"]
    assert 0 < once.estimate < once.high < 0.01


def test_sums_do_not_depend_on_the_number_of_cores() -> None:
    """To the last bit: the rows of a video are added one after the other."""
    chance = np.random.default_rng(5)
    cases = pl.DataFrame({"cluster": chance.choice(["a", "b", "c"], 5000), "ac": chance.random(5000)})
    sums = VideoSums.of(cases, {"ac": mean_ratio("ac", pl.lit(True))})
    videos = [cases.filter(pl.col("cluster") == name)["ac"].to_list() for name in "abc"]
    expected = [functools.reduce(operator.add, values) for values in videos]
    assert sums.over[:, 0].tolist() == expected


def _cells(values: dict[str, list[tuple[str, int]]]) -> pl.DataFrame:
    rows = [(video, cell, right) for video, answers in values.items() for cell, right in answers]
    return pl.DataFrame(rows, schema={"cluster": pl.String, "cell": pl.String, "right": pl.Int64}, orient="row")


def _share(cell: str) -> Ratio:
    return share_ratio(pl.col("right") == 1, pl.col("cell") == cell)


def test_a_ratio_without_cases_is_skipped_or_leaves_the_mean_undefined() -> None:
    cases = _cells({"a": [("hook", 1), ("clip", 0)], "b": [("hook", 0), ("hook", 1)]})
    both = (_share("hook"), _share("clip"))
    drawn = np.array([[1, 1], [0, 1]])  # without video a there is no clip
    for absent, without in (("skipped", 1 / 2), ("undefined", np.nan)):
        mean = MacroMean(both, absent=absent)  # type: ignore[arg-type]
        found = VideoSums.of(cases, {"mean": mean}).numbers(drawn)[:, 0]
        assert found.tolist() == pytest.approx([(2 / 3 + 0) / 2, without], nan_ok=True)


def test_weights_are_kept_exactly_and_a_negative_one_makes_a_gap() -> None:
    cases = _cells({video: [("before", 1), ("after", int(video > "c"))] for video in "abcdef"})
    gap = MacroMean((_share("before"), _share("after")), (Fraction(1), Fraction(-1)), absent="undefined")
    assert gap.bounds == (-1.0, 1.0)
    found = ratio_intervals(cases, {"gap": gap})["gap"]
    assert found.estimate == 1 / 2 and -1 <= found.low < found.estimate < found.high <= 1
    thirds = MacroMean(tuple(_share("before") for _ in range(3)), (Fraction(1, 3),) * 3, absent="undefined")
    assert ratio_intervals(cases, {"all": thirds})["all"].estimate == 1.0
    with pytest.raises(BadInput, match="absent='undefined'"):
        MacroMean((_share("before"),), (Fraction(1),))


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans(), st.booleans()), min_size=2, max_size=60))
def test_a_difference_of_shares_is_that_of_the_paired_answers(rows: list[tuple[str, bool, bool]]) -> None:
    cases = pl.DataFrame(rows, schema=["cluster", "first", "second"], orient="row")
    a, b = (VideoSums.of(cases, {"right": share_ratio(pl.col(side))}) for side in ("first", "second"))
    ours = a.difference(b, "right")
    first, second = (cases[side].cast(pl.Float64).to_list() for side in ("first", "second"))
    theirs = paired_difference(first, second, cases["cluster"].to_list(), name="right")
    assert (ours.a, ours.b) == pytest.approx((theirs.a, theirs.b))
    assert ours.p == pytest.approx(theirs.p, nan_ok=True)
    if not any(first[k] != second[k] for k in range(len(rows))):
        assert ours.estimate == 0 == a.difference(a, "right").estimate
    back = b.difference(a, "right")
    assert back.estimate == pytest.approx(-ours.estimate)
    ends = (-ours.interval.high, -ours.interval.low)
    assert (back.interval.low, back.interval.high) == pytest.approx(ends, nan_ok=True)


def test_videos_in_which_neither_run_has_a_part_are_left_out_of_the_difference() -> None:
    cases = _cells({video: [("hook", int(video < "d"))] for video in "abcdefg"} | {"z": [("clip", 1)]})
    other = cases.with_columns(right=1 - pl.col("right"))
    wanted = {"hook": _share("hook")}
    with_z, without = (
        VideoSums.of(a, wanted).difference(VideoSums.of(b, wanted), "hook")
        for a, b in ((cases, other), tuple(part.filter(pl.col("cluster") != "z") for part in (cases, other)))
    )
    assert with_z == without and with_z.interval.clusters == 7
