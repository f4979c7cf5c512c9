"""A reply as causal graphs: rows, heads, what lies near the relevant area, and the picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.llava_folder import write_llava

from surgeval.arrays import Floats
from surgeval.errors import BadInput
from surgeval.explain.cleann import (
    CausalSettings,
    Explanation,
    Nodes,
    ShownWindow,
    causal_graphs,
    count_tokens,
    draw_graphs,
    near_boxes,
    reply_graphs,
)
from surgeval.models import open_generative
from surgeval.models.llava import Llava

SPAN = (3, 19)


def _attention(heads: int = 6, size: int = 26) -> Floats:
    weights = np.tril(np.random.default_rng(5).gamma(0.5, size=(heads, size, size)) + 1e-9)
    mixed = np.tril(weights + np.roll(weights, 1, axis=1))
    return np.asarray(mixed / mixed.sum(2, keepdims=True))


def test_every_token_has_its_own_best_heads_and_is_explained_by_the_row_that_predicted_it() -> None:
    graphs = causal_graphs(_attention(), [24, 25], SPAN, CausalSettings(heads=2))
    assert [[graph.explanation.target for graph in row] for row in graphs] == [[24, 24], [25, 25]]
    assert [[graph.token for graph in row] for row in graphs] == [[0, 0], [1, 1]]
    for row in graphs:
        assert [graph.score for graph in row] == sorted((graph.score for graph in row), reverse=True)
        assert all(graph.graph.nodes == graph.nodes.all for graph in row)
    assert {graph.head for graph in graphs[0]} != {graph.head for graph in graphs[1]}


def test_padding_is_no_node() -> None:
    padding = range(3, 11)
    (plain,) = causal_graphs(_attention(), [25], SPAN)
    assert any(set(graph.nodes.image) & set(padding) for graph in plain)
    (row,) = causal_graphs(_attention(), [25], SPAN, padding=padding)
    assert row
    assert all(set(graph.nodes.image).isdisjoint(padding) for graph in row)


def test_a_patch_is_near_where_it_overlaps_the_grown_box() -> None:
    window = (10.0, 0.0, 50.0, 40.0)  # patches of 10 × 10 pixels
    assert near_boxes((4, 4), window, [(20, 10, 30, 20)], margin=0).nonzero()[0].tolist() == [1]
    assert near_boxes((4, 4), window, [(20, 10, 30, 20)]).sum() == 9
    assert near_boxes((4, 4), window, [(0, 0, 5, 5)], margin=0).sum() == 0  # left of what the model saw
    assert near_boxes((4, 4), window, [(30, 30, 30, 40)]).sum() == 0  # no area
    assert near_boxes((4, 4), window, []).sum() == 0


def test_the_tally_leaves_padding_out_of_chance() -> None:
    near = np.array([[True, True], [False, False]])
    seen = np.array([[True, False], [True, True]])
    counted = count_tokens(Explanation(9, 3, {4: 1, 5: 2, 7: 1}), Nodes((4, 5, 6), (7,), 9), 4, near, seen)
    assert (counted.nodes, counted.image, counted.near) == (3, 2, 1)
    assert counted.chance == pytest.approx(1 / 3)


def test_blind_explanations_reach_chance() -> None:
    rng = np.random.default_rng(0)
    near, seen = rng.random((8, 8)) < 0.3, np.ones((8, 8), bool)
    counts = [
        count_tokens(Explanation(99, 3, dict.fromkeys(picked, 1)), Nodes(tuple(picked), (), 99), 0, near, seen)
        for picked in (sorted(rng.choice(64, 6, replace=False).tolist()) for _ in range(2000))
    ]
    share = sum(count.near for count in counts) / sum(count.image for count in counts)
    assert share == pytest.approx(counts[0].chance, abs=0.01)


def test_a_model_reply_becomes_graphs_and_a_picture(tmp_path: Path) -> None:
    model = open_generative(str(write_llava(tmp_path)))
    assert isinstance(model, Llava)
    frame = np.random.default_rng(0).integers(0, 256, (90, 160, 3)).astype(np.uint8)
    (reply,) = model.reply([[frame]], ["What surgical tools do you see?"], max_tokens=3)
    graphs = reply_graphs(model, [frame], reply, CausalSettings(alpha=0.05), tokens=[0, len(reply.tokens) - 1])
    assert [row[0].nodes.target for row in graphs] == [
        reply.prompt_length - 1,
        reply.prompt_length - 2 + len(reply.tokens),
    ]
    assert [row[0].token for row in graphs] == [0, len(reply.tokens) - 1]
    assert all(len(row) == 5 for row in graphs)
    view = model.preparation.view(90, 160)
    near = near_boxes(model.grid, view.window, [(60, 20, 100, 60)])
    shown = ShownWindow(frame, view.window, reply.image_span[0], near, ((60, 20, 100, 60),))
    words = {position: model.word(token) for position, token in enumerate(reply.prompt)}
    assert "tools" in "".join(words.values())
    picture = draw_graphs(shown, graphs, words, reply.words, "What $surgical$ tools?")
    again = draw_graphs(shown, graphs, words, reply.words, "What $surgical$ tools?")
    assert picture.dtype == np.uint8
    assert picture.shape[1] > 1500
    assert np.array_equal(picture, again)
    green = (np.abs(picture.astype(int) - (47, 209, 91)).sum(2) < 30).sum()
    assert green > 50  # the box, and tokens near it


def test_words_of_any_script_are_drawn_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    graphs = causal_graphs(_attention(), [25], SPAN, CausalSettings(alpha=0.2, heads=1))
    shown = ShownWindow(np.zeros((40, 40, 3), np.uint8), (0, 0, 40, 40), 3, np.zeros((4, 4), bool))
    words = dict.fromkeys(range(26), "手术\x1b[31m$x$\n" * 40)
    assert draw_graphs(shown, graphs, words, ["<b>钩"], "$\\foo{$ \U0001f600").ndim == 3
    assert not recwarn.list


def test_nothing_to_draw_is_said() -> None:
    shown = ShownWindow(np.zeros((4, 4, 3), np.uint8), (0, 0, 4, 4), 3, np.zeros((4, 4), bool))
    with pytest.raises(BadInput, match="there are none"):
        draw_graphs(shown, [], {}, [])
