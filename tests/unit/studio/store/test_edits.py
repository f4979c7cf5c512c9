"""Drawing, values, filling many frames, proposals, flags, and changes over the whole project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.studio_project import Project
from tests.unit.studio.store.conftest import filled
from tests.unit.studio.store.test_spans import ONE, TWO, actions, span

from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.records import Box
from surgeval.studio.schema import LabelledValues, Standing, builtin_refinement, builtin_schema, read_schema
from surgeval.studio.store import Annotation, Request, Track
from surgeval.vocab import load_labels

EXAMPLES = Path(__file__).parents[3] / "data" / "studio"
TRIANGLE = ((0.0, 0.0), (10.0, 0.0), (0.0, 8.0))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project that no test may change."""
    with Project(tmp_path_factory.mktemp("untouched")) as opened:
        yield filled(opened)


def one(project: Project, id: str) -> Annotation:
    return next(found for found in project.instances("v", 0, 39) if found.id == id)


def test_polygons_keep_their_points_and_move_with_their_box(project: Project) -> None:
    editor = project.edit("amy")
    editor.reshape({"a0": [TRIANGLE, ((20.0, 20.0), (30.0, 20.0), (20.0, 30.0))]})
    editor.move(["a0"], 2.0, 1.0)
    found = one(project, "a0")
    assert found.box == Box(2.0, 1.0, 30.0, 30.0)
    assert found.polygons[0] == ((2.0, 1.0), (12.0, 1.0), (2.0, 9.0)) and len(found.polygons) == 2
    editor.reshape({"a0": Box(1.0, 2.0, 3.0, 4.0)})
    assert one(project, "a0").polygons == ()
    for _ in range(3):
        editor.undo()
    assert one(project, "a0").box == Box(10.0, 20.0, 30.0, 40.0)


def test_everything_said_of_an_instance_comes_back(project: Project) -> None:
    full = Annotation(
        "x", "v", 3, "tools", "forceps", Box(0.0, 0.0, 10.0, 8.0), (TRIANGLE,), {"target": "剪刀"}, 0,
        "upstream", "detector", 0.0, True, "disputed", {"flags": {"hard": True}, "description": "confidence: 0.87"},
    )  # fmt: skip
    made = project.edit("amy").add_instances([full])
    found = one(project, "x")
    assert {name: getattr(found, name) for name in full.__slots__} == {
        **{name: getattr(full, name) for name in full.__slots__},
        "version": made.version,
    }


def test_values_are_set_where_the_class_admits_them(project: Project) -> None:
    done = project.edit("amy").set_values(["a0", "c0"], {"action": "cut", "target": "prostate"})
    assert (done.changed, done.skipped) == (2, 1)
    assert one(project, "a0").values == {"action": "cut", "target": "prostate"}
    assert one(project, "c0").values == {"target": "prostate"}
    with pytest.raises(BadInput, match="values: found action clip"):
        project.edit("amy").set_values(["a0", "c0"], {"action": "clip"})
    project.edit("amy").set_values(["a0"], {"target": None, "verb": "null"})
    assert one(project, "a0").values == {"action": "null"}


def test_boxes_are_pasted_to_a_range_where_their_track_is_absent(project: Project) -> None:
    project.edit("amy").set_values(["b20"], {"action": "cut"})
    done = project.edit("amy").paste("v", 20, 10, 24, ids=["b20"])
    assert (done.changed, done.skipped) == (10, 4)
    assert actions(project, TWO) == "c" * 11 + "." * 19
    project.edit("amy").undo()
    assert len(actions(project, TWO)) == 20


