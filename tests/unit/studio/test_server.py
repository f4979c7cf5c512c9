"""The studio's server over real HTTP on loopback: reading, editing, conflicts, pictures, events, and strangers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from surgeval.errors import BadInput
from surgeval.studio.server import Running, serve, set_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("op")
    (place / "V1").mkdir()
    for k in range(30):
        Image.new("RGB", (64, 48), (8 * k, 0, 0)).save(place / "V1" / f"{k}.png")
    return place


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Running]:
    with serve(folder, author="amy") as found:
        yield found


class Page:
    """A page of the studio in a browser, as far as the server can tell."""

    def __init__(self, running: Running, session: str = "tab-1") -> None:
        self.host = running.address.removeprefix("http://").rstrip("/")
        self.session, self.count, self.token = session, 0, running.token

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, HTTPResponse]:
        connection = HTTPConnection(self.host, timeout=120)
        sent = {"origin": f"http://{self.host}", "authorization": f"Bearer {self.token}", **headers}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.getheader("content-type", "").startswith("application/json"):
            return answer.status, json.loads(content), answer
        return answer.status, content, answer

    def get(self, path: str) -> Any:
        status, found, _ = self.ask("GET", path)
        assert status == 200, found
        return found

    def do(self, kind: str, payload: dict[str, Any], **more: Any) -> tuple[int, Any]:
        self.count += 1
        body = {"id": f"{self.session}.{self.count}", "kind": kind, "payload": payload, "session": self.session, **more}
        status, found, _ = self.ask("POST", "/api/operations", body)
        return status, found


def hook(id: str, frame: int = 3) -> dict[str, Any]:
    return {"instances": [{"id": id, "video": "V1", "frame": frame, "group": "tools", "name": "scissors",
                           "box": [5, 6, 20, 10], "values": {"action": "cut"}, "track": None}]}  # fmt: skip


def test_the_project_says_what_there_is(running: Running, folder: Path) -> None:
    found = Page(running).get("/api/project")
    assert found["name"] == folder.name
    assert found["author"] == "amy"
    assert found["videos"] == [{"id": "V1", "name": "V1", "width": 64, "height": 48, "fps": 1.0, "frames": 30}]
    assert "scissors" in found["schema"]["panel"]["tools"]
    assert len(found["schema"]["classes"]) == 89
    assert ["scissors", "cut", "prostate"] in found["schema"]["classes"]
    frames = Page(running).get("/api/videos/V1/frames?first=0&last=29")
    assert frames["names"] == [str(k) for k in range(30)]


def test_a_picture_is_the_file_and_known_again(running: Running, folder: Path) -> None:
    page = Page(running)
    status, data, answer = page.ask("GET", "/frames/V1/7")
    assert (status, answer.getheader("content-type")) == (200, "image/png")
    assert data == (folder / "V1" / "7.png").read_bytes()
    tag = answer.getheader("etag") or ""
    assert page.ask("GET", "/frames/V1/7", **{"if-none-match": tag})[0] == 304
    for path in ("/frames/V1/30", "/frames/V2/0"):
        status, found, _ = page.ask("GET", path)
        assert status == 400
        assert "found no frame" in found["error"]


def test_an_edit_is_stored_once_however_often_it_is_sent(running: Running) -> None:
    page = Page(running, "twice")
    body = {"id": "twice.x", "kind": "instances.add", "payload": hook("twice-a"), "session": "twice"}
    first = page.ask("POST", "/api/operations", body)[1]
    again = page.ask("POST", "/api/operations", body)[1]
    assert (first["changed"], first["repeated"], again["repeated"]) == (1, False, True)
    assert first["version"] == again["version"]
    found = page.get("/api/videos/V1/annotations?first=3&last=3")["annotations"]
    assert [one["box"] for one in found if one["id"] == "twice-a"] == [[5, 6, 20, 10]]


def test_a_preview_says_the_same_and_stores_nothing(running: Running) -> None:
    page = Page(running, "preview")
    before = page.get("/api/project")["version"]
    body = {"id": "p.1", "kind": "instances.add", "payload": hook("preview-a"), "session": "preview"}
    status, found, _ = page.ask("POST", "/api/preview", body)
    assert (status, found["changed"]) == (200, 1)
    assert page.get("/api/project")["version"] == before


def test_two_tabs_on_one_instance_get_a_conflict_that_says_who(running: Running) -> None:
    one, other = Page(running, "left"), Page(running, "right")
    one.do("instances.add", hook("both"))
    base = one.get("/api/project")["version"]
    assert one.do("instances.move", {"ids": ["both"], "dx": 1, "dy": 0}, base=base)[0] == 200
    status, found = other.do("instances.move", {"ids": ["both"], "dx": 0, "dy": 9}, base=base)
    assert (status, found["who"]) == (409, "amy")
    assert "both" in found["what"]
    box = next(
        a["box"] for a in one.get("/api/videos/V1/annotations?first=3&last=3")["annotations"] if a["id"] == "both"
    )
    assert box == [6, 6, 20, 10]
    changes = other.get(f"/api/videos/V1/changes?since={base}")
    assert [a["id"] for a in changes["annotations"]] == ["both"]


def test_undo_takes_back_and_history_says_so(running: Running) -> None:
    page = Page(running, "undo")
    made = page.do("instances.add", hook("gone-soon"))[1]["version"]
    assert page.do("undo", {})[0] == 200
    ids = {a["id"] for a in page.get("/api/videos/V1/annotations?first=3&last=3")["annotations"]}
    assert "gone-soon" not in ids
    assert next(row for row in page.get("/api/history") if row["version"] == made)["undone"]
    assert page.do("redo", {})[0] == 200
    assert not next(row for row in page.get("/api/history") if row["version"] == made)["undone"]


def test_spans_tracks_presence_and_flags(running: Running) -> None:
    page = Page(running, "span")
    for frame in (10, 11, 12, 15):
        page.do("instances.add", {"instances": [{
            "id": f"s{frame}", "video": "V1", "frame": frame, "group": "tools", "name": "forceps",
            "box": [1, 1, 9, 9], "track": 1}]})  # fmt: skip
    track = {"group": "tools", "name": "forceps", "number": 1}
    status, made = page.do("span.add", {"id": "span-1", "video": "V1", "tracks": [track], "first": 10, "last": 20,
                                        "values": {"action": "retract"}})  # fmt: skip
    assert status == 200, made
    assert made["changed"] == 4
    spans = page.get("/api/videos/V1/spans")
    assert (spans[0]["tracks"], spans[0]["first"], spans[0]["values"]) == ([track], 10, {"action": "retract"})
    lane = next(one for one in page.get("/api/videos/V1/presence") if one["name"] == "forceps")
    assert lane["runs"] == [[10, 12], [15, 15]]
    numbers = next(one for one in page.get("/api/videos/V1/tracks") if one["name"] == "forceps")
    assert (numbers["count"], numbers["missing"]) == (4, 2)
    page.do("frames.flag", {"video": "V1", "first": 4, "last": 5, "reason": "smoke"})
    assert [(flag["frame"], flag["reason"]) for flag in page.get("/api/videos/V1/flags")] == [
        (4, "smoke"),
        (5, "smoke"),
    ]
    assert page.get("/api/search?text=29") == [{"video": "V1", "frame": 29, "name": "29"}]


def test_a_class_of_which_all_were_deleted_has_no_lane(running: Running) -> None:
    page = Page(running, "lane")
    box = {
        "id": "only",
        "video": "V1",
        "frame": 2,
        "group": "tools",
        "name": "grasper",
        "box": [1, 1, 9, 9],
        "track": 1,
    }
    assert page.do("instances.add", {"instances": [box]})[0] == 200
    assert page.do("instances.delete", {"ids": ["only"]})[0] == 200
    for path in ("presence", "tracks"):
        assert "grasper" not in {lane["name"] for lane in page.get(f"/api/videos/V1/{path}")}
    page.get("/api/videos/V1/problems")


def heard(page: Page, until: str) -> Iterator[dict[str, Any]]:
    """The events of a page that listens, until one of the named kind."""
    connection = HTTPConnection(page.host, timeout=120)
    connection.request("GET", "/api/events", headers={"authorization": f"Bearer {page.token}"})
    answer = connection.getresponse()
    while True:
        line = answer.readline()
        assert line, "the stream ended"
        if line.startswith(b"data:"):
            event = json.loads(line[5:])
            yield event
            if event["kind"] == until:
                break
    connection.close()


def test_pages_hear_of_every_edit_in_order_and_first_of_the_version_they_come_to(running: Running) -> None:
    page = Page(running, "ear")
    version = page.get("/api/project")["version"]
    events = heard(page, "frames.flag")
    assert next(events)["version"] == version
    page.do("instances.add", hook("heard"))
    page.do("frames.flag", {"video": "V1", "first": 9, "last": 9, "reason": "smoke"})
    told = [(one["version"], one["session"], one["kind"], one["video"]) for one in events]
    assert told == [
        (version + 1, "ear", "instances.add", None),
        (version + 2, "ear", "frames.flag", "V1"),
    ]


def test_a_page_hears_of_an_edit_made_through_another_server(folder: Path, running: Running) -> None:
    with serve(folder, author="ben") as other:
        events = heard(Page(running), "frames.flag")
        next(events)
        begin = time.monotonic()
        status, _ = Page(other, "there").do("frames.flag", {"video": "V1", "first": 8, "last": 8, "reason": "smoke"})
        assert status == 200
        assert [one["author"] for one in events] == ["ben"]
        assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "found no JSON"),
        (b"[]", "found no object"),
        (b'{"id": 3}', "expected id, kind"),
        (b'{"id": "a", "kind": "instances.add", "payload": {"x": NaN}}', "found no JSON"),
        (b'{"id": "a", "kind": "rm -rf", "payload": {}}', "expected one of"),
        (b'{"id": "../a", "kind": "undo", "payload": {}}', "operation id"),
        (b'{"id": "a", "kind": "undo", "payload": {}, "more": 1}', "expected id, kind"),
        (b"\xff\xfe", "found no JSON"),
        (b"[" * 100_000, "found no JSON"),
    ],
)
def test_a_broken_edit_is_refused_in_one_sentence(running: Running, body: bytes, said: str) -> None:
    status, found, _ = Page(running).ask("POST", "/api/operations", body)
    assert status == 400
    assert said in found["error"]
    assert "Traceback" not in found["error"]


@pytest.mark.parametrize(
    "path",
    ["/frames/V1/../../etc/passwd", "/frames/..%2f..%2fetc/0", "/..%2f..%2fsecret",
     "/api/videos/V1/annotations?first=x",
     "/api/videos/V1/annotations?first=0&last=99999999", "/api/videos/V1/frames?first=-1", "/api/search?text=",
     "/api/none"],
)  # fmt: skip
def test_paths_lead_nowhere_else(running: Running, path: str) -> None:
    status, found, _ = Page(running).ask("GET", path)
    assert status in (400, 404)
    assert b"root:" not in (found if isinstance(found, bytes) else json.dumps(found).encode())


def test_strangers_are_refused_over_the_wire(running: Running) -> None:
    page = Page(running)
    assert page.ask("GET", "/api/project", origin="http://evil.example")[0] == 403
    assert page.ask("GET", "/api/project", host="evil.example")[0] == 421
    assert page.ask("POST", "/api/operations", {"id": "x", "kind": "undo", "payload": {}},
                    **{"sec-fetch-site": "cross-site"})[0] == 403  # fmt: skip
    assert page.ask("POST", "/api/operations", b"x" * (33 << 20))[0] == 413
    status, _, answer = page.ask("GET", "/api/project")
    assert status == 200
    assert "default-src 'none'" in (answer.getheader("content-security-policy") or "")
    body = {"id": "form", "kind": "undo", "payload": {}}
    assert page.ask("POST", "/api/operations", json.dumps(body).encode(), **{"content-type": "text/plain"})[0] == 400


def test_a_shared_server_asks_who_it_is(tmp_path: Path) -> None:
    token = "a-token-that-nobody-guesses"
    (tmp_path / "V").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "V" / "1.png")
    with serve(tmp_path, author="host", host="0.0.0.0", token=token) as shared:
        page = Page(shared)
        assert page.ask("GET", "/api/project?author=ben")[1]["author"] == "ben"
        body = {"id": "b1", "kind": "frames.flag", "author": "ben",
                "payload": {"video": "V", "first": 0, "last": 0, "reason": "smoke"}}  # fmt: skip
        assert page.ask("POST", "/api/operations", body)[0] == 200
        assert page.ask("GET", "/api/videos/V/flags")[1][0]["author"] == "ben"


def test_a_folder_is_opened_again_with_its_edits_and_new_files(tmp_path: Path) -> None:
    (tmp_path / "V").mkdir()
    for k in (2, 10):
        Image.new("RGB", (32, 32), (k, 0, 0)).save(tmp_path / "V" / f"{k}.png")
    with serve(tmp_path, author="amy") as first:
        page = Page(first)
        page.do("frames.flag", {"video": "V", "first": 1, "last": 1, "reason": "smoke"})
    (tmp_path / "V" / "2.png").unlink()
    Image.new("RGB", (32, 32), (5, 0, 0)).save(tmp_path / "V" / "5.png")
    with serve(tmp_path, author="amy") as second:
        page = Page(second)
        assert page.get("/api/videos/V/frames?first=0&last=9")["names"] == ["2", "10", "5"]
        assert [flag["frame"] for flag in page.get("/api/videos/V/flags")] == [1]
        assert page.ask("GET", "/frames/V/2")[1] == (tmp_path / "V" / "5.png").read_bytes()
        status, found, _ = page.ask("GET", "/frames/V/0")
        assert status == 404
        assert "no such file" in found["error"]


def test_an_empty_folder_and_a_taken_port_are_said(tmp_path: Path, running: Running) -> None:
    with pytest.raises(BadInput, match="neither film nor image"), serve(tmp_path, author="amy"):
        pass
    port = int(running.address.rstrip("/").rsplit(":", 1)[1])
    with pytest.raises(BadInput, match="expected one that is free"), serve(tmp_path, author="amy", port=port):
        pass


def test_a_schema_that_was_chosen_and_labelled_by_outlives_the_command_that_named_another(tmp_path: Path) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "1.png")
    with serve(tmp_path, author="amy") as first:
        assert set_schema(first.project, "cholect50") is None  # it had none
        assert set_schema(first.project, "prostatd") is None  # nothing is labelled by it
        page, video = Page(first), Page(first).get("/api/project")["videos"][0]["id"]
        assert set_schema(first.project, "cholect50") is None
        new = {"id": "g", "video": video, "frame": 0, "group": "tools", "name": "grasper", "box": [1, 2, 9, 9]}
        assert page.do("instances.add", {"instances": [new]})[0] == 200
    with serve(tmp_path, author="amy") as again:
        assert set_schema(again.project, "prostatd") == "cholect50"
        page = Page(again, "later")
        assert page.get("/api/project")["schema"]["name"] == "cholect50"
        assert page.do("instances.values", {"ids": ["g"], "values": {"target": "gallbladder"}})[0] == 200


def test_the_rate_of_a_folder_of_images_can_be_given_set_and_taken_back(tmp_path: Path) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "1.png")
    with serve(tmp_path, author="amy", fps=5) as running:
        page = Page(running)

        def rate() -> tuple[str, float]:
            [video] = page.get("/api/project")["videos"]
            return video["id"], video["fps"]

        id, given = rate()
        assert given == 5
        assert page.do("video.rate", {"video": id, "fps": 25})[0] == 200
        assert rate() == (id, 25)
        assert page.do("undo", {})[0] == 200
        assert rate() == (id, 5)
        for wrong in (0, -1, 1e9, None):
            status, told = page.do("video.rate", {"video": id, "fps": wrong})
            assert status == 400
            assert "fps: found" in told["error"]
        frames = {"video": id, "first": 1, "names": ["2"], "times": [0.5]}
        assert page.do("frames.add", frames)[0] == 200
        assert "have their own times" in page.do("video.rate", {"video": id, "fps": 2})[1]["error"]
