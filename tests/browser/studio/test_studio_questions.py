"""Questions reviewed in the page: by keys, blind, and into the files that the terminal reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Route, expect
from tests.browser.studio.driver import Studio
from tests.browser.studio.legible import faults

from surgeval.datasets import intent_record
from surgeval.questions import ReviewDesk, agreement, decide, open_set, read_judgements
from surgeval.records import Gaze, IntentQuestion, OptionLabel
from surgeval.studio.server import serve

pytestmark = pytest.mark.browser
OPTIONS = ("Clip the cystic duct", "Cut the cystic artery", "Grasp the fundus again", "Retract the liver with the fan")
GAZE = (Gaze(0.0, 0.3, 0.4, 0.5), Gaze(1.0, 0.6, 0.5, 1.5))


def question(number: int) -> IntentQuestion:
    labels = tuple(OptionLabel("visible" if k == number else "absent", f"the reason of {k}") for k in range(4))
    stem = f"I am dissecting Calot's triangle in case {number}. What do I do next in the area I am looking at?"
    return IntentQuestion(
        f"q{number}", "laparoscopy", f"v{number}", tuple(f"media/v{number}/{k}.png" for k in range(3)), "temporal",
        "prospective", stem, OPTIONS, number, 0.0, 2.0, GAZE,
        {"procedure": "cholecystectomy", "phase": "Calot triangle dissection"}, labels=labels,
        trap="perceptual" if number == 1 else None, source="SAGES safe cholecystectomy, 2024",
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "set"
    for number in range(4):
        (place / "media" / f"v{number}").mkdir(parents=True)
        for k in range(3):
            image = Image.new("RGB", (480, 270), (110, 40 + 20 * k, 40))
            draw = ImageDraw.Draw(image)
            draw.polygon([(0, 270), (200 + 20 * k, 120), (215 + 20 * k, 130), (40, 270)], fill=(170, 170, 180))
            image.save(place / "media" / f"v{number}" / f"{k}.png")
    lines = [json.dumps(intent_record(question(number))) for number in range(4)]
    (place / "items.jsonl").write_text("\n".join(lines) + "\n")
    return place


@dataclass
class Desk(Studio):
    """A tab on the questions."""

    first: str = "question-text"  # what the page begins with

    def ready(self) -> None:
        self.page.get_by_test_id(self.first).wait_for()

    @property
    def item(self) -> str:
        return self.page.get_by_test_id("questions").get_attribute("data-item") or ""

    def in_turn(self) -> None:
        """Until the question in sight is the one that keys judge."""
        self.page.locator("aside[aria-busy=false]").wait_for()

    def progress(self) -> str:
        return self.page.get_by_test_id("question-progress").inner_text().strip()


@contextmanager
def at_desk(browser: Browser, folder: Path, author: str, first: str = "question-text") -> Iterator[Desk]:
    """A person before the questions; in the end the page may not have complained."""
    with serve(folder, author=author) as running:
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        desk = Desk(page, running.entry, first=first)
        desk.open()
        yield desk
        page.close()
        assert desk.complaints == []


def test_a_review_by_keys_alone_lies_in_the_terminal_s_file(folder: Path, browser: Browser) -> None:
    with at_desk(browser, folder, "Ada") as desk:
        order = [item.id for item in ReviewDesk(open_set(folder), "Ada").pending()]
        assert desk.item == order[0]
        desk.page.get_by_test_id("question-look").wait_for()
        desk.shot("question")
        desk.keys("ArrowRight")
        assert desk.page.get_by_test_id("question-picture").get_attribute("data-number") == "1"
        desk.keys("c")
        desk.eventually(lambda: desk.item == order[1])
        right = int(order[1][1])
        desk.keys("w", str((right + 1) % 4 + 1), "m")
        desk.page.keyboard.type("the artery comes first")
        desk.shot("question-wrong")
        desk.keys("Enter")
        desk.eventually(lambda: desk.item == order[2])
        desk.keys("u", "Escape")  # thought better of it
        desk.keys("d")
        desk.eventually(lambda: desk.item == order[3])
        desk.keys("u", "Enter")
        desk.eventually(lambda: desk.item == order[2])
        assert desk.progress() == "3 of 4 judged"
        terminal = ReviewDesk(open_set(folder), "Ada")
        assert [item.id for item in terminal.pending()] == [order[2]]
        said = {name: (one.verdict, one.answer, one.comment) for name, one in terminal.mine.items()}
        assert said == {
            order[0]: ("correct", None, ""),
            order[1]: ("wrong", (right + 1) % 4, "the artery comes first"),
            order[3]: ("unclear", None, ""),
        }
        terminal.judge(order[2], "correct")  # on the terminal, while the page is open
        desk.page.reload()
        desk.ready()
        assert desk.progress() == "4 of 4 judged"
        desk.page.get_by_test_id("question-look").wait_for()
        desk.keys("u", "Enter")  # nothing is left: the same question stays in sight, and where its surgeon looked
        expect(desk.page.get_by_test_id("question-mine")).to_contain_text("unclear", ignore_case=True)
        expect(desk.page.get_by_test_id("question-look")).to_be_visible(timeout=5000)


def test_reviewers_are_blind_and_an_adjudicator_settles(folder: Path, browser: Browser) -> None:
    ada = ReviewDesk(open_set(folder), "Ada")
    for number in range(4):
        ada.judge(f"q{number}", "wrong" if number == 2 else "correct", comment="Ada's secret")
    with at_desk(browser, folder, "Bo") as desk:
        for done in range(1, 5):
            assert "secret" not in desk.page.content()
            if done == 2:
                desk.page.get_by_test_id("agreement-open").click()
                desk.page.get_by_test_id("agreement-waits").wait_for()
                desk.keys("Escape")
            desk.keys("c")
            desk.eventually(lambda done=done: desk.progress() == f"{done} of 4 judged")  # type: ignore[misc]
            desk.in_turn()
        desk.page.get_by_test_id("agreement-open").click()
        rows = desk.page.locator("[data-testid=agreement-table] tbody tr")
        rows.first.wait_for()
        assert rows.count() == len(agreement(open_set(folder))) == 2
        assert "Ada and Bo" in rows.first.inner_text()
        assert "75 %" in rows.first.inner_text()
        desk.shot("question-agreement")
    with at_desk(browser, folder, "Eve") as desk:
        desk.page.get_by_test_id("question-role").select_option("adjudicate")
        desk.eventually(lambda: desk.item == "q2" and "secret" in desk.page.content())
        assert "Ada and" not in desk.page.content()
        desk.shot("question-adjudicate")
        desk.keys("c")
        desk.eventually(lambda: decide(open_set(folder))["q2"].status == "accepted")


def test_keys_judge_nothing_while_the_next_question_is_on_its_way(folder: Path, browser: Browser) -> None:
    with at_desk(browser, folder, "Ada") as desk:
        order = [item.id for item in ReviewDesk(open_set(folder), "Ada").pending()]
        held: list[Route] = []
        desk.page.route(f"**/api/questions/item?*{order[2]}", lambda route: held.append(route))
        desk.keys("c")
        desk.eventually(lambda: desk.item == order[1])
        desk.in_turn()
        desk.keys("c")
        desk.eventually(lambda: desk.progress() == "2 of 4 judged" and bool(held))
        desk.keys("w", "3", "Enter", "c")  # the hand was faster: what is in sight is judged already
        assert desk.item == order[1]
        assert desk.page.get_by_test_id("verdict-correct").is_disabled()
        for route in held:
            route.continue_()
        desk.eventually(lambda: desk.item == order[2])
        mine = ReviewDesk(open_set(folder), "Ada").mine
        assert {name: one.verdict for name, one in mine.items()} == dict.fromkeys(order[:2], "correct")
        assert len(read_judgements(open_set(folder))) == 2


def test_a_question_that_does_not_come_leaves_the_last_one_in_turn(folder: Path, browser: Browser) -> None:
    with at_desk(browser, folder, "Ada") as desk:
        order = [item.id for item in ReviewDesk(open_set(folder), "Ada").pending()]
        desk.page.route(f"**/api/questions/item?*{order[2]}", lambda route: route.abort())
        desk.keys("c")
        desk.eventually(lambda: desk.item == order[1])
        desk.keys("d")
        desk.hears("server did not answer")
        desk.in_turn()
        assert desk.item == order[1]
        desk.complaints.clear()  # of the broken line
        desk.keys("u", "Enter")
        desk.eventually(lambda: desk.progress() == "2 of 4 judged")
        desk.in_turn()  # again: the next one did not come either
        desk.page.unroute_all()
        desk.complaints.clear()


def test_labelling_and_questions_of_one_folder(folder: Path, browser: Browser) -> None:
    (folder / "op").mkdir()
    for k in range(3):
        Image.new("RGB", (320, 180), (90, 30, 30)).save(folder / "op" / f"{k}.png")
    with at_desk(browser, folder, "Ada", "overlay") as desk:
        desk.page.get_by_test_id("project-menu").click()
        desk.page.get_by_test_id("menu-questions").click()
        desk.page.get_by_test_id("question-text").wait_for()
        desk.keys("c")
        desk.eventually(lambda: desk.progress() == "1 of 4 judged")
        desk.keys("Escape")
        desk.ready()
        assert desk.frame == 0


@pytest.mark.parametrize(("theme", "code"), [("dark", "zh"), pytest.param("light", "en", marks=pytest.mark.long)])
def test_questions_read_well(folder: Path, browser: Browser, theme: str, code: str) -> None:
    ada = ReviewDesk(open_set(folder), "Ada")
    for number in range(4):
        ada.judge(f"q{number}", "unclear", comment="the picture is too dark to tell")
    ReviewDesk(open_set(folder), "Bo").judge("q0", "correct")
    with at_desk(browser, folder, "Ada") as desk:
        desk.page.get_by_test_id("theme").select_option(theme)
        desk.page.get_by_test_id("language").select_option(code)
        found = {"judged": faults(desk.page)}
        desk.keys("w", "1", "2")
        found["wrong"] = faults(desk.page)
        desk.shot(f"question-{theme}-{code}")
        desk.keys("Escape")
        desk.page.get_by_test_id("agreement-open").click()
        desk.page.get_by_test_id("agreement-table").wait_for()
        found["agreement"] = faults(desk.page)
        assert {place: poor for place, poor in found.items() if poor} == {}
