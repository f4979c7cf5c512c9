"""Figures draw the same numbers twice, show labels literally, and save the same bytes each time."""

from __future__ import annotations

import html
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.figures import (
    Bars,
    Cloud,
    Curve,
    Figure,
    Heatmap,
    Histogram,
    Lines,
    Scatter,
    Series,
    Timeline,
    TimelineSpan,
    bin_labels,
    save_figure,
)
from surgeval.figures.labels import shorten
from surgeval.figures.palette import colour, hatches

HOSTILE = ("<b>hook</b> & </text>", "_under", r"$\frac{clip}$", "line\nbreak\x00", "\u202eright to left", "12")


def bars(**changes: object) -> Bars:
    first = Bars("Tools", ("grasper", "hook"), (Series("A", (3, 0)), Series("B", (2, 5))), "instances")
    return replace(first, **changes)  # type: ignore[arg-type]


FIGURES: dict[str, Figure] = {
    "stacked bars": bars(),
    "grouped bars": bars(mode="grouped", horizontal=False, axis="tool"),
    "points on a log axis": bars(log=True),
    "nameless points": bars(log=True, horizontal=False, named=False),
    "heatmap": Heatmap("Pairs", ("hook", "clipper"), ("cut", "clip"), ((4, None), (0, 900)), "instances"),
    "wide heatmap": Heatmap("Wide", ("hook",), tuple(map(str, range(30))), (tuple(map(float, range(30))),), "frames"),
    "histogram": Histogram("Length", (0, 1, 2, math.inf), (3, 2, 1), "seconds", "actions"),
    "timeline": Timeline(
        "Phases", ("VID01", "VID02"), ("a", "b"), (TimelineSpan(0, 0, 0, 3), TimelineSpan(1, 1, 2, 9)), "minutes"
    ),
    "hostile bars": Bars("<i>$x$", HOSTILE, tuple(Series(name, (1,) * 6) for name in HOSTILE), "<u>"),
    "hostile heatmap": Heatmap("<i>", HOSTILE, HOSTILE, ((1.0,) * 6,) * 6, "$"),
    "hostile timeline": Timeline("<i>", HOSTILE, HOSTILE, tuple(TimelineSpan(k, k, 0, 1) for k in range(6)), "$"),
    "empty bars": Bars("None", (), (Series("A", ()),), "instances"),
    "empty heatmap": Heatmap("None", (), (), (), "instances"),
    "empty timeline": Timeline("None", (), (), (), "minutes"),
    "all-zero log bars": bars(log=True, series=(Series("A", (0, 0)),)),
}
every_figure = pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES.keys())


@every_figure
def test_a_figure_saved_twice_gives_the_same_bytes(figure: Figure, tmp_path: Path) -> None:
    first, second = save_figure(figure, tmp_path / "a"), save_figure(figure, tmp_path / "b")
    assert [path.suffix for path in first] == [".svg", ".png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert b"date" not in first[0].read_bytes()


@every_figure
def test_the_svg_is_well_formed_whatever_the_classes_are_called(figure: Figure, tmp_path: Path) -> None:
    svg, _ = save_figure(figure, tmp_path / "figure")
    assert ElementTree.fromstring(svg.read_text("utf-8")).tag.endswith("svg")


@every_figure
def test_the_page_gets_strict_json_and_a_text_alternative(figure: Figure) -> None:
    spec = figure.to_plotly()
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert set(spec) == {"data", "layout"}
    assert spec["layout"]["height"] > 0
    assert len(figure.alt) > 10
    assert "\n" not in figure.alt


def test_the_svg_keeps_labels_as_text_without_mathematics(tmp_path: Path) -> None:
    svg, _ = save_figure(FIGURES["hostile bars"], tmp_path / "figure")
    texts = {"".join(element.itertext()).strip() for element in ElementTree.fromstring(svg.read_text("utf-8")).iter()}
    for label in ("<b>hook</b> & </text>", "_under", r"$\frac{clip}$", "line break\ufffd", "12"):
        assert label in texts


def test_equal_names_stay_two_classes_on_the_page() -> None:
    spec = bars(labels=("hook", "hook")).to_plotly()
    assert spec["data"][0]["y"] == [0, 1]
    assert spec["layout"]["yaxis"]["ticktext"] == ["hook", "hook"]


def test_a_source_called_like_a_plotly_template_is_not_filled_in() -> None:
    spec = bars(series=(Series("%{x}", (1, 2)), Series("B", (1, 2)))).to_plotly()
    assert all("hovertemplate" not in trace and trace["hoverinfo"] == "text" for trace in spec["data"])
    assert spec["data"][0]["hovertext"][0] == "grasper · %{x}<br>1 instances"


def test_a_log_axis_shows_points_and_leaves_zeros_out() -> None:
    spec = bars(log=True).to_plotly()
    assert {trace["type"] for trace in spec["data"]} == {"scatter"}
    assert spec["data"][0]["x"] == [3, None]
    assert spec["layout"]["xaxis"]["type"] == "log"


def test_both_drawings_have_the_same_bar_lengths() -> None:
    figure = bars()
    drawn = [bar.get_width() for container in figure.to_matplotlib().axes[0].containers for bar in container]
    assert drawn == [value for trace in figure.to_plotly()["data"] for value in trace["x"]] == [3, 0, 2, 5]


def test_heatmap_colour_grows_with_the_logarithm_and_empty_cells_have_none() -> None:
    z = Heatmap("Pairs", ("hook",), ("a", "b", "c"), ((0, 9, 99),), "n").to_plotly()["data"][0]["z"]
    assert z == [[None, math.log(10), math.log(100)]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: bars(labels=("grasper",)),
        lambda: bars(series=()),
        lambda: bars(series=(Series("A", (math.nan, 1)),)),
        lambda: bars(series=(Series("A", (-1, 1)),)),
        lambda: Heatmap("x", ("a",), ("b", "c"), ((1,),), "n"),
        lambda: Heatmap("x", ("a",), ("b",), ((math.inf,),), "n"),
        lambda: Histogram("x", (0, 1), (1, 2), "s", "n"),
        lambda: Histogram("x", (0, 2, 1), (1, 2), "s", "n"),
        lambda: Histogram("x", (0, 1), (-1,), "s", "n"),
        lambda: Timeline("x", ("a",), ("k",), (TimelineSpan(1, 0, 0, 1),), "s"),
        lambda: Timeline("x", ("a",), ("k",), (TimelineSpan(0, 0, 2, 1),), "s"),
        lambda: Timeline("x", ("a",), ("k",), (TimelineSpan(0, 0, 0, math.nan),), "s"),
    ],
)
def test_values_that_cannot_be_drawn_are_refused_with_the_figures_name(make: object) -> None:
    with pytest.raises(BadInput, match="figure '"):
        make()  # type: ignore[operator]


