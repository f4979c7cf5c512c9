"""Proposals as a job of the server: looked at beside everything else, replaced when asked, ended, and bad requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.unit.studio.test_server import Page

from surgeval.errors import BadInput
from surgeval.studio import proposing
from surgeval.studio.jobs import BackgroundJob, Jobs
from surgeval.studio.proposals import read_proposals
from surgeval.studio.server import serve
from surgeval.vocab import load_labels

HEAD = "video,frame,instrument,verb,target,score,x,y,w,h\n"


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A server on which no job is ever begun."""
    with serve(made(tmp_path_factory.mktemp("op")), author="amy") as running:
        yield Page(running)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path)


def made(tmp_path: Path) -> Path:
    (tmp_path / "V1").mkdir()
    for k in range(8):
        Image.new("RGB", (64, 48), (8 * k, 0, 0)).save(tmp_path / "V1" / f"{k}.png")
    rows = [f"V1,{k},scissors,cut,prostate,{0.3 + 0.05 * k:.2f},5,6,20,10\n" for k in range(8)]
    (tmp_path / "found.csv").write_text(HEAD + "".join(rows) + "V9,1,scissors,cut,prostate,0.9,5,6,20,10\n")
    (tmp_path / "other.csv").write_text(HEAD + "V9,1,scissors,cut,prostate,0.9,5,6,20,10\n")
    (tmp_path / "broken.safetensors").write_bytes(b"\0" * 64)
    return tmp_path


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with serve(folder, author="amy", detectors=[folder / "broken.safetensors"]) as running:
        yield Page(running)


def begin(page: Page, **body: Any) -> tuple[int, Any]:
    status, found, _ = page.ask("POST", "/api/proposing/begin", {"video": "V1", **body})
    return status, found


def ended(page: Page) -> Any:
    for _ in range(1200):
        job = page.get("/api/proposing")["job"]
        if job["standing"] != "running":
            return job
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def proposals(page: Page) -> list[tuple[int, str, float]]:
    found = page.get("/api/videos/V1/annotations?first=0&last=7")["annotations"]
    return [(one["frame"], one["source"], one["score"]) for one in found if one["proposal"]]


def test_a_prediction_file_becomes_proposals_and_replaces_its_earlier_ones(page: Page) -> None:
    choices = page.get("/api/proposing/choices")["choices"]
    assert {"kind": "embedded", "name": "tdnet-p"} in choices
    assert {"kind": "predictions", "name": "found.csv"} in choices
    assert {"kind": "project", "name": "broken.safetensors"} in choices
    assert page.get("/api/proposing") == {"job": None}
    status, found = begin(page, kind="predictions", name="found.csv", first=2, last=6, least=0.41)
    assert status == 200, found
    job = ended(page)
    assert (job["standing"], job["told"]["found"], job["told"]["left"]) == ("done", 4, 1)
    assert job["told"]["why"].startswith("found.csv")
    assert "V9" in job["told"]["why"]
    assert [frame for frame, _, _ in proposals(page)] == [3, 4, 5, 6]
    assert page.do("proposals.accept", {"ids": [first_id(page, 3)]})[0] == 200
    begin(page, kind="predictions", name="found.csv", first=0, last=4, least=0, replace=True)
    assert ended(page)["standing"] == "done"
    # Frame 3 was accepted and stays; what lies outside the range stays too.
    assert sorted(frame for frame, _, _ in proposals(page)) == [0, 1, 2, 3, 4, 5, 6]
    page.do("undo", {})
    assert [frame for frame, _, _ in proposals(page)] == [4, 5, 6]


def first_id(page: Page, frame: int) -> str:
    return str(page.get(f"/api/videos/V1/annotations?first={frame}&last={frame}")["annotations"][0]["id"])


def test_the_embedded_detector_looks_in_a_program_of_its_own(page: Page) -> None:
    pytest.importorskip("torch")
    status, found = begin(page, kind="embedded", name="tdnet-p", first=0, last=3)
    assert status == 200, found
    assert begin(page, kind="embedded", name="tdnet-p")[0] == 400  # one at a time
    job = ended(page)
    assert (job["standing"], job["done"], job["total"], job["error"]) == ("done", 4, 4, "")


