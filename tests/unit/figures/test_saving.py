"""Saved figures: equal bytes, text as text, the files beside a page."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from PIL import Image
from tests.unit.figures.examples import HOSTILE, empty_figures, figures, hostile_figures

from surgeval.errors import BadInput
from surgeval.figures import Figure, Series, bars
from surgeval.pages import Section, figure_plots, write_page

FIGURES = figures()


def texts(svg: str) -> list[str]:
    """What the text elements of a drawing say."""
    elements = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(element.itertext()) for element in elements]


def test_equal_figures_give_equal_bytes_whatever_was_drawn_before() -> None:
    first = {name: figure.svg() for name, figure in FIGURES.items()}
    again = {name: figure.svg() for name, figure in reversed(figures().items())}
    assert first == again
    assert FIGURES["box"].png() == figures()["box"].png()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_empty_figures_can_be_saved_too(scheme: str) -> None:
    for figure in empty_figures().values():
        assert texts(figure.svg(scheme))[-1:]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", hostile_figures())
def test_a_label_stays_text_whatever_it_says(name: str) -> None:
    drawn = texts(hostile_figures()[name].svg())
    assert "<i>$x$" in drawn or "<i>" in drawn
    for label in ("_under", r"$\frac{clip}$", "datum.tip", "{{x}}"):
        assert any(label in text for text in drawn), (label, drawn)
    assert not any("<script" in text and "</script" not in HOSTILE[0] for text in drawn)


def test_text_is_set_in_a_font_that_vl_convert_brings() -> None:
    svg = FIGURES["estimates"].svg()
    fonts = {
        element.get("font-family", "") for element in ElementTree.fromstring(svg).iter() if element.get("font-family")
    }
    assert {font.split(",")[0] for font in fonts} == {"Liberation Sans"}
    assert "thousands apart: 1\u202f000" in texts(
        bars("thousands apart: 1\u202f000", ["a"], [Series("s", [1])], "n").svg()
    )


def test_the_title_and_what_the_marks_mean_stand_above_the_drawing() -> None:
    drawn = texts(FIGURES["estimates"].svg())
    assert "F1" in drawn
    assert "Dot: the number; band: its 95 % interval; orange tick: guessing." in drawn


@settings(max_examples=10)
@given(name=st.text(alphabet=st.characters(), min_size=1, max_size=20))
def test_any_name_can_be_drawn(name: str) -> None:
    figure = bars(name, (name, name), (Series(name, (1, 2)), Series(name, (2, 1))), name, axis=name)
    assert ElementTree.fromstring(figure.svg()).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_figure_is_saved_as_what_its_name_ends_in(tmp_path: Path) -> None:
    figure = FIGURES["heatmap"]
    assert figure.save(tmp_path / "a.svg").read_text().startswith("<svg")
    with Image.open(figure.save(tmp_path / "a.png")) as picture:
        assert picture.width > 900
    assert figure.save(str(tmp_path / "a.pdf")).read_bytes().startswith(b"%PDF")
    with pytest.raises(BadInput, match=r"a\.jpg: a figure is saved as \.svg, \.png or \.pdf"):
        figure.save(tmp_path / "a.jpg")


def test_a_notebook_shows_a_figure_as_a_picture_with_its_words() -> None:
    shown, _ = DisplayFormatter().format(FIGURES["histogram"])
    assert shown["image/svg+xml"].startswith("<svg")
    assert shown["text/plain"] == FIGURES["histogram"].alt


@pytest.mark.figures
def test_a_page_writes_the_files_of_its_plots_beside_it(tmp_path: Path) -> None:
    chosen = {name: FIGURES[name] for name in ("box", "podium")}
    for folder in ("a", "b"):  # the second page finds the drawing process started
        page = write_page(
            tmp_path / folder / "report.html", "T", [Section("S", figures=tuple(figure_plots(chosen).values()))]
        )
        files = sorted(path.name for path in (page.parent / "figures").iterdir())
        assert files == ["box.png", "box.svg", "podium.png", "podium.svg"]
        assert (page.parent / "figures" / "box.svg").read_text("utf-8") == FIGURES["box"].svg()
        with Image.open(io.BytesIO((page.parent / "figures" / "podium.png").read_bytes())) as picture:
            assert picture.width > 900


@pytest.mark.figures
def test_a_figure_that_vega_lite_refuses_is_one_sentence(tmp_path: Path) -> None:
    broken = Figure(
        "Broken", "A broken figure.", {"mark": "bar", "encoding": {"x": {"field": "a", "type": "no type"}}, "data": 3}
    )
    with pytest.raises(BadInput, match="the figures cannot be saved: "):
        write_page(tmp_path / "report.html", "T", [Section("S", figures=tuple(figure_plots({"x": broken}).values()))])
    sound = write_page(
        tmp_path / "report.html", "T", [Section("S", figures=tuple(figure_plots({"x": FIGURES["lines"]}).values()))]
    )
    assert (sound.parent / "figures" / "x.svg").is_file()
