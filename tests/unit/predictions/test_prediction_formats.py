"""Each format: what it reads, what it keeps, how it is recognised."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from surgeval.datasets import MemoryDataset, MergeMap, Problem, convert, join_boxes, merged, open_dataset
from surgeval.datasets.predictions import (
    FORMATS,
    GroundTruth,
    detect_format,
    ground_truth,
    join,
    read_detections,
    write_detections,
)
from surgeval.errors import BadInput, DataError
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

Lines = Callable[..., Path]
NO_SCORES = "The predictions have no scores: every box counts alike, and average precision says little."
PLACES = {"table": "found.csv", "coco": "found.json", "yolo": "found", "cholect50": "found", "rows": "found.json"}


@pytest.mark.parametrize("format", [*FORMATS, "parquet"])
def test_what_is_written_is_read_back(format: str, truth: GroundTruth, found: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / ("found.parquet" if format == "parquet" else PLACES[format])
    format = "table" if format == "parquet" else format
    report = write_detections(found, path, format, dataset=truth)
    assert (report.rows, report.losses) == (3, ())
    back = read_detections(path, truth)
    assert (back.format, dict(back.problems)) == (format, {})
    expected = join(found, truth).predictions
    got = join(back, truth).predictions
    np.testing.assert_allclose(got.xywh, expected.xywh, rtol=0, atol=1e-9)
    assert got.score.tolist() == expected.score.tolist()
    assert {c: ids.tolist() for c, ids in got.classes.items()} == {
        c: ids.tolist() for c, ids in expected.classes.items()
    }


def test_classes_of_a_table_may_be_named(truth: GroundTruth, found: pl.DataFrame, tmp_path: Path) -> None:
    space = truth.space
    whole = found.with_columns(pl.Series("triplet", [space.triplet_name(17), " 60", space.triplet_name(17)]))
    parts = found.drop("triplet").with_columns(
        pl.Series(part, [names[space.triplets[number][k]] for number in (17, 60, 17)])
        for k, (part, names) in enumerate(
            (("instrument", space.instruments), ("verb", space.verbs), ("target", space.targets))
        )
    )
    for name, table in (("whole.csv", whole), ("parts.csv", parts), ("whole.parquet", whole)):
        (table.write_parquet if name.endswith("parquet") else table.write_csv)(tmp_path / name)
        assert read_detections(tmp_path / name, truth).table["triplet"].to_list() == [17, 60, 17]
    whole.with_columns(triplet=pl.lit("hook,grasp,moon")).write_csv(tmp_path / "wrong.csv")
    with pytest.raises(DataError, match=r"'hook,grasp,moon', expected a class id from 0 to 99, or -1, or its name"):
        read_detections(tmp_path / "wrong.csv", truth)


@pytest.mark.parametrize("format", ["yolo", "cholect50", "rows", "coco", "table"])
def test_a_frame_in_which_nothing_was_found_survives(
    format: str, truth: GroundTruth, found: pl.DataFrame, tmp_path: Path
) -> None:
    rows = {"VID68": {"000012": [], "000019": []}, "VID70": {"000012": [[17, 0, 0.5, 2, 0, 10, 10, 30, 30]]}}
    (tmp_path / "rows.json").write_text(json.dumps(rows | {"VID70": {"000012": []}}))
    silent = read_detections(tmp_path / "rows.json", truth)
    assert (len(silent), len(silent.empty)) == (0, 3)
    path = tmp_path / f"again{Path(PLACES[format]).suffix}"
    write_detections(silent, path, format, dataset=truth)
    assert sorted(read_detections(path, truth, format=format).empty.rows()) == sorted(silent.empty.rows())


def test_rows_say_that_they_forget_tracks(truth: GroundTruth, found: pl.DataFrame, tmp_path: Path) -> None:
    tracked = found.with_columns(track=pl.Series([4, None, 5]))
    report = write_detections(tracked, tmp_path / "rows.json", "rows", dataset=truth)
    assert report.losses == ("rows: tracks of 2 boxes are not kept",)
    report = write_detections(tracked, tmp_path / "tracked.csv", dataset=truth)
    assert report.losses == ()
    assert read_detections(tmp_path / "tracked.csv", truth).table["track"].to_list() == [4, None, 5]
    write_detections(tracked, tmp_path / "coco.json", dataset=truth)
    assert read_detections(tmp_path / "coco.json", truth).table["track"].to_list() == [4, None, 5]


def test_csv_keeps_zero_padding_and_skips_blank_lines(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("video,frame,triplet,score,x,y,w,h\nVID68,000012,17,0.5,1,2,30,40\n\n")
    back = read_detections(path, truth)
    assert back.table["frame"].to_list() == ["000012"]
    assert back.table.row(0)[2:6] == (17, *truth.space.triplets[17])


def test_components_alone_make_the_triplet(truth: GroundTruth, tmp_path: Path) -> None:
    i, v, t = truth.space.triplets[60]
    path = tmp_path / "found.csv"
    path.write_text(f"video,frame,instrument,verb,target,score,x,y,w,h\nVID68,000012,{i},{v},{t},0.5,1,2,30,40\n")
    assert read_detections(path, truth).table["triplet"].to_list() == [60]


def test_an_empty_cell_is_an_unknown_class(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("video,frame,triplet,instrument,score,x,y,w,h\nVID68,000012,,1,0.5,1,2,30,40\n")
    assert read_detections(path, truth).table.row(0)[2:6] == (-1, 1, -1, -1)


def test_yolo_lines_of_six_and_nine_fields(truth: GroundTruth, lines: Lines, tmp_path: Path) -> None:
    six = read_detections(lines(VID68_000012="17 0.5 0.25 0.1 0.2 0.9\n"), truth)
    np.testing.assert_allclose(six.table.select("x", "y", "w", "h").row(0), (384.3, 72.0, 85.4, 96.0), atol=1e-9)
    nine = tmp_path / "nine"
    (nine / "labels").mkdir(parents=True)
    (nine / "labels" / "VID68_000012.txt").write_text("-1 1 -1 -1 0.5 0.25 0.1 0.2 0.9\n")
    assert read_detections(nine, truth).table.row(0)[2:7] == (-1, 1, -1, -1, 0.9)


def test_a_lone_class_may_be_said_to_be_an_instrument(truth: GroundTruth, lines: Lines) -> None:
    folder = lines(VID68_000012="2 0.5 0.25 0.1 0.2 0.9")
    assert read_detections(folder, truth).table["triplet"].to_list() == [2]
    said = read_detections(folder, truth, classes="instrument").table
    assert (said["triplet"].to_list(), said["instrument"].to_list()) == ([-1], [2])


@pytest.mark.parametrize("line", ["17 0.5 0.25 0.1 0.2", "17 0 1 0 0.5 0.25 0.1 0.2"])
def test_yolo_lines_without_scores_are_read_with_score_1_and_a_warning(
    truth: GroundTruth, lines: Lines, line: str
) -> None:
    heard: list[Problem] = []
    back = read_detections(lines(VID68_000012=line), truth, on_problem=heard.append)
    assert (back.table["score"].to_list(), back.table["triplet"].to_list()) == ([1.0], [17])
    assert [(problem.kind, problem.level) for problem in heard] == [("scores-missing", "warning")]
    assert NO_SCORES in str(heard[0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("found.csv", "video,frame,triplet,x,y,w,h\nVID68,000012,17,1,2,30,40\nVID68,000012,18,1,2,30,40\n"),
        ("found.csv", "video,frame,triplet,score,x,y,w,h\nVID68,000012,17,,1,2,30,40\nVID68,000012,18,,1,2,30,40\n"),
        (
            "found.json",
            '[{"image_id": "VID68/000012.jpg", "category_id": 18, "bbox": [1, 2, 30, 40]},'
            ' {"image_id": "VID68/000012.jpg", "category_id": 19, "bbox": [1, 2, 30, 40]}]',
        ),
    ],
)
def test_a_file_without_any_score_is_read_with_score_1_and_a_warning(
    truth: GroundTruth, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    heard: list[Problem] = []
    back = read_detections(tmp_path / name, truth, on_problem=heard.append)
    assert (back.table["score"].to_list(), back.table["triplet"].to_list()) == ([1.0, 1.0], [17, 18])
    assert [str(problem) for problem in heard] == [f"{tmp_path / name}: {NO_SCORES}"]


def test_a_table_in_which_some_rows_lack_a_score_is_refused(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("video,frame,triplet,score,x,y,w,h\nVID68,000012,17,0.5,1,2,30,40\nVID68,000012,18,,1,2,30,40\n")
    with pytest.raises(DataError, match="score: found nothing, expected a finite number"):
        read_detections(path, truth)


def test_a_file_name_that_fits_two_frames_is_refused(lines: Lines) -> None:
    frames = [Frame("a", "b_1", 1, None, None, 64, 64), Frame("a_b", "1", 1, None, None, 64, 64)]
    truth = ground_truth(MemoryDataset(load_labels("cholect50"), frames))
    with pytest.raises(DataError, match=r"'a_b_1.txt', which could be frame b_1 of a or frame 1 of a_b"):
        read_detections(lines(a_b_1="17 0.5 0.25 0.1 0.2 0.9"), truth)
    found = pl.DataFrame({"video": ["a"], "frame": ["b_1"], "triplet": [1], "score": [0.5], "x": [1.0], "y": [2.0],
                          "w": [30.0], "h": [30.0]})  # fmt: skip
    with pytest.raises(BadInput, match="names that make one file name for one frame"):
        write_detections(found, lines().parent / "out", "yolo", dataset=truth)


def test_a_bare_frame_name_is_used_only_where_no_video_was_left_out(dataset: MemoryDataset, lines: Lines) -> None:
    folder = lines(**{"000019": "17 0.5 0.25 0.1 0.2 0.9"})
    assert read_detections(folder, dataset).table.row(0)[:2] == ("VID68", "000019")
    with pytest.raises(DataError, match=r"found '000019.txt', expected the name of a frame"):
        read_detections(folder, ground_truth(dataset, videos=["VID68"]))


def test_yolo_cuts_boxes_that_it_cannot_hold_and_says_so(
    truth: GroundTruth, found: pl.DataFrame, tmp_path: Path
) -> None:
    wide = found.with_columns(x=pl.Series([-200.0, -50.0, 10.0]), w=pl.Series([60.0, 1000.0, -5.0]))
    report = write_detections(wide, tmp_path / "yolo", "yolo", dataset=truth)
    assert report.losses == ("yolo: 3 boxes beyond the frame's edge were cut to the frame",)
    back = read_detections(tmp_path / "yolo", truth).table
    np.testing.assert_allclose(back["x"], [0.0, 0.0, 10.0], atol=1e-9)
    np.testing.assert_allclose(back["w"], [0.0, 854.0, 0.0], atol=1e-9)


def test_cholect50_keys_are_frame_numbers(truth: GroundTruth, tmp_path: Path) -> None:
    row = [17, 0, 0.75, 0.5, 0.25, 0.1, 0.2, -1, -1, -1, -1, -1, -1, -1, 3]
    phase = [-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 3]
    (tmp_path / "VID68.json").write_text(json.dumps({"video": 68, "annotations": {"12": [row, phase], "19": []}}))
    back = read_detections(tmp_path / "VID68.json", truth)
    assert back.format == "cholect50"
    assert back.table.row(0)[:7] == ("VID68", "000012", 17, *truth.space.triplets[17], 0.75)
    np.testing.assert_allclose(back.table.row(0)[7:], (427.0, 120.0, 85.4, 96.0), atol=1e-9)
    assert back.empty.rows() == [("VID68", "000019")]


def test_predictions_in_the_layout_of_the_labels_open_as_a_dataset(
    truth: GroundTruth, found: pl.DataFrame, tmp_path: Path
) -> None:
    write_detections(found, tmp_path / "out", "cholect50", dataset=truth)
    frames = list(open_dataset(tmp_path / "out").frames("VID68"))
    assert [instance.score for frame in frames for instance in frame.instances] == [0.9, 0.75, 0.3]


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_rows_are_pixels_or_fractions_as_the_whole_file_shows(truth: GroundTruth, tmp_path: Path, scale: float) -> None:
    box = [0.1, 0.2, 0.3, 0.4] if scale == 1.0 else [85.4, 96.0, 256.2, 192.0]
    (tmp_path / "rows.json").write_text(json.dumps({"VID68": {"000012": [[17, 0, 0.9, *box]]}}))
    back = read_detections(tmp_path / "rows.json", truth).table
    np.testing.assert_allclose(back.select("x", "y", "w", "h").row(0), (85.4, 96.0, 256.2, 192.0), atol=1e-9)


def test_rows_in_lists_need_one_entry_per_frame(truth: GroundTruth, tmp_path: Path) -> None:
    row = [17, 0, 0.9, 0.1, 0.1, 0.2, 0.2]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"VID70": [[], [row, row]]}))
    assert read_detections(path, truth).table["frame"].to_list() == ["000033"] * 2
    path.write_text(json.dumps({"VID68": [[row], [], []]}))  # with the unlabelled frame
    assert read_detections(path, truth).table["frame"].to_list() == ["000012"]
    path.write_text(json.dumps({"VID68": [[row]]}))
    message = "video VID68: frames: found 1 frames, expected the 2 labelled frames of the dataset"
    with pytest.raises(DataError, match=message):
        read_detections(path, truth)


def test_coco_results_are_joined_by_the_ids_of_the_dataset(
    dataset: MemoryDataset, found: pl.DataFrame, tmp_path: Path
) -> None:
    convert(dataset, tmp_path / "coco", "coco", images=False)
    truth = ground_truth(open_dataset(tmp_path / "coco"))
    report = write_detections(found, tmp_path / "results.json", dataset=truth)
    results = json.loads((tmp_path / "results.json").read_text())
    assert (report.losses, results[0]["image_id"], results[0]["category_id"]) == ((), 1, 18)
    back = read_detections(tmp_path / "results.json", truth)
    assert back.table.select("video", "frame", "triplet").rows() == found.select("video", "frame", "triplet").rows()
    results[0]["image_id"] = 77
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(DataError, match="annotation 0: image_id: found 77, expected the id of an image of the dataset"):
        read_detections(tmp_path / "results.json", truth)


def test_coco_ids_that_two_files_of_the_dataset_use_are_refused(tmp_path: Path) -> None:
    for split in ("train", "val"):
        document = {
            "images": [{"id": 1, "file_name": f"{split}_1/000001.jpg", "width": 640, "height": 480}],
            "categories": [{"id": 1, "name": "grasper"}],
            "annotations": [],
        }
        (tmp_path / f"{split}_annotations.json").write_text(json.dumps(document))
    truth = ground_truth(open_dataset(tmp_path))
    results = tmp_path / "results.json"
    results.write_text(json.dumps([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], "score": 0.5}]))
    with pytest.raises(DataError, match="image_id: found 1, an image in several files of the dataset"):
        read_detections(results, truth)
    row = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], "score": 0.5, "file_name": "val_1/000001.jpg"}
    results.write_text(json.dumps([row]))
    assert read_detections(results, truth).table.row(0)[:2] == ("val_1", "000001")


def test_coco_results_name_their_frames_where_the_dataset_has_no_ids(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    row = {"image_id": "VID68_000012", "category_id": 18, "bbox": [1, 2, 30, 40], "score": 0.5}
    path.write_text(json.dumps([row]))
    assert read_detections(path, truth).table.row(0)[:3] == ("VID68", "000012", 17)
    path.write_text(json.dumps([row | {"image_id": 1}]))
    with pytest.raises(DataError, match="image_id: found 1, expected a file_name beside it: the dataset has no ids"):
        read_detections(path, truth)
    path.write_text(json.dumps([row | {"file_name": "VID99/000019.jpg"}]))  # a frame name that only VID68 has
    with pytest.raises(DataError, match=r"file_name: found 'VID99/000019.jpg', expected the name of a frame"):
        read_detections(path, truth)
    path.write_text(json.dumps([row | {"category_id": 0}]))
    with pytest.raises(DataError, match=r"category_id: found 0, expected a class id \+ 1"):
        read_detections(path, truth)


def test_coco_categories_are_read_by_name(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    document = {
        "annotations": [{"image_id": 5, "category_id": 40, "bbox": [1, 2, 30, 40], "score": 0.5},
                        {"image_id": 5, "category_id": 41, "bbox": [1, 2, 30, 40], "score": 0.5}],
        "images": [{"id": 5, "file_name": "frames/VID68/000012.png"}],
        "categories": [{"id": 40, "name": "Grasper_Retract_Gallbladder"}, {"id": 41, "name": "hook"}],
    }  # fmt: skip
    path.write_text(json.dumps(document))
    hook = truth.space.id("instrument", "hook")
    assert read_detections(path, truth).table.select("triplet", "instrument").rows() == [(17, 0), (-1, hook)]
    document["categories"][1]["name"] = "spoon"
    path.write_text(json.dumps(document))
    message = r"annotation 1: category_id: found 41 \('spoon'\), expected a category named after a triplet"
    with pytest.raises(DataError, match=message):
        read_detections(path, truth)


def test_coco_says_what_it_cannot_hold(truth: GroundTruth, found: pl.DataFrame, tmp_path: Path) -> None:
    partial = found.drop("triplet").with_columns(instrument=pl.Series([0, 1, -1]), verb=pl.Series([-1, 2, 2]))
    report = write_detections(partial, tmp_path / "found.json", dataset=truth)
    assert report.rows == 2
    assert report.losses == (
        "coco: verbs and targets of 1 boxes without a triplet are not kept",
        "coco: 1 boxes without a category were left out",
    )


def test_formats_are_told_apart(truth: GroundTruth, found: pl.DataFrame, tmp_path: Path) -> None:
    for format, place in PLACES.items():
        folder = tmp_path / format
        write_detections(found, folder / place, format, dataset=truth)
        assert detect_format(folder / place) == format
    (tmp_path / "yolo" / "found" / "more.json").write_text("{}")
    with pytest.raises(BadInput, match=r"found .txt and .json files, expected one format"):
        detect_format(tmp_path / "yolo" / "found")
    (tmp_path / "odd.json").write_text('{"info": {"by": ["someone"]}, "licenses": []}')
    with pytest.raises(BadInput, match="JSON of unknown shape"):
        detect_format(tmp_path / "odd.json")


def test_a_coco_file_is_not_taken_for_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"info": {}, "licenses": [], "annotations": [{"image_id": 1}], "images": []}')
    assert detect_format(path) == "coco"


def test_nothing_is_left_behind_when_writing_fails(truth: GroundTruth, found: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="score outside 0 to 1"):
        write_detections(found.with_columns(score=pl.lit(7.5)), tmp_path / "out", "yolo", dataset=truth)
    assert list(tmp_path.iterdir()) == []
    write_detections(found, tmp_path / "out", "yolo", dataset=truth)
    with pytest.raises(BadInput, match="found something there already"):
        write_detections(found, tmp_path / "out", "cholect50", dataset=truth)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_frame_size_that_a_format_assumes_is_known_behind_views_of_it(tmp_path: Path) -> None:
    (tmp_path / "copesd").mkdir()
    talk = [{"from": "human", "value": "What next?"}, {"from": "gpt", "value": "Use the Knife[0.1, 0.2, 0.5, 0.6]."}]
    (tmp_path / "copesd" / "smllm_test.json").write_text(json.dumps([{"image": "1/0001.jpg", "conversations": talk}]))
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "boxes.csv").write_text("v,f,c,x,y,w,h\nV1,1,Knife,0.1,0.1,0.2,0.2\n")
    (tmp_path / "table" / "mapping.toml").write_text(
        'table = "boxes.csv"\nvideo = "v"\nframe = "f"\nclass = "c"\nbox = ["x", "y", "w", "h"]\nnormalised = true\n'
    )
    rules = MergeMap.from_json({"instruments": {"Knife": "knife"}})
    for name in ("copesd", "table"):
        dataset = open_dataset(tmp_path / name)
        for view in (dataset, merged(dataset, rules), join_boxes(dataset, dataset)):
            assert ground_truth(view).assumed_size == (1000, 1000)


def test_boxes_in_pixels_are_doubted_where_no_image_told_the_size(tmp_path: Path) -> None:
    heard: list[Problem] = []
    space = load_labels("cholect50")
    instance = Instance(Triplet(*space.triplets[17]), Box(10, 20, 30, 40))
    frame = Frame("VID68", "000012", 12, None, None, 854, 480, (instance,))
    convert(MemoryDataset(space, [frame]), tmp_path / "yolo", "yolo5", images=False)
    truth = ground_truth(open_dataset(tmp_path / "yolo"))
    assert truth.assumed_size == (640, 640)
    found = pl.DataFrame({"video": ["VID68"], "frame": ["000012"], "triplet": [17], "score": [0.5], "x": [10.0],
                          "y": [20.0], "w": [30.0], "h": [40.0]})  # fmt: skip
    join(found, truth, on_problem=heard.append)
    assert "boxes in pixels of a dataset without images, whose frames are taken as 640 × 640" in str(heard[0])
