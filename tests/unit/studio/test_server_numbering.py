"""The identity rule over HTTP: tried, applied as one edit, on a range, and with hand-set numbers left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.unit.studio.test_server import Page

from surgeval.studio.server import serve

LEFT, RIGHT = [0, 20, 25, 8], [40, 20, 24, 8]


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A project that no test numbers."""
    yield from served(tmp_path_factory.mktemp("op"))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    yield from served(tmp_path)


def served(tmp_path: Path) -> Iterator[Page]:
    (tmp_path / "V1").mkdir()
    for k in range(10):
        Image.new("RGB", (64, 48), (8 * k, 0, 0)).save(tmp_path / "V1" / f"{k}.png")
    with serve(tmp_path, author="amy") as running:
        page = Page(running)
        rows = [{"id": f"{side}{k}", "video": "V1", "frame": k, "group": "tools", "name": "grasper", "box": box}
                for k in range(10) for side, box in (("l", LEFT), ("r", RIGHT))]  # fmt: skip
        assert page.do("instances.add", {"instances": rows})[0] == 200
        yield page


def ask(page: Page, path: str, **body: Any) -> tuple[int, Any]:
    status, found, _ = page.ask("POST", path, {"video": "V1", **body})
    return status, found


def numbers(page: Page) -> dict[str, int | None]:
    found = page.get("/api/videos/V1/annotations?first=0&last=9")["annotations"]
    return {one["id"]: one["track"] for one in found}


def test_a_rule_is_tried_then_applied_once_and_undone_as_one(page: Page) -> None:
    status, tried = ask(page, "/api/numbering/try", rule="sector")
    assert (status, tried["changed"], tried["instances"], tried["tracks"]) == (200, 20, 20, [0, 2])
    assert [(row["number"], row["frames"], row["gaps"]) for row in tried["after"]] == [(1, 10, 0), (2, 10, 0)]
    assert set(numbers(page).values()) == {None}
    told = {"id": "n1", "session": "tab-1", "rule": "sector"}
    status, made = ask(page, "/api/numbering", **told)
    assert (status, made["changed"], made["repeated"]) == (200, 20, False)
    assert numbers(page)["r3"] == 1
    assert numbers(page)["l3"] == 2
    again = ask(page, "/api/numbering", **told)[1]
    assert (again["version"], again["repeated"]) == (made["version"], True)
    assert ask(page, "/api/numbering", id="n2", rule="sector")[1]["changed"] == 0  # nothing left to change
    assert page.do("undo", {})[0] == 200
    assert set(numbers(page).values()) == {None}


def test_a_range_and_hand_set_numbers(page: Page) -> None:
    page.do("track.set", {"ids": ["l0"], "number": 7})
    status, made = ask(page, "/api/numbering", id="n1", rule="sector", first=0, last=4)
    assert (status, made["changed"]) == (200, 9)
    found = numbers(page)
    assert {found[f"l{k}"] for k in range(5)} == {7}
    assert {found[f"r{k}"] for k in range(5)} == {1}
    assert {found[f"l{k}"] for k in range(5, 10)} == {None}
    tried = ask(page, "/api/numbering/try", rule="centres", gap=1)[1]
    assert tried["by_hand"] == 1
    assert tried["changed"] == 10


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "bytetrack", "gap": 2, "fresh": 1, "high": 0.3, "low": 0.1},
        {"rule": "centres", "gap": 0},
        {"rule": "upstream"},
        {"rule": "sector", "order": ["right-left"], "sectors": 4, "reuse": "sector"},
    ],
)
def test_every_rule_can_be_tried(idle: Page, rule: dict[str, Any]) -> None:
    status, found = ask(idle, "/api/numbering/try", **rule)
    assert status == 200, found
    assert found["changed"] == (0 if rule["rule"] == "upstream" else 20)


def test_numbers_that_came_with_a_file_come_back(page: Page) -> None:
    rows = [{"id": f"u{k}", "video": "V1", "frame": k, "group": "tools", "name": "forceps", "box": LEFT, "track": 9,
             "track_by": "upstream"} for k in range(3)]  # fmt: skip
    page.do("instances.add", {"instances": rows})
    ask(page, "/api/numbering", id="n1", rule="sector")
    assert {numbers(page)[f"u{k}"] for k in range(3)} == {1}
    status, made = ask(page, "/api/numbering", id="n2", rule="upstream")
    assert (status, made["changed"]) == (200, 3)
    assert {numbers(page)[f"u{k}"] for k in range(3)} == {9}
    assert numbers(page)["r0"] == 1  # came without a number: stays as it is


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"rule": "colour"}, "expected sector, bytetrack, centres, upstream"),
        ({}, "rule: found 'None'"),
        ({"rule": "sector", "order": ["colour"]}, "order: found"),
        ({"rule": "sector", "order": []}, "order: found nothing"),
        ({"rule": "sector", "order": [["sector"]]}, "order: found"),
        ({"rule": "sector", "sectors": 1}, "sectors: found 1, expected 2 to 64"),
        ({"rule": "sector", "gap": "x"}, "gap: found 'x'"),
        ({"rule": "sector", "gap": -1}, "gap: found -1"),
        ({"rule": "sector", "reuse": True}, "reuse: found 'True'"),
        ({"rule": "bytetrack", "high": 0.1, "low": 0.5}, "found low 0.5 above high 0.1"),
        ({"rule": "sector", "first": 5, "last": 2}, "last: found 2, expected a frame not before"),
        ({"rule": "sector", "first": 5}, "last: found -1"),
        ({"rule": "sector", "first": 0, "last": 10}, "last: found 10, expected 0 to 9"),
        ({"rule": "sector", "video": "V9"}, "video: found 'V9'"),
    ],
)
def test_bad_settings_are_said(idle: Page, body: dict[str, Any], said: str) -> None:
    for path, more in (("/api/numbering/try", {}), ("/api/numbering", {"id": "n9"})):
        status, found = ask(idle, path, **body, **more)
        assert status == 400
        assert said in found["error"]
    assert set(numbers(idle).values()) == {None}


def test_an_edit_needs_its_id(idle: Page) -> None:
    status, found = ask(idle, "/api/numbering", rule="sector")
    assert (status, found["error"].split(":")[0]) == (400, "id")
