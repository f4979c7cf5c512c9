"""Numbers declared once: their intervals, differences, tables and recipes derive from the declaration."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from surgeval.errors import BadInput
from surgeval.stats import (
    Combine,
    Interval,
    Measure,
    bootstrap_mean,
    find_measure,
    mean_ratio,
    measure_differences,
    measure_intervals,
    numbers_table,
    paired_statistic,
    share_ratio,
)
from surgeval.stats.replicates import Statistic

FRAMES = pl.DataFrame(
    {
        "cluster": [video for video in "abcdefgh" for _ in range(5)],
        "right": [(3 * k) % 7 < 4 for k in range(40)],
        "ac": [((5 * k) % 11) / 11 for k in range(40)],
        "task": ["instruments", "ars"] * 20,
    }
)
RIGHT = Measure(key="right", label="right", explanation="Share of right answers.", unit="share", baseline="chance",
                ratio=share_ratio(pl.col("right")))  # fmt: skip
CHANCE = Measure(key="chance", label="chance", explanation="Attention of a blind map.", headline=False,
                 higher_is_better=None, ratio=mean_ratio("ac"))  # fmt: skip


def _median_of_videos(cases: pl.DataFrame) -> Statistic:
    ordered = np.array([part["ac"].mean() for part in cases.sort("cluster").partition_by("cluster")])
    return lambda drawn: np.array([np.median(np.repeat(ordered, row)) for row in drawn])


MEDIAN = Measure(key="median", label="median", explanation="The median video.", statistic=_median_of_videos)


def test_a_share_has_the_interval_of_the_mean_of_its_answers() -> None:
    ours = measure_intervals([RIGHT], FRAMES)["right"]
    theirs = bootstrap_mean(FRAMES["right"].cast(pl.Float64).to_list(), FRAMES["cluster"].to_list())
    assert (ours.estimate, ours.low, ours.high, ours.n) == (theirs.estimate, theirs.low, theirs.high, theirs.n)


def test_a_measure_of_one_task_is_over_the_cases_of_that_task() -> None:
    about = Measure(key="ars", label="ARS", explanation="Action reasoning score.", task="ars", ratio=mean_ratio("ac"))
    known = measure_intervals([about, RIGHT], FRAMES)
    assert list(known) == ["ars", "right"]
    assert known["ars"].estimate == pytest.approx(FRAMES.filter(pl.col("task") == "ars")["ac"].mean())
    assert measure_intervals([about], FRAMES.filter(pl.col("task") != "ars")) == {}


def test_a_statistic_is_exchanged_between_two_runs_like_a_ratio() -> None:
    worse = FRAMES.with_columns(pl.col("ac") * 0.5)
    known = measure_differences([MEDIAN, CHANCE], FRAMES, worse)
    videos = list("abcdefgh")
    means = [np.array([part.filter(pl.col("cluster") == v)["ac"].mean() for v in videos]) for part in (FRAMES, worse)]
    pooled = np.concatenate(means)
    by_hand = paired_statistic(lambda m: float(np.median(np.repeat(pooled, m))), videos, resamples=2000)
    assert known["median"].estimate == by_hand.estimate
    assert known["median"].p == by_hand.p
    assert known["chance"].significant


def test_a_number_stands_beside_its_baseline_and_recipe() -> None:
    known = measure_intervals([RIGHT, CHANCE], FRAMES)
    row, _ = numbers_table([RIGHT, CHANCE], known).to_dicts()
    assert row["baseline"] == known["chance"].estimate
    assert row["signature"].startswith(
        "right|frames:pooled|videos:pooled|interval:leave-one-video-out with Wilson|version:"
    )
    given = numbers_table([RIGHT], known, baselines={"right": 0.25})
    assert given["baseline"].to_list() == [0.25]


def test_a_recipe_says_how_the_ends_of_the_interval_were_computed() -> None:
    drawn = Interval(estimate=0.5, low=0.4, high=0.6, scheme="two_level", method="percentile")
    assert "|interval:two_level percentile|" in RIGHT.signature(interval=drawn)
    assert "|interval:none|" in RIGHT.signature(interval=Interval(estimate=0.5, low=0.5, high=0.5, method="none"))


def test_a_recipe_names_the_settings_that_matter_and_no_others() -> None:
    measure = Measure(key="ap", label="AP", explanation="Average precision.", convention="coco",
                      settings=("ties", "top"), combine=Combine(videos="mean", classes="mean of present"))  # fmt: skip
    recipe = measure.signature({"ties": "free", "name": "net", "top": {"share": 0.2}})
    parts = recipe.split("|")
    assert parts[1:5] == ["frames:pooled", "videos:mean", "classes:mean of present", "convention:coco"]
    assert parts[5:7] == ["ties:free", "top:share=0.2"]
    assert "net" not in recipe


def test_a_declaration_says_what_its_number_means() -> None:
    with pytest.raises(BadInput, match="explanation"):
        Measure(key="x", label="x", explanation="")
    with pytest.raises(BadInput, match="Give one of them"):
        Measure(key="x", label="x", explanation="x", ratio=mean_ratio("ac"), statistic=_median_of_videos)
    with pytest.raises(BadInput, match="right"):
        find_measure([RIGHT, CHANCE], "rigth")


def test_a_number_without_interval_is_null_in_the_table() -> None:
    table = numbers_table([RIGHT], {"right": Interval(estimate=0.5, low=float("nan"), high=float("nan"))})
    assert table["low"].to_list() == [None]


def test_the_bounds_of_a_measure_hold_for_its_ratio() -> None:
    whole = Measure(key="ac", label="AC", explanation="Attention coverage.", bounds=(0.0, 0.6), ratio=mean_ratio("ac"))
    few = FRAMES.filter(pl.col("cluster") < "c")
    assert measure_intervals([whole], few)["ac"].high <= 0.6 < measure_intervals([CHANCE], few)["chance"].high
    assert whole.limits == (0.0, 0.6) and CHANCE.limits == (0.0, 1.0)
