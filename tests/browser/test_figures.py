"""Page and paper show the same: marks and texts of every kind of figure in Chromium and in vl-convert's SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.figures.examples import figures, hostile_figures

from surgeval.pages import Plot, Section, write_page
from surgeval.pages.safety import seen

pytestmark = pytest.mark.browser

FIGURES = {**figures(), **{f"hostile {name}": figure for name, figure in hostile_figures().items()}}
# What a mark is drawn as: bars and cells, points, lines, rules, words. Invisible points answer to hovering on pages.
KINDS = ("mark-rect", "mark-symbol", "mark-line", "mark-rule", "mark-text")
COUNT = """canvas => Object.fromEntries(%s.map(kind => [kind, [...canvas.querySelectorAll('.role-mark.' + kind)]
  .flatMap(group => [...group.children]).filter(mark => mark.getAttribute('opacity') !== '0').length]))"""
TEXTS = "canvas => [...canvas.querySelectorAll('svg text')].map(text => text.textContent)"
_GROUP = "{http://www.w3.org/2000/svg}g"


def paper_marks(root: ElementTree.Element) -> dict[str, int]:
    counts = dict.fromkeys(KINDS, 0)
    for group in root.iter(_GROUP):
        classes = group.get("class", "").split()
        if "role-mark" in classes:
            for kind in KINDS:
                counts[kind] += len(group) if kind in classes else 0
    return counts


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plots = tuple(Plot(figure) for figure in FIGURES.values())
    return write_page(tmp_path_factory.mktemp("figures") / "report.html", "All", [Section("Figures", figures=plots)])


@pytest.fixture(scope="module")
def opened(visit_once: Any, page: Path) -> Any:
    return visit_once(page, width=1280)


@pytest.mark.parametrize("name", FIGURES)
def test_page_and_paper_show_the_same_marks_and_labels(opened: Any, name: str) -> None:
    figure = FIGURES[name]
    canvas = opened.page.locator("figure.plot .canvas").nth(list(FIGURES).index(name))
    assert canvas.get_attribute("aria-label") == seen(figure.alt)
    root = ElementTree.fromstring(figure.svg())
    drawn = canvas.evaluate(COUNT % list(KINDS))
    assert drawn == paper_marks(root)
    assert sum(drawn.values()) > 0
    # A name too long for its place is cut, later or sooner with the page's letters; ticks may be more or fewer.
    shown, printed = ({text[:10] for text in texts if not is_number(text)}
                      for texts in (canvas.evaluate(TEXTS), map(seen, texts_of(root))))  # fmt: skip
    assert shown == {text[:10] for text in printed}


def texts_of(root: ElementTree.Element) -> list[str]:
    """The texts of a drawing without its title, which the page writes itself."""
    groups = [group for group in root.iter(_GROUP) if "mark-text" in group.get("class", "")]
    own = [group for group in groups if "role-title" not in group.get("class", "")]
    texts = [text for group in own for text in group.iter("{http://www.w3.org/2000/svg}text")]
    return ["".join(text.itertext()) for text in texts]


def is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("−", "").isdigit()


def test_nothing_is_evaluated_fetched_or_styled_that_the_policy_forbids(opened: Any) -> None:
    assert opened.complaints == []
    assert opened.requests == []
    assert opened.page.locator("svg a, svg image, svg script, svg foreignObject").count() == 0


def test_hovering_shows_a_hostile_name_as_text(opened: Any) -> None:
    canvas = opened.page.locator("figure.plot .canvas").nth(list(FIGURES).index("hostile bars"))
    canvas.scroll_into_view_if_needed()
    canvas.locator(".mark-rect > path").first.hover(force=True)
    tip = opened.page.locator("#vg-tooltip-element.visible")
    tip.wait_for(state="attached")
    assert "<b>hook</b> & </text></script>" in tip.text_content()
    assert tip.locator("b, script, img").count() == 0


def test_a_click_on_a_name_in_the_legend_fades_the_other_lines(opened: Any) -> None:
    canvas = opened.page.locator("figure.plot .canvas").nth(list(FIGURES).index("many curves"))
    canvas.scroll_into_view_if_needed()
    canvas.locator(".role-legend-label text").first.click(force=True)
    faded = "canvas => [...canvas.querySelectorAll('.mark-line > path')].map(p => p.getAttribute('opacity') ?? '1')"
    opened.page.wait_for_timeout(200)
    assert sorted(set(canvas.evaluate(faded))) == ["0.12", "1"]


def test_before_printing_every_figure_is_drawn_anew_for_white_paper(visit: Any, page: Path) -> None:
    opened = visit(page, dark=True)
    # Added after the page's own listener, so it sees what is printed.
    opened.page.evaluate("""() => addEventListener('beforeprint', () => {
      const drawn = [...document.querySelectorAll('.canvas svg')].map(svg =>
        [svg.getAttribute('width') <= 673, getComputedStyle(svg.querySelector('.role-axis-label text')).fill]);
      document.title = JSON.stringify([...new Set(drawn.map(String))]);
    })""")
    assert opened.page.pdf(format="A4").startswith(b"%PDF")
    assert opened.page.title() == '["true,rgb(60, 70, 82)"]'
    assert opened.complaints == []
