"""Review rounds and the agreement study in the store: answers apart from labels, undo of either, decisions logged."""

from __future__ import annotations

import math
import shutil
import sqlite3
from pathlib import Path

import polars as pl
import pytest
from tests.studio_project import Project

from surgeval.errors import BadInput, DataError
from surgeval.records import Box
from surgeval.studio.agreement import UNANSWERED
from surgeval.studio.consensus import find_disagreements, measure_study
from surgeval.studio.segments import Segment
from surgeval.studio.store import Annotation, Conflict, Request, reading, study_reading
from surgeval.studio.store.tables import LAYOUT

HALVES = (Segment("v", 0, 9), Segment("v", 20, 29))


@pytest.fixture
def studied(project: Project) -> Project:
    project.edit("amy").add_study("s", ["ada", "ben"], HALVES, seed=4, title="first study")
    return project


def said(project: Project, annotator: str = "ada") -> dict[str, tuple[str, dict[str, str]]]:
    return {one.instance: (one.name, dict(one.values)) for one in project.answers("s", annotator)}


def test_rounds_are_begun_marked_and_unmarked(project: Project) -> None:
    assert [one.number for one in project.rounds()] == [1]
    ben = project.edit("ben")
    ben.mark_frames("v", 0, 9)
    assert project.edit("amy").begin_round(["amy", "ben"], "after training").created == ("2",)
    assert [(one.number, one.title, one.reviewers) for one in project.rounds()] == [
        (1, "", ()),
        (2, "after training", ("amy", "ben")),
    ]
    ben.mark_frames("v", 3, 5, round_number=2)
    ben.mark_frames("v", 4, 4, "", round_number=2)
    assert [one.frame for one in project.reviews("v", 2)] == [3, 5]
    ben.undo()
    assert [one.frame for one in project.reviews("v", 2)] == [3, 4, 5]
    project.edit("amy").undo()
    project.edit("amy").begin_round(["amy"])
    assert [one.number for one in project.rounds()] == [1, 2, 3]  # a number is never given twice


def test_who_has_seen_what_comes_in_runs(project: Project) -> None:
    project.edit("amy").mark_frames("v", 0, 9)
    project.edit("ben").mark_frames("v", 5, 14)
    project.edit("ben").mark_frames("v", 20, 20)
    project.edit("amy").mark_frames("v", 2, 2, "")
    with project._reading() as connection:
        runs, people = study_reading.review_runs(connection, "v", 1)
        assert study_reading.review_runs(connection, "v", 2) == ((), ())
    assert people == ("amy", "ben")
    assert runs == (
        (0, 1, ("amy",)), (3, 4, ("amy",)), (5, 9, ("amy", "ben")), (10, 14, ("ben",)), (20, 20, ("ben",)),
    )  # fmt: skip


def test_what_is_unseen_is_found_by_reviewer_and_round(project: Project) -> None:
    project.edit("amy").mark_frames("v", 0, 37)
    with project._reading() as connection:
        unseen = [
            {one.frame for one in reading.find_instances(connection, lambda _one: True, "v", unseen=who)}
            for who in (("amy", 1), ("amy", 2), ("ben", 1))
        ]
    assert unseen == [{38, 39}, set(range(40)), set(range(40))]


def test_a_study_shows_the_accepted_instances_of_its_segments(studied: Project) -> None:
    box = Box(1.0, 1.0, 9.0, 9.0)
    studied.edit("amy").add_instances([Annotation("maybe", "v", 3, "tools", "scissors", box, proposal=True)])
    with studied._reading() as connection:
        study = study_reading.study(connection, "s")
        shown = study_reading.shown(connection, study)
        assert [one.id for one in shown] == [id for id, _, _ in study_reading.shown_ids(connection, study)]
        assert study_reading.count_shown(connection, study.segments, "tools") == [15, 25]
        boxes = study_reading.shown_boxes(connection, study, "v")
        part = study_reading.shown(connection, study, "v", 8, 21)
    assert sorted((one.id, one.frame, one.box) for one in shown) == sorted(boxes)
    assert len(shown) == 40
    assert [(one.video, one.frame, one.id) for one in shown] == sorted((one.video, one.frame, one.id) for one in shown)
    assert {one.frame for one in shown} == {*range(10), *range(20, 30)}
    assert {one.frame for one in part} == {8, 9, 20, 21}


def test_changes_are_those_of_ones_own_answers(studied: Project) -> None:
    version = studied.version
    studied.edit("ada").answer("s", ["a1"], name="scissors")
    studied.edit("ben").answer("s", ["a2"], name="scissors")
    studied.edit("amy").move(["a3", "a15"], 2, 0)
    with studied._reading() as connection:
        study = study_reading.study(connection, "s")
        found = {
            who: [one.id for one in study_reading.shown_answered(connection, study, who, "v", version)]
            for who in study.annotators
        }
    assert found == {"ada": ["a1"], "ben": ["a2"]}


