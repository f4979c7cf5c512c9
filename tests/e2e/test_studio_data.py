"""A studio project on the command line: checked, converted, imported into, trained on and scored like any dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.e2e.conftest import Quick
from tests.studio_project import Project
from tests.unit.studio.exchange.projects import annotation, fill, held, make_folder

from surgeval.detector.training import rehearse
from surgeval.studio.store import STORE_FILE

pytestmark = pytest.mark.usefixtures("one_thread")
SHORT = ("--size", "p", "--image-size", "64", "--batch", "2", "--dry-run", "--set", "student_epochs=1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return fill(make_folder(tmp_path / "project"))


def test_a_project_is_checked_and_converted(quick: Quick, project: Path, tmp_path: Path) -> None:
    assert quick("data", "check", project)[0] == 0  # a warning: exports leave the instance out
    code, said, told = quick("data", "check", project, "--strict")
    assert (code, "found (forceps, bag, gauze), expected one of the 89 triplets" in said + told) == (2, True)
    code, said, told = quick("data", "check", project, "--strict", "--allow", "triplet-unknown")
    assert (code, "studio: 1 video, 12 frames, 12 instances" in said) == (0, True), said + told
    code, said, _ = quick("data", "convert", project, "--to", "coco", "--dry-run")
    assert code == 0
    assert "coco: 1 proposals that nobody has accepted are left out" in said
    assert "coco: 1 instances whose triplet is no class of the label space were left out" in said
    code, said, _ = quick("data", "convert", project, "--to", "coco", "--out", tmp_path / "coco")
    assert (code, "8 of 12 instances" in said) == (0, True)
    assert len(json.loads((tmp_path / "coco" / "annotations.json").read_text())["annotations"]) == 8


def test_labels_are_imported_after_a_look(quick: Quick, project: Path, tmp_path: Path) -> None:
    quick("data", "convert", project, "--to", "labelme", "--no-images", "--out", tmp_path / "labels")
    other = make_folder(tmp_path / "other")
    words = ("data", "import", tmp_path / "labels", "--into", other)
    code, said, told = quick(*words, "--dry-run")
    assert (code, "12 instances would be added" in said) == (0, True), said + told
    assert held(other)["instances"] == []
    code, said, _ = quick(*words)
    assert (code, "12 instances were added" in said, "stored as 1 edit" in said) == (0, True, True)
    assert held(other)["instances"] == [row for row in held(project)["instances"] if not row[8]]
    code, _, told = quick("data", "import", tmp_path / "nothing", "--into", other)
    assert (code, told.strip()) == (
        2, f"surgeval: {tmp_path / 'nothing'}: found no such file or folder, expected a dataset"
    )  # fmt: skip


def test_a_new_project_says_its_schema_and_a_dry_run_leaves_nothing(
    quick: Quick, project: Path, tmp_path: Path
) -> None:
    quick("data", "convert", project, "--to", "labelme", "--no-images", "--out", tmp_path / "labels")
    new = make_folder(tmp_path / "new")
    (new / STORE_FILE).unlink()
    words = ("data", "import", tmp_path / "labels", "--into", new, "--schema", "cholect50")
    code, said, told = quick(*words, "--dry-run")
    assert (code, "schema: cholect50 (of a new project)" in said) == (0, True), said + told
    assert not (new / STORE_FILE).exists()
    assert quick(*words)[0] == 0
    code, _, told = quick(*words[:-1], "prostatd")
    assert (code, "--schema prostatd: found a project with the schema cholect50" in told) == (2, True)


@pytest.mark.parametrize("exported", [False, True])
def test_a_project_and_its_export_are_trained_on_and_scored(
    quick: Quick, project: Path, tmp_path: Path, exported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(rehearse.__kwdefaults__ or {}, "seconds", 0.5)  # that a rehearsal learns is shown elsewhere
    with Project(project) as opened:
        opened.edit("amy").delete(["half", "unsaid", "tissue", "none"])
    data = project
    if exported:
        data = tmp_path / "yolo"
        assert quick("data", "convert", project, "--to", "yolo8", "--out", data)[0] == 0
    code, said, told = quick("train", "tdnet", "--data", data, "--out", tmp_path / "run", *SHORT)
    assert code == 0, told
    assert "with 8 boxes" in told
    assert "scissors,cut,prostate" in said
    boxes = [f"V1,{k:06d},14,0.9,{10.5 + k},20.25,60.125,40.5" for k in range(4)]
    lines = ["video,frame,triplet,score,x,y,w,h", *boxes]
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    code, said, told = quick("score", "triplets", "--data", data, "--pred", tmp_path / "boxes.csv", "--json")
    assert code == 0, told
    assert "mAP50 of triplets 0.287" in said, "four of seven boxes of one class, none of the other"


def test_proposals_are_no_truth(quick: Quick, tmp_path: Path) -> None:
    place = make_folder(tmp_path / "only proposals")
    with Project(place) as opened:
        opened.edit("amy").add_instances([annotation("p", 0, "scissors", score=0.9, proposal=True)])
    code, _, told = quick("train", "tdnet", "--data", place, "--out", tmp_path / "run", *SHORT)
    assert code == 2
    assert "found no" in told
