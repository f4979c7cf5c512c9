"""Agreement coefficients against published worked examples and slow loops."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.records import Triplet
from surgeval.stats import cohen_kappa, count_ratings, fleiss_kappa, krippendorff_alpha, stream

# Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section C: observers A–D over 12 units.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
UNITS = [list(unit) for unit in zip(*KRIPPENDORFF, strict=True)]

# The usual worked table of Fleiss' kappa: 10 subjects, 14 raters, 5 categories.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def from_matrix(matrix: list[list[int]]) -> tuple[list[int], list[int]]:
    """Two raters' labels from their cross table."""
    pairs = [(i, j) for i, row in enumerate(matrix) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in pairs], [j for _, j in pairs]


@pytest.mark.parametrize(
    ("matrix", "kappa"),
    [([[20, 5], [10, 15]], 0.4), ([[45, 15], [25, 15]], 6 / 46), ([[25, 35], [5, 35]], 14 / 54)],
)
def test_cohens_kappa_of_worked_tables(matrix: list[list[int]], kappa: float) -> None:
    """By hand: (50 proposals) po 0.7, pe 0.5; both po 0.6, pe 0.54 and 0.46."""
    a, b = from_matrix(matrix)
    assert cohen_kappa(a, b).value == pytest.approx(kappa, abs=1e-12)


@pytest.mark.parametrize("power", [1, 2])
def test_weighted_kappa_is_exact_arithmetic(power: int) -> None:
    matrix = [[11, 3, 1], [2, 9, 4], [0, 5, 8]]
    n = sum(map(sum, matrix))
    rows, columns = [sum(row) for row in matrix], [sum(column) for column in zip(*matrix, strict=True)]
    observed = sum(Fraction(matrix[i][j] * abs(i - j) ** power, n) for i in range(3) for j in range(3))
    expected = sum(Fraction(rows[i] * columns[j] * abs(i - j) ** power, n * n) for i in range(3) for j in range(3))
    a, b = from_matrix(matrix)
    weights: Any = "linear" if power == 1 else "quadratic"
    assert cohen_kappa(a, b, weights=weights).value == pytest.approx(float(1 - observed / expected), abs=1e-12)


def test_a_grade_nobody_used_still_lies_between_its_neighbours() -> None:
    a, b = [0, 0, 1, 3, 3, 1], [0, 1, 1, 3, 1, 3]
    numbers = cohen_kappa(a, b, weights="linear").value
    names = ["none", "mild", "moderate", "severe"]
    text = cohen_kappa([names[i] for i in a], [names[i] for i in b], weights="linear", categories=names).value
    assert numbers == pytest.approx(text)
    with pytest.raises(BadInput, match="weights without `categories`"):
        cohen_kappa([names[i] for i in a], [names[i] for i in b], weights="linear")


def test_triplets_can_be_compared_as_labels() -> None:
    first = [Triplet(0, 1, 2), Triplet(0, 1, 3), Triplet(2, 2, 2)]
    assert cohen_kappa(first, first).value == 1


def test_fleiss_kappa_of_the_worked_table() -> None:
    found = fleiss_kappa(FLEISS)
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert (found.units, found.raters, len(found.categories)) == (10, 14, 5)
    assert 1 - found.observed == pytest.approx(0.378, abs=5e-4)
    assert 1 - found.expected == pytest.approx(0.213, abs=5e-4)