def test_kappas_and_disagreements_of_stored_answers(studied: Project) -> None:
    ids = [f"a{k}" for k in (*range(10), *range(20, 30))]
    studied.edit("amy").set_values(ids[::2], {"action": "cut", "target": "fascias"})
    studied.edit("amy").set_values(ids[1::2], {"action": "dissect", "target": "fascias"})
    ada = studied.edit("ada")
    ada.answer("s", ids[::2], {"action": "cut", "target": "fascias"}, name="scissors")
    ada.answer("s", [*ids[1::2][1:]], {"action": "dissect", "target": "fascias"}, name="scissors")
    ada.answer("s", ["a1"], {"action": "cut", "target": "fascias"}, name="scissors")
    with studied._reading() as connection:
        study = study_reading.study(connection, "s")
        found = measure_study(connection, study)
        listed = find_disagreements(connection, study)
    assert found.instances == {"ada": 40, "ben": 40}
    assert [(one.instance, one.components, one.answers["ben"]) for one in listed] == [("a1", ("verb",), None)]
    missing = found.disagreements.filter((pl.col("annotator") == "ada") & (pl.col("annotated") == UNANSWERED))
    assert set(missing["instance"]) == {one for one in missing["instance"] if one[0] in "bc"}
    silent = found.kappas["triplet"]["ben"]  # nothing answered is neither agreement nor disagreement
    assert (math.isnan(silent.value), silent.reason) == (True, "no answers yet")


def test_answers_lie_apart_from_the_labels(studied: Project) -> None:
    before = studied.instances("v", 0, 39)
    ada = studied.edit("ada")
    ada.answer("s", ["a1", "b21"], {"action": "cut", "target": "prostate"}, name="scissors")
    ada.answer("s", ["a1"], {"target": None})
    assert said(studied) == {
        "a1": ("scissors", {"action": "cut"}),
        "b21": ("scissors", {"action": "cut", "target": "prostate"}),
    }
    assert said(studied, "ben") == {}
    assert studied.instances("v", 0, 39) == before
    assert studied.studies()[0].segments == HALVES


def test_an_answer_that_says_nothing_any_more_is_no_answer(studied: Project) -> None:
    ada = studied.edit("ada")
    ada.answer("s", ["a1"], name="scissors")
    studied.apply(Request("gone", "ada", "study.answer", {"study": "s", "ids": ["a1"], "name": None}))
    assert said(studied) == {}
    ada.answer("s", ["a1"], {"action": "suck"}, name="aspirator")
    assert said(studied) == {"a1": ("aspirator", {"action": "suck"})}


def test_undo_of_answers_and_of_edits_never_meet(studied: Project) -> None:
    ada = studied.edit("ada")
    ada.move(["a0"], 5, 0)
    ada.answer("s", ["a1"], name="scissors")
    ada.answer("s", ["a1"], {"action": "cut"})
    moved = studied.instances("v", 0)[0].box
    ada.undo(study="s")
    assert said(studied) == {"a1": ("scissors", {})}
    ada.redo(study="s")
    assert said(studied) == {"a1": ("scissors", {"action": "cut"})}
    assert studied.instances("v", 0)[0].box == moved
    ada.undo()
    assert studied.instances("v", 0)[0].box != moved
    assert said(studied) == {"a1": ("scissors", {"action": "cut"})}
    ada.undo(study="s")
    ada.redo()
    assert studied.instances("v", 0)[0].box == moved
    assert said(studied) == {"a1": ("scissors", {})}
    with pytest.raises(BadInput, match="nothing of ada to take back"):
        ada.undo(study="other")


@pytest.mark.parametrize(
    ("author", "ids", "name", "values", "told"),
    [
        ("eve", ["a1"], "scissors", {}, "names eve as an annotator"),
        ("ada", ["a15"], "scissors", {}, "an instance that the study shows"),
        ("ada", ["nobody"], "scissors", {}, "an instance that the study shows"),
        ("ada", ["a1"], "hook", {}, "found no such class"),
        ("ada", ["a1"], None, {"action": "cut"}, "of the class that was answered before"),
        ("ada", ["a1"], None, {}, "a class, values or both"),
    ],
)
def test_answers_that_cannot_be_are_refused(
    local: Project, author: str, ids: list[str], name: str | None, values: dict[str, str], told: str
) -> None:
    local.edit("amy").add_study("s", ["ada", "ben"], HALVES)
    with pytest.raises(BadInput, match=told):
        local.edit(author).answer("s", ids, values, name=name)
    assert said(local, author) == {}


def test_a_refused_answer_does_not_tell_the_class(studied: Project) -> None:
    studied.edit("amy").delete(["a1"])
    with pytest.raises(BadInput) as told:
        studied.edit("ada").answer("s", ["a1"], name="forceps")
    assert "scissors" not in str(told.value)