def test_boxes_between_key_frames_are_interpolated(project: Project) -> None:
    editor = project.edit("amy")
    editor.delete([f"a{n}" for n in range(1, 10) if n != 5])
    editor.move(["a10"], 20.0, 10.0)
    span(project, "s", "cut", 2, 3)
    done = editor.interpolate("v", ONE, 0, 10)
    assert (done.changed, done.skipped) == (8, 1)
    boxes = {
        n: next(i.box for i in project.instances("v", n) if i.track == 1 and i.name == "scissors") for n in range(11)
    }
    assert boxes[3] == Box(16.0, 23.0, 30.0, 40.0) and boxes[5] == Box(10.0, 20.0, 30.0, 40.0)
    assert actions(project)[:5] == "..cc."
    editor.move(["a10"], 10.0, 0.0)
    assert editor.interpolate("v", ONE, 0, 10).changed == 8
    moved = next(i for i in project.instances("v", 9) if i.name == "scissors")
    assert moved.box.x == pytest.approx(10.0 + 30.0 * 0.9)
    editor.move([moved.id], 0.0, 3.0)  # corrected by hand: from now on a key frame
    done = editor.interpolate("v", ONE, 0, 10)
    assert (done.changed, done.skipped) == (7, 2)
    with pytest.raises(BadInput, match="found 0 instances of scissors #2 in frame 0, expected one"):
        editor.interpolate("v", TWO, 0, 25)


def test_proposals_are_accepted_above_a_threshold_and_rejected_below(project: Project) -> None:
    box = Box(1.0, 1.0, 5.0, 5.0)
    project.edit("tdnet").add_instances(
        Annotation(f"p{n}", "v", n, "tools", "grasper", box, score=n / 10, proposal=True, source="tdnet")
        for n in range(10)
    )
    assert project.preview("amy").accept("v", 0, 39, threshold=0.65).changed == 3
    done = project.edit("amy").accept("v", 0, 39, threshold=0.65)
    assert (done.changed, done.skipped) == (3, 7)
    assert project.edit("amy").reject("v", 2, 39, threshold=0.65).changed == 5
    assert project.edit("amy").reject(ids=["p1"]).changed == 1
    left = {i.id: i.proposal for i in project.instances("v", 0, 39) if i.name == "grasper"}
    assert left == {"p0": True, "p7": False, "p8": False, "p9": False}


CORRECTIONS: dict[str, dict[str, Any]] = {
    "instances.values": {"ids": ["p"], "values": {"action": "grasp"}},
    "instances.classify": {"ids": ["p"], "group": "tools", "name": "scissors"},
    "instances.move": {"ids": ["p"], "dx": 3, "dy": 0},
    "instances.reshape": {"shapes": [{"id": "p", "box": [1, 2, 3, 4]}]},
    "track.set": {"ids": ["p"], "number": 7},
}


@pytest.mark.parametrize("kind", sorted(CORRECTIONS))
def test_a_proposal_corrected_by_hand_is_accepted_and_one_undo_makes_it_one_again(local: Project, kind: str) -> None:
    box = Box(0.0, 0.0, 10.0, 10.0)
    proposed = [
        Annotation(id, "v", 1, "tools", "grasper", box, score=0.4, proposal=True, source="tdnet") for id in ("p", "q")
    ]
    local.edit("tdnet").add_instances(proposed)
    local.apply(Request("corrected", "amy", kind, CORRECTIONS[kind]))
    assert not one(local, "p").proposal
    assert one(local, "q").proposal, "nobody touched it"
    local.edit("amy").undo()
    assert one(local, "p") == replace(proposed[0], version=one(local, "p").version)


def test_problem_frames_are_flagged_cleared_and_listed_with_their_reason(project: Project) -> None:
    editor = project.edit("amy")
    assert editor.flag("v", 3, 6, "smoke").changed == 4
    editor.flag("v", 5, 5, "lens cleaning", "wiped")
    editor.clear_flags("v", 4, 9, "smoke")
    assert [(f.frame, f.reason, f.note) for f in project.flags()] == [(3, "smoke", ""), (5, "lens cleaning", "wiped")]
    editor.flag("v", 4, 4, "smoke", "again")
    editor.undo()
    editor.undo()
    assert [f.frame for f in project.flags("v")] == [3, 4, 5, 5, 6]


