"""The pages on a FOCUS submission and a ranking in a real browser, with models and videos whose names attack them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surgeval.errors import visible
from surgeval.protocols.focus import score_focus
from surgeval.protocols.focus.page import write_page_of
from surgeval.qa import ExactJudge, Panel
from surgeval.report import study_ranking, write_ranking_page
from surgeval.stats import rank_outcomes, stream
from surgeval.vocab import capabilities

pytestmark = pytest.mark.browser

MODELS = (
    "</script><img src=x onerror=alert(1)>",
    '<a href="https://example.invalid/">click</a>',
    "\u202eeno thgir ot tfel\u202c",
    "{{ 7 * 7 }} $\\frac{1}{2}$ %{x}",
    "a-model-with-a-very-long-name-that-has-no-space-to-break-at-" + "x" * 60,
    "=1+1",
)
VIDEOS = tuple(f"{name} {k}" for k in range(4) for name in ("<script>alert(2)</script>", "'\"><svg onload=alert(3)>"))
FORMATS: dict[str, tuple[dict[str, Any], str]] = {
    "number": ({}, "3"),
    "open_ended": ({}, "<b>to drain</b>"),
    "binary": ({}, "yes"),
}


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    leaves = [leaf.value for leaf in capabilities()]
    requests, references, responses = [], [], []
    for k in range(240):
        qid, format = f"<u>{k}</u>", list(FORMATS)[k % 3]
        options, truth = FORMATS[format]
        requests.append({"qID": qid, "videoID": VIDEOS[k % 8], "start_time": 0, "end_time": 1,
                         "procedure_type": "<p>", "question": "<h1>?</h1>"})  # fmt: skip
        references.append({"qID": qid, "primary": leaves[k % 15], "format": format, "format_kwargs": options,
                           "answer": truth, "ood": k % 4 == 0})  # fmt: skip
        said = truth if k % 3 else "</td><script>alert(4)</script>"
        if k % 10:
            responses.append({"qID": qid, "content": said, "latency": 99.0 if k % 11 == 0 else 1.0, "</th>": 1})
    scores = score_focus(
        responses,
        requests,
        references,
        judge=Panel([ExactJudge("<judge>")]),
        track="segment",
        resamples=50,
        name=MODELS[0],
    )
    assert {"ok", "missing", "late", "invalid"} <= set(scores.results["status"])
    return write_page_of([scores], scores.save(tmp_path_factory.mktemp("focus")).parent)


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = stream(2, "browser")
    groups = sorted({leaf.group for leaf in capabilities()})
    buckets = [f"{groups[k % 5]}|{'ood' if k % 3 == 0 else 'id'}" for k in range(1500)]
    videos = [VIDEOS[k] for k in rng.integers(0, 8, 1500)]
    right = {name: rng.random(1500) < rate for name, rate in zip(MODELS, np.linspace(0.9, 0.4, 6), strict=True)}
    study = study_ranking(
        rank_outcomes(right, buckets, videos, resamples=500, baselines=MODELS[-1:]), outer=10, resamples=100
    )
    return write_ranking_page(study, tmp_path_factory.mktemp("ranking"), title="<i>Ranking</i>")


@pytest.fixture(params=["submission", "ranking"])
def report(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def test_hostile_names_stand_there_and_do_nothing(visit: Any, report: Path) -> None:
    opened = visit(report)
    opened.shot(f"{opened.page.title().rsplit(' ', 2)[-2]}-hostile")
    assert opened.complaints == []
    assert opened.requests == []
    strange = "main img, main script[src], main a[href*='example'], main td *:not(bdi, .grade, svg.bar, svg.bar *)"
    assert opened.page.locator(strange).count() == 0
    assert opened.page.locator("svg a").count() == 0


def test_the_names_are_read_as_they_are(visit: Any, submission: Path, ranking: Path) -> None:
    opened = visit(submission)
    assert opened.page.locator("h1").inner_text() == MODELS[0]
    text = opened.page.locator("main").text_content()
    assert all(name in text for name in (VIDEOS[0], VIDEOS[1], "<judge>", "<u>20</u>"))
    opened = visit(ranking)
    text = opened.page.locator("main").text_content()
    assert all(visible(name) in text for name in MODELS)  # what turns the direction of reading is written out


@pytest.mark.parametrize("width", [1280, 390])
def test_no_width_makes_the_page_scroll_sideways(visit: Any, report: Path, width: int) -> None:
    opened = visit(report, width=width, height=800)
    opened.shot(f"{report.parent.name}-{width}")
    sizes = opened.page.evaluate(
        """() => [document.documentElement.scrollWidth, innerWidth,
        ...[...document.querySelectorAll('.canvas')].map(c => c.scrollWidth - c.clientWidth)]"""
    )
    assert sizes[0] <= sizes[1]
    assert max(sizes[2:]) <= 0
    assert opened.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_every_name_under_the_lines_is_drawn_inside_the_page(visit: Any, ranking: Path, width: int) -> None:
    opened = visit(ranking, width=width)
    figure = opened.page.locator("figure.plot", has=opened.page.get_by_text("One bucket left out", exact=True))
    labels = figure.locator(".role-axis-label:has(text:nth-of-type(11)) text")
    assert labels.count() == 11
    frame = figure.locator(".canvas").bounding_box()
    for k in range(11):
        assert labels.nth(k).is_visible()
        box = labels.nth(k).bounding_box()
        assert box["x"] >= frame["x"] - 1
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        assert box["y"] + box["height"] <= frame["y"] + frame["height"] + 1


@pytest.mark.parametrize(
    ("page", "title", "column"),
    [
        ("submission", "Answer formats", "flat accuracy"),
        ("ranking", "The ranking", "mean of bucket accuracies, % [95 %]"),
    ],
)
def test_a_click_on_a_heading_sorts_the_numbers(
    visit: Any, request: pytest.FixtureRequest, page: str, title: str, column: str
) -> None:
    opened = visit(request.getfixturevalue(page))
    table = opened.page.locator("figure.table", has=opened.page.get_by_text(title, exact=True))
    heading = table.locator("th", has_text=column)
    place = [text.strip() for text in table.locator("th").all_text_contents()].index(column) + 1

    def values() -> list[float]:
        return [float(text.split()[0]) for text in table.locator(f"tbody td:nth-child({place})").all_text_contents()]

    heading.locator("button").click()
    first = heading.get_attribute("aria-sort")
    assert values() == sorted(values(), reverse=first == "descending")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") != first
    assert values() == sorted(values(), reverse=first == "ascending")
    assert len(set(values())) > 1
    assert opened.complaints == []
