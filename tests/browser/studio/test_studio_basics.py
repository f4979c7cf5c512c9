"""The studio in a real browser, over its real server: drawn, dragged and typed as an annotator does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.browser.studio.driver import Studio

from surgeval.studio.schema import builtin_schema

pytestmark = pytest.mark.browser


def test_draw_label_move_resize_delete_undo_redo(studio: Studio) -> None:
    made = studio.draw((60, 50), (120, 110))
    assert made["box"] == pytest.approx([60, 50, 60, 60], abs=1.5)
    studio.keys("3", "4")
    studio.eventually(lambda: studio.instances()[0]["values"] == {"action": "cut", "target": "prostate"})
    studio.shot("labelled")
    studio.drag((90, 80), (130, 100))
    studio.eventually(lambda: studio.instances()[0]["box"] == pytest.approx([100, 70, 60, 60], abs=1.5))
    handle = studio.page.get_by_test_id("handle-se").bounding_box()
    assert handle is not None
    studio.page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    studio.page.mouse.down()
    studio.page.mouse.move(*studio.at(200, 160), steps=4)
    studio.page.mouse.up()
    studio.eventually(lambda: studio.instances()[0]["box"] == pytest.approx([100, 70, 100, 90], abs=2))
    studio.keys("Delete")
    studio.eventually(lambda: not studio.instances())
    studio.keys("Control+z")
    studio.eventually(lambda: len(studio.instances()) == 1)
    studio.keys("Control+z")
    studio.eventually(lambda: studio.instances()[0]["box"] == pytest.approx([100, 70, 60, 60], abs=1.5))
    studio.keys("Control+Shift+Z")
    studio.eventually(lambda: studio.instances()[0]["box"] == pytest.approx([100, 70, 100, 90], abs=2))


def test_only_admissible_values_can_be_chosen_by_keys_alone(studio: Studio) -> None:
    studio.draw()
    allowed = set(builtin_schema("prostatd").panel()["tools"]["aspirator"]["action"])
    studio.keys("c", "3")  # aspirator
    studio.eventually(lambda: studio.instances()[0]["name"] == "aspirator")
    shown = studio.page.locator("[data-testid^=value-action-]").all_text_contents()
    assert {text.strip().lstrip("0123456789 ") for text in shown} == allowed


def test_a_span_over_300_frames_is_previewed_and_one_undo(studio: Studio) -> None:
    made = studio.draw()
    same = {key: made[key] for key in ("group", "name", "box", "track")}
    rows = [{**same, "id": f"copy-{k}", "video": "V1", "frame": k} for k in range(1, 310)]
    studio.post({"id": "copies", "kind": "instances.add", "payload": {"instances": rows}})
    studio.keys("Escape")
    studio.page.reload()
    studio.ready()
    studio.keys("Home", "s", "z")
    studio.page.get_by_test_id("frame-number").fill("300")
    studio.keys("Enter")
    studio.eventually(lambda: studio.frame == 300)
    studio.page.get_by_test_id("stage").click(position={"x": 5, "y": 5})
    studio.keys("s", "x")
    studio.keys("3")
    studio.eventually(lambda: "301" in studio.page.get_by_test_id("span-preview").inner_text())
    studio.shot("span-preview")
    studio.keys("e")
    studio.eventually(lambda: len(studio.get("/api/videos/V1/spans")) == 1)
    found = studio.instances(0, 309)
    assert [one["frame"] for one in found if one["values"].get("action") == "cut"] == list(range(301))
    studio.keys("Control+z")
    studio.eventually(lambda: not studio.get("/api/videos/V1/spans"))
    assert not any(one["values"] for one in studio.instances(0, 309))


def test_two_tabs_on_one_box_get_a_message_and_nothing_is_overwritten(tab: Callable[[], Studio]) -> None:
    one = tab()
    box = one.draw()
    other = tab()
    other.page.route("**/api/events", lambda route: route.abort())  # it hears nothing of the first tab's edits
    other.page.reload()
    other.ready()
    other.page.get_by_test_id(f"object-{box['id']}").click()
    one.keys("ArrowRight", "ArrowRight", "ArrowRight")
    one.eventually(lambda: one.instances()[0]["box"][0] > box["box"][0] + 2)
    moved = one.instances()[0]["box"]
    other.keys("ArrowDown")
    other.eventually(lambda: other.page.get_by_test_id("message").count() > 0)
    assert "amy" in other.page.get_by_test_id("message").first.inner_text()
    assert one.instances()[0]["box"] == moved
    other.shot("conflict")
    other.complaints.clear()  # the browser itself logs the refused request and the cut event stream


def test_language_changes_without_losing_the_place(studio: Studio) -> None:
    studio.draw()
    studio.keys("d", "d")
    studio.eventually(lambda: studio.frame == 2)
    studio.page.get_by_test_id("language").select_option("zh")
    told = studio.page.get_by_test_id("tab-objects")
    studio.eventually(lambda: any("\u4e00" <= letter <= "\u9fff" for letter in told.inner_text()))
    assert studio.frame == 2
    studio.shot("chinese")


def test_text_of_strangers_is_shown_and_never_run(studio: Studio) -> None:
    evil = "<img src=x onerror=window.hurt=1>"
    rows = [{"id": "evil", "video": "V1", "frame": 0, "group": "tools", "name": "scissors", "box": [50, 50, 40, 30],
             "values": {"note": evil, "action": evil}}]  # fmt: skip
    studio.post({"id": "evil-op", "kind": "instances.add", "payload": {"instances": rows}})
    studio.page.reload()
    studio.page.get_by_test_id("object-evil").wait_for()
    assert evil in studio.page.get_by_test_id("object-evil").inner_text()
    assert studio.page.evaluate("window.hurt") is None


def test_swap_from_this_frame_on(studio: Studio) -> None:
    boxes = {1: [20, 60, 40, 40], 2: [220, 60, 40, 40]}
    rows = [{"id": f"t{number}-{k}", "video": "V1", "frame": k, "group": "tools", "name": "forceps", "box": box,
             "track": number} for k in range(10) for number, box in boxes.items()]  # fmt: skip
    studio.post({"id": "two", "kind": "instances.add", "payload": {"instances": rows}})
    studio.page.reload()
    studio.page.get_by_test_id("object-t1-0").wait_for()
    studio.keys("d", "d", "d", "d", "d")
    studio.eventually(lambda: studio.frame == 5 and studio.page.get_by_test_id("object-t1-5").count() == 1)
    studio.page.get_by_test_id("object-t1-5").click()
    studio.keys("t")
    studio.page.get_by_test_id("track-swap-2").click()
    studio.eventually(lambda: {one["id"]: one["track"] for one in studio.instances(5)} == {"t1-5": 2, "t2-5": 1})
    assert {one["id"]: one["track"] for one in studio.instances(4)} == {"t1-4": 1, "t2-4": 2}
    assert {one["id"]: one["track"] for one in studio.instances(9)} == {"t1-9": 2, "t2-9": 1}


def test_proposals_are_accepted_and_rejected_by_key(studio: Studio) -> None:
    rows = [{"id": f"p{k}", "video": "V1", "frame": 0, "group": "tools", "name": "scissors",
             "box": [30 + 90 * k, 40, 50, 50], "proposal": True, "score": 0.4 + 0.2 * k, "source": "tdnet-p"}
            for k in range(2)]  # fmt: skip
    studio.post({"id": "props", "kind": "instances.add", "payload": {"instances": rows}})
    studio.page.reload()
    studio.page.get_by_test_id("object-p0").click()
    studio.shot("proposals")
    studio.keys("y")
    studio.eventually(lambda: not next(one for one in studio.instances() if one["id"] == "p0")["proposal"])
    studio.page.get_by_test_id("object-p1").click()
    studio.keys("n")
    studio.eventually(lambda: [one["id"] for one in studio.instances()] == ["p0"])
