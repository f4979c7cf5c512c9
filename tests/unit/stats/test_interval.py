"""What a result says about itself, and Wilson's interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.stats import Interval, bootstrap_mean, cohen_kappa, paired_difference, wilson


def test_wilson_reproduces_newcombes_published_intervals() -> None:
    """Newcombe 1998, Table I, method 3."""
    published = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (k, n), ends in published.items():
        assert wilson(k, n) == pytest.approx(ends, abs=5e-5)


def test_wilson_solves_the_score_equation() -> None:
    low, high = wilson(7, 40, level=0.9)
    for end in (low, high):
        assert abs(7 / 40 - end) / np.sqrt(end * (1 - end) / 40) == pytest.approx(1.6448536, abs=1e-6)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (0, 0), (float("nan"), 3), (1, float("inf"))])
def test_wilson_refuses_impossible_counts(k: Any, n: Any) -> None:
    with pytest.raises(BadInput, match="wilson"):
        wilson(k, n)


def test_an_interval_prints_as_it_is_quoted_in_a_paper() -> None:
    assert str(Interval(estimate=0.7119, low=0.65, high=0.7712, clusters=40)) == "0.712 [0.650, 0.771]"
    assert str(Interval(estimate=0.7119, low=0.65, high=0.7712, clusters=3)) == "0.712 [0.650, 0.771] (few clusters: 3)"


def test_tables_carry_the_flag_and_null_for_a_missing_interval() -> None:
    row = bootstrap_mean([0.3, 0.4], ["v", "v"], name="overall").to_frame().row(0, named=True)
    assert (row["name"], row["low"], row["few_clusters"], row["n"], row["clusters"]) == ("overall", None, True, 2, 1)
    row = paired_difference([1, 0], [0, 0], ["v", "w"]).to_frame().row(0, named=True)
    assert (row["a"], row["b"], row["p"], row["estimate"]) == (0.5, 0.0, None, 0.5)
    row = cohen_kappa("aa", "aa").to_frame().row(0, named=True)
    assert row["estimate"] is None and row["reason"].startswith("only one category")


def test_results_show_as_tables_in_a_notebook() -> None:
    assert "<table" in bootstrap_mean([1, 0], ["v", "w"])._repr_html_()
