"""Nothing that a blind session can reach tells a label of the project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.routing import Route
from tests.unit.studio import study_scene as scene
from tests.unit.studio.study_scene import ADA, BEN, boxes, send
from tests.unit.studio.test_server import Page

from surgeval.studio.server import Running, serve
from surgeval.studio.server.app import build_app
from surgeval.studio.server.blind import BLIND, BLIND_EDITING

# Blindness. Everything that could tell a label has the word `secret` in it; the schema's own names are no secret.

SECRET = {
    "tools": {
        "hook": {"actions": ["cut", "burn"], "targets": ["liver"], "note": "text"},
        "grasper": {"note": "text"},
    },
    "image": {"remark": "text"},
}


@pytest.fixture(scope="module")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("veiled")
    (folder / "V1").mkdir()
    for k in range(6):
        Image.new("RGB", (64, 48)).save(folder / "V1" / f"{k}.png")
    with serve(folder, author="amy") as found:
        page = Page(found, "setup")
        rows = [{"id": f"secret-{k}", "video": "V1", "frame": k, "group": "tools", "name": "hook", "box": [1, 2, 9, 9],
                 "values": {"note": "secret note", "action": "secret action"}, "track": 1, "source": "secret model",
                 "score": 0.7, "review": "secret review", "extra": {"x": "secret"}} for k in range(6)]  # fmt: skip
        edits: list[tuple[str, dict[str, Any]]] = [
            ("schema.set", {"name": "own", "source": json.dumps(SECRET)}),
            ("instances.add", {"instances": rows}),
            ("instances.add", {"instances": [{**rows[0], "id": "secret-proposal", "proposal": True, "track": 2}]}),
            ("span.add", {"id": "secret-span", "video": "V1", "first": 0, "last": 3, "values": {"note": "secret span"},
                          "tracks": [{"group": "tools", "name": "hook", "number": 1}]}),
            ("image.values", {"video": "V1", "first": 0, "last": 5, "values": {"remark": "secret phase"}}),
            ("frames.flag", {"video": "V1", "first": 1, "last": 1, "reason": "secret reason", "note": "secret"}),
            ("study.add", {"id": "s1", "annotators": ["ada", "ben"],
                           "segments": [{"video": "V1", "first": 0, "last": 4}]}),
            ("study.decide", {"study": "s1", "instance": "secret-1", "choice": "keep", "note": "secret decision"}),
        ]  # fmt: skip
        for kind, payload in edits:
            status, told = page.do(kind, payload)
            assert status == 200, told
        ben = Page(found, "ben")
        mine = boxes(ben, BEN)[0]["id"]
        payload = {"ids": [mine], "name": "hook", "values": {"note": "secret answer of ben"}}
        assert send(ben, BEN, "study.answer", payload)[0] == 200
        yield found


@pytest.mark.parametrize("path", [path for path in BLIND if path != "/api/events"])
def test_no_path_of_a_blind_session_tells_a_label(secretive: Running, path: str) -> None:
    page = Page(secretive)
    asked = path.replace("{video}", "V1").replace("{index:int}", "0")
    for query in ("?first=0&last=5&since=0&text=0", "?first=0&last=5&text=secret&annotator=ben&author=ben"):
        status, found, answer = page.ask("GET", ADA + asked + query)
        assert status == 200, found
        told = found if isinstance(found, bytes) else json.dumps(found).encode()
        assert b"secret" not in told + str(answer.getheaders()).encode()


def test_boxes_come_without_class_values_and_number_of_the_project(secretive: Running) -> None:
    page = Page(secretive)
    found = boxes(page, ADA)
    assert [one["frame"] for one in found] == [0, 1, 2, 3, 4]  # neither the proposal nor what is outside the segment
    assert {(one["name"], one["score"], one["source"], one["review"]) for one in found} == {("", None, "", "")}
    assert all(one["values"] == {} for one in found)
    assert found[0]["box"] == [1, 2, 9, 9]
    assert {one["name"] for one in page.get(f"{ADA}/api/videos/V1/presence")} == {""}
    assert boxes(page, BEN)[0]["values"] == {"note": "secret answer of ben"}  # his own


@pytest.mark.parametrize("path", sorted(BLIND_EDITING))
@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("study.answer", {"ids": ["secret-0"], "name": "hook"}),
        ("study.answer", {"ids": ["MINE"], "values": {"note": "x"}}),
        ("study.answer", {"ids": ["MINE"], "name": "nothing"}),
        ("study.answer", {"ids": ["MINE"], "study": "s2", "annotator": "ben", "name": "hook", "values": {"note": "y"}}),
        ("undo", {"operation": 2}),
        ("redo", {}),
        ("setting.set", {"owner": "ben", "key": "schema", "value": 1}),
        ("setting.set", {"owner": "ben", "key": "display", "value": {}}),
        ("instances.move", {"ids": ["secret-0"], "dx": 1, "dy": 1}),
    ],
)
def test_no_answer_to_an_edit_tells_a_label(secretive: Running, path: str, kind: str, payload: dict[str, Any]) -> None:
    page = Page(secretive, f"sly-{path[5:]}-{kind}-{len(json.dumps(payload))}")
    mine = boxes(page, ADA)[0]["id"]
    sent = json.loads(json.dumps(payload).replace("MINE", mine))
    status, told = send(page, ADA, kind, sent, path.removeprefix("/api/"))
    assert status in (200, 400), told
    assert "secret" not in json.dumps(told)


def test_an_instance_that_is_gone_does_not_tell_its_class(secretive: Running) -> None:
    page, chair = Page(secretive, "late"), Page(secretive, "chair")
    last = boxes(page, ADA)[-1]["id"]
    chair.do("instances.delete", {"ids": ["secret-4"]})
    status, told = send(page, ADA, "study.answer", {"ids": [last], "name": "hook"})
    assert status == 400
    assert "secret" not in told["error"]
    chair.do("undo", {})


def test_two_tabs_of_an_annotator_get_a_conflict_without_names(secretive: Running) -> None:
    left, right = Page(secretive, "left"), Page(secretive, "right")
    one = boxes(left, ADA)[2]["id"]
    base = left.get(f"{ADA}/api/project")["version"]
    assert send(left, ADA, "study.answer", {"ids": [one], "name": "hook"})[0] == 200
    body = {"id": "right.1", "kind": "study.answer", "payload": {"ids": [one], "name": "grasper"}, "session": "right",
            "base": base}  # fmt: skip
    status, told, _ = right.ask("POST", f"{ADA}/api/operations", body)
    assert (status, told["who"], "secret" in json.dumps(told)) == (409, "ada", False)


def test_what_is_not_blind_is_not_there(secretive: Running) -> None:
    """Every address of the server, also those that are yet to come, unless somebody makes it one of the blind ones."""
    page = Page(secretive)
    others = [route for route in build_app(secretive.project).routes
              if isinstance(route, Route) and route.path not in BLIND | BLIND_EDITING]  # fmt: skip
    paths = {route.path for route in others}
    assert {
        "/api/videos/{video}/problems",
        "/api/history",
        "/api/studies/{study}/log",
        "/api/videos/{video}/next",
    } < paths
    for route in others:
        path = re.sub(r"\{(\w+)[^}]*\}", lambda found: {"video": "V1", "study": "s1"}.get(found[1], "0"), route.path)
        for method in ("GET", "POST"):
            status, found, _ = page.ask(method, ADA + path, {} if method == "POST" else None)
            assert status in (404, 405), path
            assert b"secret" not in (found if isinstance(found, bytes) else json.dumps(found).encode())
    for place in ("/blind/s1/eve", "/blind/s2/ada", "/blind/s1/a%2Fb"):
        assert page.ask("GET", f"{place}/api/project")[0] in (400, 404)


def test_a_blind_session_hears_only_of_its_own_answers(secretive: Running) -> None:
    page, chair = Page(secretive, "ear"), Page(secretive, "chair")
    connection = HTTPConnection(page.host, timeout=120)
    connection.request("GET", f"{ADA}/api/events", headers={"authorization": f"Bearer {page.token}"})
    answer = connection.getresponse()
    assert json.loads(answer.readline()[5:])["author"] == ""  # the version at which it begins to listen
    chair.do("frames.flag", {"video": "V1", "first": 2, "last": 2, "reason": "secret"})
    send(page, ADA, "study.answer", {"ids": [boxes(page, ADA)[3]["id"]], "name": "hook"})
    line = b""
    while not line.startswith(b"data:"):
        line = answer.readline()
    assert json.loads(line[5:])["author"] == "ada"
    connection.close()


def test_on_a_shared_server_an_annotators_link_opens_nothing_but_the_blind_session(tmp_path: Path) -> None:
    (tmp_path / "V1").mkdir()
    for k in range(60):
        Image.new("RGB", (64, 48)).save(tmp_path / "V1" / f"{k}.png")
    token = "a-token-that-nobody-guesses"
    with serve(tmp_path, author="host", host="0.0.0.0", token=token) as shared:
        page = Page(shared)
        for number, (kind, payload) in enumerate((("instances.add", scene.instances()), ("study.add", scene.study()))):
            body = {"id": f"setup.{number}", "kind": kind, "payload": payload, "author": "chair"}
            assert page.ask("POST", "/api/operations", body)[0] == 200
        (made,) = page.ask("GET", "/api/studies")[1]
        hers = {"authorization": f"Bearer {made['tokens']['ada']}"}
        assert page.ask("GET", f"{ADA}/api/project", **hers)[1]["author"] == "ada"
        for path in ("/api/project", "/api/studies", f"{BEN}/api/project", "/"):
            assert page.ask("GET", path, **hers)[0] == 401
        assert page.ask("GET", f"{ADA}/../../../api/studies", **hers)[0] == 404
        one = page.ask("GET", f"{ADA}/api/videos/V1/annotations?first=0&last=9", **hers)[1]["annotations"][0]
        body = {
            "id": "hers",
            "kind": "study.answer",
            "payload": {"ids": [one["id"]], "name": "forceps"},
            "author": "ben",
        }
        assert page.ask("POST", f"{ADA}/api/operations", body, **hers)[0] == 200
        (made,) = page.ask("GET", "/api/studies")[1]
        assert made["answered"] == {"ada": 1, "ben": 0}


# What a label edit must not change for a blind session: versions, numbers, order.

SETUP = [{"video": "V1", "first": 0, "last": 4}]


@pytest.fixture
def relabelled(tmp_path: Path) -> Iterator[Running]:
    """Two boxes in each of five frames, one of which changes its class twice; another video beside it."""
    for video in ("V1", "V2"):
        (tmp_path / video).mkdir()
        for k in range(6):
            Image.new("RGB", (64, 48)).save(tmp_path / video / f"{video}-{k}.png")
    with serve(tmp_path, author="amy") as found:
        page = Page(found, "setup")
        page.do("schema.set", {"name": "own", "source": json.dumps(SECRET)})
        rows = [{"id": f"{name}-{k}", "video": "V1", "frame": k, "group": "tools", "name": name, "track": 1,
                 "box": [x, 2, 9, 9]} for k in range(6) for x, name in ((1, "hook"), (30, "grasper"))]  # fmt: skip
        assert page.do("instances.add", {"instances": rows})[0] == 200
        assert page.do("study.add", {"id": "s1", "annotators": ["ada"], "segments": SETUP})[0] == 200
        yield found


def test_a_label_edit_changes_nothing_of_what_a_blind_session_gets(relabelled: Running) -> None:
    page, chair = Page(relabelled, "ada"), Page(relabelled, "chair")
    paths = ("presence", "tracks", "annotations?first=0&last=5")
    before = [page.get(f"{ADA}/api/videos/V1/{path}") for path in paths]
    assert [sorted(row["track"] for row in before[2]["annotations"] if row["frame"] == 3)] == [[1, 2]]
    assert chair.do("track.set", {"ids": ["grasper-2", "grasper-3"], "number": 7})[0] == 200
    assert chair.do("instances.classify", {"ids": ["grasper-2"], "group": "tools", "name": "hook"})[0] == 200
    after = [page.get(f"{ADA}/api/videos/V1/{path}") for path in paths]
    assert after[:2] == before[:2]
    assert after[2]["annotations"] == before[2]["annotations"]
    for since in range(relabelled_version(page) + 1):
        told = page.get(f"{ADA}/api/videos/V1/changes?since={since}")
        assert (told["annotations"], told["gone"]) == ([], [])


def relabelled_version(page: Page) -> int:
    version: int = page.get("/api/project")["version"]
    return version


def test_a_blind_session_gets_nothing_of_what_is_outside_the_study(relabelled: Running) -> None:
    page, chair = Page(relabelled, "ada"), Page(relabelled, "chair")
    for path in ("frames", "annotations", "presence", "tracks", "changes"):
        status, told, _ = page.ask("GET", f"{ADA}/api/videos/V2/{path}?first=0&last=3")
        assert (status, "expected one of the study" in told["error"]) == (400, True), path
    assert page.ask("GET", f"{ADA}/frames/V2/0")[0] == 400
    assert {one["video"] for one in page.get(f"{ADA}/api/search?text=-0")} == {"V1"}
    assert {one["video"] for one in page.get("/api/search?text=-0")} == {"V1", "V2"}
    chair.do("instances.delete", {"ids": ["hook-1", "hook-5"]})
    assert len(page.get(f"{ADA}/api/videos/V1/changes?since=0")["gone"]) == 1


@pytest.mark.parametrize("id", [".", ".."])
def test_a_step_in_an_address_is_no_id_of_a_study_and_no_name(relabelled: Running, id: str) -> None:
    page = Page(relabelled, "dots")
    assert page.do("study.add", {"id": id, "annotators": ["ada"], "segments": SETUP})[0] == 400
    assert page.do("study.add", {"id": "s2", "annotators": [id], "segments": SETUP})[0] == 400


def test_an_answer_is_no_edit_to_undo_by_its_number(relabelled: Running) -> None:
    page, chair = Page(relabelled, "ada"), Page(relabelled, "chair")
    version = send(page, ADA, "study.answer", {"ids": [boxes(page, ADA)[0]["id"]], "name": "hook"})[1]["version"]
    status, told = chair.do("undo", {"operation": version})
    assert (status, "found no operation" in told["error"]) == (400, True)
    assert chair.do("undo", {"operation": version, "study": "s1"})[0] == 400
    assert page.get("/api/studies")[0]["answered"] == {"ada": 1}


def test_a_log_without_decisions_has_its_header(relabelled: Running) -> None:
    page = Page(relabelled, "log")
    (header,) = page.ask("GET", "/api/studies/s1/log?as=csv")[1].decode().splitlines()
    assert page.do("study.decide", {"study": "s1", "instance": "hook-1", "choice": "keep"})[0] == 200
    assert header.split(",") == list(page.get("/api/studies/s1/log")[0])


def test_one_segment_has_no_interval_and_no_answers_no_kappa(relabelled: Running) -> None:
    page = Page(relabelled, "ada")
    cells = [row["cells"]["ada"] for row in page.get("/api/studies/s1/results")["table"]]
    assert {(one["value"], one["low"], one["reason"]) for one in cells} == {(None, None, "no answers yet")}
    for name, place in (("hook", 1), ("grasper", 30)):
        ids = [one["id"] for one in boxes(page, ADA) if one["box"][0] == place]
        assert send(page, ADA, "study.answer", {"ids": ids, "name": name})[0] == 200
    cell = page.get("/api/studies/s1/results")["table"][0]["cells"]["ada"]
    assert cell == {"value": 1.0, "low": None, "high": None, "reason": "one segment: no interval"}
