"""Every kind of figure in light, in the dark and on A4 paper: colours read back, boxes measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.figures import (
    Cloud,
    Curve,
    Estimate,
    FlowPipeline,
    Series,
    TimelineSpan,
    bars,
    box,
    curves,
    estimates,
    heatmap,
    histogram,
    podium,
    rank_blobs,
    scatter,
    significance_map,
    stability_lines,
    stacked,
    timeline,
)
from surgeval.pages import Card, Picture, Plot, Section, Table, single_file, write_page
from surgeval.pages.vega import library_name

pytestmark = pytest.mark.browser

TEAMS = ("keen", "a-team-with-long-name", "prior", "vague", "last")
CLASSES = ("grasper", "bipolar", "abdominal_wall_cavity", "specimen_bag", "cystic_pedicle")
PAPER = 672.5  # A4 less two margins of 16 mm, in CSS pixels
WINS = tuple(tuple(max(0, 9 - 2 * i) if i < j else 0 for j in range(5)) for i in range(5))


def _figures() -> tuple[Plot, ...]:
    places = tuple(tuple(0.8 if i == j else 0.05 for j in range(5)) for i in range(5))
    numbers = (Estimate(0.2 * k, 0.1 * k, 0.3 * k) for k in range(1, 5))
    values = ((0.1, 0.2, 0.4), (0.3,), (), (0.5, 0.6, 0.9), (0.2, 0.8))
    amounts = tuple(tuple(10 ** abs(i - j) for j in range(5)) for i in range(5))
    shares = tuple(tuple(20.0 * i + 5 * j for j in range(5)) for i in range(5))
    figures = (
        significance_map("Significance", TEAMS, WINS, 9),
        heatmap("Amounts", CLASSES, CLASSES, amounts, "n"),
        heatmap("Shares", TEAMS, CLASSES, shares, "%", whole=100),
        rank_blobs("Blobs", TEAMS, places, tuple((1, k, 5) for k in range(1, 6))),
        podium("Podium", TEAMS, ("a", "b"), ((0.9, 0.8, 0.7, 0.6, 0.5),) * 2, ((1, 2, 3, 4, 5),) * 2, "accuracy"),
        stacked("Stacked", TEAMS, [Series(c, (9.0, 5, 3, 4, 8)) for c in CLASSES], "triplets"),
        bars("Bars", TEAMS, [Series("all", (50, 40, 30, 20, 10))], "points"),
        estimates("Estimates", TEAMS, [Series("one", (*numbers, Estimate(None)))], "score"),
        box("Boxes", CLASSES, [("TP", values)], "share", marks=((0.1, 0.2, 0.1, None, 0.3),)),
        stability_lines("Lines", TEAMS, CLASSES, tuple((k,) * 5 for k in range(1, 6)), "left out"),
        timeline("Time", TEAMS, CLASSES[:2], [TimelineSpan(k, k % 2, k, k + 9) for k in range(5)], "minutes"),
        curves("Curves", "recall", "precision", [Curve(c, (0, 1), (1, 0.1), "0.5 of a class") for c in CLASSES]),
        scatter("Cloud", "instances", "AP", [Cloud("i", CLASSES, (1, 2, 3, 4, 5), (0.1, 0.3, 0.2, 0.9, 0.5))]),
        histogram("Histogram", (0, 1, 2, 5), (3, 9, 1), "seconds", "actions"),
    )  # fmt: skip
    return tuple(Plot(figure, f"What {figure.title} says.") for figure in figures)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wide = pl.DataFrame({"instrument": CLASSES} | {f"{c}_{k}": range(5) for k in range(4) for c in CLASSES[2:]})
    words = pl.DataFrame(
        {c: ["a problem told in several words"] * 100 + [f"the row number_{k}" for k in range(100)] for c in CLASSES}
    )
    picture = Picture(np.full((90, 320, 3), 120, np.uint8), "grey")
    flow = np.zeros((24, 32, 2), np.float32)
    flow[8:16, 8:16] = 3
    motion = FlowPipeline("Flow", np.full((24, 32, 3), 90, np.uint8), flow, flow * 0, flow, flow[..., 0] > 1)
    sections = [
        Section("Numbers", "Text.", (Table("Wide", wide), Table("Long", words, "A note.", "tables/long.csv"),
                Table("Folded", words, file="tables/folded.csv", folded=True))),
        Section("Figures", figures=_figures()),
        Section("Pairs", figures=_figures()[5:7], paired=True),
        Section("Motion", images=(Picture(motion.draw(), motion.alt),)),
        Section("Gallery", cards=tuple(Card(picture, "card", ("a line",), {"score": k}) for k in range(3))),
    ]  # fmt: skip
    out = tmp_path_factory.mktemp("light") / "report.html"
    return write_page(out, "Every figure", sections, lead="A lead.", details={"version": "1"})


@pytest.fixture(scope="module", params=["light", "dark"])
def opened(request: pytest.FixtureRequest, visit_once: Any, page: Path) -> Any:
    shown = visit_once(page, dark=request.param == "dark")
    shown.shot(f"figures-{request.param}")
    return shown


def _figure(opened: Any, title: str) -> Any:
    return opened.page.locator("figure.plot", has=opened.page.get_by_text(title, exact=True)).first


def _cell(opened: Any, title: str, row: int, column: int) -> tuple[int, ...]:
    """The colour of a heatmap's cell, by its place."""
    cells = (
        _figure(opened, title)
        .locator(".mark-rect:not(.role-legend-gradient) > path")
        .evaluate_all(
            """all => all.map(e => [e.getBoundingClientRect().x, e.getBoundingClientRect().y,
        getComputedStyle(e).fill.match(/[0-9]+/g).map(Number)])"""
        )
    )
    columns, rows = (sorted({round(cell[k]) for cell in cells}) for k in (0, 1))
    wanted = columns[column], rows[row]
    return tuple(next(fill for x, y, fill in cells if (round(x), round(y)) == wanted))


