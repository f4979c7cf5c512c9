"""Bars with intervals: an undefined number has no bar, zero has one, and names are shown literally."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.figures import Estimate, EstimateBars, EstimateGroup, Figure, Series, StackedBars, save_figure

HOSTILE = ("<b>net</b> & </text>", "_under", r"$\frac{a}{b}$", "line\nbreak\x00")
GROUPS = (
    EstimateGroup("clip", (Estimate(0.5, 0.4, 0.7), Estimate(None), Estimate(0.0))),
    EstimateGroup("blip", (Estimate(-0.2, -0.3, 0.1), Estimate(0.25), Estimate(None))),
)
FLAT = EstimateBars("F1", ("hook", "bag", "clipper"), GROUPS, "score")
UPRIGHT = EstimateBars("F1", ("hook", "bag", "clipper"), GROUPS, "score", horizontal=False, span=(0, 1), height=200)
FIGURES: dict[str, Figure] = {
    "flat": FLAT,
    "upright": UPRIGHT,
    "hostile": EstimateBars(
        "<i>$x$", HOSTILE, tuple(EstimateGroup(name, (Estimate(0.5), Estimate(None)) * 2) for name in HOSTILE), "<u>"
    ),
    "empty": EstimateBars("None", (), (EstimateGroup("clip", ()),), "score"),
    "nothing defined": EstimateBars("None", ("a",), (EstimateGroup("clip", (Estimate(None),)),), "score"),
    "stacked with intervals": StackedBars("M", ("clip",), (Series("IVT", (1,)),), "triplets", (((20.0, 100.0),),)),
}
every_figure = pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES.keys())


@every_figure
def test_it_is_strict_json_for_plotly_and_repeatable_in_print(figure: Figure, tmp_path: Path) -> None:
    spec = figure.to_plotly()
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    go.Figure(data=spec["data"], layout=spec["layout"])  # raises on an unknown property
    first, second = save_figure(figure, tmp_path / "a"), save_figure(figure, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@pytest.mark.parametrize(("figure", "along"), [(FLAT, "x"), (UPRIGHT, "y")], ids=["flat", "upright"])
def test_an_undefined_number_has_neither_bar_nor_point_but_the_word(figure: EstimateBars, along: str) -> None:
    spec = figure.to_plotly()
    across = "y" if along == "x" else "x"
    bars = [trace for trace in spec["data"] if trace["type"] == "bar"]
    points = [trace for trace in spec["data"] if trace.get("mode") == "markers"]
    assert bars[0][along] == [0.5, None, 0.0]
    assert points[0][along] == [0.5, 0.0]  # zero is a number and has its point
    notes = spec["layout"]["annotations"]
    assert [note[across] for note in notes] == [bars[0][across][1], bars[1][across][2]]
    assert {note["text"] for note in notes} == {"undefined"}
    assert figure.alt.count("undefined") == 2


def test_the_word_stands_in_print_too(tmp_path: Path) -> None:
    svg, _ = save_figure(FLAT, tmp_path / "flat")
    texts = ["".join(e.itertext()).strip() for e in ElementTree.fromstring(svg.read_text("utf-8")).iter()]
    assert texts.count("undefined") >= 2


def test_a_line_runs_from_end_to_end_and_is_absent_without_an_interval() -> None:
    lines = [trace for trace in FLAT.to_plotly()["data"] if trace.get("mode") == "lines"]
    assert lines[0]["x"] == [0.4, 0.7, None]
    assert lines[1]["x"] == [-0.3, 0.1, None]


def test_names_are_literal(tmp_path: Path) -> None:
    svg, _ = save_figure(FIGURES["hostile"], tmp_path / "x")
    texts = {"".join(e.itertext()).strip() for e in ElementTree.fromstring(svg.read_text("utf-8")).iter()}
    assert {"<b>net</b> & </text>", "_under", r"$\frac{a}{b}$"} <= texts
    assert "<b>net" not in json.dumps(FIGURES["hostile"].to_plotly())


def test_a_share_tells_its_interval_where_it_can_be_read() -> None:
    figure = FIGURES["stacked with intervals"]
    assert figure.alt.endswith("clip (n = 1): IVT 100.0 % [20.0, 100.0].")
    assert "[20.0, 100.0]" in figure.to_plotly()["data"][0]["hovertext"][0]


@given(st.lists(st.none() | st.floats(-1, 1), min_size=1, max_size=6))
def test_bars_and_words_together_are_all_numbers(values: list[float | None]) -> None:
    group = EstimateGroup("g", tuple(Estimate(value) for value in values))
    spec = EstimateBars("x", tuple(map(str, values)), (group,), "y").to_plotly()
    drawn = [value for value in spec["data"][0]["x"] if value is not None]
    assert len(drawn) + len(spec["layout"]["annotations"]) == len(values)


@pytest.mark.parametrize(
    "bad",
    [
        Estimate(math.nan),
        Estimate(0.5, math.nan, 0.7),
        Estimate(0.5, 0.4),
        Estimate(0.5, 0.7, 0.4),
        Estimate(None, 0.1, 0.2),
        Estimate(None, 0.1),
    ],
    ids=str,
)
def test_half_an_interval_or_no_finite_number_is_refused(bad: Estimate) -> None:
    with pytest.raises(BadInput, match=r"'hook'.*expected a finite number"):
        EstimateBars("x", ("hook",), (EstimateGroup("clip", (bad,)),), "y")


def test_groups_of_another_length_are_refused() -> None:
    with pytest.raises(BadInput, match="expected 2 in each group"):
        EstimateBars("x", ("a", "b"), (EstimateGroup("g", (Estimate(1),)),), "y")
    with pytest.raises(BadInput, match="expected 0 in each group"):
        EstimateBars("x", (), (), "y")
    with pytest.raises(BadInput, match="expected one for each count"):
        StackedBars("x", ("a", "b"), (Series("p", (1, 2)),), "y", ((None,),))


@pytest.mark.parametrize("horizontal", [True, False])
def test_what_guessing_reaches_is_a_dashed_line_across_its_class(horizontal: bool, tmp_path: Path) -> None:
    group = EstimateGroup("clip", (Estimate(50, 40, 70), Estimate(30, 20, 40)))
    bars = EstimateBars("Skills", ("verb", "target"), (group,), "% right", horizontal, marks=(25.0, None))
    assert bars.alt.endswith("guessing: verb 25.")
    assert bars.reading.endswith("; dashed line: guessing.")
    line = bars.to_plotly()["data"][-1]
    across, along = (line["y"], line["x"]) if horizontal else (line["x"], line["y"])
    assert (across, along) == ([-0.45, 0.45, None], [25.0, 25.0, None])
    svg, _ = save_figure(bars, tmp_path / "bars")
    assert "guessing" in svg.read_text() and "stroke-dasharray" in svg.read_text()
    assert "guessing" not in replace(bars, marks=()).alt + replace(bars, marks=()).reading


def test_marks_are_one_of_each_class_and_finite() -> None:
    group = EstimateGroup("clip", (Estimate(50), Estimate(30)))
    for marks in ((25.0,), (25.0, float("nan"))):
        with pytest.raises(BadInput, match="marks"):
            EstimateBars("Skills", ("verb", "target"), (group,), "% right", marks=marks)