def test_reviewers_mark_frames_each_for_themselves(project: Project) -> None:
    project.edit("amy").mark_frames("v", 0, 2)
    project.edit("ben").mark_frames("v", 2, 2, "disputed", 2)
    project.edit("amy").mark_instances(["a0"], "approved")
    assert [(r.frame, r.reviewer, r.round, r.mark) for r in project.reviews("v")][2:] == [
        (2, "amy", 1, "seen"),
        (2, "ben", 2, "disputed"),
    ]
    assert one(project, "a0").review == "approved"


def test_a_schema_switch_keeps_marks_and_lists_what_the_new_schema_lacks(project: Project) -> None:
    project.edit("amy").set_values(["a0", "a1"], {"action": "cut", "target": "seminal vesicle"})
    other = read_schema(EXAMPLES / "position.jsonc")
    expected = {("scissors", "target", "seminal vesicle", 2), ("aspirator", "", "", 20)}
    assert {(m.name, m.attribute, m.value, m.count) for m in project.mismatches(other)} == expected
    project.edit("amy").set_schema(other)
    assert one(project, "a0").values == {"action": "cut", "target": "seminal vesicle"}
    assert {(m.name, m.attribute, m.value, m.count) for m in project.mismatches()} == expected
    project.edit("amy").set_values(["a0"], {"position": "left"})
    assert one(project, "a0").values == {"action": "cut", "target": "seminal vesicle", "position": "left"}
    project.edit("amy").replace_value("tools", "scissors", "target", "seminal vesicle", "prostate")
    assert {(m.name, m.attribute) for m in project.mismatches()} == {("aspirator", "")}
    for _ in range(3):
        project.edit("amy").undo()
    assert project.schema == builtin_schema("prostatd")


def test_a_value_is_replaced_everywhere_with_a_preview_and_one_undo(project: Project) -> None:
    project.edit("amy").set_values(["a0"], {"action": "cut"})
    span(project, "s", "cut", 10, 19)
    assert project.preview("amy").replace_value("tools", "scissors", "action", "cut", "dissect").changed == 11
    assert actions(project)[0] == "c"
    project.edit("amy").replace_value("tools", "scissors", "action", "cut", "dissect")
    assert actions(project) == "d" + "." * 9 + "d" * 10 + "." * 20
    assert project.spans("v")[0].values == {"action": "dissect"}
    project.edit("amy").set_span_edges("s", 10, 21)
    assert actions(project)[10:22] == "d" * 12
    project.edit("amy").undo()
    project.edit("amy").undo()
    assert actions(project) == "c" + "." * 9 + "c" * 10 + "." * 20
    with pytest.raises(BadInput, match="new: found suck"):
        project.edit("amy").replace_value("tools", "scissors", "action", "cut", "suck")


def test_a_class_is_renamed_with_its_spans_unless_two_of_a_track_would_meet(project: Project) -> None:
    with pytest.raises(BadInput, match="found scissors #1 twice in frame 0"):
        project.edit("amy").replace_class("tools", "aspirator", "scissors")
    project.edit("amy").add_span("s", "v", [Track("tools", "aspirator", 1)], {"action": "retract"}, 0, 9)
    assert project.edit("amy").replace_class("tools", "aspirator", "grasper").changed == 20
    assert project.spans("v")[0].tracks == (Track("tools", "grasper", 1),)
    assert actions(project, Track("tools", "grasper", 1)) == "r" * 5 + "." * 15