def test_a_winner_is_blue_and_a_loser_orange_in_every_light(opened: Any) -> None:
    dark = opened.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    red, _, blue = _cell(opened, "Significance", 0, 4)
    assert blue > red + 60
    red, _, blue = _cell(opened, "Significance", 4, 0)
    assert red > blue + 60
    little, much = _cell(opened, "Amounts", 2, 2), _cell(opened, "Amounts", 0, 4)
    assert (sum(much) > sum(little)) is dark  # much stands out from the background
    assert opened.complaints == []


# Contrast as WCAG computes it, of every text against what lies under it: a bar, a cell, or the page.
CONTRAST = """() => {
  const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (colour) => colour.slice(0, 3).map(v => linear(v / 255))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const under = (node) => {
    for (let e = node; e; e = e.parentElement) {
      const back = rgb(getComputedStyle(e).backgroundColor);
      if (back.length === 3 || back[3] > 0) return back.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const mark = (text) => { // the bar or cell that a number stands in
    const box = text.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    for (const path of text.closest("svg").querySelectorAll(".mark-rect > path")) {
      const on = path.getBoundingClientRect();
      if (on.left <= x && x <= on.right && on.top <= y && y <= on.bottom) return rgb(getComputedStyle(path).fill);
    }
    return null;
  };
  const all = [];
  const prose = "p, dt, dd, figcaption, .note, td, th button, h1, h2, summary, .file, .contents a";
  document.querySelectorAll(prose).forEach((e) => {
    if (!e.getClientRects().length) return;
    all.push([ratio(rgb(getComputedStyle(e).color), under(e)), e.textContent.slice(0, 40)]);
  });
  document.querySelectorAll("svg text").forEach((e) => {
    if (!e.textContent.trim()) return;
    all.push([ratio(rgb(getComputedStyle(e).fill), mark(e) ?? under(e)), e.textContent]);
  });
  return all;
}"""


def test_every_text_can_be_read_on_what_lies_under_it(opened: Any) -> None:
    found = opened.page.evaluate(CONTRAST)
    assert len(found) > 300
    assert [(round(ratio, 2), text) for ratio, text in found if ratio < 4.5] == []


# What reaches beyond the paper, and words that are broken inside a cell (a hyphen may end a line).
OUTSIDE = """(paper) => {
  const all = "td, th, p, dd, dt, figcaption, img, .card, svg text, svg image, .mark-rect > path";
  return [...document.querySelectorAll(all)].map(e => [e.getBoundingClientRect(), e.textContent.slice(0, 30)])
    .filter(([box]) => box.width && (box.left < -0.5 || box.right > paper))
    .map(([box, text]) => `${text} ${box.right}`);
}"""
BROKEN = """() => {
  const broken = [];
  document.querySelectorAll("td, th bdi").forEach((cell) => {
    for (const word of cell.textContent.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange();
      range.setStart(cell.firstChild, word.index);
      range.setEnd(cell.firstChild, word.index + word[0].length);
      // Lines lie along the writing: upright heads have one x, other cells one y.
      const upright = getComputedStyle(cell).writingMode !== "horizontal-tb";
      const lines = new Set([...range.getClientRects()].map(box => Math.round(upright ? box.left : box.top)));
      if (lines.size > 1) broken.push(word[0]);
    }
  });
  return broken;
}"""


@pytest.fixture(scope="module")
def paper(visit_once: Any, page: Path) -> Any:
    """The page as it is laid out for A4, made from a wide dark window."""
    opened = visit_once(page, width=1366, dark=True)
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 672, "height": 1000})
    opened.page.wait_for_selector("html.paper")
    opened.page.wait_for_timeout(300)
    opened.shot("figures-paper")
    return opened


