"""Whatever is sent as an edit, the studio makes it or refuses it in one sentence, and its log stays whole."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.conftest import LONG
from tests.studio_command import Client
from tests.studio_project import Project

from surgeval.errors import SurgevalError
from surgeval.studio.schema import builtin_schema, parse_schema
from surgeval.studio.server import serve
from surgeval.studio.store.kinds import KINDS

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12), st.sampled_from([2**31, 2**53, 2**63, -(2**63), 2**64, 10**40]),
    st.floats(-1e9, 1e9), st.text(max_size=8), st.sampled_from(["\x00", "\U0001f600", "<b>", "'; --", "../..", " "]),
)  # fmt: skip
ID = st.sampled_from([*(f"a{k}" for k in range(8)), "s1", "s2", "s3"])
NEW = st.text("nxyz", min_size=1, max_size=4)
NAME = st.sampled_from(["scissors", "scissors", "scissors", "forceps", "none"])
GROUP = st.sampled_from(["tools"] * 9 + ["none"])
NUMBER = st.sampled_from([1, 1, 2, 3, None])
FRAME = st.sampled_from([*range(8), *range(8), -1, 9])
VALUES = st.dictionaries(
    st.sampled_from(["action", "target", "Action", "note", ""]),
    st.sampled_from(["cut", "retract", "prostate", "", None]),
)
BOX = st.lists(st.integers(0, 60), min_size=4, max_size=4)
POLYGONS = st.lists(st.lists(st.lists(st.floats(-50, 500), min_size=2, max_size=2), max_size=5), max_size=2)
TRACK = st.fixed_dictionaries({"group": GROUP, "name": NAME}, optional={"number": NUMBER})
INSTANCE = st.fixed_dictionaries(
    {"id": NEW, "video": st.just("V1"), "box": BOX, "frame": FRAME, "group": GROUP, "name": NAME},
    optional={"polygons": POLYGONS, "values": VALUES, "track": NUMBER, "score": st.floats(0, 1),
              "proposal": st.booleans(), "extra": st.dictionaries(st.text(max_size=3), ODD, max_size=2)},
)  # fmt: skip
SHAPE = st.fixed_dictionaries({"id": ID}, optional={"box": BOX, "polygons": POLYGONS})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": ID, "ids": st.lists(ID, min_size=1, max_size=2, unique=True), "video": st.sampled_from(["V1"] * 9 + ["none"]),
    "frame": FRAME, "first": st.integers(-1, 4), "last": st.integers(3, 8), "at": FRAME, "source": FRAME,
    "group": GROUP, "name": NAME, "number": NUMBER, "to": NUMBER, "keep": NUMBER, "other": NUMBER,
    "first_number": NUMBER, "second_number": NUMBER, "values": VALUES, "tracks": st.lists(TRACK, max_size=2),
    "instances": st.lists(INSTANCE, min_size=1, max_size=2), "dx": st.floats(-20, 20), "dy": st.floats(-20, 20),
    "shapes": st.lists(SHAPE, min_size=1, max_size=2),
    "copies": st.lists(st.fixed_dictionaries({"of": ID, "id": NEW}), min_size=1, max_size=2), "key": NEW,
    "value": ODD, "owner": st.sampled_from(["", "amy"]), "reason": NEW, "note": st.text(max_size=5),
    "mark": st.sampled_from(["seen", "accepted", "x"]), "round": FRAME,
    "threshold": st.one_of(st.none(), st.floats(0, 1)),
    "numbers": st.lists(st.fixed_dictionaries({"id": ID, "number": NUMBER}), min_size=1, max_size=2),
    "by": st.sampled_from(["rule", "upstream", "x"]), "new": NEW, "old": NAME, "attribute": st.just("action"),
    "names": st.lists(st.text(max_size=3), max_size=3), "times": st.lists(st.floats(0, 9), max_size=3),
    "width": FRAME, "height": FRAME, "fps": st.floats(-1, 50),
    "rules": st.lists(st.dictionaries(st.text(max_size=3), ODD)),
    "operation": st.one_of(st.none(), st.integers(0, 40)),
}  # fmt: skip


@st.composite
def payloads(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of the kinds' own names, most of them plausible, some of them anything."""
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=7, unique=True))
    plausible = {name: draw(FIELDS[name]) for name in names}
    for name in draw(st.lists(st.sampled_from(names), max_size=1)) if names else ():
        plausible[name] = draw(st.recursive(ODD, lambda inner: st.lists(inner, max_size=3), max_leaves=5))
    return plausible


