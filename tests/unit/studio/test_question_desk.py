"""Questions reviewed in the page: the terminal's files, nobody else's verdict, and no picture from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import intent_record
from surgeval.errors import BadInput
from surgeval.questions import Adjudication, ReviewDesk, agreement, decide, open_set
from surgeval.records import Gaze, IntentQuestion, OptionLabel
from surgeval.studio.question_desk import QuestionDesk
from surgeval.studio.server import Running, serve
from surgeval.studio.store import NotStored

OPTIONS = ("cut", "clip", "grasp", "retract")


def question(number: int, **changed: Any) -> IntentQuestion:
    made = {"id": f"q{number}", "scenario": "laparoscopy", "cluster": f"v{number // 2}",
            "media": (f"media/{number}/a.png", f"media/{number}/b.png"), "dimension": "spatial", "skill": "absolute",
            "question": f"What do I do next, case {number}?", "options": OPTIONS, "answer": number % 4,
            "start": 0.0, "end": 2.0, "gaze": (Gaze(0.0, 0.25, 0.5, 0.4),),
            "context": {"phase": "clipping", "record": "r1", "template": "open 1"}}  # fmt: skip
    return IntentQuestion(**{**made, **changed})


def write(folder: Path, *items: IntentQuestion) -> None:
    (folder / "items.jsonl").write_text("".join(json.dumps(intent_record(item)) + "\n" for item in items))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "set"
    for number in range(6):
        (place / "media" / str(number)).mkdir(parents=True)
        for shade, name in enumerate("ab"):
            Image.new("RGB", (64, 48), (40 * number, 90 * shade, 0)).save(place / "media" / str(number) / f"{name}.png")
    labels = tuple(OptionLabel("visible" if k == 1 else "absent", f"why {k}") for k in range(4))
    trap = question(1, trap="perceptual", untrapped="q2", source="SAGES, 2024", labels=labels)
    write(place, question(0), trap, *(question(number) for number in range(2, 6)))
    return place


def judge(desk: QuestionDesk, who: str, name: str, verdict: str, **more: Any) -> dict[str, Any]:
    role = more.get("role", "review")
    return desk.judge(who, name, desk.item(who, name, role)["content"], verdict, **more)


def test_a_judgement_lies_where_the_terminal_puts_it_and_both_see_it(folder: Path) -> None:
    desk = QuestionDesk(folder)
    order = [row["id"] for row in desk.queue("Ada")["items"]]
    assert order == [item.id for item in ReviewDesk(open_set(folder), "Ada").pending()]
    judge(desk, "Ada", order[0], "wrong", answer=(question(int(order[0][1])).answer + 1) % 4, comment="C is in sight")
    (line,) = (folder / "reviews" / "Ada.jsonl").read_text().splitlines()
    assert {key: json.loads(line)[key] for key in ("item", "reviewer", "verdict", "comment")} == {
        "item": order[0], "reviewer": "Ada", "verdict": "wrong", "comment": "C is in sight"}  # fmt: skip
    terminal = ReviewDesk(open_set(folder), "Ada")
    assert [item.id for item in terminal.pending()] == order[1:]
    terminal.judge(order[1], "correct")
    assert [row["verdict"] for row in desk.queue("Ada")["items"][:3]] == ["wrong", "correct", None]
    assert desk.item("Ada", order[0])["mine"]["comment"] == "C is in sight"


def test_nobody_sees_what_another_said(folder: Path) -> None:
    desk = QuestionDesk(folder)
    judge(desk, "Ada", "q0", "unclear", comment="a secret of Ada's")
    seen = json.dumps([desk.queue("Bo"), *(desk.item("Bo", f"q{k}") for k in range(6))])
    assert "secret" not in seen
    assert "unclear" not in seen
    assert "Ada" not in seen


def test_agreement_waits_until_one_has_judged_everything(folder: Path) -> None:
    desk = QuestionDesk(folder)
    for number in range(6):
        judge(desk, "Ada", f"q{number}", "correct" if number else "wrong")
    for number in range(5):
        judge(desk, "Bo", f"q{number}", "correct")
    assert desk.agreement("Bo") == {"left": 1, "rows": [], "decisions": {}}
    judge(desk, "Bo", "q5", "correct")
    told = desk.agreement("Bo")
    assert told["rows"] == [row.to_json() for row in agreement(open_set(folder))]
    assert told["decisions"] == {"accepted": 5, "rejected": 0, "disputed": 1, "pending": 0}
    assert desk.agreement("Eve")["rows"] == told["rows"]  # who has not begun has nothing to be swayed in


def test_an_adjudicator_gets_the_disputed_and_what_was_said_without_names(folder: Path) -> None:
    desk = QuestionDesk(folder)
    for who, verdict in (("Ada", "correct"), ("Bo", "unclear")):
        judge(desk, who, "q3", verdict, comment=f"{verdict}, I think")
        judge(desk, who, "q4", "correct")
    assert [row["id"] for row in desk.queue("Eve", "adjudicate")["items"]] == ["q3"]
    assert desk.queue("Ada", "adjudicate")["items"] == []
    shown = desk.item("Eve", "q3", "adjudicate")
    assert [one["verdict"] for one in shown["said"]] == ["correct", "unclear"]
    assert "Bo" not in json.dumps(shown)
    with pytest.raises(BadInput, match="no such question here"):
        desk.item("Eve", "q4", "adjudicate")
    judge(desk, "Eve", "q3", "correct", role="adjudicate")
    assert decide(open_set(folder))["q3"].status == "accepted"
    assert Adjudication(open_set(folder), "Eve").done == 1
    assert desk.queue("Eve", "adjudicate")["items"] == [{"id": "q3", "verdict": "correct"}]


def test_each_leaves_out_what_others_have_judged(folder: Path) -> None:
    desk = QuestionDesk(folder)
    for who in ("Ada", "Bo"):
        judge(desk, who, "q1", "correct")
    assert "q1" not in [row["id"] for row in desk.queue("Cy", each=2)["items"]]
    assert "q1" in [row["id"] for row in desk.queue("Ada", each=1)["items"]]  # what is done stays in sight


def test_a_question_shows_pictures_gaze_labels_source_and_links(folder: Path) -> None:
    shown = QuestionDesk(folder).item("Ada", "q1")
    assert shown["pictures"] == [{"time": 0.0, "look": [0.25, 0.5]}, {"time": 2.0, "look": None}]
    assert shown["labels"][1] == {"label": "visible", "reason": "why 1"}
    assert (shown["source"], shown["links"], shown["context"]) == (
        "SAGES, 2024", {"untrapped": "q2"}, {"phase": "clipping"})  # fmt: skip
    assert shown["gaze"]


def test_a_film_is_shown_by_frames_of_its_window(tmp_path: Path) -> None:
    film = cv2.VideoWriter(str(tmp_path / "op.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 10, (64, 48))
    for k in range(100):
        film.write(np.full((48, 64, 3), k, np.uint8))
    film.release()
    write(tmp_path, question(0, media=("op.mp4",), start=2.0, end=4.0))
    desk = QuestionDesk(tmp_path)
    times = [one["time"] for one in desk.item("Ada", "q0")["pictures"]]
    assert (len(times), times[0], times[-1]) == (21, pytest.approx(2.0), pytest.approx(4.0))
    assert desk.picture("q0", 20).kind == "image/jpeg"
    with pytest.raises(BadInput, match="no picture 21"):
        desk.picture("q0", 21)


def test_pictures_that_are_missing_or_lead_elsewhere_are_said_and_not_shown(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    Image.new("RGB", (64, 48)).save(secret)
    (folder / "media/0/a.png").unlink()
    (folder / "media/0/a.png").symlink_to(secret)
    (folder / "media/2/b.png").unlink()
    desk = QuestionDesk(folder)
    for name, found in (("q0", "a link that leads out"), ("q2", "no such file")):
        shown = desk.item("Ada", name)
        assert shown["pictures"] == []
        assert found in shown["trouble"]
    judge(desk, "Ada", "q2", "unclear", comment="the picture is missing")


def test_a_changed_question_is_read_again_and_an_old_sight_is_refused(folder: Path) -> None:
    desk = QuestionDesk(folder)
    seen = desk.item("Ada", "q0")["content"]
    judge(desk, "Ada", "q1", "correct")
    write(folder, question(0, question="What do I do now, as the bleeding stops?"), question(1))
    with pytest.raises(BadInput, match="changed since it was shown"):
        desk.judge("Ada", "q0", seen, "correct")
    assert desk.item("Ada", "q0")["question"].endswith("bleeding stops?")
    assert [row["verdict"] for row in desk.queue("Ada")["items"]] == [None, None]  # q1 has lost its labels


def test_half_a_line_is_a_crash_and_a_full_disk_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = QuestionDesk(folder)
    judge(desk, "Ada", "q0", "correct")
    path = folder / "reviews" / "Ada.jsonl"
    path.write_bytes(path.read_bytes() + b'{"item": "q1", "verd')
    judge(desk, "Ada", "q2", "unclear")
    assert {row["id"]: row["verdict"] for row in desk.queue("Ada")["items"] if row["verdict"]} == {
        "q0": "correct", "q2": "unclear"}  # fmt: skip

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(NotStored, match="No space left"):
        judge(desk, "Ada", "q3", "correct")


class Asker:
    """A page that asks the server."""

    def __init__(self, running: Running) -> None:
        self.host = running.address.removeprefix("http://").rstrip("/")
        self.headers = {"authorization": f"Bearer {running.token}", "content-type": "application/json"}

    def __call__(self, path: str, body: Any = None) -> tuple[int, Any]:
        connection = HTTPConnection(self.host, timeout=120)
        data = None if body is None else json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, data, self.headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        plain = answer.getheader("content-type", "").startswith("image/")
        return answer.status, said if plain else json.loads(said)


@pytest.fixture
def ask(folder: Path) -> Iterator[Asker]:
    with serve(folder, author="Ada") as running:
        yield Asker(running)


def test_a_set_is_served_without_any_film(ask: Asker, folder: Path) -> None:
    project = ask("/api/project")[1]
    assert (project["questions"], project["videos"]) == (6, [])
    shown = ask("/api/questions/item?item=q1")[1]
    body = {"item": "q1", "content": shown["content"], "verdict": "wrong", "answer": 2, "comment": "no clip"}
    assert ask("/api/questions/judge", body) == (200, {"id": "q1", "verdict": "wrong"})
    assert [row for row in ask("/api/questions")[1]["items"] if row["verdict"]] == [{"id": "q1", "verdict": "wrong"}]
    assert ask("/questions/picture?item=q1&number=1") == (200, (folder / "media/1/b.png").read_bytes())
    assert ask("/api/questions/agreement")[1]["left"] == 5


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/questions?role=boss", None, "expected review or adjudicate"),
        ("/api/questions?each=21", None, "expected 0"),
        ("/api/questions/item?item=../../etc/passwd", None, "no such question"),
        ("/questions/picture?item=q1&number=2", None, "no picture 2"),
        ("/questions/picture?item=q1&number=-1", None, "whole number"),
        ("/questions/picture?item=../items.jsonl&number=0", None, "no picture 0"),
        ("/api/questions/judge", {"item": "q1", "verdict": "fine"}, "changed since"),
        ("/api/questions/judge", {"item": "q1", "answer": True}, "of their kinds"),
        ("/api/questions/judge", {"item": "q1", "more": 1}, "of their kinds"),
        ("/api/questions/judge", {"item": None}, "of their kinds"),
        ("/api/questions/judge", [], "found no object"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(ask: Asker, path: str, body: Any, said: str) -> None:
    status, found = ask(path, body)
    assert status == 400
    assert said in found["error"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"verdict": "fine"}, "Use one of correct, wrong, unclear"),
        ({"verdict": "wrong", "answer": 9}, "must be another option"),
        ({"verdict": "wrong", "answer": 1}, "The answer is the item's own"),
        ({"verdict": "wrong", "comment": "x" * 4001}, "at most 4000"),
    ],
)
def test_a_judgement_keeps_the_terminal_s_rules(ask: Asker, changed: dict[str, Any], said: str) -> None:
    content = ask("/api/questions/item?item=q1")[1]["content"]
    status, found = ask("/api/questions/judge", {"item": "q1", "content": content, **changed})
    assert status == 400
    assert said in found["error"]


def test_a_folder_without_questions_says_so(tmp_path: Path) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / "1.png")
    with serve(tmp_path, author="Ada") as running:
        ask = Asker(running)
        assert ask("/api/project")[1]["questions"] == 0
        assert "found none in this folder" in ask("/api/questions")[1]["error"]