def test_refinement_is_one_undoable_operation_with_counts(project: Project) -> None:
    box = Box(1.0, 1.0, 5.0, 5.0)
    project.edit("import").add_instances(
        Annotation(f"x{n}", "v", n, "tools", "aspirator", box, values={"action": "suck", "target": target})
        for n, target in enumerate(["smoke", "blood", "fluid"])
    )
    counts = {dict(row.values)["target"]: (row.before, row.after) for row in project.refined(builtin_refinement())}
    assert counts == {"smoke": (1, 0), "blood": (1, 0), "fluid": (1, 3)}
    assert project.edit("amy").refine(builtin_refinement()).changed == 2
    assert [one(project, f"x{n}").values["target"] for n in range(3)] == ["fluid"] * 3
    project.edit("amy").undo()
    assert [one(project, f"x{n}").values["target"] for n in range(3)] == ["smoke", "blood", "fluid"]


def test_stored_triplets_are_told_by_their_standing(local: Project) -> None:
    local.edit("amy").set_values(["a0"], {"action": "cut", "target": "prostate"})
    local.edit("amy").set_values(["a1"], {"action": "coagulate", "target": "thread"})
    found = {tuple(sorted(label.values.items())): kind for label, kind in local.standings(load_labels("prostatd"))
             if label.name == "scissors"}  # fmt: skip
    assert found == {
        (): Standing.INCOMPLETE,
        (("action", "cut"), ("target", "prostate")): Standing.CLASS,
        (("action", "coagulate"), ("target", "thread")): Standing.NO_CLASS,
    }


def test_instances_are_found_page_by_page_by_what_is_said_of_them(project: Project) -> None:
    project.edit("amy").set_values([f"a{n}" for n in range(10)], {"action": "cut"})
    project.edit("amy").mark_instances(["a3"], "approved")

    def unfinished(label: LabelledValues) -> bool:
        return label.name == "scissors" and "action" in label.values and "target" not in label.values

    first = project.find_instances(unfinished, limit=6)
    assert [found.id for found in first] == [f"a{n}" for n in range(6)]
    rest = project.find_instances(unfinished, "v", after=("v", first[-1].frame, first[-1].id))
    assert [found.id for found in rest] == ["a6", "a7", "a8", "a9"]
    assert [found.id for found in project.find_instances(unfinished, review="approved")] == ["a3"]
    assert project.find_instances(unfinished, proposal=True) == ()


def test_a_span_takes_as_many_statements_over_five_thousand_frames_as_over_fifty(tmp_path: Path) -> None:
    with Project(tmp_path) as project:
        editor, box = project.edit("amy"), Box(1.0, 1.0, 5.0, 5.0)
        editor.add_video("v", width=64, height=48, names=[f"{n}.png" for n in range(5050)])
        editor.add_instances(Annotation(f"i{n}", "v", n, "tools", "scissors", box, track=1) for n in range(5050))
        counts = []
        for first, last in ((0, 49), (50, 5049)):
            statements: list[str] = []
            with counting(project, statements):
                done = editor.add_span(f"s{first}", "v", [ONE], {"action": "cut"}, first, last)
            assert done.changed == last - first + 1
            assert project.operations(done.version - 1)[0].inverse == {"instances": done.changed, "spans": 1}
            counts.append(len(statements))
        assert counts[1] <= counts[0] < 30  # the first one also stores the new label
        assert [operation.kind for operation in project.operations()].count("span.add") == 2


@contextmanager
def counting(project: Project, statements: list[str]) -> Iterator[None]:
    engine = project._database.engine

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_settings_are_kept_and_no_undo_takes_them_back(local: Project) -> None:
    local.edit("amy").move(["a0"], 1.0, 0.0)
    local.edit("amy").set_setting("colours", {"scissors": "#0072b2"}, owner="amy")
    local.edit("amy").undo()
    assert one(local, "a0").box.x == 10.0 and local.setting("colours", "amy") == {"scissors": "#0072b2"}


def test_frames_are_found_by_name(untouched: Project) -> None:
    assert [frame.frame for frame in untouched.find_frames("_03")] == list(range(30, 40))
    assert untouched.find_frames("%") == ()


