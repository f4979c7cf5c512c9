"""The dialogs of the project in a real browser: schema, merging, identity rule, proposals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect
from tests.browser.studio.driver import Studio

from surgeval.studio import proposing
from surgeval.studio.server import Running

pytestmark = pytest.mark.browser
EXAMPLES = Path(__file__).parents[2] / "data" / "studio"


def add(studio: Studio, rows: list[dict[str, Any]]) -> None:
    """Instances that another program made; the page shows them afterwards."""
    usual = {"video": "V1", "frame": 0, "group": "tools", "name": "scissors", "box": [60, 50, 40, 30]}
    shown = [{"id": f"i{number}", **usual, **row} for number, row in enumerate(rows)]
    studio.post({"id": "rows", "kind": "instances.add", "payload": {"instances": shown}})
    studio.page.reload()
    studio.ready()


def open_dialog(studio: Studio, name: str) -> None:
    studio.page.get_by_test_id("project-menu").click()
    studio.page.get_by_test_id(f"menu-{name}").click()


def use_schema(studio: Studio, name: str) -> None:
    studio.page.get_by_test_id("import-schema").click()
    studio.page.get_by_test_id("schema-file").set_input_files(EXAMPLES / name)
    studio.page.get_by_test_id("schema-use").click()
    expect(studio.page.get_by_test_id("schema-dialog")).to_have_count(0)
    studio.eventually(lambda: studio.get("/api/project")["schema"]["name"] == Path(name).stem)


def test_position_and_free_text_come_with_a_schema(studio: Studio) -> None:
    use_schema(studio, "position.jsonc")
    studio.page.get_by_test_id("class-forceps").click()
    studio.draw()
    studio.page.get_by_test_id("value-position-posterior").click()
    studio.page.get_by_test_id("text-note").fill("tip is dirty")
    studio.keys("Enter", "Tab")
    wanted = {"position": "posterior", "note": "tip is dirty"}
    studio.eventually(lambda: studio.instances()[0]["values"] == wanted)
    studio.shot("schema-position")


def test_a_schema_of_phases_labels_whole_frames(studio: Studio) -> None:
    use_schema(studio, "phase.json")
    expect(studio.page.locator("[data-testid^=class-]")).to_have_count(0)
    studio.keys("2")
    said = {"0": {"phase": "clipping"}}
    studio.eventually(lambda: studio.get("/api/videos/V1/frames?first=0&last=0")["values"] == said)
    studio.fill(kind="image.values", video="V1", first=40, last=200, values={"phase": "clipping"})
    runs = [{"first": 0, "last": 0}, {"first": 40, "last": 200}]
    assert studio.get("/api/videos/V1/image") == [{**run, "values": {"phase": "clipping"}} for run in runs]
    studio.shot("schema-phase")
    studio.page.get_by_test_id("import-schema").click()
    studio.page.get_by_test_id("schema-prostatd").click()
    expect(studio.page.get_by_test_id("schema-summary")).to_contain_text("image.phase: clipping")
    studio.page.get_by_test_id("schema-use").click()
    expect(studio.page.get_by_test_id("image-stranger-phase")).to_contain_text("clipping")  # kept and marked
    studio.page.get_by_test_id("find-problems").click()
    expect(studio.page.get_by_test_id("problem-0")).to_contain_text("image: phase clipping")
    assert studio.get("/api/videos/V1/frames?first=0&last=0")["values"] == said


def test_other_groups_are_drawn_and_labelled(studio: Studio) -> None:
    use_schema(studio, "combined.jsonc")
    studio.page.get_by_test_id("class-DVC").click()
    studio.draw()
    studio.page.get_by_test_id("value-bleeding-yes").click()
    studio.eventually(lambda: studio.instances()[0]["values"] == {"bleeding": "yes"})
    assert (studio.instances()[0]["group"], studio.instances()[0]["name"]) == ("targets", "DVC")
    studio.page.get_by_test_id("value-lighting-minor").click()
    studio.eventually(
        lambda: studio.get("/api/videos/V1/frames?first=0&last=0")["values"] == {"0": {"lighting": "minor"}}
    )
    studio.shot("schema-combined")


def test_a_broken_schema_is_said_in_the_dialog_with_its_path(studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"tools": {"hook": {"actions": ["cut", {"deep": 1}]}}}')
    studio.page.get_by_test_id("import-schema").click()
    studio.page.get_by_test_id("schema-file").set_input_files(tmp_path / "mine.json")
    error = studio.page.get_by_test_id("schema-error")
    expect(error).to_contain_text("tools.hook.actions[1]: found an object")
    expect(studio.page.get_by_test_id("schema-use")).to_have_count(0)
    studio.shot("schema-broken")
    studio.complaints.clear()  # the browser itself logs the refused request


def test_a_switch_says_what_it_lacks_and_the_problem_list_maps_it(studio: Studio) -> None:
    prostate = {"values": {"action": "cut", "target": "prostate"}}
    add(studio, [prostate, {**prostate, "frame": 1}, {"name": "driver", "frame": 2, "values": {"action": "suture"}}])
    studio.page.get_by_test_id("import-schema").click()
    studio.page.get_by_test_id("schema-cholect50").click()
    summary = studio.page.get_by_test_id("schema-summary")
    expect(summary).to_contain_text("scissors.target: prostate")
    expect(summary).to_contain_text("×2")
    studio.shot("schema-preview")
    studio.page.get_by_test_id("schema-use").click()
    studio.eventually(lambda: studio.get("/api/project")["schema"]["name"] == "cholect50")
    assert studio.instances()[0]["values"] == prostate["values"]  # nothing is dropped
    rows = studio.page.get_by_test_id("mismatches").locator("li")
    expect(rows).to_have_count(2)
    studio.page.get_by_test_id("find-problems").click()
    expect(studio.page.locator("[data-rule=inadmissible]").first).to_be_visible()
    studio.shot("schema-problems")
    studio.page.get_by_test_id("mismatch-to-0").select_option("omentum")
    studio.page.get_by_test_id("mismatch-to-1").select_option("grasper")
    studio.page.get_by_test_id("mismatch-all").click()
    studio.eventually(lambda: studio.instances()[0]["values"]["target"] == "omentum")
    assert studio.instances(2)[0]["name"] == "grasper"
    studio.page.get_by_test_id("stage").click(position={"x": 5, "y": 5})
    studio.keys("Control+z")  # one edit for both rows
    studio.eventually(lambda: studio.instances(2)[0]["name"] == "driver")
    assert studio.instances()[0]["values"] == prostate["values"]


def test_a_guideline_shows_its_picture_in_the_panel(studio: Studio, running: Running) -> None:
    folder = running.project.folder / "guidelines"
    folder.mkdir()
    Image.linear_gradient("L").resize((600, 300)).convert("RGB").save(folder / "hook.png")
    tools = {"hook": {"actions": ["cut"], "guideline": "Box the head and the joint only.",
                      "guideline_picture": "hook.png"}, "clip": {"actions": ["clip"]}}  # fmt: skip
    source = json.dumps({"tools": tools})
    studio.post({"id": "s", "kind": "schema.set", "payload": {"name": "mine", "source": source}})
    studio.page.reload()
    studio.ready()
    picture = studio.page.get_by_test_id("guideline-picture")
    expect(picture.locator("img")).to_be_visible()
    assert picture.locator("img").evaluate("one => one.complete && one.naturalWidth") == 600
    small = picture.bounding_box()
    studio.shot("guideline")
    picture.click()
    large = picture.bounding_box()
    assert small is not None
    assert large is not None
    assert small["height"] < large["height"]
    studio.page.get_by_test_id("class-clip").click()
    expect(picture).to_have_count(0)


def test_labels_are_merged_with_their_counts_and_one_undo(studio: Studio, tmp_path: Path) -> None:
    targets = ["smoke", "blood", "fluid"]
    add(studio, [{"name": "aspirator", "frame": k, "values": {"action": "suck", "target": target}}
                 for k, target in enumerate(targets)])  # fmt: skip
    open_dialog(studio, "merging")
    rule = studio.page.get_by_test_id("merge-rule-5")
    expect(rule).to_have_attribute("data-merged", "2")
    assert [cell.inner_text() for cell in rule.locator("td.count").all()] == ["2", "1", "3"]
    studio.shot("merging")
    (tmp_path / "mine.json").write_text('{"rules": [{"to": "bag"}]}')
    studio.page.get_by_test_id("merge-file").set_input_files(tmp_path / "mine.json")
    expect(studio.page.get_by_test_id("merge-error")).to_contain_text("rules[0]")
    studio.complaints.clear()
    studio.page.get_by_test_id("merge-builtin").click()
    studio.page.get_by_test_id("merge-apply").click()
    studio.eventually(lambda: {one["values"]["target"] for one in studio.instances(0, 2)} == {"fluid"})
    expect(studio.page.get_by_test_id("merging")).to_have_count(0)
    studio.keys("Control+z")
    studio.eventually(lambda: [one["values"]["target"] for one in studio.instances(0, 2)] == targets)


def test_the_identity_rule_is_previewed_applied_and_taken_back(studio: Studio) -> None:
    sides = {"l": [0, 70, 110, 30], "r": [210, 70, 110, 30]}
    add(studio, [{"id": f"{side}{k}", "name": "grasper", "frame": k, "box": box}
                 for k in range(12) for side, box in sides.items()]
        + [{"id": "hand", "name": "grasper", "frame": 12, "box": sides["l"], "track": 7}])  # fmt: skip
    studio.keys("Shift+T")
    preview = studio.page.get_by_test_id("number-preview")
    expect(preview).to_contain_text("24 of 25", timeout=30_000)  # the rule's kernels may have to be compiled first
    expect(preview).to_contain_text("1 set by hand")
    expect(studio.page.get_by_test_id("number-track-tools/grasper/7")).to_contain_text("13")
    studio.shot("numbering")
    studio.page.get_by_test_id("number-rule").select_option("bytetrack")
    studio.page.get_by_test_id("number-gap").fill("1")
    expect(preview).to_contain_text("24 of 25")
    studio.page.get_by_test_id("number-rule").select_option("sector")
    studio.page.get_by_test_id("number-level-0").select_option("left-right")
    studio.page.get_by_test_id("number-apply").click()
    studio.eventually(lambda: {one["id"]: one["track"] for one in studio.instances(3)} == {"l3": 7, "r3": 1})
    expect(studio.page.get_by_test_id("numbering")).to_have_count(0)
    studio.keys("Control+z")
    studio.eventually(lambda: {one["track"] for one in studio.instances(0, 11)} == {None})
    assert studio.instances(12)[0]["track"] == 7


def test_the_identity_rule_on_a_marked_range_only(studio: Studio) -> None:
    add(studio, [{"id": f"g{k}", "name": "grasper", "frame": k} for k in range(8)])
    studio.keys("d", "d")
    studio.eventually(lambda: studio.frame == 2)
    studio.keys("z", "d", "d", "x")
    studio.keys("Shift+T")
    expect(studio.page.get_by_test_id("number-range-marked")).to_have_attribute("aria-checked", "true")
    expect(studio.page.get_by_test_id("number-preview")).to_contain_text("3 of 8")
    studio.page.get_by_test_id("number-apply").click()
    numbered = [None, None, 1, 1, 1, None, None, None]
    studio.eventually(lambda: [one["track"] for one in studio.instances(0, 7)] == numbered)


def test_proposals_of_a_prediction_file_on_a_range(tab: Callable[[], Studio], running: Running) -> None:
    head = "video,frame,instrument,verb,target,score,x,y,w,h\n"
    rows = "".join(f"V1,{k:04d},scissors,cut,prostate,0.{k % 9 + 1},60,50,40,30\n" for k in range(330))
    (running.project.folder / "found.csv").write_text(head + rows)
    studio = tab()
    studio.keys("z", "d", "d", "d", "x", "Shift+P")
    studio.page.get_by_test_id("propose-who").select_option("predictions:found.csv")
    expect(studio.page.get_by_test_id("propose-range-marked")).to_have_attribute("aria-checked", "true")
    studio.page.get_by_test_id("propose-least").fill("0")
    studio.page.get_by_test_id("propose-begin").click()
    expect(studio.page.get_by_test_id("propose-state")).to_have_attribute("data-standing", "done", timeout=90_000)
    expect(studio.page.get_by_test_id("propose-state")).to_contain_text("4 boxes")
    studio.shot("proposing")
    studio.page.reload()  # the server remembers, not the page
    studio.ready()
    studio.eventually(lambda: [one["proposal"] for one in studio.instances(0, 329)] == [True] * 4)
    studio.keys("Shift+P")
    expect(studio.page.get_by_test_id("propose-state")).to_have_attribute("data-standing", "done")
    studio.keys("Escape", "s", "y")
    studio.eventually(lambda: [one["proposal"] for one in studio.instances(0, 3)].count(False) == 1)


def test_a_job_outlives_the_page_and_can_be_ended(
    tab: Callable[[], Studio], running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_child.py").write_text(
        "import time\ndef main(requests, replies):\n    requests.readline()\n"
        "    replies.write(b'{\"done\": 33}\\n')\n    replies.flush()\n    time.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(proposing, "_MODULE", "slow_child")
    (running.project.folder / "found.csv").touch()
    studio = tab()
    studio.keys("Shift+P")
    studio.page.get_by_test_id("propose-who").select_option("predictions:found.csv")
    studio.page.get_by_test_id("propose-begin").click()
    state = studio.page.get_by_test_id("propose-state")
    expect(state).to_contain_text("33 of 330")
    studio.page.reload()
    studio.ready()
    expect(studio.page.get_by_test_id("job-line")).to_have_attribute("style", "width: 10%;")
    studio.keys("Shift+P")
    expect(state).to_contain_text("33 of 330")
    studio.shot("job")
    studio.page.get_by_test_id("propose-end").click()
    expect(state).to_have_attribute("data-standing", "stopped")
    expect(studio.page.get_by_test_id("job-line")).to_have_count(0)
    assert studio.instances(0, 329) == []
