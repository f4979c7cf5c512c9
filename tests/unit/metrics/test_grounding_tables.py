"""The papers' tables: nothing undefined is read as zero, and every count finds its place."""

from __future__ import annotations

import doctest
import math
from pathlib import Path

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.metrics import (
    FOUR_WAY,
    MATCH_LEVELS,
    Match,
    ars_columns,
    f1_parts,
    four_way_cells,
    grounded,
    lift,
    match_breakdown,
    match_ras,
    prediction_sets,
    triplet_match,
)
from surgeval.records import Triplet


def test_a_valid_frame_without_a_region_is_in_v_but_not_in_the_mean() -> None:
    columns = ars_columns([True, True, True, False], [0.5, None, 0.0, 0.9])
    assert {name: column.sum() for name, column in columns.items()} == {"V": 3, "Z": 1, "known": 2, "ARS": 0.5}


def test_without_a_valid_frame_nothing_is_in_the_mean() -> None:
    assert all(not column.any() for column in ars_columns([False], [None]).values())
    assert all(len(column) == 0 for column in ars_columns([], []).values())


def test_grounded_means_above_the_level_and_above_chance() -> None:
    assert grounded(0.51, 0.5) is True
    assert grounded(0.9, 0.95) is False  # nearly everything is labelled: 0.9 is below chance
    assert grounded(0.5, 0.1) is False  # at the level is not above it
    assert grounded(1.0, 1.0) is False  # every map scores 1 here


def test_lift_is_undefined_without_anything_to_hit() -> None:
    assert lift(0.0, 0.0) is None and lift(None, 0.3) is None and lift(0.3, None) is None
    assert lift(0.0, 0.3) == 0.0


def test_an_undefined_map_is_neither_grounded_nor_ungrounded() -> None:
    cells = four_way_cells([True, True, False, False, True, False], [True, False, True, False, None, None])
    assert cells == [*FOUR_WAY, "right_undefined", "wrong_undefined"]
    with pytest.raises(ValueError, match="shorter"):
        four_way_cells([True], [])


def test_f1_parts_of_a_class_that_is_never_shown_nor_said_have_no_denominator() -> None:
    parts = f1_parts(np.array([2, 0, 0]), np.array([0, 1, 0]), np.array([1, 0, 0]))
    assert {name: (above.tolist(), below.tolist()) for name, (above, below) in parts.items()} == {
        "precision": ([2, 0, 0], [2, 1, 0]), "recall": ([2, 0, 0], [3, 0, 0]), "f1": ([4, 0, 0], [5, 1, 0]),
    }  # fmt: skip


def test_of_several_prompts_at_the_best_level_the_highest_scoring_matches() -> None:
    prompts = [Triplet(0, 1, 8), Triplet(0, 1, 9), Triplet(0, 7, 2), Triplet(5, 1, 2)]
    (match,) = triplet_match(prompts, [0.1, 0.3, 0.9, 0.9], [Triplet(0, 1, 2)])
    assert (match.level, match.prompt) == ("IV", 1)
    (tied,) = triplet_match(prompts, [0.3, 0.3, 0.9, 0.9], [Triplet(0, 1, 2)])
    assert tied.prompt == 0


@pytest.mark.parametrize(
    ("prompt", "level"),
    [
        (Triplet(0, 1, 2), "IVT"),
        (Triplet(0, 1, 9), "IV"),
        (Triplet(0, 9, 2), "IT"),
        (Triplet(0, 9, 9), "I"),
        (Triplet(9, 1, 2), "missed"),
    ],
)
def test_the_levels_of_one_prompt(prompt: Triplet, level: str) -> None:
    assert [m.level for m in triplet_match([prompt], [0.5], [Triplet(0, 1, 2)])] == [level]


def test_an_unknown_component_agrees_with_nothing() -> None:
    assert [m.level for m in triplet_match([Triplet(0)], [0.5], [Triplet(0)])] == ["I"]
    assert [m.level for m in triplet_match([Triplet(-1, 1, 2)], [0.5], [Triplet(-1, 1, 2)])] == ["missed"]


def test_without_prompts_every_triplet_is_missed_and_has_no_ras() -> None:
    (match,) = triplet_match([], [], [Triplet(0, 1, 2)])
    assert match.level == "missed" and match_ras(match, [], []) == ("global", None)


def test_a_match_has_the_local_ras_of_its_prompt_and_a_miss_the_mean_global_one() -> None:
    local, everywhere = [0.1, 0.2, None], [0.4, 0.8, None]
    assert match_ras(Match(Triplet(0), "I", 1), local, everywhere) == ("local", 0.2)
    assert match_ras(Match(Triplet(0), "IVT", 2), local, everywhere) == ("local", None)
    assert match_ras(Match(Triplet(0), "missed", None), local, everywhere)[1] == pytest.approx(0.6)


def test_the_breakdown_has_all_five_levels() -> None:
    matches = triplet_match([Triplet(0, 1, 2)], [1.0], [Triplet(0, 1, 2), Triplet(0, 3, 4), Triplet(5, 1, 2)])
    assert list(match_breakdown(match.level for match in matches)) == list(MATCH_LEVELS)
    assert list(match_breakdown(match.level for match in matches).values()) == [1, 0, 0, 1, 1]


def test_prediction_sets_read_delta_three_ways() -> None:
    scores = [[0.10, 0.30, 0.29], [0.40, 0.35, 0.20]]
    assert prediction_sets(scores).tolist() == [[False, True, False], [True, False, False]]
    assert prediction_sets(scores, over="frames").tolist() == [[False, False, True], [True, True, False]]
    assert prediction_sets(scores, over="minmax").tolist() == [[False, True, True], [True, False, False]]


def test_equal_scores_say_nothing_and_no_frames_give_no_sets() -> None:
    for over in ("classes", "frames", "minmax"):
        assert not prediction_sets([[0.2, 0.2], [0.2, 0.2]], over=over).any()
        assert prediction_sets(np.zeros((0, 7)), over=over).shape == (0, 7)


@pytest.mark.parametrize(
    "make",
    [
        lambda: grounded(0.5, 0.1, level=1.0),
        lambda: triplet_match([Triplet(0)], [], [Triplet(0)]),
        lambda: triplet_match([Triplet(0)], [math.nan], [Triplet(0)]),
        lambda: prediction_sets([0.1, 0.2]),
        lambda: prediction_sets([[math.nan, 0.2]]),
        lambda: prediction_sets([[0.1, 0.2]], delta=1.5),
        lambda: prediction_sets([[0.1, 0.2]], over="images"),  # type: ignore[arg-type]
    ],
)
def test_tables_refuse_what_cannot_be_counted(make: object) -> None:
    with pytest.raises(BadInput, match=r"expected"):
        make()  # type: ignore[operator]


def test_the_worked_example_of_the_docs_gives_the_printed_numbers() -> None:
    page = Path(__file__).parents[3] / "docs" / "grounding.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 10 and result.failed == 0
