"""Review rounds and the blind agreement study, by keys and mouse: answers, kappas, disagreements, decisions."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

import pytest
from playwright.sync_api import Page, Response
from tests.browser.studio.driver import Studio
from tests.browser.studio.legible import CUT
from tests.unit.studio import study_scene as scene

BY_HAND = 3  # instances that ada answers by keys


def answer(studio: Studio, annotator: str, ids: list[str], verb: str, number: int) -> None:
    """An answer as the page of an annotator sends it."""
    body = {"id": f"{annotator}.{verb}.{number}", "kind": "study.answer", "session": annotator,
            "payload": {"ids": ids, "name": "scissors", "values": {"action": verb, "target": "fascias"}}}  # fmt: skip
    connection = HTTPConnection(studio.host, timeout=120)
    headers = {**studio.token, "content-type": "application/json"}
    connection.request("POST", f"/blind/s1/{annotator}/api/operations", json.dumps(body).encode(), headers)
    told = connection.getresponse()
    assert told.status == 200, told.read()
    connection.close()


def shown(studio: Studio, annotator: str) -> dict[int, dict[str, Any]]:
    found = studio.get(f"/blind/s1/{annotator}/api/videos/V1/annotations?first=0&last=59")["annotations"]
    return {one["frame"]: one for one in found}


def answered_by_program(studio: Studio, annotator: str, leave: int = 0) -> None:
    boxes = shown(studio, annotator)
    for verb in ("cut", "dissect"):
        ids = [boxes[frame]["id"] for k, frame in enumerate(scene.FRAMES)
               if k >= leave and scene.verb(annotator, k) == verb]  # fmt: skip
        answer(studio, annotator, ids, verb, leave)


@pytest.fixture
def studied(studio: Studio) -> Studio:
    studio.post({"id": "draw", "kind": "instances.add", "payload": scene.instances()})
    studio.post({"id": "make", "kind": "study.add", "payload": scene.study()})
    return studio


def answer_by_keys(studio: Studio, k: int, digits: list[str]) -> None:
    page = studio.page
    studio.keys("Shift+R")
    studio.eventually(lambda: studio.frame == k and page.locator("[data-selected=true]").count() == 1)
    studio.keys(digits[0])
    studio.eventually(lambda: page.get_by_test_id("attribute-action").get_attribute("data-active") == "true")
    studio.keys(*digits[1:])
    studio.eventually(lambda: f"{k + 1} of 40" in text(page, "blind-progress"))


def dialog(studio: Studio, name: str) -> None:
    studio.page.get_by_test_id("project-menu").click()
    studio.page.get_by_test_id(f"menu-{name}").click()
    studio.page.get_by_test_id(name).wait_for()


def text(page: Page, id: str) -> str:
    return page.get_by_test_id(id).inner_text()


def test_frames_are_reviewed_by_key_in_rounds(studio: Studio) -> None:
    page = studio.page
    studio.post({"id": "draw", "kind": "instances.add", "payload": scene.instances()})
    chip = page.get_by_test_id("review-chip")
    studio.keys("r")
    studio.eventually(lambda: chip.get_attribute("data-seen") == "1")
    studio.keys("d", "z", "d", "d", "x", "r")  # a stretch at once
    studio.eventually(lambda: studio.get("/api/videos/V1/reviews")["runs"] == [[0, 3, ["amy"]]])
    studio.keys("d", "r")  # and then the frame in view
    studio.eventually(lambda: studio.get("/api/videos/V1/reviews")["runs"] == [[0, 4, ["amy"]]])
    studio.keys("Control+z")
    studio.eventually(lambda: studio.get("/api/videos/V1/reviews")["runs"] == [[0, 3, ["amy"]]])
    studio.eventually(lambda: chip.get_attribute("data-seen") == "0")
    studio.keys("Home", "Shift+R")
    studio.eventually(lambda: studio.frame == 4)
    studio.keys("Control+z")
    studio.eventually(lambda: studio.get("/api/videos/V1/reviews")["runs"] == [[0, 0, ["amy"]]])
    chip.click()
    page.get_by_test_id("round-title").fill("second look")
    page.get_by_test_id("round-people").fill("amy, ben")
    page.get_by_test_id("round-begin").click()
    studio.eventually(lambda: chip.get_attribute("data-of") == "2")
    page.get_by_test_id("review-mark").click()
    studio.eventually(lambda: studio.get("/api/videos/V1/reviews?round=2")["runs"] == [[4, 4, ["amy"]]])
    studio.eventually(lambda: "1/2" in chip.inner_text())
    studio.shot("review")
    page.get_by_test_id("review-round").select_option("1")
    studio.eventually(lambda: chip.get_attribute("data-seen") == "0")
    page.get_by_test_id("review-close").click()
    page.get_by_test_id("object-filter").select_option("Unreviewed")
    page.get_by_test_id("next-match").click()
    studio.eventually(lambda: studio.frame == 5 and page.get_by_test_id("object-scissors-5").count() == 1)
    studio.keys("Home")
    studio.eventually(lambda: studio.frame == 0 and page.get_by_test_id("object-scissors-0").count() == 0)  # seen


def test_a_study_is_made_and_an_annotator_enters_blindly(studio: Studio) -> None:
    page = studio.page
    studio.post({"id": "draw", "kind": "instances.add", "payload": scene.instances()})
    dialog(studio, "study")
    page.get_by_test_id("study-people").fill("Ada, Ben")
    studio.eventually(lambda: "room for 1 of 200" in text(page, "study-drawn"))  # five of 200 do not fit in 330 frames
    studio.complaints.clear()  # the browser logs what the server refuses
    page.get_by_test_id("study-count").fill("3")
    page.get_by_test_id("study-length").fill("100")
    page.get_by_test_id("study-seed").fill("7")
    studio.eventually(lambda: text(page, "study-drawn").count("V1") == 3)
    studio.shot("study-new")
    page.get_by_test_id("study-make").click()
    page.get_by_test_id("study-enter-Ada").wait_for()
    (made,) = studio.get("/api/studies")
    assert (made["annotators"], made["seed"], len(made["segments"]), made["author"]) == (["Ada", "Ben"], 7, 3, "amy")
    page.get_by_test_id("study-enter-Ada").click()
    page.get_by_test_id("blind").wait_for()
    studio.ready()
    assert page.evaluate(CUT) == [], "the annotator's bar fits a small screen"
    assert studio.frame == made["segments"][0]["first"]
    page.get_by_test_id("blind-leave").click()
    page.get_by_test_id("review-chip").wait_for()
    assert page.url == studio.address


def test_two_annotators_with_known_disagreement(studied: Studio) -> None:
    studio, page = studied, studied.page
    answered_by_program(studio, "ben")
    page.goto(f"{studio.address}blind/s1/ada/")
    studio.ready()
    panel = studio.get("/api/project")["schema"]["panel"]["tools"]
    verbs = panel["scissors"]["action"]
    target = str(panel["scissors"]["target"].index("fascias") + 1)
    tool = str(list(panel).index("scissors") + 1)
    assert "cut" not in text(page, "object-list")
    assert "scissors" not in text(page, "object-list")
    for k in range(BY_HAND):
        answer_by_keys(studio, k, [tool, str(verbs.index(str(scene.verb("ada", k))) + 1), target])
    studio.shot("blind")
    said = shown(studio, "ada")
    assert [(said[k]["name"], said[k]["values"]["action"]) for k in range(BY_HAND)] == [
        ("scissors", scene.verb("ada", k)) for k in range(BY_HAND)
    ]
    studio.keys("Control+z")
    studio.eventually(lambda: "target" not in shown(studio, "ada")[2]["values"])
    studio.keys("Control+Shift+z")
    studio.eventually(lambda: shown(studio, "ada")[2]["values"].get("target") == "fascias")
    studio.keys("Delete", "ArrowRight", "t", "f")  # what would change boxes or labels does nothing here
    answered_by_program(studio, "ada", BY_HAND)
    assert [one["box"] for one in studio.instances(2)] == [[22, 20, 18, 12]]

    page.get_by_test_id("blind-leave").click()
    page.get_by_test_id("review-chip").wait_for()
    dialog(studio, "study")
    page.get_by_test_id("kappas").wait_for()
    for annotator, expected in scene.EXPECTED.items():
        for component, value in expected.items():
            cell = text(page, f"kappa-{component}-{annotator}")
            assert cell.split(" ")[0] == ("–" if value is None else f"{value:.2f}"), (annotator, component)
    for component, value in scene.BETWEEN.items():
        assert text(page, f"kappa-ada-ben-{component}").startswith(f"{value:.2f}")
    assert text(page, "kappa-verb-mean") == "0.70"
    studio.shot("study-table")

    page.get_by_test_id("study-list").click()
    row = page.get_by_test_id("disagreement-scissors-6")
    row.click()
    studio.eventually(lambda: studio.frame == 6)
    studio.eventually(lambda: page.get_by_test_id("box-scissors-6").get_attribute("data-selected") == "true")
    studio.shot("disagreements")
    page.get_by_test_id("decide-answer-ada").click()
    studio.eventually(lambda: row.get_attribute("data-decided") == "true")
    assert "amy" in row.inner_text()
    assert studio.instances(6)[0]["values"]["action"] == scene.verb("ada", 6)
    studio.eventually(lambda: studio.frame == 7)  # on to the next that is open
    page.get_by_test_id("decide-other").click()
    page.get_by_test_id("other-name").select_option("forceps")
    page.get_by_test_id("other-action").select_option("retract")
    page.get_by_test_id("decide-confirm").click()
    studio.eventually(lambda: studio.instances(7)[0]["name"] == "forceps")
    log = studio.get("/api/studies/s1/log")
    assert [(one["instance"], one["choice"], one["annotator"], one["decided_by"]) for one in log] == [
        ("scissors-6", "annotator", "ada", "amy"), ("scissors-7", "other", "", "amy"),
    ]  # fmt: skip
    studio.keys("Control+z")
    studio.eventually(lambda: len(studio.get("/api/studies/s1/log")) == 1)
    assert studio.instances(7)[0]["name"] == "scissors"


def test_a_stretch_is_answered_at_once_and_the_page_hears_no_label(studied: Studio) -> None:
    studio, page = studied, studied.page
    told: list[str] = []

    def hear(answer: Response) -> None:
        if "/annotations" in answer.url:
            told.append(answer.text())

    page.on("response", hear)
    page.goto(f"{studio.address}blind/s1/ada/")
    studio.ready()
    studio.keys("Shift+R")
    studio.eventually(lambda: page.locator("[data-selected=true]").count() == 1)
    studio.keys("z")
    page.get_by_test_id("span-last").fill("19")
    studio.keys("Enter", "c", "1", "1")
    studio.eventually(lambda: "20 " in text(page, "span-preview"))
    studio.keys("e")
    studio.eventually(lambda: "0 of 40" not in text(page, "blind-progress") or len(
        [one for one in shown(studio, "ada").values() if one["name"]]) == 20)  # fmt: skip
    said = shown(studio, "ada")
    assert {said[k]["name"] for k in range(20)} == {"scissors"}
    assert not any(said[k]["name"] for k in range(40, 60))
    studio.keys("Control+z")
    studio.eventually(lambda: not any(one["name"] for one in shown(studio, "ada").values()))
    page.remove_listener("response", hear)
    assert told
    assert not any("scissors" in one or "fascias" in one for one in told[:1])
    page.get_by_test_id("language").select_option("zh")
    studio.eventually(lambda: "盲标" in text(page, "blind"))