# What each kind needs, so that its work is reached and not only its first check.
NEEDS = {
    "instances.add": ("instances",), "instances.move": ("ids", "dx", "dy"), "instances.reshape": ("shapes",),
    "instances.delete": ("ids",), "instances.duplicate": ("copies",), "instances.values": ("ids", "values"),
    "instances.classify": ("ids", "group", "name"), "instances.mark": ("ids", "mark"),
    "image.values": ("video", "first", "last", "values"),
    "span.add": ("id", "video", "tracks", "values", "first", "last"), "span.edges": ("id", "first", "last"),
    "span.values": ("id", "values"), "span.cut": ("id", "at", "new"), "span.join": ("ids",), "span.delete": ("id",),
    "track.set": ("ids", "number"), "track.range": ("video", "group", "name", "number", "to", "first", "last"),
    "track.swap": ("video", "group", "name", "first_number", "second_number", "at"),
    "track.merge": ("video", "group", "name", "keep", "other"),
    "track.split": ("video", "group", "name", "number", "at"),
    "track.extend": ("video", "group", "name", "number", "first"), "track.renumber": ("numbers", "by"),
    "boxes.paste": ("video", "source", "first", "last"),
    "boxes.interpolate": ("video", "group", "name", "number", "first", "last"), "proposals.accept": ("ids",),
    "proposals.reject": ("video", "first", "last", "threshold"), "frames.flag": ("video", "first", "last", "reason"),
    "frames.clear": ("video", "first", "last"), "frames.mark": ("video", "first", "last", "mark"),
    "setting.set": ("key", "value"), "undo": (), "redo": (),
}  # fmt: skip


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from([*KINDS, "undo", "redo", "none"]))
    needed = {name: draw(FIELDS[name]) for name in NEEDS.get(kind, ())}
    return kind, {**needed, **(draw(payloads()) if draw(st.sampled_from([False, False, False, True])) else {})}


@dataclass
class Fuzzed:
    client: Client
    folder: Path
    version: int


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    folder = tmp_path_factory.mktemp("fuzzed")
    (folder / "V1").mkdir()
    for k in range(8):
        Image.new("RGB", (64, 48)).save(folder / "V1" / f"{k}.png")
    with serve(folder, author="amy") as running:
        client = Client.of(running)
        boxes = [{"id": f"a{k}", "video": "V1", "frame": k, "group": "tools", "name": "scissors", "box": [1, 2, 9, 9],
                  "track": 1} for k in range(8)]  # fmt: skip
        status, said = client.edit("begin", "instances.add", {"instances": boxes})
        assert status == 200
        yield Fuzzed(client, folder, said["version"])


@settings(
    max_examples=3000 if LONG else 300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(edit=edits(), base=st.sampled_from([None, None, None, 1, 5]), tried=st.sampled_from([False, False, True]))
def test_any_edit_is_made_or_refused_in_one_sentence(
    fuzzed: Fuzzed, edit: tuple[str, dict[str, Any]], base: int | None, tried: bool
) -> None:
    kind, payload = edit
    fuzzed.client.close()  # finding an example may take longer than a server keeps a connection
    body = {"id": uuid.uuid4().hex, "kind": kind, "payload": payload, "session": "s", "base": base}
    status, said = fuzzed.client.ask("POST", "/api/preview" if tried else "/api/operations", body)
    assert status in (200, 400, 404, 409), (status, said)
    if status != 200:
        assert set(said) <= {"error", "code", "parts", "who", "what"}
        assert "\n" not in said["error"]
        assert "Traceback" not in said["error"]
        assert len(said["error"]) < 2000
    elif not tried:
        fuzzed.version += 1
        assert said["version"] == fuzzed.version  # what was refused or tried before has left no trace


def test_the_log_of_all_that_still_gives_the_state(fuzzed: Fuzzed) -> None:
    for path in ("annotations?first=0&last=9", "spans", "tracks", "flags", "presence", "problems", "changes?since=0"):
        assert fuzzed.client.ask("GET", f"/api/videos/V1/{path}")[0] == 200
    with Project(fuzzed.folder, create=False) as opened:
        kinds = {one.kind for one in opened.operations()}
        assert len(kinds) > 8, kinds  # what is drawn also depends on the constants of the loaded modules
        assert opened.replay() == opened.state()


@given(
    body=st.recursive(
        ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    wrapped=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_is_answered(fuzzed: Fuzzed, body: Any, wrapped: bool) -> None:
    fuzzed.client.close()
    sent = {"id": body, "kind": "undo", "payload": body, "author": body} if wrapped else body
    status, said = fuzzed.client.ask("POST", "/api/operations", sent)
    assert status in (200, 400), said


SCHEMA = builtin_schema("prostatd").source


PUT = st.sampled_from(['"', "{", "]", ",", "null", "//", "\\", "é", "[[", "1e999", ""])
CUT = st.tuples(st.integers(0, len(SCHEMA)), st.integers(0, 30), PUT)


@given(cuts=st.lists(CUT, min_size=1, max_size=4))
def test_a_damaged_schema_is_read_or_refused_in_one_sentence(cuts: list[tuple[int, int, str]]) -> None:
    text = SCHEMA
    for place, length, put in cuts:
        text = text[:place] + put + text[place + length :]
    try:
        schema = parse_schema(text, "fuzzed")
    except SurgevalError as error:
        said = str(error)
    else:
        said = ""
        assert parse_schema(schema.source, "fuzzed") == schema
    assert "\n" not in said


@given(
    value=st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(["null", "cut"])),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["tools", "image", "actions", "targets", "scissors", "phase", "", "$guide"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_schema_or_refused_in_one_sentence(value: Any) -> None:
    try:
        schema = parse_schema(json.dumps(value), "fuzzed")
    except SurgevalError as error:
        said = str(error)
    else:
        said = ""
        schema.panel()
    assert "\n" not in said
