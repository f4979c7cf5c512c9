"""Whatever is labelled in the studio comes back from labelme and CVAT as it was; COCO loses what it said, no more."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import LONG
from tests.studio_project import Project
from tests.unit.studio.exchange.projects import held, schema_source

from surgeval.studio.exchange import Selection, export_project, import_dataset, preview_export
from surgeval.studio.schema import Schema, parse_schema
from surgeval.studio.store import STORE_FILE, Database, Request, apply

SCHEMA: Schema = parse_schema(schema_source(), "prostatd")
MEMBERS = [member for member in SCHEMA.members if member.group != "image"]
# XML and JSON hold any text, but for control characters, which the studio refuses; lines are one kind of space in XML.
LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs", "Cn", "Co"))
TEXT = st.text(LETTERS, min_size=1, max_size=12)
SIXTEENTH = st.integers(0, 1600).map(lambda k: k / 16)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """An instance of any class with any admissible values, as a box or an outline of one or two parts."""
    member = draw(st.sampled_from(MEMBERS))
    values = {
        attribute.name: draw(TEXT if attribute.free else st.sampled_from(attribute.values))
        for attribute in member.attributes
        if draw(st.booleans())
    }
    x, y = draw(SIXTEENTH), draw(st.integers(0, 50).map(float))
    corner = ((0.0, 0.0), (20.0, 3.0), (11.5, 17.25))
    parts = [[[x + dx + 40 * k, y + dy] for dx, dy in corner] for k in range(draw(st.integers(0, 2)))]
    shape: dict[str, Any] = {"polygons": parts} if parts else {"box": [x, y, draw(st.integers(1, 60)) / 4, 12.5]}
    proposal = draw(st.one_of(st.none(), st.integers(1, 99).map(lambda k: k / 100)))
    return {"frame": draw(st.integers(0, 5)), "group": member.group, "name": member.name, "values": values,
            "track": draw(st.one_of(st.none(), st.integers(0, 3))), "score": proposal,
            "proposal": proposal is not None, **shape}  # fmt: skip


def project(place: Path, given: list[dict[str, Any]], phases: dict[int, str]) -> Database:
    database = Database(place / STORE_FILE)
    edits: list[tuple[str, dict[str, Any]]] = [
        ("video.add", {"id": "V1", "width": 320, "height": 180}),
        ("frames.add", {"video": "V1", "first": 0, "names": [f"{k:06d}" for k in range(6)]}),
        ("schema.set", {"name": SCHEMA.name, "source": SCHEMA.source}),
    ]
    if given:
        instances = [{**row, "id": f"a{k}", "video": "V1"} for k, row in enumerate(given)]
        edits.append(("instances.add", {"instances": instances}))
    edits += [
        ("image.values", {"video": "V1", "first": k, "last": k, "values": {"phase": v}}) for k, v in phases.items()
    ]
    for number, (kind, payload) in enumerate(edits):
        apply(database, Request(f"e{number}", "amy", kind, payload))
    return database


PHASES = st.dictionaries(st.integers(0, 5), st.sampled_from(["dissection", "suturing"]), max_size=4)


@pytest.mark.parametrize("format", ["labelme", "cvat", "coco"])
@given(given_rows=st.lists(rows(), max_size=8), phases=PHASES)
@settings(max_examples=60 if LONG else 5)
def test_what_goes_out_comes_back(format: str, given_rows: list[dict[str, Any]], phases: dict[int, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        selection = Selection(proposals=True)
        with project(first, given_rows, phases) as database:
            said = preview_export(first, database, format, selection, images=False)
            made = export_project(first, database, "x", format, selection, images=False)
        assert said.losses == made.losses
        with project(second, [], {}) as database:
            report = import_dataset(database, first / "exports" / "x", author="ben")
        assert report.problems == 0, report.examples
        full, back = held(first), held(second)
        if format == "coco":
            lost = sum(int(loss.split()[0]) for loss in made.losses if loss.endswith("were left out"))
            assert len(back["instances"]) == len(full["instances"]) - lost
            full["instances"] = [row for row in full["instances"] if row in back["instances"]]
        assert back == full
        with Project(second) as opened:
            if report.versions:
                opened.edit("ben").undo()
            assert opened.instances("V1", 0, 10) == ()
            assert opened.replay() == opened.state()
