"""What a causal graph is learned from: correlations of rows, tokens, heads."""

from __future__ import annotations

import numpy as np
import pytest

from surgeval.arrays import Floats
from surgeval.errors import BadInput
from surgeval.explain.cleann import attention_sink, choose_nodes, correlation, rank_heads


def _with_sink(share: float, size: int = 30) -> Floats:
    weights = np.tril(np.random.default_rng(3).gamma(0.3, size=(size, size)) + 1e-9)
    A = weights / weights.sum(1, keepdims=True) * (1 - share)
    A[:, 0] += share
    return np.asarray(A)


def test_the_correlation_is_the_cosine_and_not_centred() -> None:
    A = np.array([[1.0, 0, 0], [0.6, 0.4, 0], [0.5, 0.0, 0.5]])
    C = correlation(A)
    assert C[0, 1] == pytest.approx(0.6 / np.hypot(0.6, 0.4))
    assert C[1, 2] == pytest.approx(0.3 / (np.hypot(0.6, 0.4) * np.hypot(0.5, 0.5)))


def test_a_sink_makes_all_rows_alike_and_leaving_it_out_undoes_that() -> None:
    sink = attention_sink(_with_sink(0.9))
    assert (sink.token, sink.correlation > 0.99) == (0, True)
    assert sink.share == pytest.approx(0.9, abs=0.05)
    assert attention_sink(_with_sink(0.0)).correlation < 0.3
    for rule in ("remove", "centre"):
        C = correlation(_with_sink(0.9), rule)
        assert abs(np.median(C[np.triu_indices(30, 1)])) < 0.3
        assert np.isfinite(C).all()


def test_a_row_that_only_saw_the_sink_is_correlated_with_none() -> None:
    assert correlation(_with_sink(0.9), "remove")[0].tolist() == [1.0] + [0.0] * 29


def test_nodes_count_weights_over_the_whole_row_and_leave_padding_and_system_text_out() -> None:
    row = np.array([0.5, 0.02, 0.005, 0.2, 0.1, 0.002, 0.1, 0.003, 0.07])
    nodes = choose_nodes(row, (2, 6), 8)
    assert nodes.image == (2, 3, 4, 5)  # six weights above κ, four image tokens
    assert nodes.text == (6,)  # 7 is below κ; 0 and 1 come before the image
    assert nodes.all == (2, 3, 4, 5, 6, 8)
    assert choose_nodes(row, (2, 6), 8, padding=[3, 5]).image == (2, 4)
    assert choose_nodes(row, (2, 6), 8, most=1).image == (3,)
    assert choose_nodes(row, (2, 6), 8, kappa=0.4).image == (3, 4)  # at least two


def test_equal_heads_and_tokens_come_in_their_order() -> None:
    attention = np.full((3, 4, 4), 0.25)
    assert rank_heads(attention, 3, (1, 3)).order == (0, 1, 2)
    assert choose_nodes(np.full(9, 0.005), (2, 6), 8).image == (2, 3)


def test_padding_does_not_make_a_head_look_at_the_image() -> None:
    attention = np.zeros((2, 4, 4))
    attention[0, 3], attention[1, 3] = [0, 0.8, 0.1, 0.1], [0, 0.1, 0.4, 0.5]
    assert rank_heads(attention, 3, (1, 3), "max_image").order == (0, 1)
    assert rank_heads(attention, 3, (1, 3), "max_image", padding=[1]).order == (1, 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: correlation(np.ones((2, 3))), "must be a square matrix"),
        (lambda: correlation(np.array([[1.0, 0], [0, 0]])), "Row 1 of the attention"),
        (lambda: correlation(np.array([[np.nan]])), "NaN or infinity"),
        (lambda: correlation(np.eye(2), "drop"), "Use keep, remove or centre"),  # type: ignore[arg-type]
        (lambda: choose_nodes(np.ones(4), (1, 3), 2), "must come before the target"),
        (lambda: choose_nodes(np.ones(4), (1, 3), 3, kappa=2), "kappa"),
        (lambda: rank_heads(np.ones((2, 4, 4)), 3, (1, 3), "mean"), "max_image or image_over_text"),  # type: ignore[arg-type]
        (lambda: rank_heads(np.ones((4, 4)), 3, (1, 3)), "shape \\(heads, rows, rows\\)"),
        (lambda: rank_heads(np.ones((2, 4, 4)), 3, (1, 3), padding=[1, 2]), "All image tokens"),
    ],
)
def test_bad_input_is_said_in_one_sentence(call: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        call()  # type: ignore[operator]


def test_a_weight_of_exactly_kappa_is_not_above_it() -> None:
    row = np.array([0.25, 0.125, 0.125, 0.25, 0.25])  # exact in binary
    assert choose_nodes(row, (1, 3), 4, kappa=0.25).text == ()
    assert choose_nodes(row, (1, 3), 4, kappa=0.2499).text == (3,)
