"""Whole videos as columns, proposals of a stretch, and several replacements at once, on either database."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studio_project import Project

from surgeval.errors import BadInput
from surgeval.records import Box
from surgeval.studio.store import Annotation, Database, Track, reading

BOX = Box(5, 6, 20, 10)


def database(project: Project) -> Database:
    return project._database


def test_columns_say_what_annotations_say(project: Project) -> None:
    project.edit("amy").set_values(["a3", "b30"], {"action": "cut"})
    project.edit("amy").set_track(["a5"], None)
    project.edit("amy").delete(["c4"])
    with database(project).reading() as connection:
        rows = reading.columns(connection, "v")
        found = {one.id: one for one in reading.instances(connection, "v", 0, 39)}
    assert sorted(rows.ids) == sorted(found)
    for row, id in enumerate(rows.ids):
        one = found[id]
        assert (rows.kinds[rows.kind[row]], rows.frame[row]) == ((one.group, one.name), one.frame)
        assert rows.values[int(rows.label[row])] == one.values
        assert rows.number[row] == (-1 if one.track is None else one.track)
        assert bool(rows.by_hand[row]) == (one.track_by == "hand")
        assert rows.xywh[row].tolist() == [one.box.x, one.box.y, one.box.w, one.box.h]
        assert np.isnan(rows.score[row])


def test_runs_are_the_stretches_of_each_track(project: Project) -> None:
    project.edit("amy").delete(["a7", "a8"])
    project.edit("amy").set_track(["c0", "c2"], None)
    with database(project).reading() as connection:
        found = dict(reading.runs(connection, "v"))
        assert list(reading.runs(connection, "nothing")) == []
        times = reading.frame_columns(connection, "v")
    assert found[Track("tools", "scissors", 1)] == [[0, 6], [9, 39]]
    assert found[Track("tools", "scissors", 2)] == [[20, 39]]
    assert found[Track("tools", "aspirator", None)] == [[0, 0], [2, 2]]
    assert len(found[Track("tools", "aspirator", 1)]) == 18
    assert times.frame.tolist() == list(range(40))
    assert np.isnan(times.time).all()


def test_numbers_that_instances_came_with_are_remembered(project: Project) -> None:
    rows = [Annotation(f"u{k}", "v", k, "tools", "grasper", BOX, track=9, track_by="upstream") for k in range(3)]
    project.edit("amy").add_instances(rows)
    project.edit("amy").renumber({"u0": 1, "u1": None})
    with database(project).reading() as connection:
        assert reading.upstream_numbers(connection, "v") == {"u0": 9, "u1": 9, "u2": 9}
    (one,) = [one for one in project.instances("v", 1) if one.id == "u1"]
    assert (one.track, one.track_by) == (None, None)


@pytest.mark.parametrize(
    ("ids", "numbers", "said"),
    [
        (["a1"], [1, 2], "numbers: found 2 numbers, expected 1"),
        (["a1"], [-1], r"numbers\[0\]: found -1"),
        (["a1", "a1"], [1, 2], "found an id twice"),
        (["zz"], [1], "found zz, expected an instance"),
    ],
)
def test_bad_numbers_are_refused(local: Project, ids: list[str], numbers: list[int], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        local.edit("amy")._do("track.renumber", {"ids": ids, "numbers": numbers})


def test_two_of_one_number_in_a_frame_are_refused_from_a_rule_too(project: Project) -> None:
    project.edit("amy").set_track(["a30", "b30"], None)
    with pytest.raises(BadInput, match="found scissors #4 twice in frame 30"):
        project.edit("rule").renumber({"a30": 4, "b30": 4})


def proposals(*frames: int, source: str = "net") -> list[Annotation]:
    return [Annotation(f"{source}.{frame}", "v", frame, "tools", "scissors", BOX, source=source, score=0.5,
                       proposal=True) for frame in frames]  # fmt: skip


def waiting(project: Project) -> list[str]:
    return [one.id for one in project.instances("v", 0, 39) if one.proposal]


def test_proposals_give_way_to_those_of_the_same_source_in_the_stretch(project: Project) -> None:
    amy = project.edit("amy")
    amy.propose("v", 0, 9, "net", proposals(1, 5, 9))
    amy.propose("v", 0, 9, "other", proposals(5, source="other"))
    amy.accept(ids=["net.1"])
    again = [Annotation("again", "v", 6, "tools", "scissors", BOX, source="net", score=0.9, proposal=True)]
    done = amy.propose("v", 0, 6, "net", again, replace=True)
    assert (done.changed, done.skipped) == (1, 1)
    assert waiting(project) == ["other.5", "again", "net.9"]
    assert amy.propose("v", 0, 39, "net", [], replace=True).skipped == 2
    amy.undo()
    amy.undo()
    assert waiting(project) == ["net.5", "other.5", "net.9"]


def test_proposals_outside_their_stretch_or_of_another_source_are_refused(local: Project) -> None:
    for first, last, source, said in ((0, 4, "net", "frames 0 to 4"), (0, 9, "mine", "a proposal of mine")):
        with pytest.raises(BadInput, match=said):
            local.edit("amy").propose("v", first, last, source, proposals(5))


def test_several_replacements_are_one_edit(project: Project) -> None:
    amy = project.edit("amy")
    amy.set_values(["a1", "a2"], {"action": "cut"})
    rows = [
        {"group": "tools", "name": "scissors", "attribute": "action", "old": "cut", "new": "dissect"},
        {"group": "tools", "old": "aspirator", "new": "grasper"},
    ]
    assert amy.replace_several(rows).changed == 22
    assert {one.name for one in project.instances("v", 0)} == {"scissors", "grasper"}
    amy.undo()
    assert {one.name for one in project.instances("v", 0)} == {"scissors", "aspirator"}
    assert project.instances("v", 1)[0].values == {"action": "cut"}
    with pytest.raises(BadInput, match=r"project.map: rows\[1\]: new: found soup"):
        amy.replace_several([rows[0], {**rows[0], "new": "soup"}])
    assert project.instances("v", 1)[0].values == {"action": "cut"}
