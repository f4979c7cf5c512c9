"""Filters find the next frame that needs a hand, round and round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image
from tests.studio_command import Client

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
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("op")
    (place / "V1").mkdir()
    for k in range(10):
        Image.new("RGB", (64, 48)).save(place / "V1" / f"{k}.png")
    with serve(place, author="amy") as running:
        rows = [{"id": f"i{row['frame']}", "video": "V1", "group": "tools", "box": [1, 1, 9, 9], **row} for row in ROWS]
        database = running.project.database
        apply(database, Request("add", "amy", "instances.add", {"instances": rows}))
        apply(database, Request("seen", "amy", "frames.mark", {"video": "V1", "first": 0, "last": 7}))
        yield Client.of(running)


def ask(client: Client, query: str) -> tuple[int, Any]:
    return client.ask("GET", f"/api/videos/V1/next?{query}")


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
def test_the_next_match(client: Client, query: str, frame: int | None) -> None:
    instance = None if frame is None else f"i{frame}"
    assert ask(client, query) == (200, {"frame": frame, "instance": instance})


@pytest.mark.parametrize(("query", "said"), [("filter=Nice", "expected All, Missing"), ("after=x", "whole number")])
def test_no_such_filter(client: Client, query: str, said: str) -> None:
    status, found = ask(client, query)
    assert status == 400
    assert said in found["error"]