def new(**changes: Any) -> tuple[str, dict[str, Any]]:
    box = {"id": "x", "video": "v", "frame": 0, "group": "tools", "name": "a", "box": [0, 0, 1, 1]}
    return "instances.add", {"instances": [{**box, **changes}]}


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    new(name="a\x00b"), new(box=[0, 0, 1, float("nan")]), new(box=[0, 0, -1, 1]), new(box=[0, 0, 1]),
    new(group="image"), new(frame=99), new(id="a0"), new(id="x y"), new(track=-1), new(extra=[]), new(score="high"),
    new(frame=True),
    ("instances.add", {"instances": {}}),
    ("instances.move", {"ids": ["a0", "a0"], "dx": 0, "dy": 0}),
    ("instances.move", {"ids": ["a0"], "dx": 1e300, "dy": 0}),
    ("instances.move", {"ids": ["a0"], "dx": True, "dy": 0}),
    ("instances.move", {"ids": ["a0"], "dx": 1, "dy": 0, "color": 1}),
    ("instances.reshape", {"shapes": [{"id": "a0", "polygons": [[[0, 0], [1, 1]]]}]}),
    ("instances.values", {"ids": ["a0"], "values": {"action": ["cut"]}}),
    ("instances.values", {"ids": ["'; DROP TABLE instances; --"], "values": {"action": "cut"}}),
    ("span.add", {"id": "s", "video": "v", "values": {}, "first": 0, "last": 1}),
    ("span.add", {"id": "s", "video": "other", "values": {"action": "cut"}, "first": 0, "last": 1}),
    ("setting.set", {"key": "k", "value": "x" * 1_000_001}),
    ("setting.set", {"key": "schema", "value": {}}),
    ("schema.set", {"name": "s", "source": '{"tools": 7}'}),
    ("frames.flag", {"video": "v", "first": 0, "last": 2**70, "reason": "smoke"}),
    ("nothing.known", {}),
    ("undo", {"operation": "all"}),
    ("setting.set", {"key": "k", "value": "\ud800"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "payload"), HOSTILE)
def test_a_payload_that_cannot_be_used_is_refused_in_one_sentence(
    untouched: Project, kind: str, payload: dict[str, Any]
) -> None:
    before = untouched.state()
    with pytest.raises((BadInput, DataError)) as caught:
        untouched.apply(Request("x", "mallory", kind, payload))
    assert "\n" not in str(caught.value) and "expected" in str(caught.value)
    assert untouched.state() == before


def test_deep_nesting_is_refused(untouched: Project) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(SurgevalError, match="expected"):
        untouched.edit("amy").set_setting("k", deep)


def test_a_project_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected a studio project"):
        Project(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_stranger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "studio.sqlite").write_bytes(b"not a database, but long enough to be taken for one" * 40)
    with pytest.raises(SurgevalError, match="file is not a database"):
        Project(tmp_path)
    (tmp_path / "studio.sqlite").unlink()
    (tmp_path / "studio.sqlite").symlink_to("/etc/hostname")
    with pytest.raises(DataError, match="no regular file"):
        Project(tmp_path)


def test_a_url_that_is_no_postgresql_is_refused() -> None:
    with pytest.raises(BadInput, match="found a URL of mysql"):
        Project("mysql://localhost/x")


def test_undo_by_number_follows_the_rules_of_undo(local: Project) -> None:
    ben, eve, setup = (local.edit(name) for name in ("ben", "eve", "setup"))
    mine = ben.set_values(["a1"], {"action": "cut"}).version
    with pytest.raises(BadInput, match=f"undo: found no operation {mine} of eve to take back"):
        eve.undo(operation=mine)
    for registration in (1, 2):  # the video, its frames
        with pytest.raises(BadInput, match="found no operation"):
            setup.undo(operation=registration)
    ben.undo(operation=mine)
    with pytest.raises(BadInput, match=f"redo: found no operation {mine} of eve to do again"):
        eve.redo(mine)
    assert ben.redo(mine).changed == 1
