"""The studio in a real browser, over its real server: drawn, dragged and typed as an annotator does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page
from tests.browser.conftest import ARTIFACTS

from surgeval.studio.schema import builtin_schema
from surgeval.studio.server import Running, page_built, serve

pytestmark = pytest.mark.browser
WIDTH, HEIGHT, FRAMES = 320, 180, 330


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A block that wanders over 330 numbered frames."""
    place = tmp_path_factory.mktemp("video") / "V1"
    place.mkdir()
    for k in range(FRAMES):
        image = Image.new("RGB", (WIDTH, HEIGHT), (90, 30, 30))
        draw = ImageDraw.Draw(image)
        draw.rectangle((40 + k % 100, 60, 100 + k % 100, 110), fill=(180, 180, 190))
        draw.text((5, 5), str(k), fill="white")
        image.save(place / f"{k:04d}.jpg")
    return place


@pytest.fixture
def running(video: Path, tmp_path: Path) -> Iterator[Running]:
    assert page_built(), "the page is not built: `make .venv/.web` builds it"
    shutil.copytree(video, tmp_path / "op" / "V1", copy_function=shutil.copyfile)
    with serve(tmp_path / "op", author="amy") as found:
        yield found


@dataclass
class Studio:
    """A tab with the studio in it, and what it complained about."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def open(self) -> Studio:
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(self.address)
        self.ready()
        return self

    def ready(self) -> None:
        """Until the first frame is on the screen."""
        self.page.get_by_test_id("overlay").wait_for()
        self.eventually(lambda: self.page.locator("[data-testid=stage] img").count() == 1)

    def get(self, path: str) -> Any:
        connection = HTTPConnection(self.address.removeprefix("http://").rstrip("/"), timeout=20)
        connection.request("GET", path)
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def instances(self, first: int = 0, last: int | None = None) -> list[dict[str, Any]]:
        answer = self.get(f"/api/videos/V1/annotations?first={first}&last={last or first}")
        found: list[dict[str, Any]] = answer["annotations"]
        return found

    def keys(self, *names: str) -> None:
        for name in names:
            self.page.keyboard.press(name)

    def eventually(self, true: Callable[[], bool]) -> None:
        for _ in range(200):
            if true():
                return
            self.page.wait_for_timeout(25)
        self.shot("did-not-come")
        raise AssertionError("it did not come to pass")

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """From one place of the frame to another, in its pixels."""
        (x1, y1), (x2, y2) = self.at(*start), self.at(*end)
        self.page.mouse.move(x1, y1)
        self.page.mouse.down()
        self.page.mouse.move((x1 + x2) / 2, (y1 + y2) / 2, steps=3)
        self.page.mouse.move(x2, y2, steps=3)
        self.page.mouse.up()

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a pixel of the frame is on the screen: the stage says how it is shifted and scaled."""
        stage = self.page.get_by_test_id("stage")
        place = stage.bounding_box()
        assert place is not None
        left, top, scale = (float(stage.get_attribute(f"data-{name}") or 0) for name in ("x", "y", "scale"))
        return place["x"] + left + x * scale, place["y"] + top + y * scale

    def draw(self, start: tuple[float, float] = (60, 50), end: tuple[float, float] = (120, 110)) -> dict[str, Any]:
        """A new box, drawn by mouse; edit mode again afterwards."""
        known = {one["id"] for one in self.instances(self.frame)}
        self.keys("j")
        self.drag(start, end)
        self.eventually(lambda: len(self.instances(self.frame)) == len(known) + 1)
        self.keys("j")
        return next(one for one in self.instances(self.frame) if one["id"] not in known)

    @property
    def frame(self) -> int:
        return int(self.page.get_by_test_id("frame-number").input_value())

    def shot(self, name: str) -> None:
        ARTIFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"studio-{name}.png")


@pytest.fixture
def tab(browser: Browser, running: Running) -> Iterator[Callable[[], Studio]]:
    """Opens tabs; in the end none may have complained, unless the test took its complaints."""
    opened: list[Studio] = []
    contexts = []

    def new() -> Studio:
        context = browser.new_context(viewport={"width": 1366, "height": 768})
        contexts.append(context)
        opened.append(Studio(context.new_page(), running.address).open())
        return opened[-1]

    yield new
    complaints = [text for one in opened for text in one.complaints]
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def studio(tab: Callable[[], Studio]) -> Studio:
    return tab()


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
    _post(studio, {"id": "copies", "kind": "instances.add", "payload": {"instances": rows}})
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
    _post(studio, {"id": "evil-op", "kind": "instances.add", "payload": {"instances": rows}})
    studio.page.reload()
    studio.page.get_by_test_id("object-evil").wait_for()
    assert evil in studio.page.get_by_test_id("object-evil").inner_text()
    assert studio.page.evaluate("window.hurt") is None


def test_swap_from_this_frame_on(studio: Studio) -> None:
    boxes = {1: [20, 60, 40, 40], 2: [220, 60, 40, 40]}
    rows = [{"id": f"t{number}-{k}", "video": "V1", "frame": k, "group": "tools", "name": "forceps", "box": box,
             "track": number} for k in range(10) for number, box in boxes.items()]  # fmt: skip
    _post(studio, {"id": "two", "kind": "instances.add", "payload": {"instances": rows}})
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
    _post(studio, {"id": "props", "kind": "instances.add", "payload": {"instances": rows}})
    studio.page.reload()
    studio.page.get_by_test_id("object-p0").click()
    studio.shot("proposals")
    studio.keys("y")
    studio.eventually(lambda: not next(one for one in studio.instances() if one["id"] == "p0")["proposal"])
    studio.page.get_by_test_id("object-p1").click()
    studio.keys("n")
    studio.eventually(lambda: [one["id"] for one in studio.instances()] == ["p0"])


def _post(studio: Studio, body: dict[str, Any]) -> None:
    host = studio.address.removeprefix("http://").rstrip("/")
    connection = HTTPConnection(host, timeout=20)
    headers = {"origin": f"http://{host}", "content-type": "application/json"}
    connection.request("POST", "/api/operations", json.dumps(body).encode(), headers)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    assert answer.status == 200, said
