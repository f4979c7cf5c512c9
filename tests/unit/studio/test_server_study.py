"""Studies over real HTTP: kappas of two annotators with known disagreement, decisions, and a session that is blind."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.unit.studio import study_scene as scene
from tests.unit.studio.study_scene import ADA, BEN, boxes, send
from tests.unit.studio.test_server import Page

from surgeval.studio.server import Running, serve


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("op")
    (folder / "V1").mkdir()
    for k in range(60):
        Image.new("RGB", (64, 48), (4 * k, 0, 0)).save(folder / "V1" / f"{k}.png")
    with serve(folder, author="amy") as found:
        page = Page(found, "setup")
        assert page.do("instances.add", scene.instances())[0] == 200
        assert page.do("study.add", scene.study())[0] == 200
        for annotator in ("ada", "ben"):
            answer_all(Page(found, annotator), f"/blind/s1/{annotator}", annotator)
        yield found


def answer_all(page: Page, place: str, annotator: str) -> None:
    """What the page does: boxes are read, and answered by the names under which they are shown."""
    shown = {one["frame"]: one["id"] for one in boxes(page, place)}
    for chosen in ("cut", "dissect"):
        ids = [shown[frame] for k, frame in enumerate(scene.FRAMES) if scene.verb(annotator, k) == chosen]
        payload = {"ids": ids, "name": "scissors", "values": {"action": chosen, "target": "fascias"}}
        status, told = send(page, place, "study.answer", payload)
        assert (status, told.get("changed")) == (200, len(ids)), told


def test_kappas_are_those_of_the_known_disagreement(running: Running) -> None:
    found = Page(running).get("/api/studies/s1/results")
    assert (found["annotators"], found["instances"], found["answered"]) == (["ada", "ben"], 40, {"ada": 40, "ben": 30})
    assert [row["component"] for row in found["table"]] == ["instrument", "verb", "target", "triplet"]
    for row in found["table"]:
        for annotator, expected in scene.EXPECTED.items():
            cell = row["cells"][annotator]
            assert cell["value"] == (None if expected[row["component"]] is None
                                     else pytest.approx(expected[row["component"]])), row  # fmt: skip
            assert cell["value"] is not None or "one category" in cell["reason"]
    verb = found["table"][1]
    assert verb["mean"] == pytest.approx(0.7)
    assert verb["cells"]["ada"]["low"] <= 0.8 <= verb["cells"]["ada"]["high"]
    (pair,) = found["between"]
    assert pair["annotators"] == ["ada", "ben"]
    assert {name: cell["value"] for name, cell in pair["cells"].items()} == {
        name: pytest.approx(value) for name, value in scene.BETWEEN.items()
    }


def test_disagreements_name_frame_instance_and_what_everyone_says(running: Running) -> None:
    page = Page(running)
    found = page.get("/api/studies/s1/disagreements")
    assert [row["frame"] for row in found["rows"]] == list(scene.ADA_WRONG)
    first = found["rows"][0]
    assert (first["instance"], first["video"], first["components"]) == ("scissors-2", "V1", ["verb"])
    assert first["label"] == ["scissors", "dissect", "fascias"]
    assert first["answers"] == {"ada": ["scissors", "cut", "fascias"], "ben": ["scissors", "dissect", "fascias"]}
    assert page.get("/api/studies/s1/disagreements?unanswered=1")["count"] == 14


def test_decisions_are_logged_change_labels_and_leave_the_kappas(running: Running) -> None:
    page = Page(running, "chair")
    before = page.get("/api/studies/s1/results")["table"]
    decisions: list[dict[str, Any]] = [
        {"instance": "scissors-2", "choice": "annotator", "annotator": "ada", "note": "=seen again"},
        {"instance": "scissors-3", "choice": "keep"},
        {"instance": "scissors-6", "choice": "other", "name": "forceps", "values": {"action": "retract"}},
    ]
    for one in decisions:
        status, told = page.do("study.decide", {"study": "s1", **one})
        assert status == 200, told
    values = {one["id"]: (one["name"], one["values"]["action"])
              for one in page.get("/api/videos/V1/annotations?first=0&last=59")["annotations"]}  # fmt: skip
    assert values["scissors-2"] == ("scissors", "cut")
    assert values["scissors-3"] == ("scissors", "cut")
    assert values["scissors-6"] == ("forceps", "retract")
    log = page.get("/api/studies/s1/log")
    assert [(row["instance"], row["choice"], row["annotator"], row["decided_by"]) for row in log] == [
        ("scissors-2", "annotator", "ada", "amy"), ("scissors-3", "keep", "", "amy"),
        ("scissors-6", "other", "", "amy"),
    ]  # fmt: skip
    assert (log[0]["verb_before"], log[0]["verb_after"]) == ("dissect", "cut")
    _, text, answer = page.ask("GET", "/api/studies/s1/log?as=csv")
    assert "decisions.csv" in (answer.getheader("content-disposition") or "")
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    assert (rows[0]["decided_by"], rows[0]["note"]) == ("amy", "'=seen again")  # no formula for a spreadsheet
    assert page.get("/api/studies/s1/results")["table"] == before
    after = page.get("/api/studies/s1/results?after=1")["table"]
    assert after[1]["cells"]["ada"]["value"] != before[1]["cells"]["ada"]["value"]
    listed = page.get("/api/studies/s1/disagreements")["rows"]
    assert [row["decision"] and row["decision"]["author"] for row in listed] == ["amy", "amy", "amy", None]
    for _ in decisions:
        assert page.do("undo", {})[0] == 200
    assert page.get("/api/studies/s1/log") == []
    assert page.get("/api/studies/s1/results?after=1")["table"] == before


def test_an_annotator_undoes_answers_and_nothing_else(running: Running) -> None:
    page = Page(running, "ada-undo")
    one = next(one for one in boxes(page, ADA) if one["frame"] == 50)
    assert send(page, ADA, "study.answer", {"ids": [one["id"]], "values": {"action": "grasp"}})[0] == 400  # not his
    assert send(page, ADA, "study.answer", {"ids": [one["id"]], "values": {"target": "bladder"}})[0] == 200
    now = next(row for row in boxes(page, ADA) if row["frame"] == 50)
    assert now["values"]["target"] == "bladder"
    changed = page.get(f"{ADA}/api/videos/V1/changes?since={now['version'] - 1}")["annotations"]
    assert [row["id"] for row in changed] == [one["id"]]
    assert send(page, ADA, "undo", {"operation": 1})[0] == 200
    assert next(row for row in boxes(page, ADA) if row["frame"] == 50)["values"] == one["values"]
    assert len(page.get("/api/videos/V1/annotations?first=0&last=59")["annotations"]) == 40


@pytest.mark.parametrize(
    "kind",
    ["instances.values", "instances.add", "instances.delete", "study.decide", "study.remove", "span.add", "frames.flag",
     "track.set", "schema.set"],
)  # fmt: skip
def test_a_blind_session_can_only_answer(running: Running, kind: str) -> None:
    for path in ("operations", "preview"):
        status, told = send(Page(running, "sly"), ADA, kind, {"ids": ["scissors-1"]}, path)
        assert status == 400
        assert "blind session" in told["error"]


def test_a_session_that_sees_labels_cannot_answer(running: Running) -> None:
    status, told = Page(running).do("study.answer", {"study": "s1", "ids": ["scissors-1"], "name": "scissors"})
    assert status == 400
    assert "expected a blind one" in told["error"]


def test_progress_counts_what_is_left(running: Running) -> None:
    found = Page(running).get(f"{BEN}/api/progress")
    assert found["instances"] == 40
    assert [(video, frame) for video, frame, _ in found["open"]] == [("V1", k) for k in scene.BEN_SILENT]


def test_segments_are_drawn_by_seed_and_rounds_count_who_saw_what(running: Running) -> None:
    page = Page(running, "rounds")
    drawn = page.get("/api/segments?count=3&length=10&seed=5")
    assert drawn == page.get("/api/segments?count=3&length=10&seed=5")
    assert {one["last"] - one["first"] + 1 for one in drawn} == {10}
    status, told, _ = page.ask("GET", "/api/segments")
    assert (status, told["code"], told["parts"]["count"]) == (400, "segments-too-long", 5)
    number = int(page.do("round.begin", {"title": "second look", "reviewers": ["amy", "ben"]})[1]["created"][0])
    assert page.get("/api/rounds")[-1]["reviewers"] == ["amy", "ben"]
    page.do("frames.mark", {"video": "V1", "first": 3, "last": 9, "round": number})
    page.do("frames.mark", {"video": "V1", "first": 5, "last": 5, "round": number, "mark": ""})
    found = page.get(f"/api/videos/V1/reviews?round={number}")
    assert found == {"round": number, "reviewers": ["amy", "ben"], "runs": [[3, 4, ["amy"]], [6, 9, ["amy"]]]}


def test_the_page_of_a_blind_session_is_the_page(running: Running, tmp_path: Path) -> None:
    status, found, _ = Page(running).ask("GET", f"{ADA}/")
    root = Page(running).ask("GET", "/")[:2]
    assert (status, found) == root
