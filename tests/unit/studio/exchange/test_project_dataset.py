"""A project is a dataset: found among the formats, read beside an open studio, with ids of the published classes."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from tests.studio_project import Project
from tests.unit.studio.exchange.projects import annotation, fill, make_folder

from surgeval.datasets import Problem, check, dataset_fingerprint, export_losses, is_dataset, open_dataset
from surgeval.errors import DataError, SurgevalError
from surgeval.records import Frame
from surgeval.studio.exchange import Selection, StudioDataset, StudioFormat
from surgeval.studio.schema import builtin_refinement, parse_schema
from surgeval.studio.store import STORE_FILE, Track
from surgeval.vocab import LabelSpace, load_labels


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return fill(make_folder(tmp_path / "project"))


def frames(dataset: StudioDataset) -> dict[str, Frame]:
    return {frame.name: frame for frame in dataset.frames("V1")}


def test_a_folder_with_a_project_opens_as_one_whatever_else_lies_in_it(place: Path) -> None:
    (place / "V1" / "000001.json").write_text(json.dumps({"shapes": [], "imageWidth": 8, "imageHeight": 8}))
    assert is_dataset(place)
    dataset = open_dataset(place)
    assert dataset.format == "studio"
    assert [video.name for video in dataset.videos()] == ["V1"]
    report = check(dataset)
    assert (report.frames, report.instances, report.images, report.errors) == (12, 12, 12, 0)
    assert open_dataset(place, "labelme").format == "labelme"


def test_what_is_no_project_is_not_taken_for_one(tmp_path: Path) -> None:
    assert not StudioFormat().detect(tmp_path)
    (tmp_path / STORE_FILE).write_text("hello")
    assert not StudioFormat().detect(tmp_path)
    with pytest.raises(SurgevalError, match="found file is not a database"):
        StudioDataset(tmp_path)


def test_labels_are_those_that_were_accepted_in_ids_of_the_published_space(place: Path) -> None:
    dataset, published = StudioDataset(place), load_labels("prostatd")
    assert dataset.space.triplets == published.triplets
    assert dataset.space.instruments[: len(published.instruments)] == published.instruments
    found = frames(dataset)
    (cut,) = found["000000"].instances
    ids = (cut.triplet.instrument, cut.triplet.verb, cut.triplet.target)
    assert published.triplet_name(dataset.space.find(*ids)) == "scissors,cut,prostate"
    assert len(found["000009"].instances) == 1, "the proposal is not among them"
    assert len(frames(StudioDataset(place, selection=Selection(proposals=True)))["000009"].instances) == 2
    assert dataset.space.phases[found["000003"].phase or 0] == "dissection"
    assert found["000003"].attributes == {"problem": {"smoke": "left half"}}
    assert [name for name, frame in found.items() if not frame.labelled] == ["000010", "000011"]


def test_a_frame_of_which_only_the_phase_is_said_is_not_labelled(place: Path) -> None:
    with Project(place) as project:
        project.edit("amy").add_span("s2", "V1", [Track.image()], {"phase": "suturing"}, 10, 11)
        project.edit("amy").mark_frames("V1", 11, 11)
    found = frames(StudioDataset(place))
    assert [(found[name].labelled, found[name].phase is not None) for name in ("000010", "000011")] == [
        (False, True),
        (True, True),
    ]


def test_a_triplet_that_is_no_class_is_a_warning_here_as_it_is_refused_in_an_export(place: Path) -> None:
    told: list[Problem] = []
    found = {frame.name: frame for frame in StudioDataset(place).frames("V1", told.append)}
    assert [(one.kind, one.level, one.sentence.partition(", expected")[0]) for one in told] == [
        ("triplet-unknown", "warning", "found (forceps, bag, gauze)")
    ]
    assert len(found["000004"].instances) == 2, "it is kept"


def test_a_project_of_its_own_schema_has_a_space_of_its_own(tmp_path: Path) -> None:
    place = make_folder(tmp_path / "own")
    source = {"tools": {"hook": {"actions": ["dissect", "null"], "targets": ["duct"]}, "bag": {}},
              "organs": {"bag": {"state": ["open"]}}}  # fmt: skip
    with Project(place) as project:
        project.edit("amy").set_schema(parse_schema(json.dumps(source), "mine"))
        project.edit("amy").add_instances([annotation("a", 0, "bag", {"state": "open"}, group="organs"),
                                           annotation("b", 1, "hook", {"action": "burn"})])  # fmt: skip
    space = StudioDataset(place).space
    assert (space.name, space.instruments, space.verbs) == (
        "mine",
        ("hook", "bag", "organs.bag"),
        ("dissect", "null", "burn"),
    )
    assert space.triplet_names == ("hook,dissect,duct", "hook,null,duct")


def test_other_labels_can_be_given_and_what_they_lack_is_told(place: Path) -> None:
    dataset = StudioDataset(place, LabelSpace("few", ("scissors",), ("cut",), ("prostate",), ((0, 0, 0),)))
    told: list[str] = []
    found = [len(frame.instances) for frame in dataset.frames("V1", lambda problem: told.append(problem.kind))]
    assert sum(found) == 7
    assert set(told) == {"class-unknown"}
    with pytest.raises(DataError, match="found 'forceps', expected a name of few"):
        list(dataset.frames("V1"))


def test_a_project_is_read_while_the_studio_writes(place: Path) -> None:
    """The reader sees one moment; the writer is neither kept waiting nor disturbed."""
    with Project(place) as project:
        dataset = StudioDataset(place)
        reading = dataset.frames("V1")
        first = next(reading)
        project.edit("amy").add_instances([annotation("late", 11, "scissors")])
        rest = list(reading)
        assert first.name == "000000"
        assert rest[-1].instances == (), "what came later is not in this moment"
        assert len(frames(StudioDataset(place))["000011"].instances) == 1


def test_reading_changes_nothing(place: Path) -> None:
    before = (place / STORE_FILE).read_bytes()
    list(StudioDataset(place).frames("V1"))
    assert (place / STORE_FILE).read_bytes() == before
    assert not (place / f"{STORE_FILE}-wal").exists() or not (place / f"{STORE_FILE}-wal").read_bytes()


@pytest.mark.skipif(os.geteuid() == 0, reason="this user may write everywhere")
def test_a_project_on_a_disk_that_nobody_may_write_to_is_read(place: Path) -> None:
    place.chmod(0o555)
    try:
        assert len(frames(StudioDataset(place))) == 12
    finally:
        place.chmod(0o755)


def test_threads_read_one_dataset_at_once(place: Path) -> None:
    dataset, counts = StudioDataset(place), list[int]()
    threads = [threading.Thread(target=lambda: counts.append(len(list(dataset.frames("V1"))))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [12] * 4


def test_the_fingerprint_follows_the_labels_and_not_the_folder(place: Path, tmp_path: Path) -> None:
    before = dataset_fingerprint(StudioDataset(place))
    shutil.copytree(place, tmp_path / "copy")
    assert dataset_fingerprint(StudioDataset(tmp_path / "copy")) == before
    with Project(place) as project:
        project.edit("amy").add_instances([annotation("late", 11, "scissors")])
    assert dataset_fingerprint(StudioDataset(place)) != before


def test_problem_frames_can_be_left_out_and_labels_merged(place: Path) -> None:
    with Project(place) as project:
        project.edit("amy").add_instances([annotation("s", 11, "aspirator", {"action": "suck", "target": "smoke"})])
    selection = Selection(problem_frames=False, rules=builtin_refinement())
    dataset = StudioDataset(place, selection=selection)
    found = frames(dataset)
    assert "000003" not in found
    assert dataset.space.targets[found["000011"].instances[0].triplet.target] == "fluid"
    assert [(row.values, row.before, row.after) for row in dataset.refined()] == [
        ((("action", "suck"), ("target", "fluid")), 0, 1),
        ((("action", "suck"), ("target", "smoke")), 1, 0),
    ]
    assert "coco: 1 problem frames are left out" in export_losses(dataset, "coco")


def test_pictures_that_are_gone_are_told(place: Path) -> None:
    shutil.rmtree(place / "V1")
    told: list[str] = []
    dataset = StudioDataset(place)
    dataset.videos(lambda problem: told.append(problem.kind))
    assert told == ["images-absent"]
    assert {frame.image for frame in dataset.frames("V1")} == {None}


def test_a_picture_that_a_link_brings_from_elsewhere_is_told_and_not_carried_along(place: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes((place / "V1" / "000001.png").read_bytes())
    (place / "V1" / "000001.png").unlink()
    (place / "V1" / "000001.png").symlink_to(tmp_path / "secret.png")
    told: list[str] = []
    found = {frame.name: frame.image for frame in StudioDataset(place).frames("V1", lambda one: told.append(one.kind))}
    assert (told, found["000001"]) == (["path-escape", "triplet-unknown"], None)
    assert found["000002"] is not None
