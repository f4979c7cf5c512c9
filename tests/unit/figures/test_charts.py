"""Each chart shows the values it was given, refuses what cannot be drawn, and keeps labels as text."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import altair
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.figures.examples import HOSTILE, TOOLS, empty_figures, figures, hostile_figures

from surgeval.errors import BadInput
from surgeval.figures import (
    Cloud,
    Curve,
    Estimate,
    Figure,
    Series,
    TimelineSpan,
    bars,
    bin_labels,
    box,
    colour,
    curves,
    estimates,
    heatmap,
    histogram,
    lines,
    podium,
    rank_blobs,
    scatter,
    significance_map,
    stability_lines,
    stacked,
    timeline,
)

EVERY = {**figures(), **{f"hostile {name}": figure for name, figure in hostile_figures().items()},
         **{f"empty {name}": figure for name, figure in empty_figures().items()}}  # fmt: skip
every_figure = pytest.mark.parametrize("figure", EVERY.values(), ids=EVERY.keys())


def rows(figure: Figure, mark: str) -> list[dict[str, Any]]:
    """The data of the first layer with this mark, without what shows on hovering."""
    parts = figure.spec.get("layer", [figure.spec])
    layer = next(part for part in parts if part["mark"]["type"] == mark)
    return [{key: value for key, value in row.items() if key != "tip"} for row in layer["data"]["values"]]


@pytest.mark.parametrize("figure", figures().values(), ids=figures().keys())
def test_every_kind_is_vega_lite_as_altair_knows_it(figure: Figure) -> None:
    altair.Chart.from_dict(figure.paper_spec(), validate=True)


@every_figure
def test_every_kind_is_strict_json_with_a_text_alternative(figure: Figure) -> None:
    assert json.loads(json.dumps(figure.spec, allow_nan=False)) == json.loads(json.dumps(figure.spec))
    assert len(figure.alt) > 10
    assert "\n" not in figure.alt


def test_only_figures_without_a_value_are_empty() -> None:
    assert not any(figure.empty for figure in figures().values())
    assert all(figure.empty for figure in empty_figures().values())


def test_stacked_bars_hold_each_value_and_a_log_axis_leaves_zeros_out() -> None:
    series = [Series("A", (3, 0)), Series("B", (2, 5))]
    drawn = [(row["class"], row["series"], row["value"]) for row in rows(bars("T", ("a", "b"), series, "n"), "bar")]
    assert drawn == [("a", "A", 3), ("b", "A", 0), ("a", "B", 2), ("b", "B", 5)]
    points = rows(bars("T", ("a", "b"), series, "n", log=True), "point")
    assert [row["value"] for row in points] == [3, 2, 5]


def test_shares_sum_to_the_bar_and_wide_parts_carry_their_number() -> None:
    figure = stacked("M", ("clip",), [Series("IVT", (1,)), Series("IV", (0,)), Series("missed", (3,))], "triplets")
    assert [(row["from"], row["to"]) for row in rows(figure, "bar")] == [(0, 25), (25, 25), (25, 100)]
    assert [(row["at"], row["text"]) for row in rows(figure, "text")] == [(12.5, "25 %"), (62.5, "75 %")]


def test_bins_say_their_range() -> None:
    assert bin_labels((0, 0.5, 1000, math.inf)) == ("0–0.5", "0.5–1\u202f000", "≥ 1\u202f000")
    counts = rows(histogram("L", (0, 1, math.inf), (3, 2), "s", "actions"), "bar")
    assert counts == [{"bin": "0–1", "count": 3}, {"bin": "≥ 1", "count": 2}]


@pytest.mark.parametrize("horizontal", [True, False])
def test_an_undefined_number_has_no_dot_but_the_word_and_zero_has_its_dot(horizontal: bool) -> None:
    group = Series("clip", (Estimate(0.5, 0.4, 0.7), Estimate(None), Estimate(0.0), (math.nan, math.nan, math.nan)))
    figure = estimates(
        "F1", ("a", "b", "c", "d"), [group], "score", horizontal=horizontal, baselines=(0.3, None, None, None)
    )
    dots = [(row["class"], row["value"]) for row in rows(figure, "point")]
    assert dots == [("a", 0.5), ("c", 0.0)]
    bands, ticks = (layer["data"]["values"] for layer in figure.spec["layer"] if layer["mark"]["type"] == "rule")
    assert [(row["low"], row["high"]) for row in bands] == [(0.4, 0.7)]
    assert [row["at"] for row in ticks] == [0.3]
    assert [row["class"] for row in rows(figure, "text")] == ["b", "d"]
    assert figure.alt.count("undefined") == 2
    assert figure.reading == "Dot: the number; band: its 95 % interval; orange tick: guessing."


def test_differences_are_drawn_beside_a_line_at_zero() -> None:
    zero = [layer for layer in estimates("D", ("a",), [("x", ((-0.1, -0.2, 0.1),))], "d").spec["layer"]
            if layer["mark"].get("style") == "zero"]  # fmt: skip
    assert [layer["data"]["values"] for layer in zero] == [[{"zero": 0}]]


def test_the_name_of_the_rightmost_point_stands_inside_the_figure() -> None:
    cloud = Cloud("m", ("always-reject", "phantom-sycophant"), (25, 75), (60, 50), named=True)
    sides = [row["side"] for row in rows(scatter("B", "competency", "reliability", (cloud,)), "point")]
    assert sides == ["above", "above left"]


def test_lines_keep_their_order_and_long_ones_answer_to_hovering_alone() -> None:
    short = lines("Loss", "epoch", "loss", [Curve("box", (2, 1), (3.0, 1.5))])
    assert [(row["x"], row["y"]) for row in rows(short, "line")] == [(2, 3.0), (1, 1.5)]
    assert len(rows(short, "point")) == 2
    long = curves("PR", "recall", "precision", [Curve("box", (0, 0.5, 1), (1, 0.5, 0))])
    assert [part.get("name") for part in long.spec["layer"]] == [None, "hover"]
    assert [part.get("name") for part in long.paper_spec()["layer"]] == [None]


def test_many_lines_differ_in_colour_or_dash() -> None:
    (line,) = (part for part in figures()["many curves"].spec["layer"] if part["mark"]["type"] == "line")
    colours, dashes = (line["encoding"][channel]["scale"]["range"] for channel in ("color", "strokeDash"))
    assert len({(shade, tuple(dash)) for shade, dash in zip(colours, dashes, strict=True)}) == 20


def test_heatmap_colour_grows_with_the_logarithm_and_empty_cells_have_none() -> None:
    cells = rows(heatmap("Pairs", ("hook",), ("a", "b", "c"), ((0, 9, 99),), "n"), "rect")
    assert [(cell["column"], cell["shade"], cell["text"]) for cell in cells] == [
        ("b", math.log(10), "9"), ("c", math.log(100), "99")]  # fmt: skip
    shares = rows(heatmap("A", ("net",), ("a", "b"), ((0, None),), "share", whole=1), "rect")
    assert [(cell["column"], cell["shade"]) for cell in shares] == [("a", 0)]


def test_boxes_have_numpys_quartiles_and_whiskers_at_the_last_point_within_reach() -> None:
    values = (1.0, 2.0, 3.0, 4.0, 100.0)
    figure = box("B", ("a", "b"), [("g", (values, ()))], "n", span=None, marks=((2.5, None),))
    (whiskers,) = rows(figure, "rule")
    assert {key: whiskers[key] for key in ("q1", "median", "q3", "low", "high")} == {
        "q1": 2.0, "median": 3.0, "q3": 4.0, "low": 1.0, "high": 4.0}  # fmt: skip
    assert sorted(row["at"] for row in rows(figure, "circle")) == sorted(values)
    assert [row["at"] for row in rows(figure, "tick")] == [2.5]
    assert [row["class"] for row in rows(figure, "text")] == ["b"]


def test_a_box_of_many_points_shows_150_of_them() -> None:
    values = np.random.default_rng(0).random(5000).tolist()
    figure = box("B", ("a",), [("g", (values,))], "n")
    assert len(rows(figure, "circle")) == 150
    assert rows(figure, "rule")[0]["median"] == float(np.median(values))


def test_a_timeline_has_a_bar_for_each_stretch() -> None:
    figure = timeline("P", ("V1", "V2"), ("a", "b"), (TimelineSpan(1, 0, 2, 9),), "minutes")
    assert rows(figure, "bar") == [{"row": "V2", "kind": "a", "from": 2, "to": 9}]


def test_the_podium_counts_places_and_keeps_a_column_for_each_model() -> None:
    figure = podium("P", ("net", "prior"), ("x", "y"), ((0.8, 0.6), (0.7, 0.7)), ((1, 2), (1, 1)), "score")
    upper, lower = figure.spec["vconcat"]
    points = [(row["series"], round(row["x"], 2), row["y"]) for row in upper["layer"][2]["data"]["values"]]
    assert points == [("net", 0.8, 0.8), ("prior", 2.2, 0.6), ("net", 0.8, 0.7), ("prior", 1.2, 0.7)]
    assert [row["count"] for row in lower["layer"][1]["data"]["values"]] == [2, 0, 1, 1]


def test_blobs_leave_out_places_never_taken() -> None:
    figure = rank_blobs("P", ("net", "prior"), ((1.0, 0.0), (0.1, 0.9)), ((1, 1, 1), (1, 2, 2)))
    assert [(row["model"], row["place"], row["share"]) for row in rows(figure, "circle")] == [
        ("net", 1, 1.0), ("prior", 1, 0.1), ("prior", 2, 0.9)]  # fmt: skip
    assert [row["place"] for row in rows(figure, "point")] == [1, 2]


def test_the_significance_map_is_blue_where_the_row_is_better() -> None:
    cells = {(row["row"], row["column"]): row for row in rows(
        significance_map("V", ("net", "prior"), ((0, 3), (0, 0)), 3), "rect")}  # fmt: skip
    assert (cells["net", "prior"]["text"], cells["net", "prior"]["fill"]) == ("3:0", "#0f5c92")
    assert (cells["prior", "net"]["text"], cells["prior", "net"]["fill"]) == ("0:3", "#a34700")


def test_lines_on_a_shared_place_are_drawn_apart_and_absent_models_have_no_point() -> None:
    figure = stability_lines("S", ("a", "b"), ("x", "y"), ((1, 1), (1, None)), "bucket")
    assert [(row["series"], row["place"]) for row in rows(figure, "point")] == [("a", 0.93), ("a", 1.0), ("b", 1.07)]
    assert [row["place"] for row in rows(figure, "line")] == [0.93, 1.0, 1.07, None]


ONE = (Series("A", (1, 2, 3)),)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bars("x", ("a",), ONE, "n"),
        lambda: bars("x", TOOLS, (), "n"),
        lambda: bars("x", TOOLS, (Series("A", (math.nan, 1, 1)),), "n"),
        lambda: bars("x", TOOLS, (Series("A", (-1, 1, 1)),), "n"),
        lambda: stacked("x", TOOLS, ONE, "n", (((1, 2),),)),
        lambda: estimates("x", ("a",), [("g", ((0.5, 0.7, 0.4),))], "n"),
        lambda: estimates("x", ("a",), [("g", ((math.inf,),))], "n"),
        lambda: estimates("x", ("a",), [("g", ((None, 0.1, 0.2),))], "n"),
        lambda: estimates("x", ("a",), [("g", ((0.5, 0.4),))], "n"),
        lambda: estimates("x", ("a",), [("g", ((0.5,),))], "n", baselines=(1, 2)),
        lambda: heatmap("x", ("a",), ("b", "c"), ((1,),), "n"),
        lambda: heatmap("x", ("a",), ("b",), ((math.inf,),), "n"),
        lambda: histogram("x", (0, 1), (1, 2), "s", "n"),
        lambda: histogram("x", (0, 2, 1), (1, 2), "s", "n"),
        lambda: histogram("x", (0, 1), (-1,), "s", "n"),
        lambda: timeline("x", ("a",), ("k",), (TimelineSpan(1, 0, 0, 1),), "s"),
        lambda: timeline("x", ("a",), ("k",), (TimelineSpan(0, 0, 2, 1),), "s"),
        lambda: timeline("x", ("a",), ("k",), (TimelineSpan(0, 0, 0, math.nan),), "s"),
        lambda: curves("x", "r", "p", (Curve("a", (0, 1), (1.5, 0)),)),
        lambda: lines("x", "r", "p", (Curve("a", (0, 1), (0, 1)),), log=True),
        lambda: scatter("x", "r", "p", (Cloud("i", ("hook",), (0,), (0.5,)),), log=True),
        lambda: box("x", TOOLS, [("g", ((1.0,),))], "n"),
        lambda: podium("x", ("a",), ("c",), ((1.0,),), ((2,),), "n"),
        lambda: rank_blobs("x", ("a",), ((2.0,),), ((1, 1, 1),)),
        lambda: significance_map("x", ("a", "b"), ((0, 2), (2, 0)), 3),
        lambda: stability_lines("x", ("a",), ("c",), ((2,),), "n"),
    ],
)
def test_values_that_cannot_be_drawn_are_refused_with_the_figures_name(make: Callable[[], Figure]) -> None:
    with pytest.raises(BadInput, match="Figure 'x'"):
        make()


def test_no_two_of_the_first_32_classes_look_the_same() -> None:
    assert len({colour(k) for k in range(32)}) == 32


def test_importing_figures_loads_no_drawing_library() -> None:
    code = "import sys, surgeval.figures; sys.exit(any(name in sys.modules for name in ('vl_convert', 'altair')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(labels=st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_any_names_stay_as_many_classes_and_appear_as_data_alone(labels: list[str]) -> None:
    figure = bars("x", labels, [Series("A", (1,) * len(labels))], "n")
    assert len({row["class"] for row in rows(figure, "bar")}) == len(labels)
    assert figure.spec["encoding"]["y"]["scale"]["domain"] == [row["class"] for row in rows(figure, "bar")]


def test_no_specification_holds_an_expression() -> None:
    """Vega evaluates `expr`, `labelExpr`, filters and calculations; a label must never stand in one."""
    forbidden = {"expr", "labelExpr", "transform", "filter", "calculate", "test", "signal", "href"}

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    assert not any(keys(figure.paper_spec()) & forbidden for figure in EVERY.values())
    assert HOSTILE[0] in str(hostile_figures()["bars"].spec)


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString"])
def test_a_class_named_like_a_property_of_javascript_objects_has_its_bar(name: str) -> None:
    figure = bars("Boxes", [name, "hook"], [Series("train", (3, 2)), Series("val", (1, 1))], "boxes")
    assert figure.svg().count('fill="#0072b2"') == bars("Boxes", ["bag", "hook"], [
        Series("train", (3, 2)), Series("val", (1, 1))], "boxes").svg().count('fill="#0072b2"')  # fmt: skip
