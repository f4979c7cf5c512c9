"""Box plots and stacked bars show the numbers given, literally and the same each time."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.figures import BoxGroup, BoxPlot, Figure, Series, StackedBars, save_figure
from surgeval.figures.boxes import SHOWN

HOSTILE = ("<b>net</b> & </text>", "_under", r"$\frac{a}{b}$", "line\nbreak\x00", "%{x}", "12")
SPREAD = ((0.1, 0.2, 0.3, 0.4, 1.0), (), (0.7,))
BOXES = BoxPlot(
    "Attention",
    ("hook", "bag", "clipper"),
    (BoxGroup("TP-AC", SPREAD, (0.2, None, 0.3)), BoxGroup("FP-AC", (SPREAD[2], SPREAD[0], ()))),
    "share of region",
)
PARTS = (Series("IVT", (1, 0)), Series("IV", (2, 0)), Series("missed", (17, 0)))
BARS = StackedBars("Matches", ("clip", "blip"), PARTS, "labelled triplets")
FIGURES: dict[str, Figure] = {
    "boxes": BOXES,
    "stacked": BARS,
    "one group, free span": BoxPlot("Lift", ("hook",), (BoxGroup("lift", ((0.5, 7.0),)),), "times chance", span=None),
    "thousands of points": BoxPlot("Many", ("a",), (BoxGroup("g", (tuple(k / 5000 for k in range(5000)),)),), "x"),
    "hostile boxes": BoxPlot(
        "<i>$x$", HOSTILE, tuple(BoxGroup(name, ((0.5,),) * 6, (0.1,) * 6) for name in HOSTILE), "<u>", mark="<s>"
    ),
    "hostile bars": StackedBars("<i>$x$", HOSTILE, tuple(Series(name, (1,) * 6) for name in HOSTILE), "<u>"),
    "empty boxes": BoxPlot("None", (), (), "x"),
    "boxes without values": BoxPlot("None", ("a",), (BoxGroup("g", ((),)),), "x"),
    "empty bars": StackedBars("None", (), (Series("IVT", ()),), "triplets"),
}
every_figure = pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES.keys())


@every_figure
def test_a_saved_grounding_figure_is_well_formed_and_repeatable(figure: Figure, tmp_path: Path) -> None:
    first, second = save_figure(figure, tmp_path / "a"), save_figure(figure, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert ElementTree.fromstring(first[0].read_text("utf-8")).tag.endswith("svg")


@every_figure
def test_plotly_accepts_every_grounding_figure_and_it_is_strict_json(figure: Figure) -> None:
    spec = figure.to_plotly()
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    go.Figure(data=spec["data"], layout=spec["layout"])  # raises on an unknown property
    assert spec["layout"]["height"] > 0
    assert len(figure.alt) > 10 and "\n" not in figure.alt
    assert all("hovertemplate" not in trace for trace in spec["data"])


def test_names_are_shown_literally(tmp_path: Path) -> None:
    svg, _ = save_figure(FIGURES["hostile boxes"], tmp_path / "boxes")
    texts = {"".join(e.itertext()).strip() for e in ElementTree.fromstring(svg.read_text("utf-8")).iter()}
    assert {"<b>net</b> & </text>", "_under", r"$\frac{a}{b}$", "12"} <= texts
    assert "<b>net" not in json.dumps([FIGURES["hostile boxes"].to_plotly(), FIGURES["hostile bars"].to_plotly()])


def test_a_class_without_values_has_no_box() -> None:
    first = BOXES.to_plotly()["data"][0]
    assert len(first["x"]) == 2
    assert first["median"] == [0.3, 0.7]


def test_whiskers_end_at_the_last_point_within_reach_and_the_outlier_is_still_drawn() -> None:
    box, points = BOXES.to_plotly()["data"][:2]
    assert (box["q1"][0], box["q3"][0], box["lowerfence"][0], box["upperfence"][0]) == (0.2, 0.4, 0.1, 0.4)
    assert points["y"][:5] == [0.1, 0.2, 0.3, 0.4, 1.0]


def test_both_drawings_have_the_same_boxes() -> None:
    lines = BOXES.to_matplotlib().axes[0].get_lines()
    medians = {float(np.asarray(line.get_ydata(), dtype=float)[0]) for line in lines if line.get_linewidth() == 2.0}
    assert medians == {y for trace in BOXES.to_plotly()["data"][::3] for y in trace.get("median", [])}


def test_a_mark_stands_in_its_own_box() -> None:
    *_, marks = BOXES.to_plotly()["data"]
    boxes = BOXES.to_plotly()["data"][0]
    assert (marks["x"], marks["y"]) == (boxes["x"], [0.2, 0.3])


def test_a_box_of_thousands_shows_some_points_from_all_of_its_range() -> None:
    points = FIGURES["thousands of points"].to_plotly()["data"][1]["y"]
    assert len(points) == SHOWN
    assert points[0] < 0.01 and points[-1] > 0.99


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_quartiles_are_numpys(values: list[float]) -> None:
    box = BoxPlot("x", ("a",), (BoxGroup("g", (tuple(values),)),), "y").to_plotly()["data"][0]
    found = [box["q1"][0], box["median"][0], box["q3"][0]]
    np.testing.assert_allclose(found, np.quantile(values, [0.25, 0.5, 0.75]), rtol=1e-9, atol=1e-6)
    assert box["lowerfence"][0] <= box["q1"][0] and box["q3"][0] <= box["upperfence"][0]


def test_the_parts_of_a_bar_sum_to_100_percent_and_an_empty_bar_to_nothing() -> None:
    assert BARS.percent() == ((5.0, 10.0, 85.0), (0.0, 0.0, 0.0))
    widths = [[bar.get_width() for bar in bars] for bars in BARS.to_matplotlib().axes[0].containers]
    assert [trace["x"] for trace in BARS.to_plotly()["data"]] == widths


def test_a_narrow_part_has_no_number_inside() -> None:
    assert [trace["text"][0] for trace in BARS.to_plotly()["data"]] == ["", "10 %", "85 %"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: BoxPlot("x", ("a", "b"), (BoxGroup("g", ((1.0,),)),), "y"),
        lambda: BoxPlot("x", ("a",), (BoxGroup("g", ((1.0,),), (0.1, 0.2)),), "y"),
        lambda: BoxPlot("x", ("a",), (BoxGroup("g", ((math.nan,),)),), "y"),
        lambda: BoxPlot("x", ("a",), (BoxGroup("g", ((0.5,),), (math.inf,)),), "y"),
        lambda: StackedBars("x", ("a", "b"), (Series("p", (1,)),), "y"),
        lambda: StackedBars("x", ("a",), (), "y"),
        lambda: StackedBars("x", ("a",), (Series("p", (-1,)),), "y"),
        lambda: StackedBars("x", ("a",), (Series("p", (math.nan,)),), "y"),
    ],
)
def test_grounding_figures_refuse_what_cannot_be_drawn(make: object) -> None:
    with pytest.raises(BadInput, match="figure 'x'"):
        make()  # type: ignore[operator]
