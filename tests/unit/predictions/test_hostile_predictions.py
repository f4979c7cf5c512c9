"""Files that nobody vouches for: every sentence names the file, the record and the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.datasets import Problem
from surgeval.datasets.predictions import GroundTruth, join, read_detections, write_detections
from surgeval.errors import BadInput, DataError

HEAD = "video,frame,triplet,instrument,verb,target,score,x,y,w,h\n"
GOOD = {"video": "VID68", "frame": "000012", "triplet": "17", "instrument": "0", "verb": "-1", "target": "-1",
        "score": "0.9", "x": "10", "y": "20", "w": "30", "h": "40"}  # fmt: skip
Lines = Callable[..., Path]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("score", "nan", "score: found 'nan', expected a finite number"),
        ("score", "inf", "score: found 'inf', expected a finite number"),
        ("score", "high", "score: found 'high', expected a finite number"),
        ("score", "", "score: found nothing, expected a finite number"),
        ("score", "1_0", "score: found '1_0', expected a finite number"),
        ("x", "NaN", "x: found 'NaN', expected a finite number"),
        ("h", "-inf", "h: found '-inf', expected a finite number"),
        ("w", "1e300", "w: found '1e300', expected at most 1e+06 pixels"),
        ("y", "-1e9", "y: found '-1e9', expected at most 1e+06 pixels"),
        ("triplet", "100", "triplet: found '100', expected a class id from 0 to 99, or -1"),
        ("triplet", "-2", "triplet: found '-2', expected a class id from 0 to 99, or -1"),
        ("triplet", "17.5", "triplet: found '17.5', expected a class id from 0 to 99, or -1"),
        ("triplet", "nan", "triplet: found 'nan', expected a class id from 0 to 99, or -1"),
        ("instrument", "6", "instrument: found '6', expected a class id from 0 to 5, or -1"),
        (
            "instrument",
            "2",
            "instrument: found 2 beside triplet 17 (grasper,retract,gallbladder), expected instrument 0",
        ),
        ("verb", "0", "verb: found 0 beside triplet 17 (grasper,retract,gallbladder), expected verb 1"),
        ("target", "14", "target: found 14 beside triplet 17 (grasper,retract,gallbladder), expected target 0"),
        ("video", "", "video: found nothing, expected the name of a video"),
        ("frame", "", "frame: found nothing, expected the name of a frame"),
        ("frame", "12", "frame: found '12', expected a frame of video VID68 (did you mean '000012'?)"),
        ("frame", "../12", "frame: found '../12', expected a frame of video VID68 (did you mean '000012'?)"),
        ("video", "VID99", "video: found 'VID99', expected a video of memory (such as 'VID68', 'VID70')"),
    ],
)
def test_a_bad_value_in_a_table_is_named(
    truth: GroundTruth, tmp_path: Path, field: str, value: str, sentence: str
) -> None:
    path = tmp_path / "found.csv"
    good, bad = ",".join(GOOD.values()), ",".join((GOOD | {field: value}).values())
    path.write_text(f"{HEAD}{good}\n{bad}\n{good}\n")
    with pytest.raises(DataError) as error:
        read_detections(path, truth)
    assert str(error.value).startswith(f"{path}: line 3 (")
    assert str(error.value).endswith(f"): {sentence}")
    heard: list[Problem] = []
    back = read_detections(path, truth, on_problem=heard.append)
    assert (len(back), len(heard), sum(back.problems.values())) == (2, 1, 1)


def test_an_impossible_combination_of_components_is_named(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text(HEAD + "VID68,000012,-1,5,0,0,0.5,1,2,30,40\n")
    with pytest.raises(DataError, match="triplet: found instrument 5, verb 0, target 0, expected one of the 100 trip"):
        read_detections(path, truth)
    path.write_text(HEAD + "VID68,000012,-1,-1,-1,-1,0.5,1,2,30,40\n")
    with pytest.raises(DataError, match="triplet: found no class, expected a class id"):
        read_detections(path, truth)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "an empty file"),
        (HEAD + ",".join([*GOOD.values(), "9", "9"]) + "\n", "line 2: found 13 fields, expected 11 fields as in"),
        (
            HEAD.replace("score", "conf") + "a\n",
            ": score: found the columns video, frame, triplet, instrument, verb, target, conf, x, y, w, h, expected "
            "video, frame, score, x, y, w, h and triplet (or instrument, verb, target); 'conf' is probably score",
        ),
        (
            "video,Frame_ID,class,Confidence,x1,y1,x2,y2\na\n",
            ": frame, score, x, y, w, h, triplet: found the columns video, Frame_ID, class, Confidence, x1, y1, x2, y2"
            ", expected video, frame, score, x, y, w, h and triplet (or instrument, verb, target); 'Frame_ID' is "
            "probably frame, 'Confidence' is probably score, 'x1' is probably x, 'y1' is probably y",
        ),
        (HEAD.replace("score", "scroe") + "a\n", "; 'scroe' is probably score"),
        ("nothing,of,this\na\n", "found the columns nothing, of, this, expected video, frame, score"),
        (HEAD.replace("verb", "score"), "score: found the column twice, expected each column once"),
        (HEAD.replace(",", ";"), "video, frame, score, x, y, w, h, triplet: found the columns video;frame;"),
    ],
)
def test_a_table_of_the_wrong_shape_is_named(truth: GroundTruth, tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "found.csv"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_detections(path, truth)
    assert str(error.value).startswith(str(path))
    assert sentence in str(error.value)


def test_a_column_without_meaning_is_left_out_and_told(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text(HEAD.replace("h\n", "h,model\n") + ",".join([*GOOD.values(), "yolo"]) + "\n")
    heard: list[Problem] = []
    back = read_detections(path, truth, on_problem=heard.append)
    assert (len(back), [(p.kind, p.field, p.level) for p in heard]) == (1, [("column-unknown", "model", "warning")])


@pytest.mark.parametrize("column", [pl.Series([True]), pl.Series([[1.0]]), pl.Series([b"x"]), pl.Series(["a"])])
def test_a_parquet_column_of_another_kind_is_named(
    truth: GroundTruth, found: pl.DataFrame, tmp_path: Path, column: pl.Series
) -> None:
    path = tmp_path / "found.parquet"
    found.head(1).with_columns(x=column).write_parquet(path)
    with pytest.raises(DataError, match=r"found.parquet: row 0 \(VID68 000012\): x: found .*, expected a finite numbe"):
        read_detections(path, truth)
    found.head(1).with_columns(video=pl.lit(1.5)).write_parquet(path)
    with pytest.raises(DataError, match=r"video: found 1.5, expected text"):
        read_detections(path, truth)


def test_broken_parquet_is_told(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.parquet"
    path.write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(DataError, match=r"found.parquet: found .*, expected a readable Parquet file"):
        read_detections(path, truth)


def test_one_flipped_bit_that_ends_the_interpreter_is_told(
    truth: GroundTruth, found: pl.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "found.parquet"
    pl.concat([found.head(1)] * 300).write_parquet(path)
    whole = path.read_bytes()
    damaged = whole.replace(b",\x15\xd8\x04", b",\x15\xd9\x04", 1)  # a page of −301 values instead of 300
    assert damaged != whole
    path.write_bytes(damaged)
    heard: list[Problem] = []
    assert len(read_detections(path, truth, on_problem=heard.append)) == 0
    assert [problem.kind for problem in heard] == ["table-broken"]


def test_fractions_where_pixels_are_due_are_refused_whole(truth: GroundTruth, found: pl.DataFrame) -> None:
    small = found.with_columns(pl.col("x", "w") / 854, pl.col("y", "h") / 480)
    message = "x, y, w, h: found boxes that all lie within 1.5 pixels of the corner, expected pixels of the original"
    with pytest.raises(DataError, match=message):
        join(small, truth)


def test_odd_but_usable_boxes_are_told_in_one_sentence(truth: GroundTruth, found: pl.DataFrame) -> None:
    heard: list[Problem] = []
    odd = found.with_columns(x=pl.Series([5000.0, 400.0, 10.0]), w=pl.Series([60.0, 0.0, -3.0]), score=pl.lit(1.5))
    assert len(join(odd, truth, on_problem=heard.append).predictions) == 3
    told = {problem.kind: str(problem) for problem in heard}
    assert set(told) == {"box-degenerate", "box-off-frame", "score-outside"}
    assert "row 1 (VID68 000012): w, h: found 0 × 90 pixels (and 1 more rows like it)" in told["box-degenerate"]
    assert "row 0 (VID68 000012): x, y, w, h: found (5000, 120) to (5060, 200)" in told["box-off-frame"]


@pytest.mark.parametrize(("x", "y"), [(-60.0, 120.0), (854.0, 120.0), (100.0, -80.0), (100.0, 480.0)])
def test_a_box_beyond_any_edge_of_the_frame_is_told(
    truth: GroundTruth, found: pl.DataFrame, x: float, y: float
) -> None:
    heard: list[Problem] = []
    join(found.head(1).with_columns(x=pl.lit(x), y=pl.lit(y)), truth, on_problem=heard.append)
    assert [problem.kind for problem in heard] == ["box-off-frame"]
    join(
        found.head(1).with_columns(x=pl.lit(x + np.sign(427 - x) * 0.5), y=pl.lit(y + np.sign(240 - y) * 0.5)),
        truth,
        on_problem=heard.append,
    )
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("17 0.5 0.25 0.1 0.2 0.9\n17 0.5 0.25 0.1 0.2\n", "line 2: found 5 fields after lines of 6"),
        ("17 0 2 0 0.5 0.25 0.1 0.2\n17 0 2 0 0.5 0.25 0.1 0.2 0.9\n", "line 2: found 9 fields after lines of 8"),
        ("17 0.5 0.25 0.1 0.2 0.9 4\n", "line 1: found 7 fields, which could be a box with a track or a row"),
        ("17 0.5\n", "line 1: found 2 fields, expected 6 fields"),
        ("17 0.5 0.25 0.1 0.2 0.9\n\n17 0 1 0 0.5 0.2 0.1 0.2 0.9", "line 3: found 9 fields after lines of 6"),
        ("17 0.5 0.25 nan 0.2 0.9", "line 1 (VID68 000012): w: found 'nan', expected a finite number"),
        ("17 427 120 85 96 0.9", "here 427, 120, 85, 96, expected fractions of the frame, not pixels"),
        ("17 0.5 0.25 0.1 0.2 12", "score: found '12', expected a score from 0 to 1 as the last field (a track id"),
        ("grasper 0.5 0.25 0.1 0.2 0.9", "triplet: found 'grasper', expected a class id from 0 to 99"),
        ("100 0.5 0.25 0.1 0.2 0.9", "triplet: found '100', expected a class id from 0 to 99"),
    ],
)
def test_a_bad_yolo_line_is_named(truth: GroundTruth, lines: Lines, text: str, sentence: str) -> None:
    folder = lines(VID68_000012=text)
    with pytest.raises(DataError) as error:
        read_detections(folder, truth)
    assert str(error.value).startswith(str(folder / "VID68_000012.txt"))
    assert sentence in str(error.value)


def test_a_box_outside_the_frame_is_kept_and_told_in_yolo_as_in_csv(
    truth: GroundTruth, lines: Lines, tmp_path: Path
) -> None:
    """Its centre lies outside: to the right, above, and far out among boxes that are where they should be."""
    boxes = [(1.25, 0.5, 0.1, 0.2), (0.5, -0.2, 0.1, 0.6), (2.5, 0.5, 0.1, 0.2), (0.5, 0.5, 0.1, 0.2)]
    folder = lines(VID68_000012="".join(f"17 {cx} {cy} {w} {h} 0.9\n" for cx, cy, w, h in boxes))
    rows = [
        f"VID68,000012,17,0.9,{(cx - w / 2) * 854},{(cy - h / 2) * 480},{w * 854},{h * 480}" for cx, cy, w, h in boxes
    ]
    table = tmp_path / "same.csv"
    table.write_text("\n".join(["video,frame,triplet,score,x,y,w,h", *rows]))
    told: dict[str, list[Problem]] = {"yolo": [], "csv": []}
    yolo = read_detections(folder, truth, on_problem=told["yolo"].append).table
    csv = read_detections(table, truth, on_problem=told["csv"].append).table
    assert len(yolo) == len(csv) == 4
    np.testing.assert_allclose(yolo.select("x", "y", "w", "h"), csv.select("x", "y", "w", "h"), atol=1e-9)
    assert [p.kind for p in told["yolo"]] == [p.kind for p in told["csv"]]
    assert {p.kind for p in told["yolo"]} == {"box-off-frame"}


def test_a_yolo_file_of_an_unknown_frame_is_named_even_when_it_is_empty(truth: GroundTruth, lines: Lines) -> None:
    folder = lines(VID68_12="")
    message = r"VID68_12.txt: file name: found 'VID68_12.txt', expected .*\(did you mean 'VID68_000012'\?\)"
    with pytest.raises(DataError, match=message):
        read_detections(folder, truth)


def test_bytes_that_are_no_text_are_told(truth: GroundTruth, lines: Lines) -> None:
    folder = lines(VID68_000012="")
    (folder / "VID68_000012.txt").write_bytes(b"17 0.5 \xff")
    with pytest.raises(DataError, match=r"VID68_000012.txt: found byte 0xff at offset 7, expected UTF-8 text"):
        read_detections(folder, truth)


NINE = [17, 0, 0.9, 1, 0, 10, 20, 30, 40]


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"VID68": {"000012": [NINE, NINE[:7]]}}, "VID68 000012, row 1: found 7 columns after rows of 9, expected"),
        ({"VID68": {"000012": [NINE[:7], NINE]}}, "VID68 000012, row 1: found 9 columns after rows of 7, expected"),
        ({"VID68": {"000012": [NINE[:8]]}}, "VID68 000012, row 0: found 8 columns, expected a row of 7 or of 9"),
        ({"VID68": {"000012": [[*NINE[:8], float("nan")]]}}, "row 0 (VID68 000012): h: found NaN, expected a finite"),
        ({"VID68": {"000012": [[*NINE[:8], 10**400]]}}, "h: found 1000"),
        ({"VID68": {"000012": [[*NINE[:8], "40"]]}}, "h: found '40', expected a finite number"),
        ({"VID68": {"000012": [[*NINE[:8], True]]}}, "h: found True, expected a finite number"),
        ({"VID68": {"000012": [[-3, *NINE[1:]]]}}, "triplet: found -3, expected a class id from 0 to 99, or -1"),
        ({"VID68": {"12": [NINE]}}, "frame: found '12', expected a frame of video VID68 (did you mean '000012'?)"),
        ({"VID68": {"12": []}}, "frame 12: frame: found '12', expected a frame of video VID68 (did you mean"),
        ({"VID67": {"000012": []}}, "video: found 'VID67', expected a video of memory"),
        ({"VID68": 7}, "video VID68: frames: found 7, expected frames by name, or a list of them"),
        ({"VID68": {"000012": 7}}, "VID68 000012: found 7, expected a JSON list"),
        ([], "found [], expected a JSON object"),
        ({"\ud800": {}}, "video: found '\\ud800', expected the name of a video"),
    ],
)
def test_bad_rows_are_named(truth: GroundTruth, tmp_path: Path, document: Any, sentence: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DataError) as error:
        read_detections(path, truth, format="rows")
    assert str(error.value).startswith(str(path))
    assert sentence in str(error.value)


ROW = {"image_id": "VID68/000012.jpg", "category_id": 18, "bbox": [1, 2, 30, 40], "score": 0.5}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (ROW | {"bbox": [1, 2, 3]}, "annotation 1: bbox: found [1, 2, 3], expected four numbers [x, y, w, h]"),
        (ROW | {"bbox": None}, "annotation 1: bbox: found nothing, expected four numbers"),
        (ROW | {"bbox": [1, 2, float("inf"), 4]}, "annotation 1 (VID68 000012): w: found Infinity, expected a finite"),
        (ROW | {"score": "0.5"}, "score: found '0.5', expected a finite number"),
        ({k: v for k, v in ROW.items() if k != "score"}, "annotation 1: score: found nothing, expected a score, as"),
        (ROW | {"category_id": 101}, "annotation 1: category_id: found 101, expected a class id + 1"),
        (ROW | {"category_id": [1]}, "annotation 1: category_id: found [1]"),
        (ROW | {"image_id": None}, "annotation 1: image_id: found nothing, expected the id of an image"),
        (ROW | {"image_id": "../../etc/passwd"}, "file_name: found '../../etc/passwd', expected the name of a frame"),
        (ROW | {"image_id": "VID68/12.jpg"}, "found 'VID68/12.jpg', expected the name of a frame of memory (did you "
                                             "mean 'VID68/000012'?)"),
        (ROW | {"track_id": 1.5}, "track: found 1.5, expected a whole number"),
        (7, "annotations[1]: found 7, expected a JSON object"),
    ],
)  # fmt: skip
def test_a_bad_coco_result_is_named(truth: GroundTruth, tmp_path: Path, row: Any, sentence: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([ROW, row]))
    with pytest.raises(DataError) as error:
        read_detections(path, truth)
    assert str(error.value).startswith(str(path))
    assert sentence in str(error.value)
    back = read_detections(path, truth, on_problem=lambda problem: None)
    assert len(back) == 1


@pytest.mark.parametrize("cut", [1, 20, 60, -2])
def test_a_cut_off_file_is_told_with_the_place(truth: GroundTruth, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([ROW, ROW])[:cut])
    with pytest.raises(DataError, match=r"results.json: found .* line 1 column"):
        read_detections(path, truth)


def test_text_after_the_end_of_a_results_list_is_told(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([ROW]) + json.dumps([ROW]))
    with pytest.raises(DataError, match="more after the end"):
        read_detections(path, truth)


_SCORED_ROW = [17, 0, 0.9, 0.1, 0.1, 0.1, 0.1, -1, -1, *[-1] * 6]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[17] * 14], "frame 12, row 0: found 14 items, expected a row of 15 items"),
        (7, "frame 12: found 7, expected a JSON list"),
        ([[17, 0, 0.9, -1, float("nan"), 0.1, 0.1, -1, -1, *[-1] * 6]], "row 0 (VID68 000012): y: found NaN"),
        (
            [_SCORED_ROW, [17, 0, None, 0.1, 0.1, 0.1, 0.1, -1, -1, *[-1] * 6]],
            "score: found nothing, expected a finite number",
        ),
        ([[17, 0, 0.9, 0.1, 0.1, 1e308, 0.1, -1, -1, *[-1] * 6]], "w: found 1e+308, expected at most 1e+06 pixels"),
    ],
)
def test_a_bad_cholect50_row_is_named(truth: GroundTruth, tmp_path: Path, rows: Any, sentence: str) -> None:
    path = tmp_path / "VID68.json"
    path.write_text(json.dumps({"annotations": {"12": rows}}))
    with pytest.raises(DataError) as error:
        read_detections(path, truth)
    assert str(error.value).startswith(str(path))
    assert sentence in str(error.value)


def test_arguments_that_make_no_sense_are_refused(truth: GroundTruth, found: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    found.write_csv(path)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"format": "voc"}, "format 'voc': expected one of table, coco, yolo, cholect50, rows"),
        ({"classes": "verb"}, "classes 'verb': expected triplet or instrument"),
    ]
    for options, message in cases:
        with pytest.raises(BadInput, match=message):
            read_detections(path, truth, **options)
    with pytest.raises(BadInput, match="found no such file or folder, expected predictions"):
        read_detections(tmp_path / "gone.csv", truth)
    with pytest.raises(BadInput, match="found a folder, expected a file of format coco"):
        read_detections(tmp_path, truth, format="coco")
    with pytest.raises(BadInput, match=r"expected .csv, .parquet or .json"):
        write_detections(found, tmp_path / "found.xlsx", dataset=truth)
