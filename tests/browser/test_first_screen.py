"""What a reader meets first, in a real browser: terms that explain themselves, and no empty plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from surgeval.figures import Figure, Series, estimates
from surgeval.pages import (
    Card,
    CardNumber,
    Finding,
    IntervalBar,
    LegendKey,
    Picture,
    Scorecard,
    Section,
    Table,
    jpeg_bytes,
    write_page,
)
from surgeval.protocols.surgxbench.numbers import MEASURES

pytestmark = pytest.mark.browser


def _bars(title: str, value: float | None) -> Figure:
    return estimates(title, ("hook",), [Series("net", ((value,),))], "score")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np

    table = Table("Numbers", pl.DataFrame({"class": ["hook", "bag", "clip"], "TP-AC": [0.5, 0.1, 0.9]}))
    picture = Picture(jpeg_bytes(np.zeros((40, 80, 3), np.uint8)), "black")
    sections = [
        Section("Result", "When it is right its lift is high.", tables=(table,),
                figures=(_bars("Drawn", 0.5), _bars("Not there", None))),
        Section("Gallery", cards=(Card(picture, "hook"),), key=(LegendKey("heat", ("#30123b", "#7a0403")),
                                                                  LegendKey("line: attended region", ("#ffffff",)))),
    ]  # fmt: skip
    bar = IntervalBar(value=0.97, low=0.85, high=0.99, text="97 % [85, 99]; always grasper 91 %",
                      baselines={"chance 28 %": 0.28, "always grasper 91 %": 0.91})  # fmt: skip
    card = Scorecard("passes", "It sees.", CardNumber("right", "97 %", "95 % interval 85 % to 99 %", bar),
                     tuple(CardNumber(f"number {k}", "0.5", "a note", bar) for k in range(4)), (picture,))  # fmt: skip
    sections.insert(0, Section("Findings", findings=(Finding("It is right.", "passes", "Right <often>.", bar),
                                                     Finding("Unclear.", "inconclusive"))))  # fmt: skip
    return write_page(tmp_path_factory.mktemp("first") / "report.html", "net", sections, lead="Its chance is 25 %.",
                      scorecard=card, measures=MEASURES)  # fmt: skip


def test_pointing_at_a_term_shows_its_sentence_and_leaving_hides_it(visit: Any, page: Path) -> None:
    opened = visit(page)
    tip = opened.page.locator(".tip")
    assert tip.is_hidden()
    opened.page.locator("a.term", has_text="lift").hover()
    assert tip.is_visible()
    assert "How many times chance" in tip.inner_text()
    opened.page.mouse.move(5, 600)
    tip.wait_for(state="hidden")
    assert opened.complaints == []


def test_focus_shows_a_term_and_escape_hides_it(visit: Any, page: Path) -> None:
    opened = visit(page)
    term = opened.page.locator(".lead a.term")
    term.focus()
    tip = opened.page.locator(".tip")
    assert tip.is_visible()
    assert term.get_attribute("aria-describedby") == "term-chance"
    opened.page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_a_heading_explains_itself_and_still_sorts(visit: Any, page: Path) -> None:
    opened = visit(page)
    heading = opened.page.locator("th button", has_text="TP-AC")
    heading.hover()
    assert "right predictions" in opened.page.locator(".tip").inner_text()
    heading.click()
    assert opened.page.locator("tbody td:first-child").all_text_contents() == ["clip", "hook", "bag"]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_sentence_stays_on_the_screen(visit: Any, page: Path, width: int) -> None:
    opened = visit(page, width=width, height=700)
    for term in opened.page.locator("a.term").all():
        term.focus()
        box = opened.page.locator(".tip").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_finger_gets_the_sentence_and_not_the_jump(browser: Any, page: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 700}, has_touch=True)
    try:
        touched = context.new_page()
        touched.goto(page.resolve().as_uri())
        touched.locator("a.term").first.tap()
        assert touched.locator(".tip").is_visible()
        assert "#term" not in touched.url
    finally:
        context.close()


def test_the_glossary_lists_what_the_page_uses(visit: Any, page: Path) -> None:
    opened = visit(page)
    listed = opened.page.locator(".glossary dt").all_text_contents()
    assert {"chance", "lift", "TP-AC"} <= set(listed)
    assert not {"mAP50", "Copeland", "kappa"} & set(listed)
    assert opened.page.locator("section").last.locator("h2").inner_text().endswith("Glossary")


def test_no_plot_is_empty_and_colours_have_a_key(visit: Any, page: Path) -> None:
    opened = visit(page)
    assert opened.page.locator(".canvas").count() == opened.page.locator(".canvas .mark-symbol > path").count() == 1
    assert opened.page.get_by_text("“Not there” is not drawn: there is nothing in it.").count() == 1
    assert opened.page.locator(".key li").all_text_contents() == ["heat", "line: attended region"]
    assert opened.page.locator(".key rect").last.evaluate("one => getComputedStyle(one).fill") == "rgb(255, 255, 255)"
    assert opened.complaints == []


@pytest.mark.parametrize("width", [1366, 800, 390])
def test_a_short_table_hides_no_row_and_a_long_one_visibly_many(visit: Any, tmp_path: Path, width: int) -> None:
    why = "In no format does one answer make up most of the answers and far more than of the references. " * 3
    tables = tuple(
        Table(f"{rows} rows", pl.DataFrame({"rule": [f"rule {k}" for k in range(rows)], "why": [why] * rows}))
        for rows in (3, 17, 30, 31)
    )
    opened = visit(write_page(tmp_path / "report.html", "net", [Section("Why", tables=tables)]), width=width)
    hidden = opened.page.evaluate(
        "() => [...document.querySelectorAll('.scroll')].map(s => s.scrollHeight - s.clientHeight)"
    )
    assert hidden[:3] == [0, 0, 0]
    assert hidden[3] > 300
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1366, 390])
def test_the_bar_of_a_scorecard_lies_inside_it_and_its_labels_do_not_overlap(
    visit: Any, page: Path, width: int
) -> None:
    opened = visit(page, width=width)
    inside = """() => {
        const svg = document.querySelector(".scorecard > div > svg.bar"), frame = svg.getBoundingClientRect();
        const box = (one) => one.getBoundingClientRect();
        const labels = [...svg.querySelectorAll("text")].map(box);
        const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
        return [[...svg.children].every((one) => box(one).left >= frame.left - 1 && box(one).right <= frame.right + 1),
                apart(labels[0], labels[1]), svg.getAttribute("aria-label")];
    }"""
    assert opened.page.evaluate(inside) == [True, True, "97 % [85, 99]; always grasper 91 %"]
    assert opened.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert opened.page.locator(".findings .grade").all_inner_texts() == ["Passes", "Inconclusive"]


def test_rules_unfold_and_stay_off_the_paper(visit: Any, page: Path) -> None:
    opened = visit(page)
    rule = opened.page.get_by_text("Right <often>.")
    assert rule.is_hidden()
    opened.page.get_by_text("How this is decided").click()
    assert rule.is_visible()
    opened.page.emulate_media(media="print")
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    opened.page.wait_for_selector("html.paper")
    assert rule.is_hidden() and opened.page.locator(".scorecard .grade").is_visible()
    opened.page.evaluate("window.dispatchEvent(new Event('afterprint'))")


def test_grades_and_bars_follow_the_dark_screen(visit: Any, page: Path) -> None:
    colours = """() => [".scorecard .grade", ".scorecard circle"].map((one) => {
        const style = getComputedStyle(document.querySelector(one));
        return one.endsWith("circle") ? style.fill : style.color;
    })"""
    light, dark = (visit(page, dark=dark).page.evaluate(colours) for dark in (False, True))
    assert all(one != other for one, other in zip(light, dark, strict=True))
