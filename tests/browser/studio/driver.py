"""A tab with the studio in it, driven by mouse and keys."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

from playwright.sync_api import ConsoleMessage, Error, Locator, Page
from tests.browser.conftest import ARTIFACTS, PATIENCE, PICTURES


def track(number: int | None, frames: Iterable[int], *, name: str = "forceps",
          box: Sequence[float] = (20, 60, 40, 40), **more: Any) -> list[dict[str, Any]]:  # fmt: skip
    """Instances of one track, one in each frame."""
    return [{"id": f"{name.replace(' ', '-')}{number}-{k}", "video": "V1", "frame": k, "group": "tools", "name": name,
             "box": list(box), "track": number, **more} for k in frames]  # fmt: skip


@dataclass
class Studio:
    """A tab with the studio in it, and what it complained about."""

    page: Page
    entry: str  # the address with the token
    complaints: list[str] = field(default_factory=list)
    posted: int = 0
    video: str = "V1"

    @property
    def address(self) -> str:
        """As the address bar has it once the page is there."""
        return self.entry.partition("?")[0]

    @property
    def host(self) -> str:
        return self.address.removeprefix("http://").rstrip("/")

    @property
    def token(self) -> dict[str, str]:
        """As a header of requests."""
        return {"authorization": f"Bearer {self.entry.partition('=')[2]}"}

    def open(self) -> Studio:
        self.page.on("console", self._console)
        self.page.on("pageerror", self._exception)
        self.page.goto(self.entry)
        self.ready()
        return self

    def leave(self) -> None:
        """An empty window as a new one has it, but for the compiled scripts: nothing stored, nobody listens."""
        context = self.page.context
        for other in context.pages:
            if other is not self.page:
                other.close()
        self.page.remove_listener("console", self._console)
        self.page.remove_listener("pageerror", self._exception)
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        session = context.new_cdp_session(self.page)
        session.send("Storage.clearDataForOrigin", {"origin": self.address.rstrip("/"), "storageTypes": "all"})
        session.detach()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _exception(self, error: Error) -> None:
        self.complaints.append(str(error))

    def ready(self) -> None:
        """Until the first frame is on the screen."""
        self.page.get_by_test_id("overlay").wait_for()
        self.eventually(lambda: self.page.locator("[data-testid=stage] img").count() == 1)

    def get(self, path: str) -> Any:
        connection = HTTPConnection(self.host, timeout=120)
        connection.request("GET", path, headers=self.token)
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def post(self, body: dict[str, Any]) -> None:
        """An operation as another program sends it."""
        connection = HTTPConnection(self.host, timeout=120)
        headers = {**self.token, "content-type": "application/json"}
        connection.request("POST", "/api/operations", json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        assert answer.status == 200, said

    def instances(self, first: int = 0, last: int | None = None) -> list[dict[str, Any]]:
        answer = self.get(f"/api/videos/{self.video}/annotations?first={first}&last={last or first}")
        found: list[dict[str, Any]] = answer["annotations"]
        return found

    def spans(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/api/videos/{self.video}/spans")
        return sorted(found, key=lambda span: (span["first"], span["last"]))

    def fill(self, *rows: dict[str, Any], kind: str = "instances.add", **payload: Any) -> None:
        """Instances (or another edit) from elsewhere, and the page with them."""
        self.posted += 1
        body = payload or {"instances": list(rows)}
        self.post({"id": f"fill-{self.posted}", "kind": kind, "payload": body})
        self.page.reload()
        self.ready()

    def labelled(self, attribute: str, value: str, first: int = 0, last: int = 40, **same: Any) -> list[int]:
        """The frames whose instances (those with the same track, name ...) have a value."""
        found = [one for one in self.instances(first, last) if one["values"].get(attribute) == value]
        return [one["frame"] for one in found if all(one[key] == wanted for key, wanted in same.items())]

    def by_id(self, name: str) -> Locator:
        return self.page.get_by_test_id(name)

    def click(self, name: str, **how: Any) -> None:
        self.by_id(name).click(**how)

    def go(self, frame: int) -> None:
        """By typing the number; waits until the frame is painted."""
        field = self.by_id("frame-number")
        field.fill(str(frame))
        field.press("Enter")
        self.at_frame(frame)

    def at_frame(self, frame: int) -> None:
        self.eventually(lambda: self.by_id("app").get_attribute("data-shown") == str(frame))

    def saved(self) -> None:
        self.eventually(lambda: self.by_id("save-state").get_attribute("data-pending") == "0")

    def hears(self, *words: str) -> str:
        """Until a message with these words is on the screen."""
        self.eventually(lambda: all(word in self.message for word in words))
        return self.message

    def watch_frames(self) -> None:
        """From now on `seen` lists the frames that are painted."""
        self.page.evaluate(
            """() => { window.seen = []; const app = document.querySelector('[data-testid=app]');
            new MutationObserver(() => seen.push(Number(app.dataset.shown)))
              .observe(app, {attributes: true, attributeFilter: ['data-shown']}) }"""
        )

    @property
    def seen(self) -> list[int]:
        found: list[int] = self.page.evaluate("window.seen")
        return found

    @property
    def message(self) -> str:
        """What is told now; read at once, as it goes away by itself."""
        return "\n".join(self.by_id("message").all_inner_texts())

    def on_timeline(self, frame: float, lane: str) -> tuple[float, float]:
        """Where a frame begins on the lane of a track (`tools/forceps/1`), or of the whole frame (`image`)."""
        canvas = self.by_id("timeline-canvas")
        place = canvas.bounding_box()
        assert place is not None
        first, last, gutter, ruler, height, top = (
            float(canvas.get_attribute(f"data-{name}") or 0)
            for name in ("first", "last", "gutter", "ruler", "lane-height", "top")
        )
        lanes = (canvas.get_attribute("data-lanes") or "").split("|")
        row = next(k for k, key in enumerate(lanes) if key.startswith(lane))
        across = (frame - first) / (last - first + 1) * (place["width"] - gutter)
        return place["x"] + gutter + across, place["y"] + ruler + height * (row + 0.35) - top

    def slide(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag on the screen."""
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move((start[0] + end[0]) / 2, start[1], steps=3)
        self.page.mouse.move(*end, steps=3)
        self.page.mouse.up()

    def middle(self, name: str) -> tuple[float, float]:
        place = self.by_id(name).bounding_box()
        assert place is not None
        return place["x"] + place["width"] / 2, place["y"] + place["height"] / 2

    def keys(self, *names: str) -> None:
        for name in names:
            self.page.keyboard.press(name)

    def eventually(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > end:
                self.shot("did-not-come")
                raise AssertionError("it did not come to pass")
            self.page.wait_for_timeout(25)

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
        if PICTURES:
            ARTIFACTS.mkdir(exist_ok=True)
            self.page.screenshot(path=ARTIFACTS / f"studio-{name}.png")