def test_no_two_of_the_first_32_classes_look_the_same() -> None:
    for library in (0, 1):
        assert len({(colour(k), hatches(k)[library]) for k in range(32)}) == 32


def test_bins_say_their_range() -> None:
    assert bin_labels((0, 0.5, 1000, math.inf)) == ("0–0.5", "0.5–1\u202f000", "≥ 1\u202f000")


def test_importing_figures_loads_no_plotting_library() -> None:
    code = "import sys, surgeval.figures; sys.exit(any(name in sys.modules for name in ('matplotlib', 'plotly')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(labels=st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_any_name_reaches_plotly_as_itself(labels: list[str]) -> None:
    figure = Bars("x", tuple(labels), (Series("A", (1,) * len(labels)),), "n")
    shown = figure.to_plotly()["layout"]["yaxis"]["ticktext"]
    assert [html.unescape(text) for text in shown] == [shorten(label) for label in labels]
    assert not any(sign in text for text in shown for sign in "<>")


@settings(max_examples=10)
@given(name=st.text(alphabet=st.characters(), min_size=1, max_size=20))
def test_any_name_can_be_saved(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    figure = Bars(name, (name,), (Series(name, (1,)), Series(name, (2,))), name, axis=name)
    svg, _ = save_figure(figure, tmp_path_factory.mktemp("figure") / "any")
    assert ElementTree.fromstring(svg.read_text("utf-8")).tag == "{http://www.w3.org/2000/svg}svg"


def test_small_numbers_on_an_axis_are_powers_of_ten() -> None:
    """Plotly's own choice is a letter of the SI: a rate of 0.00001 would stand there as 10μ."""
    lines = Lines("Rate", "epoch", "rate", (Curve("rate", (1, 2), (1e-5, 3e-5)),))
    layout = lines.to_plotly()["layout"]
    assert (layout["yaxis"]["exponentformat"], layout["xaxis"]["exponentformat"]) == ("power", "power")


def test_no_exponent_on_a_logarithmic_axis() -> None:
    """plotly.js raises it by an inline style, which the policy of a page refuses."""
    cloud = Cloud("i", ("hook", "clip"), (1, 300), (0.8, 0.5))
    assert (
        Scatter("AP", "instances", "AP", (cloud,), log=True).to_plotly()["layout"]["xaxis"]["exponentformat"] == "none"
    )


def test_the_name_of_the_rightmost_point_stands_inside_the_figure() -> None:
    cloud = Cloud("m", ("always-reject", "phantom-sycophant"), (25, 75), (60, 50), named=True)
    (trace,) = Scatter("Both", "competency", "reliability", (cloud,)).to_plotly()["data"]
    assert trace["textposition"] == ["top center", "top left"]
