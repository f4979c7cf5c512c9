"""Labels of other tools in a project: the authors' labelme dialect, frames that are not there, undo, replacing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.studio_project import Project
from tests.unit.studio.exchange.projects import HEIGHT, WIDTH, fill, held, make_folder

from surgeval.datasets import MemoryDataset, convert, open_dataset
from surgeval.errors import BadInput
from surgeval.records import Box, Frame, Instance, Mask, Triplet
from surgeval.studio.exchange import StudioDataset, export_project, import_dataset, importing, preview_import
from surgeval.studio.media import find_films, register
from surgeval.studio.store import STORE_FILE, Conflict, Database
from surgeval.vocab import load_labels


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "project")


@pytest.fixture
def database(place: Path) -> Iterator[Database]:
    found = Database(place / STORE_FILE)
    yield found
    found.close()


def shape(label: str, attributes: dict[str, Any], x: float = 10.0, **more: Any) -> dict[str, Any]:
    return {"label": label, "points": [[x, 20], [x + 60, 70]], "group_id": None, "description": "",
            "shape_type": "rectangle", "flags": {}, "attributes": attributes, "mask": None, **more}  # fmt: skip


def write_labelme(folder: Path, frames: dict[str, list[dict[str, Any]]], **more: Any) -> Path:
    for name, shapes in frames.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({
            "version": "5.6.1", "flags": {"seen": True}, "shapes": shapes, "imagePath": f"{path.stem}.png",
            "imageData": None, "imageHeight": HEIGHT, "imageWidth": WIDTH, "text": "", "description": "a note", **more,
        }, indent=1))  # fmt: skip
    return folder


def only(place: Path) -> Any:
    with Project(place) as project:
        (found,) = project.instances("V1", 0, 100)
    return found


def test_the_authors_dialect_is_read_with_aliases_scores_and_tracks(
    place: Path, database: Database, tmp_path: Path
) -> None:
    said = {"Action": "suture", "Target": "vesicle", "Track": "7"}
    source = write_labelme(tmp_path / "there", {"V1/000002": [shape("driver", said, description="confidence: 0.87")]})
    report = import_dataset(database, source, author="ben")
    assert (report.instances, report.proposals, report.problems, report.lacking) == (1, 1, 0, ())
    one = only(place)
    assert (one.name, dict(one.values)) == ("needle driver", {"action": "suture", "target": "seminal vesicle"})
    assert (one.proposal, one.score, one.track, one.track_by) == (True, 0.87, 7, "upstream")


def test_null_is_a_value_and_nothing_is_none(place: Path, database: Database, tmp_path: Path) -> None:
    shapes = [shape("forceps", {"Action": "null"}), shape("forceps", {}, 100.0)]
    import_dataset(database, write_labelme(tmp_path / "there", {"V1/000002": shapes}), author="ben")
    with Project(place) as project:
        assert [dict(one.values) for one in project.instances("V1", 2)] == [{"action": "null"}, {}]


def test_an_untouched_labelme_folder_comes_back_as_it_was(place: Path, database: Database, tmp_path: Path) -> None:
    odd = shape(
        "forceps", {"Action": "retract", "Target": "bladder", "certain": True}, flags={"hard": True}, score=None
    )
    point: dict[str, Any] = {"label": "tip", "points": [[3, 4]], "shape_type": "point", "group_id": None, "flags": {}}
    shapes = [odd, point, shape("scissors", {"Action": "cut", "Target": "null"}, 50.5, originalPoints=[[1, 2], [3, 4]])]
    source = write_labelme(tmp_path / "there", {"V1/000002": shapes, "V1/000003": []}, checked=["a", 1])
    import_dataset(database, source, author="ben")
    made = export_project(place, database, "back", "labelme", images=False)
    assert made.folder is not None
    for name in ("000002", "000003"):
        there, back = ((folder / "V1" / f"{name}.json").read_text() for folder in (source, made.folder))
        assert back == there, "to the last byte"


def test_what_was_edited_is_what_changes_in_the_file(place: Path, database: Database, tmp_path: Path) -> None:
    said = {"Action": "cut", "Target": "null", "position": "left"}
    shapes = [shape("scissors", said, originalPoints=[[1, 2], [3, 4]]), shape("forceps", {"Action": "null"}, 99.0)]
    source = write_labelme(tmp_path / "there", {"V1/000002": shapes})
    import_dataset(database, source, author="ben")
    with Project(place) as project:
        first, second = project.instances("V1", 2)
        amy = project.edit("amy")
        amy.move([first.id], 5, 0)
        amy.set_values([first.id], {"target": "prostate", "position": None})
        amy.set_values([second.id], {"action": None, "target": "null"})
    export_project(place, database, "back", "labelme", images=False)
    back = json.loads((place / "exports/back/V1/000002.json").read_text())["shapes"]
    assert back[0]["attributes"] == {"Action": "cut", "Target": "prostate"}
    assert back[0]["points"][0] == [15.0, 20.0]
    assert "originalPoints" not in back[0], "they say where the shape was before"
    assert back[1] == {**shapes[1], "attributes": {"Target": "null"}}


def test_a_padded_export_goes_back_by_its_original_points(place: Path, database: Database, tmp_path: Path) -> None:
    fill(place)
    convert(StudioDataset(place), tmp_path / "square", "labelme", size=640)
    other = make_folder(tmp_path / "other")
    second = Database(other / STORE_FILE)
    report = import_dataset(second, tmp_path / "square", author="ben")
    second.close()
    assert (report.scaled, report.problems) == (0, 0)
    full = held(place)
    full["instances"] = [row for row in full["instances"] if not row[8]]  # the proposal is no label
    assert held(other)["instances"] == full["instances"]


def test_frames_that_are_not_here_are_said(database: Database, tmp_path: Path) -> None:
    cut = [shape("scissors", {"Action": "cut", "Target": "prostate"})]
    source = write_labelme(tmp_path / "there", {"V1/000002": cut, "V1/lost": cut, "V9/000002": cut})
    report = preview_import(database, source)
    assert (report.frames, report.matched, report.unmatched) == (3, 1, ("V1 lost", "V9 000002"))
    assert report.instances == 1


def test_frames_are_met_where_the_video_is_part_of_their_name(tmp_path: Path) -> None:
    (place := tmp_path / "project" / "psiv2").mkdir(parents=True)
    for name in ("psiv2_123124_2", "psiv2_123124_3"):
        Image.new("RGB", (WIDTH, HEIGHT)).save(place / f"{name}.png")
    place = place.parent
    database = Database(place / STORE_FILE)
    register(database, find_films(place))
    cut = [shape("scissors", {"Action": "cut", "Target": "prostate"})]
    report = preview_import(database, write_labelme(tmp_path / "flat", {"psiv2_123124_2": cut, "psiv2_123124_3": cut}))
    database.close()
    assert (report.matched, report.unmatched) == (2, ())


def test_values_that_the_schema_lacks_are_kept_and_said(place: Path, database: Database, tmp_path: Path) -> None:
    said = {"Action": "hover", "Target": "prostate", "side": "left"}
    source = write_labelme(tmp_path / "there", {"V1/000002": [shape("scissors", said), shape("laser", {}, 99.0)]})
    report = import_dataset(database, source, author="ben")
    told = {(one.name, one.attribute, one.value) for one in report.lacking}
    assert told == {("scissors", "action", "hover"), ("scissors", "side", "left"), ("laser", "", "")}
    with Project(place) as project:
        assert {one.name: dict(one.values) for one in project.instances("V1", 2)} == {
            "scissors": {"action": "hover", "target": "prostate", "side": "left"}, "laser": {},
        }  # fmt: skip


def test_an_import_is_one_edit_that_can_be_undone_redone_and_replayed(place: Path, tmp_path: Path) -> None:
    full = fill(make_folder(tmp_path / "full"))
    source = Database(full / STORE_FILE)
    made = export_project(full, source, "x", "cvat", images=False)
    source.close()
    assert made.folder is not None
    database = Database(place / STORE_FILE)
    before = held(place)
    report = import_dataset(database, made.folder, author="ben")
    after = held(place)
    database.close()
    assert len(report.versions) == 1
    with Project(place) as project:
        ben = project.edit("ben")
        ben.undo()
        assert held(place) == before
        ben.redo()
        assert held(place) == after
        assert project.replay() == project.state()


def test_the_same_import_twice_changes_nothing_the_second_time(place: Path, database: Database, tmp_path: Path) -> None:
    cut = [shape("scissors", {"Action": "cut", "Target": "prostate"})]
    source = write_labelme(tmp_path / "there", {"V1/000002": cut})
    reports = [import_dataset(database, source, author="ben") for _ in range(2)]
    assert [(one.instances, one.present, len(one.versions)) for one in reports] == [(1, 0, 1), (0, 1, 0)]


def test_replacing_takes_away_what_the_frames_had(place: Path, database: Database, tmp_path: Path) -> None:
    fill(place)
    cut = [shape("scissors", {"Action": "cut", "Target": "prostate"})]
    source = write_labelme(tmp_path / "there", {"V1/000004": cut, "V1/000005": []})
    report = import_dataset(database, source, author="ben", replace=True)
    assert (report.removed, report.instances) == (4, 1)
    with Project(place) as project:
        counts = {frame: len(project.instances("V1", frame)) for frame in range(3, 7)}
    assert counts == {3: 1, 4: 1, 5: 0, 6: 1}


def test_boxes_of_yolo_without_images_are_scaled_to_the_frames(place: Path, database: Database, tmp_path: Path) -> None:
    labels = tmp_path / "yolo" / "labels"
    labels.mkdir(parents=True)
    (labels / "V1_000002.txt").write_text("14 0 -1 -1 0.5 0.5 0.25 0.5\n")
    report = import_dataset(database, tmp_path / "yolo", author="ben")
    assert (report.instances, report.scaled, report.examples) == (1, 1, ())
    assert only(place).box == Box(120.0, 45.0, 80.0, 90.0)


def test_what_a_project_cannot_hold_is_counted(database: Database) -> None:
    space = load_labels("prostatd")
    cut = Triplet(*space.triplets[0])
    mask = Mask(HEIGHT, WIDTH, (100, 50, HEIGHT * WIDTH - 150))
    tip = Instance(cut, Box(50, 5, 9, 9), points={"tip": (1, 2)})
    instances = (Instance(cut), Instance(cut, Box(5, 5, 9, 9), mask), tip)
    frame = Frame("V1", "000002", 2, None, None, WIDTH, HEIGHT, instances)
    report = preview_import(database, MemoryDataset(space, [frame]))
    assert report.instances == 2
    assert set(report.losses) == {
        "1 instances without box or instrument are not taken",
        "masks of 1 instances are taken as boxes",
        "named points of 1 instances are not taken",
    }


def test_an_empty_frame_that_was_labelled_stays_labelled(place: Path, database: Database, tmp_path: Path) -> None:
    import_dataset(database, write_labelme(tmp_path / "there", {"V1/000002": []}), author="ben")
    assert [frame.name for frame in StudioDataset(place).frames("V1") if frame.labelled] == ["000002"]


def test_a_project_is_not_imported_into_itself(place: Path, database: Database) -> None:
    with pytest.raises(BadInput, match="found a project of the studio"):
        preview_import(database, place)


def test_broken_files_are_counted_and_named(place: Path, database: Database, tmp_path: Path) -> None:
    cut = [shape("scissors", {"Action": "cut", "Target": "prostate"})]
    source = write_labelme(tmp_path / "there", {"V1/000002": cut, "V1/000003": [{**cut[0], "points": [[1, "x"]]}]})
    report = preview_import(database, source)
    assert (report.instances, report.problems) == (1, 1)
    assert "000003.json" in report.examples[0]


def test_pictures_inside_labelme_files_are_not_kept_and_that_is_said(database: Database, tmp_path: Path) -> None:
    report = preview_import(database, write_labelme(tmp_path / "there", {"V1/000002": []}, imageData="aGVsbG8="))
    assert report.losses == ("pictures inside 1 labelme files (imageData) are not kept",)


def test_an_export_of_an_import_opens_as_a_dataset(place: Path, database: Database, tmp_path: Path) -> None:
    fill(place)
    made = export_project(place, database, "x", "coco")
    assert made.folder is not None
    frames = list(open_dataset(made.folder).frames("V1"))
    assert sum(len(frame.instances) for frame in frames) == 8


def test_what_a_project_cannot_hold_is_counted_beforehand_and_the_rest_is_taken(
    place: Path, database: Database, tmp_path: Path
) -> None:
    far = shape("scissors", {}) | {"points": [[5, 6], [2e7, 60]]}
    odd = [shape("y" * 300, {}), shape("a\0b", {}), far, shape("scissors", {})]
    source = write_labelme(tmp_path / "there", {"V1/000002": odd})
    told = preview_import(database, source)
    done = import_dataset(database, source, author="ben")
    assert (told.instances, told.problems) == (done.instances, done.problems) == (1, 3), told.examples
    assert only(place).name == "scissors"


def test_a_large_import_is_stored_whole_or_not_at_all(
    place: Path, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_AT_ONCE", 1)
    shapes = {f"V1/00000{k}": [shape("scissors", {})] for k in range(3)}
    source = write_labelme(tmp_path / "there", shapes)
    with monkeypatch.context() as patched:
        patched.setattr(importing, "check_taken", lambda _name, _row: None)
        broken = write_labelme(tmp_path / "broken", {**shapes, "V1/000009": [shape("y" * 300, {})]})
        with pytest.raises(BadInput, match="expected text of 1 to 200 characters"):
            import_dataset(database, broken, author="ben")
    assert held(place)["instances"] == []
    assert len(import_dataset(database, source, author="ben").versions) == 3


def test_an_import_that_is_asked_for_twice_is_made_once(place: Path, database: Database, tmp_path: Path) -> None:
    source = write_labelme(tmp_path / "there", {"V1/000002": [shape("scissors", {})]})
    first, second = (import_dataset(database, source, author="ben", replace=True, run="r1") for _ in range(2))
    assert first.versions == second.versions
    assert (first.instances, second.instances, second.present) == (1, 0, 1)
    with pytest.raises(BadInput, match="import: id: found"):
        import_dataset(database, source, author="ben", run="../x")


def test_an_import_that_was_overtaken_by_another_stores_nothing(
    place: Path, database: Database, tmp_path: Path
) -> None:
    source = write_labelme(tmp_path / "there", {"V1/000002": [shape("scissors", {})]})
    met: list[int] = []

    def overtake(count: int) -> None:
        if not met:
            met.append(count)
            import_dataset(database, source, author="amy")

    with pytest.raises(Conflict, match="changed by amy"):
        import_dataset(database, source, author="ben", advance=overtake)
    assert only(place).name == "scissors"
