"""A project with everything in it that exports must keep or say that they lose; what projects hold, as plain data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image
from tests.studio_editor import Editor
from tests.studio_project import Project

from surgeval.records import Box
from surgeval.studio.media import find_films, register
from surgeval.studio.schema import builtin_schema, parse_schema
from surgeval.studio.store import STORE_FILE, Annotation, Database, Track

WIDTH, HEIGHT, FRAMES = 320, 180, 12
CLASS = {"action": "cut", "target": "prostate"}  # scissors
NO_CLASS = {"action": "bag", "target": "gauze"}  # forceps: admissible, no class of the label space


def schema_source() -> str:
    """ProstaTD's, with a list and a free text more, and phases."""
    source = json.loads(builtin_schema("prostatd").source)
    source["tools"]["scissors"] |= {"position": ["left", "right"], "remark": "text"}
    return json.dumps(
        {**source, "targets": {"DVC": {"bleeding": ["yes", "no"]}}, "image": {"phase": ["dissection", "suturing"]}}
    )


def make_folder(place: Path, video: str = "V1", frames: int = FRAMES) -> Path:
    """Pictures, and an empty project on them."""
    (place / video).mkdir(parents=True)
    for k in range(frames):
        Image.new("RGB", (WIDTH, HEIGHT), (k, 30, 30)).save(place / video / f"{k:06d}.png")
    database = Database(place / STORE_FILE)
    register(database, find_films(place))
    database.close()
    with Project(place) as project:
        project.edit("amy").set_schema(parse_schema(schema_source(), "prostatd"))
    return place


def annotation(id: str, frame: int, name: str, values: dict[str, str] | None = None, **more: Any) -> Annotation:
    box = more.pop("box", Box(10.5 + frame, 20.25, 60.125, 40.5))
    return Annotation(id, "V1", frame, more.pop("group", "tools"), name, box, values=values or {}, **more)


def fill(place: Path) -> Path:
    """Everything at once."""
    triangle = ((20.5, 30.25), (90.0, 40.0), (50.0, 100.5))
    other = ((120.0, 30.0), (150.0, 40.0), (140.0, 60.0))
    with Project(place) as project:
        amy: Editor = project.edit("amy")
        amy.add_instances([
            *(annotation(f"run{k}", k, "scissors", dict(CLASS), track=1) for k in range(4)),
            annotation("none", 4, "forceps", dict(NO_CLASS), track=2),
            annotation("null", 4, "aspirator", {"action": "null", "target": "null"}),
            annotation("unsaid", 5, "grasper"),
            annotation("half", 5, "grasper", {"action": "retract"}, box=Box(100, 100, 30, 30)),
            annotation("more", 6, "scissors", {**CLASS, "position": "left", "remark": "blut, 血 <b>"}, track=1),
            annotation("shape", 7, "scissors", dict(CLASS), polygons=(triangle,), box=Box(20.5, 30.25, 69.5, 70.25)),
            annotation("parts", 8, "scissors", dict(CLASS), polygons=(triangle, other), track=1,
                       box=Box(20.5, 30.0, 129.5, 70.5)),
            annotation("tissue", 9, "DVC", {"bleeding": "yes"}, group="targets"),
            annotation("guess", 9, "scissors", dict(CLASS), score=0.87, proposal=True, source="tdnet-p"),
        ])  # fmt: skip
        amy.add_span("s1", "V1", [Track.image()], {"phase": "dissection"}, 2, 6)
        amy.flag("V1", 3, 3, "smoke", "left half")
        amy.mark_frames("V1", 0, 0)
    return place


def held(place: Path, digits: int = 3) -> dict[str, list[Any]]:
    """What a project holds, without ids and times; coordinates rounded."""
    with Project(place, create=False) as project:
        rows, images, flags = [], [], []
        for video in project.videos():
            names = {frame.frame: frame for frame in project.frames(video.id)}
            for one in project.instances(video.id, 0, video.frames):
                corners = tuple(round(number, digits) for number in (one.box.x, one.box.y, one.box.w, one.box.h))
                outline = tuple(tuple((round(x, digits), round(y, digits)) for x, y in part) for part in one.polygons)
                rows.append((video.name, names[one.frame].name, one.group, one.name, tuple(sorted(one.values.items())),
                             corners, outline, one.track, one.proposal,
                             one.score if one.proposal else None))  # fmt: skip
            images += [
                (video.name, frame.name, tuple(sorted(frame.values.items())))
                for frame in names.values()
                if frame.values
            ]
            flags += [(video.name, names[flag.frame].name, flag.reason, flag.note) for flag in project.flags(video.id)]
        return {"instances": sorted(rows, key=str), "images": images, "flags": flags}
