"""Spans are objects over a range of frames: stretched, cut, joined, deleted; the later one wins where two overlap."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.studio_project import Project

from surgeval.errors import BadInput
from surgeval.studio.schema import parse_schema
from surgeval.studio.store import Track

ONE, TWO, SUCKER = Track("tools", "scissors", 1), Track("tools", "scissors", 2), Track("tools", "aspirator", 1)


def actions(project: Project, track: Track = ONE, attribute: str = "action") -> str:
    """The values of a track frame by frame: a letter each, '.' without a value."""
    found = {
        one.frame: one.values.get(attribute, ".")[0]
        for one in project.instances("v", 0, 39)
        if Track(one.group, one.name, one.track) == track
    }
    return "".join(found[frame] for frame in sorted(found))


def runs(*pairs: tuple[str, int]) -> str:
    return "".join(letter * count for letter, count in pairs)


def span(project: Project, id: str, action: str, first: int, last: int, tracks: Sequence[Track] = (ONE,)) -> None:
    project.edit("amy").add_span(id, "v", tracks, {"action": action}, first, last)


def test_one_operation_labels_the_range_and_nothing_before_or_after(project: Project) -> None:
    version = project.version
    span(project, "s", "cut", 10, 19)
    assert project.version == version + 1
    assert actions(project) == runs((".", 10), ("c", 10), (".", 20))
    assert actions(project, TWO) == "." * 20
    project.edit("amy").undo()
    assert actions(project) == "." * 40


def test_a_preview_counts_changes_skips_and_absences_and_stores_nothing(project: Project) -> None:
    tried = project.preview("amy").add_span("s", "v", [ONE, TWO, SUCKER], {"action": "cut"}, 15, 24)
    assert (tried.changed, tried.skipped, tried.absent) == (10 + 5, 5, 0 + 5 + 5)
    assert project.spans("v") == () and actions(project) == "." * 40
    done = project.edit("amy").add_span("s", "v", [ONE, TWO, SUCKER], {"action": "cut"}, 15, 24)
    assert (done.changed, done.skipped, done.absent) == (tried.changed, tried.skipped, tried.absent)
    assert actions(project, SUCKER) == "." * 20  # an aspirator does not cut


def test_the_later_span_wins_and_the_list_says_so(project: Project) -> None:
    span(project, "early", "cut", 5, 20)
    span(project, "late", "dissect", 15, 30)
    assert actions(project) == runs((".", 5), ("c", 10), ("d", 16), (".", 9))
    by_id = {one.id: one for one in project.spans("v")}
    assert by_id["early"].overridden_by == ("late",) and by_id["late"].overridden_by == ()


def test_frames_that_a_span_leaves_fall_back_to_what_lies_beneath(project: Project) -> None:
    editor = project.edit("amy")
    editor.set_values(["a12"], {"action": "retract"})
    span(project, "early", "cut", 5, 30)
    span(project, "late", "dissect", 10, 20)
    editor.set_span_edges("early", 5, 15)
    editor.delete_span("late")
    assert actions(project) == runs((".", 5), ("c", 11), (".", 24))
    editor.set_span_edges("early", 5, 9)
    assert actions(project) == runs((".", 5), ("c", 5), (".", 2), ("r", 1), (".", 27))


def test_an_edit_inside_a_span_changes_exactly_the_named_frame(project: Project) -> None:
    span(project, "s", "cut", 0, 39)
    project.edit("ben").set_values(["a7"], {"action": "retract"})
    assert actions(project) == runs(("c", 7), ("r", 1), ("c", 32))
    project.edit("amy").set_span_values("s", {"action": "dissect"})
    assert actions(project) == runs(("d", 7), ("r", 1), ("d", 32))  # what was said later stays


def test_cutting_changes_no_value_and_the_parts_live_apart(project: Project) -> None:
    span(project, "s", "cut", 10, 19)
    editor = project.edit("amy")
    editor.cut_span("s", 15, "t")
    assert actions(project) == runs((".", 10), ("c", 10), (".", 20))
    editor.delete_span("s")
    assert actions(project) == runs((".", 15), ("c", 5), (".", 20))
    assert [(one.id, one.first, one.last) for one in project.spans("v")] == [("t", 15, 19)]


def test_joining_takes_the_frames_between(project: Project) -> None:
    span(project, "s", "cut", 3, 5)
    span(project, "t", "cut", 9, 12)
    project.edit("amy").join_spans("t", "s")
    assert actions(project) == runs((".", 3), ("c", 10), (".", 27))
    span(project, "u", "dissect", 20, 22)
    with pytest.raises(BadInput, match="spans of different values"):
        project.edit("amy").join_spans("s", "u")


def test_a_box_drawn_under_a_span_gets_its_values(project: Project) -> None:
    span(project, "s", "suck", 0, 39, [SUCKER])
    project.edit("amy").duplicate({"c0": "new"}, frame=1)
    project.edit("amy").set_track(["new"], 1)
    assert project.instances("v", 1)[-1].values == {"action": "suck"}


def test_phases_are_spans_over_the_image(project: Project) -> None:
    editor = project.edit("amy")
    with pytest.raises(BadInput, match=r"values that the schema admits for image\.image"):
        editor.add_span("p", "v", [], {"phase": "clipping"}, 0, 9)
    editor.set_schema(parse_schema('{"image": {"phase": ["clipping", "suturing"]}}'))
    editor.add_span("p", "v", [], {"phase": "clipping"}, 0, 29)
    editor.add_span("q", "v", [], {"phase": "suturing"}, 20, 39)
    editor.set_image_values("v", 5, 5, {"phase": None})
    phases = "".join(frame.values.get("phase", ".")[0] for frame in project.frames("v"))
    assert phases == runs(("c", 5), (".", 1), ("c", 14), ("s", 20))
    assert actions(project) == "." * 40


@pytest.mark.parametrize(
    ("first", "last", "sentence"),
    [(9, 3, "last: found 3"), (30, 40, "frame: found 40, expected a frame of video v"), (-1, 3, "first: found -1")],
)
def test_a_span_outside_the_video_is_refused(local: Project, first: int, last: int, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        span(local, "s", "cut", first, last)
