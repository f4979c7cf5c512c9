"""The page on clinical intent in a real browser: hostile items and names, narrow, dark and on paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.protocols.intent_world import ANSWERERS, make_cases, make_items, write_run

from surgeval.protocols.intent.page import write_page_of
from surgeval.protocols.intent.result import load_intent
from surgeval.records import IntentQuestion

pytestmark = pytest.mark.browser

MODELS = ("</script><img src=x onerror=alert(1)>", "a-model-with-a-long-name-" + "x" * 40)
ATTACKS = {"V00-00": "<svg onload=alert(2)>", "V00-12": "</td><script>alert(3)</script>", "V00-14": "{{ 7 * 7 }}"}


def _hostile(item: IntentQuestion) -> IntentQuestion:
    return replace(item, question=ATTACKS.get(item.id, item.question), scenario="<b>open</b>_surgery")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intent")
    items = [_hostile(item) for item in make_items(8)]
    runs = [
        write_run(folder / str(number), items, make_cases(items, ANSWERERS[answerer]), name, subset="<i>a part</i>")
        for number, (name, answerer) in enumerate(zip(MODELS, ("discriminating", "sycophant"), strict=True))
    ]
    return write_page_of([load_intent(run) for run in runs], folder / "both")


@pytest.fixture(scope="module")
def opened(visit_once: Any, page: Path) -> Any:
    return visit_once(page, width=1366)


def test_hostile_items_and_names_stand_there_and_do_nothing(opened: Any) -> None:
    opened.shot("intent-hostile")
    assert opened.complaints == []
    assert opened.requests == []
    cells = "main td *:not(bdi, a, .grade, svg.bar, svg.bar *)"
    made = opened.page.locator(f"main script[src], {cells}, main b, main i, main svg[onload]")
    assert made.count() == 0
    text = opened.page.locator("main").text_content()
    assert all(part in text for part in (*MODELS, "<i>a part</i>", *list(ATTACKS.values())[1:]))


def test_right_and_wrong_answers_of_both_stand_under_one_question(opened: Any) -> None:
    section = opened.page.locator("section", has=opened.page.get_by_role("heading", name="The same question"))
    first = section.locator(".card").first.text_content()
    assert section.locator(".card").count() >= 6
    assert first.count("✓") + first.count("✗") >= 2
    assert all(name in first for name in MODELS)


def test_a_narrow_dark_screen_does_not_scroll_sideways(visit: Any, page: Path) -> None:
    narrow = visit(page, width=390, height=800, dark=True)
    sizes = narrow.page.evaluate(
        """() => [document.documentElement.scrollWidth, innerWidth,
        ...[...document.querySelectorAll('.canvas')].map(c => c.scrollWidth - c.clientWidth)]"""
    )
    assert sizes[0] <= sizes[1]
    assert max(sizes[2:]) <= 0
    assert narrow.complaints == []


def test_on_paper_every_figure_keeps_inside_the_sheet(opened: Any) -> None:
    opened.page.set_viewport_size({"width": 794, "height": 1123})
    opened.page.emulate_media(media="print")
    wide = opened.page.evaluate(
        """() => [...document.querySelectorAll('figure')].filter(f => f.offsetParent !== null)
        .map(f => f.getBoundingClientRect().right - innerWidth)"""
    )
    assert max(wide) <= 1
