"""The index over runs and the comparison of two, in a real browser: they fit, they are quiet, their links lead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surgeval import compare
from surgeval.protocols.focus import score_focus
from surgeval.protocols.focus.page import write_page_of
from surgeval.qa import ExactJudge, Panel
from surgeval.report import write_comparison_page, write_index
from surgeval.vocab import capabilities

pytestmark = pytest.mark.browser

NAMES = ("<b>net</b>", "a-model-with-a-name-that-has-no-space-" + "x" * 40)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    leaves = [leaf.value for leaf in capabilities()]
    requests = [{"qID": str(k), "videoID": f"v{k % 8}", "start_time": 0, "end_time": 1, "procedure_type": "p",
                 "question": "How many?"} for k in range(80)]  # fmt: skip
    references = [{"qID": str(k), "primary": leaves[k % 15], "format": "number", "format_kwargs": {}, "answer": "3",
                   "ood": k % 4 == 0} for k in range(80)]  # fmt: skip
    scores = []
    for number, name in enumerate(NAMES):
        responses = [{"qID": str(k), "content": "3" if k % (3 + number) else "4", "latency": 1.0} for k in range(80)]
        judge = Panel([ExactJudge("judge")])
        scores.append(
            score_focus(responses, requests, references, judge=judge, track="segment", resamples=50, name=name)
        )
        write_page_of([scores[-1]], scores[-1].save(root / f"run{number}").parent)
    return {
        "index": write_index(root, title="<i>All</i> runs"),
        "compare": write_comparison_page(compare(*scores), root / "compare"),
    }


@pytest.mark.parametrize(
    ("width", "dark"), [(1366, True), pytest.param(800, False, marks=pytest.mark.long), (390, False)]
)
@pytest.mark.parametrize("kind", ["index", "compare"])
def test_the_page_fits_its_screen_and_is_quiet(
    visit: Any, pages: dict[str, Path], kind: str, width: int, dark: bool
) -> None:
    opened = visit(pages[kind], width=width, dark=dark)
    opened.shot(f"{kind}-{width}-{'dark' if dark else 'light'}")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    text = opened.page.locator("main").text_content()
    assert all(name in text for name in NAMES)
    assert opened.complaints == []
    assert opened.requests == []


def test_the_index_leads_to_every_run(visit: Any, pages: dict[str, Path]) -> None:
    opened = visit(pages["index"])
    links = opened.page.locator(".links a")
    assert links.count() == 2
    links.first.click()
    opened.page.wait_for_selector("html[data-drawn]")
    assert opened.page.locator("h1").inner_text() in NAMES
    assert opened.page.locator("svg.marks").count() > 0
    assert opened.complaints == []


def test_a_printed_comparison_lies_inside_the_paper(visit: Any, pages: dict[str, Path]) -> None:
    opened = visit(pages["compare"], width=1366)
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 672, "height": 1000})
    opened.page.wait_for_selector("html.paper")
    right = opened.page.locator("td, th, svg text, .bars path").evaluate_all(
        "all => Math.max(...all.map(e => e.getBoundingClientRect().right))"
    )
    assert right <= 672.5
