"""The evidence browser in a real browser: rows, filters, links to one case, several models, names that attack it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.pages import Evidence, Section, jpeg_bytes, write_page

pytestmark = pytest.mark.browser

CASES = 5000
ATTACK = "</script><img src=x onerror=alert(1)>"
VERDICTS = ("right", "wrong", "late", "right")


def _evidence(model: str, shift: int) -> Evidence:
    numbers = range(CASES)
    verdicts = [VERDICTS[(n + shift * (n % 10 == 0)) % 4] for n in numbers]
    cases = pl.DataFrame(
        {
            "id": [f"q{n}" for n in numbers],
            "video": [f"V{n // 100}" for n in numbers],
            "frame": [f"{n % 100} s" for n in numbers],
            "asked": [f"{ATTACK} number {n}?" for n in numbers],
            "answer": [f"{ATTACK} answer {n}" for n in numbers],
            "reference": [ATTACK] * CASES,
            "verdict": verdicts,
            "reason": [ATTACK if verdict == "wrong" else "" for verdict in verdicts],
            "class": [["hook", ATTACK] if n % 3 else ["hook"] for n in numbers],
            "score": [None if n == 7 else float(n % 97) for n in numbers],
            "width": [320] * CASES,
            "height": [180] * CASES,
        }
    )
    boxes = [{"id": "q1", "kind": kind, "label": ATTACK, "x": 9.0, "y": 40.0, "w": 60.0, "h": 60.0}
             for kind in ("label", "wrong")]  # fmt: skip
    picture = jpeg_bytes(np.full((18, 32, 3), 90, np.uint8))
    return Evidence(
        model=model, cases=cases, facets={"video": "Video", "class": ATTACK}, numbers={"score": "score"},
        open=frozenset({"late"}), pictures={"q0": picture}, boxes=pl.DataFrame(boxes), case="question",
    )  # fmt: skip


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sections = [Section("Cases", evidence=(_evidence(ATTACK, 0),)), Section("After", "The end.")]
    return write_page(tmp_path_factory.mktemp("page") / "one.html", "Evidence", sections)


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sections = [Section("Cases", evidence=(_evidence("net", 0), _evidence("floor", 1)))]
    return write_page(tmp_path_factory.mktemp("page") / "two.html", "Evidence", sections)


def _opened(visit: Any, page: Path, **how: Any) -> Any:
    opened = visit(page, **how)
    opened.page.wait_for_selector(".evidence[data-ready]", state="attached")
    return opened


def _rows(opened: Any) -> int:
    return int(opened.page.get_attribute(".evidence", "data-rows"))


def _choose(opened: Any, label: str, option: str) -> None:
    choice = opened.page.locator(".ev-tools label", has_text=label).locator("select")
    text = choice.evaluate("(own, start) => [...own.options].find((one) => one.text.startsWith(start)).text", option)
    choice.select_option(label=text)


def _quiet(opened: Any) -> None:
    assert opened.complaints == []
    assert opened.requests == []
    assert opened.page.locator("main img[src='x']").count() == 0


def test_only_visible_rows_are_in_the_document_and_every_text_is_literal(visit: Any, single: Path) -> None:
    opened = _opened(visit, single)
    assert opened.page.locator(".ev-row").count() < 30
    assert opened.page.locator(".ev-row").first.locator(".ev-asked p").text_content() == f"{ATTACK} number 0?"
    assert opened.page.text_content(".ev-count").startswith("5\u202f000 questions")
    opened.page.evaluate("document.querySelector('.ev-list').scrollTop = 1e9")
    opened.page.wait_for_selector("text=number 4999?")
    opened.shot("evidence-one")
    _quiet(opened)


def test_search_filters_and_sorting_narrow_the_rows(visit: Any, single: Path) -> None:
    opened = _opened(visit, single)
    _choose(opened, "Verdict", "wrong")
    assert _rows(opened) == CASES // 4
    assert opened.page.text_content(".ev-count").startswith("1\u202f250 of 5\u202f000 questions")
    _choose(opened, "Video", "V3 ")
    assert _rows(opened) == 25
    opened.page.fill(".ev-tools input[type=search]", "NUMBER 301")
    opened.page.wait_for_selector(".evidence[data-rows='1']", state="attached")
    opened.page.click("text=Clear")
    assert _rows(opened) == CASES
    _choose(opened, ATTACK, ATTACK)  # a facet whose values are lists
    assert _rows(opened) == sum(n % 3 > 0 for n in range(CASES))
    _choose(opened, "Sort by", "score, highest first")
    assert opened.page.locator(".ev-row .ev-asked .ev-id").first.text_content() in {
        f"q{n}" for n in range(96, CASES, 97)
    }
    opened.page.fill(".ev-tools input[type=search]", "nothing like it")
    opened.page.wait_for_selector(".ev-none")
    _quiet(opened)


def test_a_link_leads_to_one_case_and_keeps_the_filters(visit: Any, single: Path) -> None:
    opened = _opened(visit, single)
    opened.page.evaluate("location.hash = 'f.verdict=wrong&case=q4001'")
    opened.page.wait_for_selector(".ev-dialog[open]")
    assert opened.page.text_content("#ev-title") == "q4001"
    assert ATTACK in opened.page.text_content(".ev-body")
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.text_content("#ev-title") == "q4005"
    assert "case=q4005" in opened.page.url
    assert "f.verdict=wrong" in opened.page.url
    opened.page.keyboard.press("Escape")
    opened.page.wait_for_selector(".ev-dialog", state="hidden")
    opened.eventually("!location.hash.includes('case=')")  # the event comes after the dialog is gone
    fresh = opened.page.context.new_page()
    fresh.goto(f"{single.resolve().as_uri()}#case=q1")
    fresh.wait_for_selector(".ev-dialog[open] .ev-box.wrong", state="attached")  # boxes without a picture: on a canvas
    assert fresh.locator(".ev-dialog .ev-canvas").count() == 1
    assert fresh.locator(".ev-dialog .ev-name").first.text_content() == ATTACK
    _quiet(opened)


def test_a_link_to_a_case_that_is_not_there_says_so(visit: Any, single: Path) -> None:
    opened = _opened(visit, single)
    opened.page.evaluate("location.hash = 'case=nonsense'")
    dialog = opened.page.locator(".ev-dialog")
    dialog.wait_for(state="visible")
    assert "There is no question nonsense" in dialog.text_content()
    opened.page.keyboard.press("Escape")
    opened.eventually("!location.hash.includes('case=')")


def test_names_of_boxes_do_not_lie_on_one_another(visit: Any, tmp_path: Path) -> None:
    boxes = [
        {"id": "q0", "kind": kind, "label": f"grasper,retract,liver {k}", "x": 9.0, "y": 60.0 + k, "w": 60.0, "h": 30.0}
        for k, kind in enumerate(("label", "label", "missed", "wrong", "wrong", "hit"))
    ]
    crowded = replace(_evidence("net", 0), boxes=pl.DataFrame(boxes), pictures={})
    opened = _opened(visit, write_page(tmp_path / "boxes.html", "Boxes", [Section("Cases", evidence=(crowded,))]))
    opened.page.evaluate("location.hash = 'case=q0'")
    opened.page.wait_for_selector(".ev-dialog[open]")
    names = opened.page.locator(".ev-dialog .ev-name")
    places = [names.nth(k).bounding_box() for k in range(names.count())]
    assert len(places) == 6
    tops = sorted(place["y"] for place in places)
    assert min(lower - upper for upper, lower in pairwise(tops)) > 0.8 * places[0]["height"]


def test_the_keyboard_alone_reaches_every_case(visit: Any, single: Path) -> None:
    opened = _opened(visit, single)
    opened.page.focus(".ev-list")
    for key in ("End", "ArrowUp", "Enter"):
        opened.page.keyboard.press(key)
    assert opened.page.text_content("#ev-title") == f"q{CASES - 2}"
    opened.page.keyboard.press("Escape")
    opened.page.keyboard.press("Home")
    opened.page.keyboard.press("Enter")
    assert opened.page.text_content("#ev-title") == "q0"
    assert opened.page.locator(".ev-dialog image").count() == 1  # the picture that was kept


def test_two_models_stand_side_by_side_and_their_quarrels_can_be_listed(visit: Any, paired: Path) -> None:
    opened = _opened(visit, paired)
    assert opened.page.locator(".ev-heads span").all_text_contents()[3:] == ["net", "floor"]
    opened.page.check("text=models disagree")
    verdicts = [[VERDICTS[(n + shift * (n % 10 == 0)) % 4] for n in range(CASES)] for shift in (0, 1)]
    assert _rows(opened) == sum(a != b for a, b in zip(*verdicts, strict=True)) > 0
    opened.shot("evidence-two")
    _quiet(opened)


@pytest.mark.parametrize(("width", "dark"), [(390, False), (800, True)])
def test_nothing_sticks_out_of_a_narrow_screen(visit: Any, paired: Path, width: int, dark: bool) -> None:
    opened = _opened(visit, paired, width=width, dark=dark)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    colours = opened.page.evaluate(
        "[...document.querySelectorAll('.ev-verdict')].map((one) => getComputedStyle(one).color)"
    )
    assert len(set(colours)) == 3  # right, wrong and open


def test_right_for_the_wrong_reason_carries_no_tick(visit: Any, tmp_path: Path) -> None:
    given = replace(_evidence("net", 0), doubtful=frozenset({"right"}))
    opened = _opened(visit, write_page(tmp_path / "one.html", "Evidence", [Section("Cases", evidence=(given,))]))
    before = "[...document.querySelectorAll('.ev-verdict')].map((one) => getComputedStyle(one, '::before').content[1])"
    assert set(opened.page.evaluate(before)) == {"△", "✗", "–"}
    assert "2500 right" in opened.page.locator(".evidence").inner_text().replace("\u202f", "")  # and counts as right


def test_on_a_phone_the_filters_wait_behind_a_button(visit: Any, paired: Path) -> None:
    opened = _opened(visit, paired, width=390)
    first = (
        opened.page.locator(".ev-row").first.bounding_box()["y"] - opened.page.locator(".evidence").bounding_box()["y"]
    )
    assert first < 250  # the first row is in the first screen of the section
    choice = opened.page.locator(".ev-filters select").first
    assert not choice.is_visible()
    opened.page.click(".ev-more")
    assert choice.is_visible() and opened.page.get_attribute(".ev-more", "aria-expanded") == "true"
    _choose(opened, "Video", "V3 ")
    assert opened.page.text_content(".ev-more") == "Filters and order (1 in use)"
    wide = _opened(visit, paired, width=1366)
    assert wide.page.locator(".ev-filters select").first.is_visible() and not wide.page.locator(".ev-more").is_visible()
    _quiet(opened)


def test_columns_in_which_nothing_stands_are_left_out(visit: Any, tmp_path: Path) -> None:
    cases = _evidence("net", 0).cases.head(9).with_columns(reference=pl.lit(""))
    section = Section("Cases", evidence=(Evidence(model="net", cases=cases),))
    page = write_page(tmp_path / "bare.html", "Evidence", [section])
    opened = _opened(visit, page)
    assert opened.page.locator(".ev-heads span").all_text_contents() == ["Asked", "net"]
    assert opened.page.locator(".ev-thumb").count() == 0
    opened.page.locator(".ev-row").first.click()
    assert "Reference" not in opened.page.text_content(".ev-body")
    assert _opened(visit, page, width=390).page.evaluate("document.documentElement.scrollWidth") <= 390
    _quiet(opened)


def test_paper_gets_the_first_fifty_with_a_sentence(visit: Any, single: Path) -> None:
    opened = _opened(visit, single)
    opened.page.emulate_media(media="print")
    opened.page.wait_for_selector(".ev-print tbody tr")
    assert opened.page.locator(".ev-print tbody tr").count() == 50
    assert "The first 50 of 5\u202f000 questions" in opened.page.text_content(".ev-print")
    assert not opened.page.locator(".ev-list").is_visible()
    right = opened.page.evaluate("document.querySelector('.ev-print table').getBoundingClientRect().right")
    assert right <= opened.page.evaluate("document.documentElement.clientWidth")