def test_a_detector_that_cannot_be_read_is_said(page: Page) -> None:
    pytest.importorskip("torch")
    begin(page, kind="project", name="broken.safetensors")
    job = ended(page)
    assert job["standing"] == "failed"
    assert "broken.safetensors" in job["error"]
    assert "Traceback" not in job["error"]
    begin(page, kind="predictions", name="other.csv")
    assert (job := ended(page))["standing"] == "failed"
    assert "V9" in job["error"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "magic", "name": "x"}, "kind: found 'magic'"),
        ({"kind": "embedded", "name": "yolo"}, "detector: found 'yolo'"),
        ({"kind": "started", "name": "/etc/passwd"}, "detector: found '/etc/passwd'"),
        ({"kind": "project", "name": "../x.onnx"}, "inside the project's folder"),
        ({"kind": "project", "name": "/etc/passwd"}, "inside the project's folder"),
        ({"kind": "project", "name": "gone.onnx"}, "inside the project's folder"),
        ({"kind": "predictions", "name": "..\\x.csv"}, "inside the project's folder"),
        ({"kind": "predictions", "name": "."}, "inside the project's folder"),
        ({"kind": "predictions", "name": "found.csv", "least": 2}, "least: found 2"),
        ({"kind": "predictions", "name": "found.csv", "replace": 1}, "replace: found '1'"),
        ({"kind": "predictions", "name": "found.csv", "video": "V9"}, "video: found 'V9'"),
        ({"kind": "predictions", "name": "found.csv", "first": 3, "last": 99}, "last: found 99"),
        ({"kind": "predictions"}, "name: found nothing"),
    ],
)
def test_bad_requests_begin_nothing(idle: Page, body: dict[str, Any], said: str) -> None:
    status, found = begin(idle, **body)
    assert status == 400
    assert said in found["error"]
    assert idle.get("/api/proposing") == {"job": None}


def test_a_job_is_ended_and_so_is_its_program(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_child.py").write_text("import time\ndef main(requests, replies):\n    time.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(proposing, "_MODULE", "slow_child")
    with serve(folder, author="amy") as running:
        page = Page(running)
        assert begin(page, kind="predictions", name="found.csv")[0] == 200
        job = page.get("/api/proposing")["job"]
        assert job["standing"] == "running"
        page.ask("POST", "/api/proposing/end", {"job": "another"})
        assert page.get("/api/proposing")["job"]["standing"] == "running"
        page.ask("POST", "/api/proposing/end", {"job": job["id"]})
        assert ended(page)["standing"] == "stopped"
        assert begin(page, kind="predictions", name="found.csv")[0] == 200
        start = time.monotonic()
    assert time.monotonic() - start < 240  # the second one ends with the server
    assert running.project.jobs.state is not None
    assert running.project.jobs.state.standing == "stopped"
    assert proposals_of(folder) == 0


def proposals_of(folder: Path) -> int:
    with serve(folder, author="amy") as running:
        return len(proposals(Page(running)))


def test_a_detector_that_is_not_there_is_said_at_the_start(folder: Path) -> None:
    with (
        pytest.raises(BadInput, match=r"nowhere: found no such file or folder, expected a detector"),
        serve(folder, author="amy", detectors=[folder / "nowhere"]),
    ):
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_job_at_a_time_and_errors_become_its_state() -> None:
    jobs, go = Jobs(), threading.Event()
    jobs.start({}, lambda _job: (go.wait(120), None)[1])
    with pytest.raises(BadInput, match="another one at work"):
        jobs.start({}, lambda _job: None)
    go.set()
    jobs.wait()

    def fails(_job: BackgroundJob) -> None:
        raise ZeroDivisionError

    jobs.start({}, fails)
    jobs.wait()
    assert jobs.state is not None
    assert (jobs.state.standing, jobs.state.error[:6]) == ("failed", "studio")
    jobs.close()
    with pytest.raises(BadInput):
        jobs.start({}, lambda _job: None)


def test_a_box_without_area_is_left_out_and_counted(tmp_path: Path) -> None:
    row = "V1,{},scissors,cut,prostate,{},5,6,{},10\n"
    rows = [row.format(0, 0.9, 20), row.format(1, 0.9, -5), row.format(1, 1e8, 20)]
    read = partial(
        read_proposals, video="V1", frames=[(0, "0"), (1, "1")], size=(64, 48), space=load_labels("prostatd")
    )
    (tmp_path / "found.csv").write_text(HEAD + "".join(rows))
    found, (left, why) = read(tmp_path / "found.csv")
    assert (len(found), left) == (1, 2)
    assert why == "V1 frame 1: found a box of -5 × 10 pixels with the score 0.9, expected one with an area"
    (tmp_path / "flat.csv").write_text(HEAD + rows[1])
    with pytest.raises(BadInput, match="expected one with an area"):
        read(tmp_path / "flat.csv")