def test_on_paper_every_bar_row_and_word_is_inside_and_whole(paper: Any) -> None:
    assert paper.page.evaluate("document.documentElement.scrollWidth") <= 672
    assert paper.page.evaluate(OUTSIDE, PAPER) == []
    assert paper.page.evaluate(BROKEN) == []
    sizes = paper.page.locator("table").evaluate_all("all => all.map(t => parseFloat(getComputedStyle(t).fontSize))")
    assert min(sizes) >= 7.3  # CSS pixels: 5.5 points
    assert paper.complaints == []


def test_on_paper_all_teams_are_there_and_bars_have_their_lengths(paper: Any) -> None:
    for title in ("Significance", "Bars", "Estimates", "Time"):
        labels = _figure(paper, title).locator(".role-axis-label text").all_text_contents()
        assert set(TEAMS) <= {label.split(" ")[0] for label in labels}, title
    widths = (
        _figure(paper, "Bars")
        .locator(".mark-rect > path")
        .evaluate_all("all => all.map(bar => bar.getBoundingClientRect().width)")
    )
    assert np.allclose(np.array(widths) / widths[0], [1, 0.8, 0.6, 0.4, 0.2], atol=0.02)


def test_on_paper_a_legend_does_not_cover_its_figure(paper: Any) -> None:
    for title in ("Curves", "Stacked", "Lines"):
        legend = _figure(paper, title).locator(".role-legend").bounding_box()
        plot = _figure(paper, title).locator(".role-axis-domain, .role-axis-grid").first.bounding_box()
        assert legend["y"] + legend["height"] <= plot["y"] + 2, title


def test_paper_is_white_and_long_tables_say_where_the_rest_is(paper: Any) -> None:
    assert paper.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = paper.page.evaluate(
        "getComputedStyle(document.querySelector('.role-axis-label text')).fill.match(/[0-9]+/g).map(Number)"
    )
    assert max(ink) < 110
    shown = "all => all.map(t => [...t.tBodies[0].rows].filter(row => row.getClientRects().length).length)"
    assert paper.page.locator("table").evaluate_all(shown) == [5, 60, 12]
    remarks = paper.page.locator(".remark:visible").all_inner_texts()
    assert remarks == [
        "The first 60 of 200 rows; all are in the file tables/long.csv.",
        "The first 12 of 200 rows; all are in the file tables/folded.csv.",
    ]


def test_after_printing_the_screen_is_as_it_was(visit: Any, page: Path) -> None:
    opened = visit(page, width=1366, dark=True)
    state = """() => [document.documentElement.scrollHeight, document.querySelectorAll('details[open]').length,
      getComputedStyle(document.querySelector('.role-axis-label text')).fill,
      document.querySelector('td').getBoundingClientRect().height]"""
    before = opened.page.evaluate(state)
    pdf = opened.page.pdf(format="A4")
    assert 3 < len(re.findall(rb"/Type\s*/Page\b", pdf)) < 20
    for _ in range(100):
        if opened.page.evaluate(state) == before:
            break
        opened.page.wait_for_timeout(50)
    assert opened.page.evaluate(state) == before
    assert opened.complaints == []


@pytest.mark.parametrize("width", [1366, pytest.param(800, marks=pytest.mark.long), 390])
def test_no_figure_leaves_its_frame(visit: Any, page: Path, width: int) -> None:
    opened = visit(page, width=width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    outside = """() => [...document.querySelectorAll('.canvas')].flatMap(canvas => {
      const frame = canvas.getBoundingClientRect();
      const leaves = (box) => box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2;
      return [...canvas.querySelectorAll('svg text')]
        .map(e => [e, e.getBoundingClientRect()]).filter(([, box]) => box.width && leaves(box))
        .map(([e]) => canvas.getAttribute('aria-label').slice(0, 30) + ': ' + e.textContent);
    })"""
    assert opened.page.evaluate(outside) == []
    assert opened.complaints == []


def test_a_page_whose_library_is_missing_says_so(visit: Any, page: Path, tmp_path: Path) -> None:
    alone = tmp_path / "report.html"
    alone.write_bytes(page.read_bytes())
    opened = visit(alone)
    texts = opened.page.locator(".canvas").all_inner_texts()
    assert texts
    assert all(f"the file {library_name()}, which belongs beside this page, cannot be read" in text for text in texts)
    assert all("ERR_FILE_NOT_FOUND" in complaint for complaint in opened.complaints)
    assert opened.page.locator("td").first.is_visible()


def test_a_single_file_draws_alone(visit: Any, tmp_path: Path) -> None:
    with single_file():
        alone = write_page(tmp_path / "report.html", "Alone", [Section("Figures", figures=_figures()[:1])])
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    opened = visit(alone)
    assert opened.page.locator("svg.marks").count() > 0
    assert opened.complaints == []
    assert opened.requests == []
