"""The paper's arithmetic: our aggregation reproduces Tables 3 and 4 exactly, Table 5 as far as it is consistent."""

from __future__ import annotations

from fractions import Fraction

import pytest

from surgeval.protocols.intent.published import (
    PublishedModel,
    half_up,
    published,
    published_gaze,
    published_removal,
    published_text_only,
)
from surgeval.protocols.intent.scoring.weights import DIMENSIONS, combine

BY_NAME = {model.name: model for model in published()}


@pytest.mark.parametrize("model", published(), ids=lambda model: model.name)
def test_table_3_overall_is_the_mean_of_the_six_skills(model: PublishedModel) -> None:
    assert half_up(combine("overall", model.skills)) == half_up(model.overall)


@pytest.mark.parametrize("model", published(), ids=lambda model: model.name)
def test_table_4_average_is_the_mean_of_both_kinds_of_traps(model: PublishedModel) -> None:
    said = {"perceptual": model.perceptual, "cognitive": model.cognitive}
    assert half_up(combine("reliability", said)) == half_up(model.reliability)


def test_table_4_holds_whole_numbers_of_300_but_for_three() -> None:
    def odd(value: Fraction) -> bool:
        return half_up(Fraction(round(value * 3), 3)) != half_up(value)

    assert [model.name for model in published() if odd(model.perceptual)] == [
        "Qwen3-VL-32B", "InternVL3.5-38B", "EgoLife",
    ]  # fmt: skip
    assert not [model.name for model in published() if odd(model.cognitive)]


@pytest.mark.parametrize("name", published_gaze())
def test_table_5_without_gaze_follows_from_the_six_skills_of_table_3(name: str) -> None:
    rows, skills = published_gaze()[name], BY_NAME[name].skills
    for number in (*DIMENSIONS, "overall"):
        assert half_up(combine(number, skills)) == half_up(rows[number][0]), number


@pytest.mark.parametrize("name", published_gaze())
def test_table_5_gains_are_exact_and_its_summaries_within_a_hundredth(name: str) -> None:
    rows = published_gaze()[name]
    for without, given, gain in rows.values():
        assert given - without == gain
    mean = sum((rows[dimension][1] for dimension in DIMENSIONS), Fraction(0)) / 3
    assert abs(mean - rows["overall"][1]) <= Fraction("0.01")


def test_table_5_printed_dimensions_are_rounded_so_their_mean_is_not_the_overall() -> None:
    means = {
        name: half_up(sum((rows[dimension][0] for dimension in DIMENSIONS), Fraction(0)) / 3)
        for name, rows in published_gaze().items()
    }
    assert (means["MedGemma-27B"], means["EgoLife"]) == ("52.29", "45.87")


def test_table_6_full_columns_are_those_of_table_4() -> None:
    for name, rows in published_text_only().items():
        model = BY_NAME[name]
        said = (model.perceptual, model.cognitive, model.reliability)
        assert tuple(rows[kind][1] for kind in ("perceptual", "cognitive", "reliability")) == said
        without = {kind: rows[kind][0] for kind in ("perceptual", "cognitive")}
        assert half_up(combine("reliability", without)) == half_up(rows["reliability"][0])


def test_table_7_has_both_models() -> None:
    assert {name: [float(value) for value in row.values()] for name, row in published_removal().items()} == {
        "Qwen3-VL-32B": [60.0, 74.0],
        "LingShu-32B": [31.82, 29.55],
    }