@pytest.mark.parametrize(
    ("metric", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_alpha_of_krippendorffs_own_example(metric: Any, alpha: float) -> None:
    found = krippendorff_alpha(UNITS, metric=metric)
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.units == 11 and found.interval.note.startswith("1 of 12 units have fewer than two ratings")


def slow_alpha(units: list[list[Any]], metric: str) -> float:
    """The textbook's double sums over the coincidence matrix."""
    units = [[value for value in unit if value is not None] for unit in units]
    units = [unit for unit in units if len(unit) > 1]
    values = sorted({value for unit in units for value in unit})
    n_of = {value: sum(unit.count(value) for unit in units) for value in values}
    n = sum(n_of.values())

    def delta(c: float, k: float) -> float:
        if metric == "nominal":
            return float(c != k)
        if metric == "ordinal":
            low, high = min(c, k), max(c, k)
            return (sum(n_of[g] for g in values if low <= g <= high) - (n_of[c] + n_of[k]) / 2) ** 2
        return (c - k) ** 2 if metric == "interval" or c == k else ((c - k) / (c + k)) ** 2

    observed = sum(
        delta(c, k) / (len(unit) - 1)
        for unit in units
        for i, c in enumerate(unit)
        for j, k in enumerate(unit)
        if i != j
    )
    expected = sum(n_of[c] * n_of[k] * delta(c, k) for c in values for k in values) / (n - 1)
    return 1 - observed / expected


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval", "ratio"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_the_textbooks_double_sum_on_ragged_ratings(metric: Any, seed: int) -> None:
    rng = stream(seed, "ragged")
    truth = rng.integers(0, 6, 25)
    units: list[list[Any]] = [
        [None if rng.random() < 0.3 else float(max(0, value + rng.integers(-1, 2))) for _ in range(4)]
        for value in truth
    ]
    assert krippendorff_alpha(units, metric=metric, resamples=10).value == pytest.approx(slow_alpha(units, metric))


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval", "ratio"])
def test_the_interval_of_alpha_is_that_of_a_loop_over_videos(metric: Any) -> None:
    rng = stream(1, "videos")
    truth = rng.integers(1, 5, 40)
    units: list[list[Any]] = [[int(value), int(np.clip(value + rng.integers(-1, 2), 1, 4)), None] for value in truth]
    videos = [f"v{number % 7}" for number in range(40)]
    draws = stream(3, "alpha")
    alphas = []
    for _ in range(60):
        drawn = [int(u * 7) for u in draws.random(7)]
        alphas.append(slow_alpha([unit for v in drawn for unit in units[v::7]], metric))
    found = krippendorff_alpha(units, metric=metric, clusters=videos, resamples=60, seed=3, name="alpha")
    assert [found.interval.low, found.interval.high] == pytest.approx(np.percentile(alphas, [2.5, 97.5]))
    assert (found.interval.scheme, found.interval.clusters, found.interval.n) == ("cluster", 7, 40)


def slow_kappa(pairs: list[tuple[Any, Any]]) -> float:
    n = len(pairs)
    labels = {label for pair in pairs for label in pair}
    agree = sum(x == y for x, y in pairs) / n
    chance = sum(sum(x == c for x, _ in pairs) * sum(y == c for _, y in pairs) for c in labels) / n**2
    return float((agree - chance) / (1 - chance))


def test_the_interval_of_kappa_over_videos_is_that_of_a_loop() -> None:
    rng = stream(2, "pairs")
    a = rng.integers(0, 3, 60)
    b = np.where(rng.random(60) < 0.7, a, rng.integers(0, 3, 60))
    draws = stream(0, "kappa")
    kappas = []
    for _ in range(200):
        drawn = [int(u * 6) for u in draws.random(6)]
        kappas.append(slow_kappa([(a[i], b[i]) for v in drawn for i in range(v, 60, 6)]))
    videos = [f"v{number % 6}" for number in range(60)]
    found = cohen_kappa(a, b, clusters=videos, resamples=200, name="kappa")
    assert [found.interval.low, found.interval.high] == pytest.approx(np.percentile(kappas, [2.5, 97.5]))


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_drawing_units_by_pattern_is_drawing_units(method: Any) -> None:
    """Identical units are drawn together; as clusters of one unit each they are drawn one by one."""
    a, b = from_matrix([[20, 5], [10, 15]])
    together = cohen_kappa(a, b, resamples=20_000, method=method).interval
    one_by_one = cohen_kappa(a, b, clusters=list(range(50)), resamples=20_000, method=method).interval
    assert [together.low, together.high] == pytest.approx([one_by_one.low, one_by_one.high], abs=0.012)
    table = fleiss_kappa(FLEISS, resamples=20_000, method=method).interval
    rows = fleiss_kappa(FLEISS, clusters=list(range(10)), resamples=20_000, method=method).interval
    assert [table.low, table.high] == pytest.approx([rows.low, rows.high], abs=0.02)


def test_clusters_widen_the_interval_when_annotators_differ_by_video() -> None:
    a = ["cut"] * 30 + ["clip"] * 30
    b = [label if video < 8 else "clip" for video, label in zip([i % 10 for i in range(60)], a, strict=True)]
    videos = [f"v{i % 10}" for i in range(60)]
    assert cohen_kappa(a, b, clusters=videos).interval.width > cohen_kappa(a, b).interval.width


def test_one_category_leaves_every_coefficient_undefined_with_a_reason() -> None:
    for found in (
        cohen_kappa(["cut"] * 9, ["cut"] * 9),
        fleiss_kappa([[0, 3], [0, 3]]),
        krippendorff_alpha([["cut", "cut"]] * 4),
        krippendorff_alpha([[2, 2]] * 4, metric="ordinal"),
        krippendorff_alpha([[0.1, 0.1]] * 4, metric="interval"),
        krippendorff_alpha([[0, 0]] * 4, metric="ratio"),
    ):
        assert np.isnan(found.value) and np.isnan(found.interval.low)
        assert found.reason == "only one category was used, so agreement cannot be told from chance"
        assert str(found).endswith(f"undefined: {found.reason}")


def test_alpha_without_a_pair_of_ratings_is_undefined_with_a_reason() -> None:
    found = krippendorff_alpha([["cut", None], [None, "clip"]], clusters=["v", "w"])
    assert np.isnan(found.value) and found.reason == "no unit has two ratings"


def test_resamples_with_one_category_are_left_out_and_counted() -> None:
    found = cohen_kappa(["cut"] * 5 + ["clip"], ["cut"] * 5 + ["clip"], resamples=500)
    assert found.value == found.interval.low == found.interval.high == 1
    assert "of 500 resamples, left out" in found.interval.note and "agreement is perfect" in found.interval.note


def test_one_unit_or_cluster_has_no_interval() -> None:
    found = cohen_kappa(["cut"], ["clip"])
    assert found.value == 0 and found.interval.note == "one unit has no bootstrap interval"
    found = cohen_kappa("ab", "aa", clusters=["v", "v"])
    assert np.isnan(found.interval.low) and found.interval.note == "one cluster has no bootstrap interval"


def test_chance_agreement_between_constant_raters_is_zero_kappa() -> None:
    assert cohen_kappa(["cut"] * 4, ["clip"] * 4).value == 0


def test_ratings_become_a_fleiss_table() -> None:
    table, verbs = count_ratings([["cut", "clip", "cut"], ["clip", "clip", "clip"]], categories=["clip", "cut", "pack"])
    assert table.tolist() == [[1, 2, 0], [3, 0, 0]] and verbs == ("clip", "cut", "pack")


def test_many_continuous_values_stay_within_memory() -> None:
    rng = stream(0, "continuous")
    truth = rng.random(900)
    units = np.column_stack([truth, truth + rng.normal(0, 0.1, 900)])
    for metric in ("interval", "ordinal"):
        found = krippendorff_alpha(units, metric=metric, resamples=40)
        assert 0.85 < found.value < 0.99 and found.interval.low < found.value < found.interval.high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cohen_kappa([], []), "a: found no labels"),
        (lambda: cohen_kappa("ab", "a"), "b: found 1 labels, expected 2"),
        (lambda: cohen_kappa(["a", None], ["a", "b"]), "a: row 1: found None, expected a label"),
        (lambda: cohen_kappa("ab", "ab", categories=["a"]), "ratings: row 1, rater 0: found 'b', expected one of"),
        (lambda: cohen_kappa("ab", "ab", categories=["a", "b", "a"]), "each category once"),
        (lambda: cohen_kappa([1, 2], [1, 2], weights="cubic"), "weights: found 'cubic'"),  # type: ignore[arg-type]
        (lambda: cohen_kappa("ab", "ab", clusters=["v"]), "clusters: found 1 rows, expected 2, one per unit"),
        (lambda: fleiss_kappa([1, 2]), "table: found int64 of shape"),
        (lambda: fleiss_kappa([[1, -1], [0, 0]]), "table: row 0: found .1, -1., expected counts"),
        (lambda: fleiss_kappa([[1.5, 0.5]]), "table: row 0"),
        (lambda: fleiss_kappa([[2, 0], [1, 0]]), "table: row 1: found 1 ratings, expected the same number"),
        (lambda: fleiss_kappa([[1, 0], [0, 1]]), "table: row 0: found 1 ratings, expected the same number"),
        (lambda: krippendorff_alpha([]), "ratings: found no units"),
        (lambda: krippendorff_alpha([[1, 2], [1]]), "ratings: row 1: found 1 ratings, expected 2"),
        (lambda: krippendorff_alpha([["a", "b"]], metric="interval"), "metric interval: found the label 'a'"),
        (lambda: krippendorff_alpha([[1, -2]], metric="ratio"), "metric ratio: found the label -2"),
        (lambda: krippendorff_alpha([[1, 2]], metric="cosine"), "metric: found 'cosine'"),  # type: ignore[arg-type]
        (lambda: krippendorff_alpha([[1, 2]], clusters=["v", "w"]), "clusters: found 2 rows, expected 1"),
        (lambda: krippendorff_alpha([[1, None], [1, 2]], clusters=["v", None]), "found None, expected a video"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        call()
