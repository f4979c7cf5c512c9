"""The whole loop as a new user goes it: proposals of a detector, corrected, reviewed, exported, trained on, scored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.studio.driver import Studio

from surgeval.cli.app import run
from surgeval.detector.training import rehearse
from surgeval.studio import demo
from surgeval.studio.server import Running, page_built, serve

pytestmark = pytest.mark.browser


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The demonstration, short: a few seconds of a phantom operation with the embedded detector's proposals."""
    assert page_built(), "the page is not built: `make .venv/.web` builds it"
    monkeypatch.setattr(demo, "_SECONDS", 4.0)
    with serve(demo.make_demo(tmp_path / "demo"), author="amy") as found:
        yield found


@pytest.fixture
def studio(browser: Browser, running: Running) -> Iterator[Studio]:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    opened = Studio(context.new_page(), running.entry).open()
    yield opened
    context.close()
    assert opened.complaints == []


@pytest.fixture
def surgeval(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command line in this process."""
    monkeypatch.setitem(rehearse.__kwdefaults__ or {}, "seconds", 0.5)  # that a rehearsal learns is shown elsewhere

    def call(*words: object) -> tuple[int, str]:
        capsys.readouterr()
        code = run([str(word) for word in words])
        return code, "".join(capsys.readouterr())

    return call


def found(studio: Studio) -> list[dict[str, Any]]:
    (video,) = studio.get("/api/project")["videos"]
    rows = studio.get(f"/api/videos/{video['id']}/annotations?first=0&last={video['frames']}")["annotations"]
    return sorted(rows, key=lambda row: (row["frame"], row["id"]))


def predictions(rows: list[dict[str, Any]], video: str, names: list[str]) -> str:
    """What the detector said, as a table of boxes."""
    lines = ["video,frame,instrument,verb,target,score,x,y,w,h"]
    for row in rows:
        said = (video, names[row["frame"]], row["name"], row["values"]["action"], row["values"]["target"], row["score"])
        lines.append(",".join(map(str, (*said, *row["box"]))))
    return "\n".join(lines) + "\n"


def select(studio: Studio, row: dict[str, Any]) -> None:
    """Go to the frame and click on the thing in the list."""
    studio.page.get_by_test_id("frame-number").fill(str(row["frame"]))
    studio.keys("Enter")
    studio.page.get_by_test_id(f"object-{row['id']}").click()


def test_from_proposals_to_a_score(studio: Studio, running: Running, surgeval: Any, tmp_path: Path) -> None:
    page, folder = studio.page, running.project.folder
    (video,) = studio.get("/api/project")["videos"]
    names = studio.get(f"/api/videos/{video['id']}/frames?first=0&last={video['frames'] - 1}")["names"]
    proposed = found(studio)
    assert proposed and all(row["proposal"] for row in proposed)
    (tmp_path / "proposed.csv").write_text(predictions(proposed, video["name"], names))
    studio.shot("loop-1-proposals")

    # Correct: everything is accepted at once, then one triplet is set right and a false box goes.
    studio.keys("Home", "z", "End", "x", "Shift+Y")
    studio.eventually(lambda: not any(row["proposal"] for row in found(studio)))
    studio.keys("Escape")
    accepted = found(studio)
    first, last = accepted[0], accepted[-1]
    classes = studio.get("/api/project")["schema"]["classes"]
    verb, target = next((verb, target) for tool, verb, target in classes
                        if tool == first["name"] and {"action": verb, "target": target} != first["values"])  # fmt: skip
    select(studio, first)
    page.get_by_test_id(f"value-action-{verb}").click()
    page.get_by_test_id(f"value-target-{target}").click()
    studio.eventually(lambda: found(studio)[0]["values"] == {"action": verb, "target": target})
    studio.shot("loop-2-corrected")
    select(studio, last)
    studio.keys("Delete")
    studio.eventually(lambda: len(found(studio)) == len(accepted) - 1)

    # Review: the corrected frame was seen.
    select(studio, first)
    studio.keys("r")

    # Export: the loss is read before the button is pressed.
    page.get_by_test_id("project-menu").click()
    page.get_by_test_id("menu-export").click()
    page.get_by_test_id("export-format").select_option("yolo8")
    page.get_by_test_id("export-losses").get_by_text("tracks of").wait_for()
    assert "review marks of 1 frame are not kept" in page.get_by_test_id("export-losses").inner_text()
    studio.shot("loop-3-export")
    page.get_by_test_id("export-apply").click()
    page.get_by_test_id("export-status").get_by_text("exports/yolo8").wait_for()

    for data in (folder / "exports" / "yolo8", folder):
        code, said = surgeval("train", "tdnet", "--data", data, "--size", "p", "--image-size", "64", "--batch", "2",
                              "--dry-run", "--out", tmp_path / f"run-{data.name}")  # fmt: skip
        assert code == 0, said
        assert f"with {len(accepted) - 1} boxes" in said
        code, said = surgeval("score", "triplets", "--data", data, "--pred", tmp_path / "proposed.csv")
        assert code == 0, said
        assert "IVT" in said
        assert "mAP50" in said
