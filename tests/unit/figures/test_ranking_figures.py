"""The ranking's pictures show the ranking's numbers, literally and the same each time."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from surgeval.errors import BadInput
from surgeval.figures import Figure, Heatmap, Podium, RankBlobs, SignificanceMap, StabilityLines, save_figure

HOSTILE = ("<b>net</b> & </text>", "_under", r"$\frac{a}{b}$", "line\nbreak\x00", "%{x}", "12")
MANY = tuple(f"model{m:02d}" for m in range(30))


def one_hot(count: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(k == m) for k in range(count)) for m in range(count))


def wins(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(i < j) for j in range(count)) for i in range(count))


ACCURACY = ((0.9, 0.5, 0.1), (0.4, 0.6, 0.6))
PODIUM = Podium("Buckets", ("a", "b", "c"), ("verb", "target"), ACCURACY, ((1, 2, 3), (3, 1, 1)), "accuracy")
LINES = StabilityLines("Left out", ("a", "b"), ("none", "verb", "b"), ((1, 1, 1), (1, 2, None)), "left out")
MAP = SignificanceMap("Pairs", ("a", "b", "c"), ((0, 3, 4), (1, 0, 2), (0, 2, 0)), 5)
BLOBS = RankBlobs("Places", ("a", "b"), ((0.75, 0.25), (0.25, 0.75)), ((1, 1, 2), (1, 2, 2)))
FIGURES: dict[str, Figure] = {
    "podium": PODIUM,
    "lines": LINES,
    "map": MAP,
    "map of one bucket": SignificanceMap("One", ("a", "b"), ((0, 1), (0, 0)), 1, ((1.0, 0.0004), (0.0004, 1.0))),
    "blobs": BLOBS,
    "hostile podium": Podium("<i>$x$", HOSTILE, HOSTILE, ((0.5,) * 6,) * 6, ((1,) * 6,) * 6, "<u>"),
    "hostile lines": StabilityLines("<i>", HOSTILE, HOSTILE, ((1,) * 6,) * 6, "$"),
    "hostile map": SignificanceMap("<i>", HOSTILE, wins(6), 1),
    "hostile blobs": RankBlobs("<i>", HOSTILE, one_hot(6), ((1, 1, 1),) * 6),
    "podium of 30": Podium(
        "Many", MANY, ("b",), (tuple(m / 30 for m in range(30)),), (tuple(range(1, 31)),), "accuracy"
    ),
    "lines of 30": StabilityLines("Many", MANY, ("x",), tuple((m + 1,) for m in range(30)), "condition"),
    "map of 30": SignificanceMap("Many", MANY, wins(30), 1),
    "blobs of 30": RankBlobs("Many", MANY, one_hot(30), tuple((m + 1,) * 3 for m in range(30))),
    "empty podium": Podium("None", (), (), (), (), "accuracy"),
    "empty lines": StabilityLines("None", (), (), (), "x"),
    "empty map": SignificanceMap("None", (), (), 0),
    "empty blobs": RankBlobs("None", (), (), ()),
}
LARGE = ("podium of 30", "map of 30")  # seconds each; the blobs of 30 are as large
every_figure = pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES.keys())


@pytest.mark.parametrize(
    "figure",
    [pytest.param(one, marks=[pytest.mark.long] if name in LARGE else [], id=name) for name, one in FIGURES.items()],
)
def test_a_saved_ranking_figure_is_well_formed_and_repeatable(figure: Figure, tmp_path: Path) -> None:
    first, second = save_figure(figure, tmp_path / "a"), save_figure(figure, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert ElementTree.fromstring(first[0].read_text("utf-8")).tag.endswith("svg")


@every_figure
def test_plotly_accepts_every_ranking_figure_and_it_is_strict_json(figure: Figure) -> None:
    spec = figure.to_plotly()
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    go.Figure(data=spec["data"], layout=spec["layout"])  # raises on an unknown property
    assert spec["layout"]["height"] > 0
    assert len(figure.alt) > 10 and "\n" not in figure.alt
    assert all("hovertemplate" not in trace for trace in spec["data"])


def test_names_of_models_are_shown_literally(tmp_path: Path) -> None:
    for name in ("hostile podium", "hostile lines"):
        svg, _ = save_figure(FIGURES[name], tmp_path / name.replace(" ", "_"))
        texts = {"".join(e.itertext()).strip() for e in ElementTree.fromstring(svg.read_text("utf-8")).iter()}
        assert {"<b>net</b> & </text>", "_under", r"$\frac{a}{b}$", "12"} <= texts
        spec = json.dumps(FIGURES[name].to_plotly())
        assert "<b>net" not in spec


def test_the_podium_counts_how_often_each_model_took_each_place() -> None:
    bars = [trace for trace in PODIUM.to_plotly()["data"] if trace["type"] == "bar"]
    assert [bar["y"] for bar in bars] == [[1, 0, 1], [1, 1, 0], [1, 0, 1]]


def test_the_podium_joins_the_values_of_one_case_from_first_to_last_place() -> None:
    line = PODIUM.to_plotly()["data"][0]
    assert line["y"] == [0.9, 0.5, 0.1, None, 0.6, 0.6, 0.4, None]
    assert line["x"][:3] == sorted(line["x"][:3])


def test_models_on_a_shared_place_are_drawn_side_by_side_and_absent_ones_not_at_all() -> None:
    first, second = (trace["y"] for trace in LINES.to_plotly()["data"])
    assert first[0] < 1 < second[0] and first[0] + second[0] == pytest.approx(2)
    assert first[1:] == [1, 1] and second[1:] == [2, None]


def test_the_significance_map_is_antisymmetric_in_colour_and_blank_on_the_diagonal() -> None:
    z = MAP.to_plotly()["data"][0]["z"]
    assert z == [[None, 0.4, 0.8], [-0.4, None, 0.0], [-0.8, 0.0, None]]
    assert MAP.to_plotly()["data"][0]["text"][0] == ["", "3:1", "4:0"]


def test_the_area_of_a_blob_is_the_share_of_resamples() -> None:
    sizes = BLOBS.to_plotly()["data"][1]["marker"]["size"]
    assert (sizes[0] / sizes[1]) ** 2 == pytest.approx(3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Podium("x", ("a", "b"), ("c",), ((0.1,),), ((1, 2),), "n"),
        lambda: Podium("x", ("a",), ("c",), ((float("nan"),),), ((1,),), "n"),
        lambda: Podium("x", ("a",), ("c",), ((0.5,),), ((2,),), "n"),
        lambda: StabilityLines("x", ("a",), ("c", "d"), ((1,),), "n"),
        lambda: StabilityLines("x", ("a",), ("c",), ((0,),), "n"),
        lambda: SignificanceMap("x", ("a", "b"), ((0, 1),), 1),
        lambda: SignificanceMap("x", ("a", "b"), ((0, 1), (1, 0)), 1),
        lambda: SignificanceMap("x", ("a", "b"), ((0, 1), (0, 0)), 1, ((1, 2), (2, 1))),
        lambda: RankBlobs("x", ("a",), ((1.5,),), ((1, 1, 1),)),
        lambda: RankBlobs("x", ("a", "b"), ((1, 0), (0, 1)), ((2, 1, 2), (1, 1, 1))),
    ],
)
def test_ranking_figures_refuse_what_cannot_be_drawn(make: object) -> None:
    with pytest.raises(BadInput, match="figure 'x'"):
        make()  # type: ignore[operator]


def test_long_names_under_the_lines_end_at_their_ticks_and_short_ones_stay_level() -> None:
    names = tuple(f"temporal_grounding|{k}" for k in range(10))
    long = StabilityLines("Left out", ("net",), names, ((1,) * 10,), "bucket").to_plotly()["layout"]
    assert long["xaxis"]["tickangle"] == -35
    assert long["xaxis"]["ticklabeloverflow"] == "allow"
    assert long["margin"]["l"] > 8
    short = StabilityLines("Left out", ("net",), ("a", "b"), ((1, 1),), "bucket").to_plotly()["layout"]
    assert "tickangle" not in short["xaxis"]
    assert not short["margin"]


def test_a_share_is_coloured_linearly_and_a_share_of_nothing_is_shown() -> None:
    shares = Heatmap("Accuracy", ("net",), ("a", "b", "c"), ((0, 50, None),), "% right", whole=100).to_plotly()
    [trace] = shares["data"]
    assert (trace["z"], trace["zmax"], trace["text"]) == ([[0.0, 50.0, None]], 100, [["0", "50", ""]])
    counts = Heatmap("Pairs", ("net",), ("a", "b", "c"), ((0, 50, None),), "frames").to_plotly()
    assert counts["data"][0]["text"] == [["", "50", ""]]
