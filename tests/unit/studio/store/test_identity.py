"""Identity operations: numbers change, values never do."""

from __future__ import annotations

import pytest
from tests.studio_project import Project
from tests.unit.studio.store.test_spans import ONE, SUCKER, TWO, actions, runs, span

from surgeval.errors import BadInput
from surgeval.studio.store import Track


def frames_of(project: Project, number: int | None, name: str = "scissors") -> list[str]:
    return sorted(one.id for one in project.instances("v", 0, 39) if (one.name, one.track) == (name, number))


def values_by_id(project: Project) -> dict[str, dict[str, str]]:
    return {one.id: dict(one.values) for one in project.instances("v", 0, 39)}


def test_two_identities_swap_from_a_frame_on_and_their_spans_follow(project: Project) -> None:
    span(project, "s", "cut", 10, 35)
    before = values_by_id(project)
    project.edit("amy").swap_tracks("v", ONE, TWO, 30)
    assert frames_of(project, 1) == sorted([f"a{n}" for n in range(30)] + [f"b{n}" for n in range(30, 40)])
    assert frames_of(project, 2) == sorted([f"b{n}" for n in range(20, 30)] + [f"a{n}" for n in range(30, 40)])
    assert values_by_id(project) == before
    assert sorted((one.tracks, one.first, one.last) for one in project.spans("v")) == [
        ((ONE,), 10, 29),
        ((TWO,), 30, 35),
    ]
    project.edit("amy").undo()
    assert frames_of(project, 2) == sorted(f"b{n}" for n in range(20, 40))
    assert [(one.id, one.first, one.last) for one in project.spans("v")] == [("s", 10, 35)]


def test_tracks_merge_only_where_they_never_meet(project: Project) -> None:
    with pytest.raises(BadInput, match="found scissors #1 twice in frame 20 of v"):
        project.edit("amy").merge_tracks("v", ONE, TWO)
    project.edit("amy").delete([f"a{n}" for n in range(20, 40)])
    project.edit("amy").merge_tracks("v", ONE, TWO)
    assert len(frames_of(project, 1)) == 40 and frames_of(project, 2) == []


def test_a_split_leaves_the_earlier_part_its_number(project: Project) -> None:
    span(project, "s", "cut", 0, 39)
    made = project.edit("amy").split_track("v", ONE, 25)
    assert made.created == ("3",)
    assert frames_of(project, 1) == sorted(f"a{n}" for n in range(25))
    assert frames_of(project, 3) == sorted(f"a{n}" for n in range(25, 40))
    assert actions(project) == "c" * 25 and actions(project, Track("tools", "scissors", 3)) == "c" * 15


def test_a_track_is_extended_backwards_with_its_first_box(project: Project) -> None:
    span(project, "s", "cut", 15, 25, [TWO])
    made = project.edit("amy").extend_track("v", TWO, 12)
    assert made.changed == 8
    assert actions(project, TWO) == runs((".", 3), ("c", 11), (".", 14))
    earlier = next(one for one in project.instances("v", 12) if one.track == 2)
    assert earlier.box == next(one for one in project.instances("v", 20) if one.id == "b20").box
    assert earlier.source == "extended"


def test_a_number_that_exists_in_the_frame_is_refused(project: Project) -> None:
    with pytest.raises(BadInput, match="found scissors #2 twice in frame 20"):
        project.edit("amy").set_track(["a20"], 2)
    with pytest.raises(BadInput, match="found scissors #2 twice in frame 20"):
        project.edit("amy").set_track_range("v", ONE, 2, 10, 25)
    assert project.edit("amy").set_track_range("v", ONE, 2, 10, 19).changed == 10


def test_the_rule_renumbers_a_range_and_numbers_set_by_hand_stay(project: Project) -> None:
    project.edit("amy").set_track(["a3"], 7)
    done = project.edit("rule").renumber({f"a{n}": 5 for n in range(6)})
    assert (done.changed, done.skipped) == (0, 6)  # the fixture's numbers were set by hand, too
    project.edit("amy").set_track([f"a{n}" for n in range(6) if n != 3], None)
    done = project.edit("rule").renumber({f"a{n}": 5 for n in range(6)})
    assert (done.changed, done.skipped) == (5, 1)
    assert frames_of(project, 5) == ["a0", "a1", "a2", "a4", "a5"] and frames_of(project, 7) == ["a3"]


def test_an_instance_keeps_what_it_shows_when_it_changes_its_number(project: Project) -> None:
    span(project, "s", "cut", 0, 9)
    span(project, "t", "dissect", 0, 9, [TWO])
    project.edit("amy").set_track(["a4"], 2)
    project.edit("amy").delete_span("s")
    assert actions(project, TWO)[0] == "c"


def test_another_class_keeps_values_and_marks_what_is_not_admissible(project: Project) -> None:
    project.edit("amy").set_values(["a1"], {"action": "cut", "target": "prostate"})
    project.edit("amy").classify(["a1"], "tools", "aspirator")
    (changed,) = [one for one in project.instances("v", 1) if one.id == "a1"]
    assert (changed.name, changed.values) == ("aspirator", {"action": "cut", "target": "prostate"})
    (found,) = project.mismatches()
    assert (found.name, found.attribute, found.value, found.count) == ("aspirator", "action", "cut", 1)


def test_tracks_in_numbers(local: Project) -> None:
    found = {str(one.track): (one.count, one.first, one.last, one.missing) for one in local.tracks("v")}
    assert found == {"scissors #1": (40, 0, 39, 0), "scissors #2": (20, 20, 39, 0), "aspirator #1": (20, 0, 38, 19)}
    assert SUCKER in {one.track for one in local.tracks("v")}
