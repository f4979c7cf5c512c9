"""Invariants of the agreement coefficients over arbitrary ratings."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from surgeval.stats import cohen_kappa, count_ratings, fleiss_kappa, krippendorff_alpha

LABEL = st.integers(0, 3)
PAIRS = st.lists(st.tuples(LABEL, LABEL), min_size=2, max_size=40)
RAGGED = st.lists(st.lists(st.one_of(st.none(), LABEL), min_size=3, max_size=3), min_size=1, max_size=25)
METRIC = st.sampled_from(["nominal", "ordinal", "interval", "ratio"])
FEW: Any = {"resamples": 30}


def equal(first: float, second: float) -> bool:
    return (math.isnan(first) and math.isnan(second)) or first == pytest.approx(second, abs=1e-9)


@given(PAIRS, st.permutations(range(4)))
def test_nominal_kappa_does_not_know_the_names_of_labels(pairs: Any, names: list[int]) -> None:
    a, b = zip(*pairs, strict=True)
    renamed = cohen_kappa([f"label {names[i]}" for i in a], [f"label {names[i]}" for i in b], **FEW)
    assert equal(cohen_kappa(a, b, **FEW).value, renamed.value)


@given(PAIRS, st.sampled_from([None, "linear", "quadratic"]))
def test_kappa_is_symmetric_in_the_raters_and_never_above_1(pairs: Any, weights: Any) -> None:
    a, b = zip(*pairs, strict=True)
    forth = cohen_kappa(a, b, weights=weights, **FEW).value
    assert equal(forth, cohen_kappa(b, a, weights=weights, **FEW).value)
    assert math.isnan(forth) or forth <= 1


@given(PAIRS, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_units_moves_neither_value_nor_interval(pairs: Any, random: Any, clustered: bool) -> None:
    rows = [(a, b, f"v{number % 5}") for number, (a, b) in enumerate(pairs)]
    shuffled = list(rows)
    random.shuffle(shuffled)
    found = []
    for some in (rows, shuffled):
        a, b, videos = zip(*some, strict=True)
        found.append(cohen_kappa(a, b, clusters=videos if clustered else None, **FEW).interval)
    assert equal(found[0].estimate, found[1].estimate)
    assert equal(found[0].low, found[1].low) and equal(found[0].high, found[1].high)


@given(st.lists(LABEL, min_size=2, max_size=30), METRIC)
def test_perfect_agreement_is_1_unless_there_is_one_category(labels: list[int], metric: Any) -> None:
    units = [[label, label, label] for label in labels]
    found = [
        cohen_kappa(labels, labels, **FEW),
        cohen_kappa(labels, labels, weights="quadratic", **FEW),
        fleiss_kappa(count_ratings(units)[0], **FEW),
        krippendorff_alpha(units, metric=metric, **FEW),
    ]
    for coefficient in found:
        if len(set(labels)) == 1:
            assert math.isnan(coefficient.value) and coefficient.reason
        else:
            assert coefficient.value == 1
            assert coefficient.interval.low == 1 or "too many for an interval" in coefficient.interval.note


@given(PAIRS)
def test_fleiss_of_two_raters_is_scotts_pi_and_alpha_its_small_sample_version(pairs: Any) -> None:
    n = 2 * len(pairs)
    totals = [sum(pair.count(label) for pair in pairs) for label in range(4)]
    expected = 1 - sum((total / n) ** 2 for total in totals)
    assume(expected > 1e-12)
    pi = 1 - (sum(a != b for a, b in pairs) / len(pairs)) / expected
    units = [list(pair) for pair in pairs]
    assert fleiss_kappa(count_ratings(units)[0], **FEW).value == pytest.approx(pi, abs=1e-9)
    alpha = krippendorff_alpha(units, **FEW).value
    assert 1 - alpha == pytest.approx((1 - pi) * (n - 1) / n, abs=1e-9)


@given(RAGGED, METRIC, st.randoms(use_true_random=False))
def test_alpha_knows_neither_the_order_of_units_nor_of_raters(units: Any, metric: Any, random: Any) -> None:
    shuffled = [random.sample(unit, 3) for unit in units]
    random.shuffle(shuffled)
    found, other = (krippendorff_alpha(some, metric=metric, **FEW) for some in (units, shuffled))
    assert equal(found.value, other.value)
    assert equal(found.interval.low, other.interval.low) and equal(found.interval.high, other.interval.high)


@given(RAGGED, st.floats(0.5, 4), st.floats(-3, 3))
def test_interval_alpha_does_not_know_the_units_of_measurement(units: Any, scale: float, shift: float) -> None:
    moved = [[None if value is None else scale * value + shift for value in unit] for unit in units]
    found, other = (krippendorff_alpha(some, metric="interval", **FEW) for some in (units, moved))
    assert equal(found.value, other.value)


@given(RAGGED)
def test_ordinal_alpha_only_knows_the_order(units: Any) -> None:
    stretched = [[None if value is None else float(value**3) for value in unit] for unit in units]
    found, other = (krippendorff_alpha(some, metric="ordinal", **FEW) for some in (units, stretched))
    assert equal(found.value, other.value)
