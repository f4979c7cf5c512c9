"""The gallery of heatmaps in a real browser: sorted by what is right but ungrounded, class names that attack it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.engine import Manifest, RunRecord
from surgeval.protocols.surgxbench import SurgXSettings
from surgeval.protocols.surgxbench.item import Item
from surgeval.protocols.surgxbench.page import write_page_of
from surgeval.protocols.surgxbench.result import SurgXCase, SurgXScores

pytestmark = pytest.mark.browser

CLASSES = ("<img src=x onerror=alert(1)>", "hook</figcaption><script>alert(2)</script>", '"><b>bag</b> ' + "x" * 60)
NAME = "<script>alert(3)</script>"
# right, AC, chance → grounded; the fourth is ungrounded however high its AC, because a blind map would score more
CARDS = ((True, 0.9, 0.1), (True, 0.05, 0.1), (False, 0.8, 0.1), (True, 0.7, 0.8), (False, None, 0.1), (True, 0.4, 0.1))


def _item(number: int) -> Item:
    right, ac, chance = CARDS[number]
    picture = np.full((90, 320, 3), 40 * number, dtype=np.uint8)
    grounded = None if ac is None else ac > max(0.5, chance)
    name = CLASSES[number % len(CLASSES)]
    return Item(picture, NAME, f"{number}", name, CLASSES[:2], 0.1 * number, ac, ac, chance, right, grounded, "<i>")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = {**SurgXSettings().record(), "classes": list(CLASSES)}
    model = {"name": "<s>clip</s>", "family": "<u>clip</u>", "identity": "0123456789abcdef"}
    data = {"name": "<s>films</s>", "format": "<u>phantom</u>", "content": "ab"}
    manifest = Manifest("surgxbench", config=config, dataset=data, model=model)
    record = RunRecord(**manifest.stored(), status="done", units=1, finished=1, failed=0, cases=6)
    rows = pl.DataFrame({"cluster": ["a", "b"], "frame": ["1", "2"], "task": ["none", "none"]})
    cases = pl.concat([pl.DataFrame(schema=SurgXCase.dtypes()), rows], how="diagonal")
    table = pl.DataFrame({"task": list(CLASSES), "flag": ["<b>ties</b>"] * 3, "cases": [1, 2, 3]})
    items = tuple(_item(number) for number in range(len(CARDS)))
    scores = SurgXScores(
        name=NAME, record=record, classes=CLASSES, cases=cases, numbers={}, detail_tables={"flags": table}, items=items
    )
    return write_page_of([scores], tmp_path_factory.mktemp("page"))


def _order(opened: Any) -> list[int]:
    lines = opened.page.locator(".card figcaption").evaluate_all("all => all.map(one => one.lastChild.textContent)")
    return [int(line.split(" / ")[1].split(" ")[0]) for line in lines]


def test_right_but_ungrounded_stands_first_and_the_reader_can_sort_otherwise(visit: Any, page: Path) -> None:
    opened = visit(page)
    assert opened.page.locator(".gallery select option").first.text_content() == "right but ungrounded"
    assert _order(opened)[:4] == [1, 5, 3, 0]  # below chance counts as ungrounded; wrong ones come last
    opened.page.select_option(".gallery select", label="wrong but grounded")
    assert _order(opened)[0] == 2
    opened.page.select_option(".gallery select", label="most grounded")
    assert _order(opened) == [0, 2, 3, 5, 1, 4]
    opened.page.select_option(".gallery select", label="least grounded")
    assert _order(opened) == [1, 5, 3, 2, 0, 4]  # without a value: last in either order
    opened.page.select_option(".gallery select", label="highest score")
    assert _order(opened) == [5, 4, 3, 2, 1, 0]
    assert opened.complaints == []
    assert opened.requests == []


def test_class_names_are_shown_letter_by_letter(visit: Any, page: Path) -> None:
    opened = visit(page)
    titles = opened.page.locator(".card strong").all_text_contents()
    assert titles[_order(opened).index(0)] == f"{CLASSES[0]}: right · grounded"
    assert f"{CLASSES[1]}: wrong · no map" in titles
    assert opened.page.locator("h1").text_content() == NAME
    assert opened.page.locator(".card img").count() == len(CARDS)
    loaded = opened.page.locator(".card img").evaluate_all("all => all.every(one => one.src.startsWith('data:image/'))")
    assert loaded
    assert opened.complaints == []
    assert opened.requests == []


@pytest.mark.parametrize("dark", [pytest.param(False, marks=pytest.mark.long), True], ids=["light", "dark"])
def test_a_telephone_shows_the_gallery_without_sideways_scrolling(visit: Any, page: Path, dark: bool) -> None:
    opened = visit(page, width=390, height=800, dark=dark)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    widths = opened.page.locator(".card").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
    assert max(widths) <= 390
    assert opened.complaints == []
    opened.shot(f"gallery-390-{'dark' if dark else 'light'}")
