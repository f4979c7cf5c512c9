"""Invariants of the bootstrap over arbitrary scores and clusters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.stats import bootstrap_mean, bootstrap_slices, multiplicities, paired_difference, stream, wilson

VIDEO = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h"])
SCORE = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))
BINARY = st.lists(st.tuples(st.integers(0, 1), VIDEO), min_size=1, max_size=40)
ROWS = st.one_of(BINARY, st.lists(st.tuples(SCORE, VIDEO), min_size=1, max_size=40))
SCHEME = st.sampled_from([("cluster", "flat"), ("cluster", "macro"), ("two_level", "flat"), ("two_level", "macro"),
                          ("plain", "flat")])  # fmt: skip
METHOD = st.sampled_from([None, "percentile", "bca"])  # None: the default, which two_level has its own of


def interval(rows: list[tuple[float, str]], **options: Any) -> Any:
    return bootstrap_mean([value for value, _ in rows], [video for _, video in rows], resamples=60, **options)


def same(first: Any, second: Any) -> bool:
    """Equality in every digit, with NaN equal to itself."""
    ends = [(first.estimate, second.estimate), (first.low, second.low), (first.high, second.high)]
    return all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in ends)


@given(ROWS, SCHEME, METHOD, st.randoms(use_true_random=False))
def test_the_order_of_rows_never_moves_an_interval(rows: Any, scheme: Any, method: Any, random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    options = {"scheme": scheme[0], "point": scheme[1], **({"method": method} if method else {})}
    assert same(interval(rows, **options), interval(shuffled, **options))


@given(ROWS, SCHEME, METHOD)
def test_an_interval_is_ordered_and_stays_among_the_scores(rows: Any, scheme: Any, method: Any) -> None:
    found = interval(rows, scheme=scheme[0], point=scheme[1], **({"method": method} if method else {}))
    values = [value for value, _ in rows]
    slack = 1e-9 * (1 + max(map(abs, values)))
    if not math.isnan(found.low):
        assert found.low <= found.high
        if found.method == "t":
            assert found.estimate in found
        elif found.method == "bound":  # equal scores of a share say nothing of their spread
            assert 0 <= found.low < found.estimate < found.high <= 1 or found.estimate in (0, 1)
        elif "wilson" not in found.method:
            assert min(values) - slack <= found.low and found.high <= max(values) + slack
        else:
            assert found.low >= 0 and found.high <= 1
    assert min(values) - slack <= found.estimate <= max(values) + slack


@given(BINARY, SCHEME)
def test_a_proportion_always_has_an_interval_of_some_width(rows: Any, scheme: Any) -> None:
    found = interval(rows, scheme=scheme[0], point=scheme[1])
    if found.few_clusters or len({value for value, _ in rows}) == 1:
        assert found.low < found.high and found.estimate in found


@given(ROWS, SCHEME, st.floats(0.1, 10), st.floats(-5, 5))
def test_percentile_intervals_follow_a_change_of_units(rows: Any, scheme: Any, scale: float, shift: float) -> None:
    options = {"scheme": scheme[0], "point": scheme[1], "method": "percentile"}
    rows = [(value + 0.25, video) for value, video in rows]  # never 0/1, so that nothing is widened or tabulated
    before = interval(rows, **options)
    after = interval([(scale * value + shift, video) for value, video in rows], **options)
    if not math.isnan(before.low) and "bound" not in (before.method, after.method):  # which is of shares alone
        slack = 1e-6 * (1 + scale * max(abs(value) for value, _ in rows))
        assert after.low == pytest.approx(scale * before.low + shift, abs=slack)
        assert after.high == pytest.approx(scale * before.high + shift, abs=slack)


@given(ROWS, st.lists(st.booleans(), min_size=40, max_size=40), SCHEME)
def test_adding_a_slice_never_moves_another(rows: Any, chosen: list[bool], scheme: Any) -> None:
    mask = chosen[: len(rows)]
    values, videos = [value for value, _ in rows], [video for _, video in rows]
    slices = {"all": [True] * len(rows), **({"some": mask} if any(mask) else {})}
    together = bootstrap_slices(values, videos, slices, scheme=scheme[0], point=scheme[1], resamples=60)
    assert same(together["all"], interval(rows, scheme=scheme[0], point=scheme[1], name="all"))


@given(
    st.lists(st.tuples(SCORE, SCORE, VIDEO), min_size=1, max_size=30),
    st.sampled_from([("cluster", "flat"), ("cluster", "macro"), ("plain", "flat")]),
)
def test_swapping_the_models_negates_the_difference_and_keeps_p(rows: Any, scheme: Any) -> None:
    a, b, videos = ([row[column] for row in rows] for column in range(3))
    options: Any = {"scheme": scheme[0], "point": scheme[1], "resamples": 60}
    # Rows are sorted by their difference inside a video; distinct videos make both directions draw alike.
    videos = [f"{video}{number}" for number, video in enumerate(videos)] if scheme[0] == "cluster" else videos
    forth, back = paired_difference(a, b, videos, **options), paired_difference(b, a, videos, **options)
    assert forth.estimate == pytest.approx(-back.estimate, abs=1e-9)
    if scheme[0] == "cluster" and len(rows) > 1:
        assert forth.interval.low == pytest.approx(-back.interval.high, abs=1e-6, nan_ok=True)
        assert forth.p == back.p or (math.isnan(forth.p) and math.isnan(back.p))


@given(st.integers(1, 30), st.integers(1, 50), st.integers(0, 2**64))
def test_a_resample_draws_each_time_as_many_clusters_as_there_are(clusters: int, resamples: int, seed: int) -> None:
    counts = multiplicities(stream(seed, "m"), clusters, resamples)
    assert counts.shape == (resamples, clusters)
    assert (counts >= 0).all() and (counts.sum(axis=1) == clusters).all()


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(0.01, 0.98))
def test_wilson_holds_the_proportion_mirrors_and_widens_with_the_level(n: int, share: float, level: float) -> None:
    k = round(share * n)
    low, high = wilson(k, n, level)
    assert 0 <= low <= k / n <= high <= 1
    assert wilson(n - k, n, level) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    wider = wilson(k, n, level + 0.01)
    assert wider[0] <= low and high <= wider[1]
    assert np.isfinite([low, high]).all()
