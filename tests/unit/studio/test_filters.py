"""Filters find the next frame that needs a hand, round and round."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from PIL import Image

from surgeval.studio.server import serve
from surgeval.studio.store import Request, apply

WHOLE = {"action": "cut", "target": "prostate"}
ROWS: list[dict[str, Any]] = [
    {"frame": 1, "name": "scissors", "values": WHOLE, "track": 1},
    {"frame": 3, "name": "scissors", "values": {"action": "cut"}, "track": 1},
    {"frame": 5, "name": "forceps", "values": {**WHOLE, "action": "fly"}, "track": 1},
    {"frame": 7, "name": "grasper", "values": {"action": "retract", "target": "prostate"}},
    {"frame": 8, "name": "scissors", "values": WHOLE, "track": 2, "proposal": True, "score": 0.5},
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("op")
    (place / "V1").mkdir()
    for k in range(10):
        Image.new("RGB", (64, 48)).save(place / "V1" / f"{k}.png")
    with serve(place, author="amy") as running:
        rows = [{"id": f"i{row['frame']}", "video": "V1", "group": "tools", "box": [1, 1, 9, 9], **row} for row in ROWS]
        database = running.project.database
        apply(database, Request("add", "amy", "instances.add", {"instances": rows}))
        apply(database, Request("seen", "amy", "frames.mark", {"video": "V1", "first": 0, "last": 7}))
        yield running.address


def ask(address: str, query: str) -> tuple[int, Any]:
    connection = HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=120)
    connection.request("GET", f"/api/videos/V1/next?{query}")
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


@pytest.mark.parametrize(
    ("query", "frame"),
    [
        ("filter=Missing", 3),
        ("filter=Missing&after=3", 3),  # round and round
        ("filter=Outside", 5),
        ("filter=NoTrack", 7),
        ("filter=Proposals", 8),
        ("filter=Unreviewed", 8),
        ("filter=Unreviewed&round=2", 1),
        ("filter=Unreviewed&class=tools.forceps", None),
        ("class=tools.scissors", 1),
        ("class=tools.scissors&after=1", 3),
        ("class=tools.scissors&after=3", 8),
        ("class=tools.scissors&after=9", 1),
        ("class=tools.forceps&filter=Missing", None),
        ("after=5", 7),
    ],
)
def test_the_next_match(address: str, query: str, frame: int | None) -> None:
    instance = None if frame is None else f"i{frame}"
    assert ask(address, query) == (200, {"frame": frame, "instance": instance})


@pytest.mark.parametrize(("query", "said"), [("filter=Nice", "expected All, Missing"), ("after=x", "whole number")])
def test_no_such_filter(address: str, query: str, said: str) -> None:
    status, found = ask(address, query)
    assert status == 400
    assert said in found["error"]
