"""Import and export in the page: the loss is said before the button, an import is previewed and undone as one edit."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.studio.driver import Studio

from surgeval.studio.server import Running

pytestmark = pytest.mark.browser


def label(studio: Studio) -> None:
    """Two classes, one triplet that is no class, one proposal, a problem frame."""

    def one(id: str, frame: int, name: str, action: str, target: str, **more: Any) -> dict[str, Any]:
        return {"id": id, "video": "V1", "frame": frame, "group": "tools", "name": name, "box": [40, 60, 60, 50],
                "values": {"action": action, "target": target}, **more}  # fmt: skip

    studio.post({"id": "labels", "kind": "instances.add", "payload": {"instances": [
        one("a", 0, "scissors", "cut", "prostate", track=1), one("b", 1, "aspirator", "suck", "smoke", track=1),
        one("c", 2, "forceps", "bag", "gauze"), one("d", 3, "scissors", "cut", "prostate", proposal=True, score=0.9),
    ]}})  # fmt: skip
    studio.post({"id": "flag", "kind": "frames.flag",
                 "payload": {"video": "V1", "first": 1, "last": 1, "reason": "smoke"}})  # fmt: skip


def choose(studio: Studio, entry: str) -> None:
    studio.page.get_by_test_id("project-menu").click()
    studio.page.get_by_test_id(f"menu-{entry}").click()


def test_an_export_says_what_it_loses_before_it_is_written(studio: Studio, running: Running) -> None:
    label(studio)
    page = studio.page
    choose(studio, "export")
    page.get_by_test_id("export-format").select_option("coco")
    page.get_by_test_id("export-images").uncheck()
    losses = page.get_by_test_id("export-losses")
    no_class = "instances whose triplet is no class of the label space are left out"
    losses.get_by_text(f"2 {no_class}").wait_for()
    assert "1 proposal that nobody has accepted is left out" in losses.inner_text()
    assert page.get_by_test_id("export-counts").inner_text().startswith("Instances: 3. Labelled frames: 3 of 330.")
    page.get_by_test_id("export-merge").select_option("prostatd")
    merged = page.get_by_test_id("export-merged")
    merged.get_by_text("aspirator, suck, smoke").wait_for()
    assert merged.inner_text().splitlines()[0].split()[-3:] == ["0", "→", "1"]
    one_left = "1 instance whose triplet is no class of the label space is left out"
    assert one_left in losses.inner_text(), "smoke was merged into fluid, which makes a class"
    studio.shot("export")
    page.get_by_test_id("export-no-problems").check()
    losses.get_by_text("1 problem frame is left out").wait_for()
    page.get_by_test_id("export-apply").click()
    page.get_by_test_id("export-status").get_by_text("exports/coco").wait_for()
    written = json.loads((running.project.folder / "exports" / "coco" / "annotations.json").read_text())
    assert (len(written["images"]), len(written["annotations"])) == (329, 1)
    with page.expect_download() as download:
        page.get_by_test_id("export-download-coco").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert sorted(archive.namelist()) == ["annotations.json", "labels.json"]
    page.get_by_test_id("export-name").fill("coco")
    page.get_by_test_id("export-apply").click()
    page.get_by_test_id("export-status").get_by_text("found an export of that name").wait_for()
    assert studio.complaints.pop().endswith("400 (Bad Request)")


def shape(label: str, action: str, x: int, **more: Any) -> dict[str, Any]:
    said = {"Action": action, "Target": "prostate"}
    return {"label": label, "points": [[x, 20], [x + 60, 70]], "group_id": None, "description": "", "flags": {},
            "shape_type": "rectangle", "attributes": said, "mask": None, **more}  # fmt: skip


@pytest.fixture
def labelme(tmp_path: Path) -> Path:
    """A ZIP as the authors' tool would fill it: two frames of ours, one of nobody, an unknown action, a prediction."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, shapes in {
            "0000": [shape("scissors", "cut", 10), shape("driver", "hover", 150)],
            "0001": [shape("scissors", "cut", 20, description="confidence: 0.87")],
            "9999": [shape("scissors", "cut", 10)],
        }.items():
            file: dict[str, Any] = {
                "version": "5.6.1", "flags": {}, "shapes": shapes, "imagePath": f"{name}.jpg", "imageData": None,
                "imageHeight": 180, "imageWidth": 320, "text": "", "description": "",
            }  # fmt: skip
            archive.writestr(f"V1/{name}.json", json.dumps(file))
    path = tmp_path / "from labelme.zip"
    path.write_bytes(stream.getvalue())
    return path


def test_an_import_is_previewed_done_as_one_edit_and_undone(studio: Studio, labelme: Path) -> None:
    page = studio.page
    choose(studio, "import")
    page.get_by_test_id("import-status").get_by_text("No labels lie in the project").wait_for()
    page.get_by_test_id("import-file").set_input_files(labelme)
    counts = page.get_by_test_id("import-counts")
    counts.get_by_text("New instances: 3 (proposals: 1)").wait_for()
    assert "Frames found here: 2 of 3" in counts.inner_text()
    assert page.get_by_test_id("import-missed").inner_text() == "V1 9999"
    assert "tools.needle driver.action hover (1)" in page.get_by_test_id("import-lacking").inner_text()
    studio.shot("import")
    assert studio.instances(0, 5) == []
    page.get_by_test_id("import-apply").click()
    studio.eventually(lambda: len(studio.instances(0, 5)) == 3)
    page.get_by_test_id("import").wait_for(state="detached")
    found = {(one["name"], one["proposal"], one["score"]) for one in studio.instances(0, 5)}
    assert found == {("scissors", False, None), ("needle driver", False, None), ("scissors", True, 0.87)}
    studio.eventually(lambda: page.locator("[data-testid^=box-]").count() == 2)
    studio.shot("imported")
    studio.keys("Control+z")
    studio.eventually(lambda: studio.instances(0, 5) == [])
    studio.eventually(lambda: page.locator("[data-testid^=box-]").count() == 0)


def test_the_dialogs_speak_chinese(tab: Callable[[], Studio]) -> None:
    studio = tab()
    label(studio)
    studio.page.get_by_test_id("language").select_option("zh")
    choose(studio, "export")
    studio.page.get_by_test_id("export-format").get_by_text("CVAT 视频 XML").wait_for(state="attached")
    studio.page.get_by_test_id("export-losses").get_by_text("1 个尚未接受的建议不会导出").wait_for()
    studio.shot("export-zh")
