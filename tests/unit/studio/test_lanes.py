"""Lanes that are remembered are those that a fresh look finds, whatever was done in between."""

from __future__ import annotations

import random
from pathlib import Path

from tests.studio_project import Project

from surgeval.errors import BadInput
from surgeval.records import Box
from surgeval.studio.lanes import Lanes
from surgeval.studio.store import Annotation, Conflict, Track, reading


def test_remembered_lanes_are_what_a_fresh_look_finds(tmp_path: Path) -> None:
    chance = random.Random(7)
    with Project(tmp_path) as project:
        amy, lanes = project.edit("amy"), Lanes()
        amy.add_video("v", width=64, height=48, names=[str(k) for k in range(30)])
        box = Box(1, 2, 3, 4)
        names = ("scissors", "forceps")
        amy.add_instances(Annotation(f"{name}{k}", "v", k, "tools", name, box, track=1) for name in names
                          for k in range(30))  # fmt: skip
        seen = 0
        for step in range(40):
            ids = [f"{chance.choice(names)}{chance.randrange(30)}" for _ in range(2)]
            try:
                match chance.randrange(6):
                    case 0:
                        amy.delete(sorted(set(ids)))
                    case 1:
                        amy.set_track(sorted(set(ids)), chance.choice([None, 1, 2]))
                    case 2:
                        amy.classify(ids[:1], "tools", chance.choice(names))
                    case 3:
                        amy.undo()
                    case 4:
                        amy.split_track("v", Track("tools", names[0], 1), chance.randrange(30))
                    case _:
                        amy.add_instances([Annotation(f"n{step}", "v", 3, "tools", "grasper", box)])
            except (BadInput, Conflict):
                continue
            with project._database.reading() as connection:
                assert lanes.of(connection, "v") == dict(reading.runs(connection, "v"))
            seen += 1
        assert seen > 15


def test_an_older_look_is_not_kept_over_a_newer_one(tmp_path: Path) -> None:
    with Project(tmp_path) as project:
        amy, lanes = project.edit("amy"), Lanes()
        amy.add_video("v", width=64, height=48, names=["a", "b"])
        with project._database.reading() as old:
            assert dict(lanes.of(old, "v")) == {}
            amy.add_instances([Annotation("a", "v", 0, "tools", "forceps", Box(1, 2, 3, 4), track=1)])
            with project._database.reading() as new:
                assert list(lanes.of(new, "v").values()) == [[[0, 0]]]
            assert dict(lanes.of(old, "v")) == {}
        with project._database.reading() as new:
            assert list(lanes.of(new, "v").values()) == [[[0, 0]]]
