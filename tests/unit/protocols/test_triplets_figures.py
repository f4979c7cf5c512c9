"""Curves and scatter plots: the same bytes each time, labels shown literally, nonsense refused."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from surgeval.errors import BadInput
from surgeval.figures import Cloud, Curve, Curves, Figure, Scatter, save_figure

HOSTILE = ("<b>hook</b> & </text>", "_under", r"$\frac{clip}$", "line\nbreak\x00")
FIGURES: dict[str, Figure] = {
    "curves": Curves("PR", "recall", "precision", tuple(Curve(n, (0, 0.5, 1), (1, 0.5, 0), "0.5") for n in HOSTILE)),
    "many curves": Curves("PR", "recall", "precision", tuple(Curve(str(k), (0, 1), (1, 0)) for k in range(20))),
    "no curve": Curves("PR", "recall", "precision", ()),
    "scatter": Scatter("AP", "frames", "AP", tuple(Cloud(n, HOSTILE, (1, 2, 3, 4), (0, 0.1, 0.2, 1)) for n in HOSTILE)),
    "no point": Scatter("AP", "instances", "AP", (Cloud("i", (), (), ()),), log=True),
}  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES.keys())
def test_a_figure_is_well_formed_and_saved_twice_gives_the_same_bytes(figure: Figure, tmp_path: Path) -> None:
    first, second = save_figure(figure, tmp_path / "a"), save_figure(figure, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    ElementTree.fromstring(first[0].read_text())
    assert figure.alt


def test_plotly_shows_labels_literally() -> None:
    traces = FIGURES["curves"].to_plotly()["data"]
    assert traces[0]["name"] == "&lt;b&gt;hook&lt;/b&gt; &amp; &lt;/text&gt; 0.5"
    assert len({(t["line"]["color"], t["line"]["dash"]) for t in FIGURES["many curves"].to_plotly()["data"]}) == 20


def test_values_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(BadInput, match="curve 'a': expected as many x as y"):
        Curves("PR", "recall", "precision", (Curve("a", (0, 1), (1.5, 0)),))
    with pytest.raises(BadInput, match="x above 0"):
        Scatter("AP", "instances", "AP", (Cloud("i", ("hook",), (0,), (0.5,)),), log=True)


@pytest.mark.parametrize("length", [3, 10, 11, 30, 80])
@pytest.mark.parametrize("count", [1, 4, 6, 12])
def test_the_legend_of_curves_lies_inside_the_figure(count: int, length: int) -> None:
    names = [f"{k:02d} {'grasper,dissect,gallbladder,' * 3}"[:length] for k in range(count)]
    figure = Curves("PR", "recall", "precision", tuple(Curve(name, (0, 1), (1, 0)) for name in names)).to_matplotlib()
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.width
