"""Two authors, two tabs, lost answers: applied once, merged where they touch other things, else refused by name."""

from __future__ import annotations

import threading

import pytest
from tests.studio_project import Project
from tests.unit.studio.store.test_spans import ONE, TWO, actions, span

from surgeval.errors import BadInput, RunError
from surgeval.records import Box
from surgeval.studio.store import Annotation, Conflict, Request


def test_a_repeated_request_is_applied_once(project: Project) -> None:
    request = Request("r1", "amy", "instances.move", {"ids": ["a0"], "dx": 5.0, "dy": 0.0})
    first, second = project.apply(request), project.apply(request)
    assert (first.repeated, second.repeated) == (False, True)
    assert (second.version, second.changed) == (first.version, first.changed)
    assert project.instances("v", 0)[0].box.x == 15.0
    with pytest.raises(BadInput, match="found the id of another edit"):
        project.apply(Request("r1", "amy", "instances.move", {"ids": ["a0"], "dx": 6.0, "dy": 0.0}))


def test_an_edit_against_an_old_version_is_merged_where_it_touches_other_instances(project: Project) -> None:
    seen = project.version
    project.edit("ben").move(["a1"], 1.0, 1.0)
    project.edit("amy", base=seen).move(["a0"], 1.0, 1.0)
    assert project.instances("v", 0)[0].box.x == 11.0 and project.instances("v", 1)[0].box.x == 11.0


def test_an_edit_of_the_same_instance_is_refused_and_names_who_and_what(project: Project) -> None:
    seen = project.version
    project.edit("ben").move(["a1"], 1.0, 1.0)
    before = project.state()
    with pytest.raises(Conflict) as caught:
        project.edit("amy", base=seen).set_values(["a0", "a1"], {"action": "cut"})
    assert (caught.value.author, caught.value.kind, caught.value.version) == ("ben", "instances.move", seen + 1)
    assert str(caught.value).startswith("scissors a1 in frame 1 of v: found changed by ben (instances.move")
    assert project.state() == before


def test_an_instance_that_someone_deleted_is_a_conflict(project: Project) -> None:
    project.edit("ben").delete(["a1"])
    with pytest.raises(Conflict, match=r"changed by ben .*it is no longer there"):
        project.edit("amy").move(["a1"], 1.0, 1.0)


def test_a_span_over_what_another_has_just_edited_is_refused(project: Project) -> None:
    seen = project.version
    project.edit("ben").set_values(["a5"], {"action": "retract"})
    with pytest.raises(Conflict, match="scissors a5 in frame 5"):
        project.edit("amy", base=seen).add_span("s", "v", [ONE], {"action": "cut"}, 0, 9)
    project.edit("amy", base=seen).add_span("s", "v", [ONE], {"action": "cut"}, 6, 9)


def test_a_tab_does_not_conflict_with_itself_but_two_tabs_do(project: Project) -> None:
    seen = project.version
    project.edit("amy", base=seen, session="left").move(["a1"], 1.0, 0.0)
    project.edit("amy", base=seen, session="left").move(["a1"], 1.0, 0.0)
    with pytest.raises(Conflict, match="changed by amy"):
        project.edit("amy", base=seen, session="right").move(["a1"], 1.0, 0.0)


def test_undo_is_per_author_and_goes_back_to_the_beginning(project: Project) -> None:
    start = project.instances("v", 0, 39)
    for n in range(5):
        project.edit("amy").move([f"a{n}"], 1.0, 0.0)
        project.edit("ben").move([f"b{n + 20}"], 1.0, 0.0)
    for _ in range(5):
        project.edit("amy").undo()
    with pytest.raises(BadInput, match="found nothing of amy to take back"):
        project.edit("amy").undo()
    assert [one.box for one in project.instances("v", 0, 19)] == [one.box for one in start if one.frame < 20]
    assert project.instances("v", 22)[1].box.x == 11.0  # ben's stay
    for _ in range(5):
        project.edit("amy").redo()
    with pytest.raises(BadInput, match="found nothing of amy to do again"):
        project.edit("amy").redo()
    assert all(project.instances("v", n)[0].box.x == 11.0 for n in range(5))


def test_undo_is_refused_where_someone_has_touched_the_same_instance_since(project: Project) -> None:
    project.edit("amy").move(["a1", "a2"], 1.0, 0.0)
    project.edit("ben").set_values(["a2"], {"action": "cut"})
    with pytest.raises(Conflict, match=r"scissors a2 in frame 2 of v: found changed by ben \(instances\.values"):
        project.edit("amy").undo()
    project.edit("ben").undo()
    project.edit("amy").undo()
    assert project.instances("v", 2)[0].box.x == 10.0


def test_a_new_edit_ends_the_redo(project: Project) -> None:
    project.edit("amy").move(["a1"], 1.0, 0.0)
    project.edit("amy").undo()
    project.edit("amy").move(["a2"], 1.0, 0.0)
    with pytest.raises(BadInput, match="nothing of amy to do again"):
        project.edit("amy").redo()


def test_undo_of_a_span_is_refused_where_someone_drew_under_it_since(project: Project) -> None:
    span(project, "s", "cut", 0, 39, [TWO])
    box = Box(1.0, 1.0, 5.0, 5.0)
    project.edit("ben").add_instances([Annotation("new", "v", 3, "tools", "scissors", box, track=2)])
    assert actions(project, TWO) == "c" * 21
    with pytest.raises(Conflict, match="scissors new in frame 3 of v: found changed by ben"):
        project.edit("amy").undo()


def test_what_others_changed_can_be_asked_for(local: Project) -> None:
    seen = local.version
    local.edit("ben").move(["a1"], 1.0, 0.0)
    local.edit("ben").delete(["a2"])
    changed, gone = local.changed_since("v", seen)
    assert [one.id for one in changed] == ["a1"] and gone == ("a2",)
    assert [(one.author, one.kind) for one in local.operations(seen)] == [
        ("ben", "instances.move"),
        ("ben", "instances.delete"),
    ]


def test_three_annotators_edit_one_video_at_once(project: Project) -> None:
    seen, errors = project.version, []

    def annotate(author: str, prefix: str) -> None:
        try:
            for n in range(20, 30):
                project.edit(author, base=seen, session=author).move([f"{prefix}{n}"], 1.0, 0.0)
                if n % 4 == 0:
                    project.edit(author, session=author).undo()
                    project.edit(author, session=author).redo()
        except (BadInput, RunError, Conflict) as error:
            errors.append(error)

    threads = [threading.Thread(target=annotate, args=pair) for pair in (("amy", "a"), ("ben", "b"))]
    for thread in threads:
        thread.start()
    for n in range(10, 19):  # the third one, here
        project.edit("cam", base=seen, session="cam").move([f"a{n}"], 1.0, 0.0)
    for thread in threads:
        thread.join()
    assert not errors
    assert all(one.box.x == 11.0 for one in project.instances("v", 20, 29) if one.name == "scissors")
    versions = [operation.version for operation in project.operations()]
    assert versions == list(range(1, len(versions) + 1))


def test_a_future_base_is_refused(local: Project) -> None:
    with pytest.raises(BadInput, match="base: found version 99"):
        local.edit("amy", base=99).move(["a1"], 1.0, 0.0)
