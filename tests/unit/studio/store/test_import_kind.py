"""Labels from elsewhere as one operation, on both databases: all of it or nothing, undone as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.studio_project import Project

from surgeval.errors import BadInput
from surgeval.studio.exchange import StudioDataset
from surgeval.studio.schema import parse_schema
from surgeval.studio.store import reading


def payload(count: int = 30) -> dict[str, list[dict[str, Any]]]:
    """More rows than are sent one by one."""
    frames: list[dict[str, Any]] = [{"video": "v", "frame": k} for k in range(count)]
    outline = [[[1.0, 2.0], [9.0, 2.0], [5.0, 8.0]]]
    return {
        "instances": [{**at, "id": f"new{at['frame']}", "group": "tools", "name": "forceps", "polygons": outline,
                       "values": {"action": "retract"}, "extra": {"attributes": {"flags": {"hard": True}}}}
                      for at in frames],
        "images": [{**at, "values": {"phase": "a" if at["frame"] < 10 else "b"}} for at in frames],
        "flags": [{**at, "reason": "smoke", "note": "left"} for at in frames[:25]],
        "words": [{**at, "words": {"labelme": '{"file": {}}'}} for at in frames],
        "replace": [{"video": "v", "frames": [0, 1]}],
    }  # fmt: skip


def test_everything_comes_at_once_and_goes_at_once(project: Project) -> None:
    project.edit("ben").set_schema(parse_schema('{"tools": {"forceps": {}}, "image": {"phase": ["a", "b"]}}', "s"))
    before = {frame: len(project.instances("v", frame)) for frame in range(40)}
    done = project.edit("ben").take_in(**payload())
    assert (done.changed, done.skipped) == (85, 3)
    after = project.instances("v", 0, 1)
    assert [(one.name, one.extra, len(one.polygons)) for one in after] == [
        ("forceps", {"attributes": {"flags": {"hard": True}}}, 1)
    ] * 2
    assert [frame.values for frame in project.frames("v", 9, 10)] == [{"phase": "a"}, {"phase": "b"}]
    assert len(project.flags("v")) == 25
    with project._reading() as connection:
        assert sorted(reading.words(connection, "v", 5, 7)) == [5, 6, 7]
        assert reading.tally(connection)["flagged"] == 25
    dataset = StudioDataset(Path("nowhere"), database=project._database)
    frames = {frame.name: frame for frame in dataset.frames("v")}
    assert sum(len(frame.instances) for frame in frames.values()) == len(project.instances("v", 0, 99))
    assert frames["frame_003.jpg"].attributes == {"problem": {"smoke": "left"}, "labelme": {"file": {}}}
    project.edit("ben").undo()
    assert {frame: len(project.instances("v", frame)) for frame in range(40)} == before
    assert (project.flags("v"), [frame.values for frame in project.frames("v", 9, 10)]) == ((), [{}, {}])
    with project._reading() as connection:
        assert reading.words(connection, "v", 0, 99) == {}
    project.edit("ben").redo()
    assert project.instances("v", 0, 1)[0].polygons == after[0].polygons
    assert project.instances("v", 0, 1)[0].extra == after[0].extra


@pytest.mark.parametrize("lists", [
    {}, {"instances": [{"id": "x"}]}, {"images": [{"video": "v", "frame": 99, "values": {"phase": "a"}}]},
    {"flags": [{"video": "v", "frame": 99, "reason": "smoke"}]}, {"words": [{"video": "v", "frame": 1, "words": []}]},
    {"replace": [{"video": "v", "frames": ["1"]}]}, {"more": []},
    {"words": [{"video": "v", "frame": 1, "words": {"a": "\0"}}]},
])  # fmt: skip
def test_what_cannot_be_taken_in_leaves_nothing(local: Project, lists: dict[str, Any]) -> None:
    before = local.state()
    with pytest.raises(BadInput, match="found"):
        local.edit("ben").take_in(**lists)
    assert local.state() == before
