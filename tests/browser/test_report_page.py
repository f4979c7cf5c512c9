"""The dataset report in a real browser, on a dataset whose every name attacks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from surgeval.datasets import OnProblem, raise_errors
from surgeval.errors import visible
from surgeval.records import Box, Frame, Instance, Question, Triplet, Video, VqaQuestion
from surgeval.report import write_dataset_page
from surgeval.vocab import LabelSpace

pytestmark = pytest.mark.browser

NAME = "<script>alert(1)</script>"
SOURCES = ("'\"><svg onload=alert(2)>", "</title><script>alert(3)</script>", "=1+1")
INSTRUMENTS = (
    "</script><img src=x onerror=alert(4)>",
    '<a href="https://example.invalid/">click</a>',
    "<b>bold</b> &lt; %{x}",
    "\u202eeno thgir ot tfel\u202c",
)
VERBS = ("<style>*{display:none}</style>", "$\\frac{1}{2}$")
TARGETS = ("{{ 7 * 7 }}", "`${alert(5)}`", "line\u2028separator")
PHASES = ("<!-- phase", "]]>")


class Hostile:
    """Three sources, two videos each, all names hostile."""

    format: ClassVar[str] = "<em>format</em>"
    root = Path("hostile")
    space = LabelSpace(
        "<i>space</i>",
        INSTRUMENTS,
        VERBS,
        TARGETS,
        tuple((i, v, t) for i in range(4) for v in range(2) for t in range(3)),
        PHASES,
    )

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        return tuple(Video(f"<u>{k}</u>", SOURCES[k % 3], ("train", "<test>")[k // 3]) for k in range(6))

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        number = int(video[3])
        for t in range(40):
            classes = [self.space.triplets[(number + t // 5 + k * k) % 24] for k in range(t % 4)]
            instances = tuple(Instance(Triplet(*c), Box(3, 3, 5 + t, 9)) for c in classes)
            yield Frame(video, str(t), t, float(t), None, 100, 100, instances, phase=t // 20)

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        yield VqaQuestion("1", "v", 0, 1, "<procedure>", "?", "</td><script>alert(6)</script>", "<number>", "3")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sheet = np.random.default_rng(0).integers(0, 255, (90, 160, 3), dtype=np.uint8)
    return write_dataset_page(Hostile(), tmp_path_factory.mktemp("report"), title=NAME, sheet=sheet)


def figure(opened: Any, title: str) -> Any:
    return opened.page.locator("figure.plot", has=opened.page.get_by_text(title, exact=True))


def test_hostile_names_do_nothing_but_stand_there(visit: Any, report: Path) -> None:
    opened = visit(report)
    opened.shot("report-hostile")
    assert opened.complaints == []
    assert opened.requests == []
    assert opened.page.locator("h1").inner_text() == NAME
    assert opened.page.title() == f"{NAME} · dataset report"
    text = opened.page.locator("main").text_content()
    for name in (*SOURCES, *VERBS, *TARGETS[:2], *INSTRUMENTS, *PHASES, "<i>space</i>", "<em>format</em>", "<u>0</u>"):
        assert visible(name) in text, name  # a character that turns the direction of reading is written out
    assert opened.page.locator("main img").count() == 1
    assert opened.page.locator("main a[href*='example']").count() == 0
    assert opened.page.locator("svg a").count() == 0


def test_every_figure_is_drawn_with_its_labels_literally(visit: Any, report: Path) -> None:
    opened = visit(report)
    plots = opened.page.locator("figure.plot")
    assert plots.count() >= 10
    for k in range(plots.count()):
        assert plots.nth(k).locator("svg.marks").count() >= 1
        assert len(plots.nth(k).locator(".canvas").get_attribute("aria-label") or "") > 20
    labels = set(figure(opened, "Instruments").locator(".role-axis-label text").all_text_contents())
    assert "<b>bold</b> &lt; %{x}" in labels
    assert any(label.startswith("</script><img") for label in labels)
    legend = figure(opened, "Instruments").locator(".role-legend-label text").all_text_contents()
    assert legend == list(SOURCES)
    names = figure(opened, "Instrument and target of one instance").locator(".role-axis-label text").all_text_contents()
    assert {"{{ 7 * 7 }}", "`${alert(5)}`", "line separator"} <= set(names)


def test_hovering_shows_the_name_and_the_count(visit: Any, report: Path) -> None:
    opened = visit(report)
    bar = figure(opened, "Verbs").locator(".mark-rect > path").first
    bar.hover(force=True)
    hover = opened.page.locator("#vg-tooltip-element.visible")
    hover.wait_for(state="attached")
    assert VERBS[0] in hover.text_content() or VERBS[1] in hover.text_content()
    assert opened.complaints == []


def test_the_policy_stops_a_script_that_somebody_adds(visit: Any, report: Path, tmp_path: Path) -> None:
    poisoned = tmp_path / "poisoned.html"
    html = report.read_text("utf-8")
    attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    poisoned.write_text(html.replace("</main>", f"{attack}</main>"), encoding="utf-8")
    opened = visit(poisoned)
    assert opened.page.title() != "owned"
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_a_click_on_a_heading_sorts_and_a_second_click_turns_round(visit: Any, report: Path) -> None:
    opened = visit(report)
    table = opened.page.locator("figure.table", has=opened.page.get_by_text("Triplets by source", exact=True))
    heading = table.locator("th", has_text="total")
    column = table.locator("th").all_text_contents().index("total") + 1

    def values() -> list[int]:
        return [int(text) for text in table.locator(f"tbody td:nth-child({column})").all_text_contents()]

    before = values()
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert values() == sorted(before, reverse=True) != before
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(before)
    name = table.locator("th", has_text="triplet")
    name.locator("button").focus()
    opened.page.keyboard.press("Enter")
    assert name.get_attribute("aria-sort") == "ascending"
    assert heading.get_attribute("aria-sort") is None


@pytest.mark.parametrize(
    "width", [320, pytest.param(400, marks=pytest.mark.long), 800, pytest.param(1600, marks=pytest.mark.long)]
)
def test_no_width_makes_the_page_scroll_sideways(visit: Any, report: Path, width: int) -> None:
    opened = visit(report, width=width, height=800)
    opened.shot(f"report-{width}")
    sizes = opened.page.evaluate(
        """() => [document.documentElement.scrollWidth, innerWidth,
        ...[...document.querySelectorAll('.canvas')].map(c => c.scrollWidth - c.clientWidth)]"""
    )
    assert sizes[0] <= sizes[1]
    assert max(sizes[2:]) <= 0
    assert opened.complaints == []


def test_on_a_phone_tables_scroll_in_their_own_frame(visit: Any, report: Path) -> None:
    opened = visit(report, width=400, height=800)
    widest = opened.page.evaluate(
        "() => Math.max(...[...document.querySelectorAll('.scroll')].map(s => s.scrollWidth - s.clientWidth))"
    )
    assert widest > 0


def test_a_dark_screen_gets_a_dark_page_and_readable_figures(visit: Any, report: Path) -> None:
    opened = visit(report, dark=True)
    opened.shot("report-dark")
    back = opened.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)")
    ink = opened.page.evaluate(
        "getComputedStyle(document.querySelector('.role-axis-label text')).fill.match(/[0-9]+/g).map(Number)"
    )
    assert max(back[:3]) < 60
    assert min(ink[:3]) > 150
    opened.page.emulate_media(color_scheme="light")
    opened.eventually("getComputedStyle(document.querySelector('.role-axis-label text')).fill.match(/[0-9]+/)[0] < 100")
    assert opened.complaints == []


def test_printing_opens_every_table_and_closes_them_again(visit: Any, report: Path) -> None:
    opened = visit(report, dark=True)
    closed = opened.page.locator("details:not([open])").count()
    assert closed > 3
    opened.page.evaluate("""() => { addEventListener('beforeprint', () => {
        document.title = 'closed ' + document.querySelectorAll('details:not([open])').length; }); }""")
    assert opened.page.pdf().startswith(b"%PDF")
    assert opened.page.title() == "closed 0"
    opened.eventually(f"document.querySelectorAll('details:not([open])').length === {closed}")
    assert opened.complaints == []


def test_on_paper_every_table_fits_the_width(visit: Any, report: Path) -> None:
    opened = visit(report, width=760)
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator("details:not([open])").count() == 0
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_contents_lead_to_their_sections(visit: Any, report: Path) -> None:
    opened = visit(report)
    links = opened.page.locator(".contents a")
    for k in range(links.count()):
        target = opened.page.locator(links.nth(k).get_attribute("href"))
        assert target.locator("h2 bdi").inner_text() == links.nth(k).inner_text()


def test_without_scripts_every_number_is_still_there(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.resolve().as_uri())
    assert "need JavaScript" in page.locator("noscript").inner_text()
    assert page.locator("table").count() >= 10
    context.close()