def test_two_tabs_of_one_annotator_get_a_conflict(studied: Project) -> None:
    base = studied.version
    studied.edit("ada", session="left").answer("s", ["a1"], name="scissors")
    with pytest.raises(Conflict) as told:
        studied.edit("ada", session="right", base=base).answer("s", ["a1"], name="forceps")
    assert told.value.author == "ada"
    studied.edit("ben", base=base).answer("s", ["a1"], name="forceps")  # another annotator's is another row


@pytest.mark.parametrize(
    ("segments", "told"),
    [
        ([Segment("v", 0, 9), Segment("v", 9, 12)], "share frame 9"),
        ([Segment("v", 30, 40)], "expected a frame of video v"),
        ([], "a list of 1 to"),
    ],
)
def test_segments_that_cannot_be_are_refused(local: Project, segments: list[Segment], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        local.edit("amy").add_study("s", ["ada"], segments)


@pytest.mark.parametrize("names", [[], ["ada", "ada"], ["a/b"], [".."], [" "], ["x" * 61], ["a\nb"]])
def test_names_that_cannot_be_are_refused(local: Project, names: list[str]) -> None:
    with pytest.raises(BadInput, match="annotators"):
        local.edit("amy").add_study("s", names, HALVES)


def test_decisions_change_labels_are_logged_and_can_be_undone(studied: Project) -> None:
    amy = studied.edit("amy")
    amy.set_values(["a1"], {"action": "cut", "target": "prostate"})
    studied.edit("ben").answer("s", ["a1"], {"action": "dissect", "target": "prostate"}, name="scissors")
    amy.decide("s", "a1", "keep", note="clear cut")
    amy.decide("s", "a1", "annotator", annotator="ben")
    amy.decide("s", "a2", "other", name="forceps", values={"action": "retract"})
    labels = {one.id: (one.name, dict(one.values)) for one in studied.instances("v", 1, 2)}
    assert labels["a1"] == ("scissors", {"action": "dissect", "target": "prostate"})
    assert labels["a2"] == ("forceps", {"action": "retract"})
    log = studied.decisions("s")
    assert [(one.instance, one.number, one.choice, one.annotator, one.author, one.note) for one in log] == [
        ("a1", 1, "keep", "", "amy", "clear cut"),
        ("a1", 2, "annotator", "ben", "amy", ""),
        ("a2", 1, "other", "", "amy", ""),
    ]
    assert (log[1].values_before["action"], log[1].values_after["action"]) == ("cut", "dissect")
    assert (log[2].name_before, log[2].name_after, log[2].video, log[2].frame) == ("scissors", "forceps", "v", 2)
    amy.undo()
    amy.undo()
    assert dict(studied.instances("v", 1)[0].values)["action"] == "cut"
    assert [one.number for one in studied.decisions("s")] == [1]
    amy.redo()
    assert dict(studied.instances("v", 1)[0].values)["action"] == "dissect"


def test_a_decided_class_whose_number_is_taken_leaves_the_number(studied: Project) -> None:
    studied.edit("amy").decide("s", "c2", "other", name="scissors")
    one = next(one for one in studied.instances("v", 2) if one.id == "c2")
    assert (one.name, one.track) == ("scissors", None)


def test_decisions_on_one_instance_conflict(studied: Project) -> None:
    base = studied.version
    studied.edit("amy").decide("s", "a1", "keep")
    with pytest.raises(Conflict, match="found changed by amy"):
        studied.edit("bob", base=base).decide("s", "a1", "keep")
    with pytest.raises(BadInput, match="one who gave an answer"):
        studied.edit("bob").decide("s", "a3", "annotator", annotator="ada")


def test_a_removed_study_comes_back_with_its_answers(studied: Project) -> None:
    studied.edit("ada").answer("s", ["a1"], name="scissors")
    amy = studied.edit("amy")
    amy.remove_study("s")
    assert studied.studies() == ()
    with pytest.raises(BadInput, match="expected a study of the project"):
        studied.edit("ada").answer("s", ["a1"], name="forceps")
    amy.undo()
    assert said(studied) == {"a1": ("scissors", {})}


def test_a_project_of_the_first_layout_gets_the_new_tables(filled_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(filled_folder, tmp_path / "old")
    with sqlite3.connect(folder / "studio.sqlite") as old:
        for name in ("rounds", "studies", "answers", "decisions"):
            old.execute(f"DROP TABLE {name}")
            old.execute(f"DROP TABLE {name}_before")
        old.execute("UPDATE head SET layout = 1")
    old.close()
    with Project(folder) as opened:
        assert len(opened.instances("v", 0, 39)) == 80
        opened.edit("amy").add_study("s", ["ada"], HALVES)
        assert opened.replay() == opened.state()
    with sqlite3.connect(folder / "studio.sqlite") as new:
        assert new.execute("SELECT layout FROM head").fetchone() == (LAYOUT,)
        new.execute("UPDATE head SET layout = ?", (LAYOUT + 1,))
    new.close()
    with pytest.raises(DataError, match=f"found {LAYOUT + 1}, expected 1 to {LAYOUT}"):
        Project(folder)
