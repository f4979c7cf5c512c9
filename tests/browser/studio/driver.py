"""A tab with the studio in it, driven by mouse and keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

from playwright.sync_api import Page
from tests.browser.conftest import ARTIFACTS


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

    def post(self, body: dict[str, Any]) -> None:
        """An operation as another program sends it."""
        host = self.address.removeprefix("http://").rstrip("/")
        connection = HTTPConnection(host, timeout=20)
        headers = {"origin": f"http://{host}", "content-type": "application/json"}
        connection.request("POST", "/api/operations", json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        assert answer.status == 200, said

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
