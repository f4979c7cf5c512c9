"""Boxes in arrays: the numbers of `score_triplets` on the same data, and of pycocotools."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import surgeval
from surgeval import compare
from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import ground_truth
from surgeval.errors import BadInput
from surgeval.metrics import CONVENTIONS
from surgeval.protocols.triplets import TripletScores, load_triplets, score_detection, score_recognition, score_triplets
from surgeval.protocols.triplets.page import write_page_of
from surgeval.protocols.triplets.readable import readable_scores
from surgeval.vocab import LabelSpace, load_labels

RECORDED = sorted((Path(__file__).parents[2] / "data" / "pycocotools").glob("*.json.gz"))


def columns(dataset: MemoryDataset) -> dict[str, Any]:
    """The labelled boxes of a dataset as plain columns."""
    truth = ground_truth(dataset)
    names = truth.scored[truth.boxes.frame]
    return {
        "video": names["video"].to_list(),
        "frame": names["frame"].to_list(),
        "class": truth.boxes.classes["ivt"],
        "box": truth.boxes.xywh,
    }


def said(table: pl.DataFrame) -> pl.DataFrame:
    """A prediction table under the names of arrays."""
    return table.rename({"triplet": "class"}).select("video", "frame", "class", "score", "x", "y", "w", "h")


def numbers(scores: TripletScores) -> list[str]:
    return [repr(number) for number in scores.numbers]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_arrays_score_as_the_same_data_in_a_dataset(
    theatre: MemoryDataset, poor: pl.DataFrame, convention: Any
) -> None:
    whole = score_triplets(poor, theatre, convention=convention)
    arrays = score_detection(said(poor), columns(theatre), space=theatre.space, convention=convention)
    assert numbers(arrays) == numbers(whole)
    for name in ("classes_ivt", "conventions", "association", "thresholds"):
        assert arrays.tables[name].equals(whole.tables[name])


def test_the_order_of_frames_does_not_matter(theatre: MemoryDataset, poor: pl.DataFrame) -> None:
    tied = said(poor).with_columns(score=pl.col("score").round(1))
    videos = [video.name for video in theatre.videos()]
    truth = pl.DataFrame({**columns(theatre), "box": columns(theatre)["box"].tolist()})
    plain, shuffled = (
        score_detection(table, truth, space=theatre.space, videos=videos)
        for table in (tied, tied.sort("frame", maintain_order=True))
    )
    assert numbers(plain) == numbers(shuffled)


@pytest.mark.parametrize("box_format", ["xyxy", "cxcywh"])
def test_other_box_formats_are_the_same_boxes(theatre: MemoryDataset, poor: pl.DataFrame, box_format: Any) -> None:
    truth, table = columns(theatre), said(poor)
    found = {name: table[name].to_numpy() for name in ("video", "frame", "class", "score")}
    xywh = {"truth": truth["box"], "found": table.select("x", "y", "w", "h").to_numpy()}

    def turned(boxes: Any) -> Any:
        corner, size = boxes[:, :2], boxes[:, 2:]
        return np.hstack([corner, corner + size] if box_format == "xyxy" else [corner + size / 2, size])

    options: dict[str, Any] = {"space": theatre.space}
    plain = score_detection({**found, "box": xywh["found"]}, truth, **options)
    other = score_detection(
        {**found, "box": turned(xywh["found"])},
        {**truth, "box": turned(xywh["truth"])},
        box_format=box_format,
        **options,
    )
    # The corners are sums, so the last digit of a coordinate may differ; no overlap lies that close to a threshold.
    assert [n.interval.estimate for n in other.numbers] == pytest.approx(
        [n.interval.estimate for n in plain.numbers], nan_ok=True
    )


def test_a_prediction_in_a_frame_without_truth_is_a_false_positive() -> None:
    truth = {"video": ["v"], "frame": [1], "class": [0], "box": [[0, 0, 4, 4]]}
    right = {**truth, "score": [0.5]}
    stray = {"video": ["v", "v"], "frame": [1, 2], "class": [0, 0], "box": [[0, 0, 4, 4]] * 2, "score": [0.5, 0.9]}
    assert score_detection(right, truth).number().estimate == 1
    # The stray ranks first, so precision is 1/2 at every recall.
    assert score_detection(stray, truth).number().estimate == pytest.approx(0.5)


def test_two_classes_of_which_one_is_half_found_by_hand() -> None:
    truth = {"video": list("aabb"), "frame": [1, 2, 1, 2], "class": [0, 0, 1, 1], "box": [[0, 0, 4, 4]] * 4}
    found = {"video": list("abb"), "frame": [1, 1, 2], "class": [0, 1, 1], "box": [[0, 0, 4, 4]] * 3,
             "score": [0.9, 0.8, 0.7]}  # fmt: skip
    scores = surgeval.score_detection(found, truth)
    assert scores.number("ivt", "mAP50").estimate == pytest.approx((51 / 101 + 1) / 2)
    assert scores.number("ivt", "R").estimate == pytest.approx(0.75)
    assert scores.tables["classes_ivt"]["instances"].to_list() == [2, 2]
    assert scores.settings["videos"] == ["a", "b"]


def test_nothing_predicted_scores_zero(theatre: MemoryDataset) -> None:
    nothing: dict[str, Any] = {name: [] for name in ("video", "frame", "class", "box", "score")}
    scores = score_detection(nothing, columns(theatre), space=theatre.space)
    assert scores.number().estimate == 0
    assert scores.number("i", "R").estimate == 0


def test_videos_without_boxes_widen_the_resamples() -> None:
    truth = {"video": ["a", "b"], "frame": [1, 1], "class": [0, 0], "box": [[0, 0, 4, 4]] * 2}
    scores = score_detection({**truth, "score": [1, 1]}, truth, videos=["a", "empty", "b"])
    assert scores.number().clusters == 3
    with pytest.raises(BadInput, match="videos: found no video 'b', expected each video of the tables once"):
        score_detection({**truth, "score": [1, 1]}, truth, videos=["a"])


def test_a_given_threshold_is_used_and_not_called_optimistic(theatre: MemoryDataset, poor: pl.DataFrame) -> None:
    truth, table = columns(theatre), said(poor)
    chosen = score_detection(table, truth, space=theatre.space)
    given = score_detection(table, truth, space=theatre.space, thresholds=dict.fromkeys("ivt", 0.9))
    assert any("they are optimistic" in note for note in chosen.notes)
    assert given.thresholds["i"] == 0.9
    assert given.number("i", "R").estimate < chosen.number("i", "R").estimate


def test_arrays_make_a_run_with_a_page(theatre: MemoryDataset, poor: pl.DataFrame, tmp_path: Path) -> None:
    scores = score_detection(said(poor), columns(theatre), space=theatre.space, name="arrays")
    assert write_page_of([scores], scores.save(tmp_path).parent).is_file()
    assert numbers(load_triplets(tmp_path)) == numbers(scores)


@pytest.mark.parametrize("file", RECORDED, ids=lambda path: path.name.split(".")[0])
def test_arrays_score_as_pycocotools_recorded(file: Path) -> None:
    recorded = json.loads(gzip.decompress(file.read_bytes()))
    sizes = recorded["n_classes"]
    parts = [tuple(f"{part}{k}" for k in range(sizes[part])) for part in "ivt"]
    space = LabelSpace("recorded", parts[0], parts[1], parts[2], tuple(map(tuple, recorded["triplets"])))
    tables = [np.array(recorded[side], float) for side in ("gt", "pd")]
    truth, found = (
        {"video": ["v"] * len(table), "frame": table[:, 0].astype(int), "class": table[:, 1], "box": table[:, -4:]}
        for table in tables
    )
    scores = score_detection({**found, "score": tables[1][:, 2]}, truth, space=space, convention="coco")
    for component, expected in recorded["expected"].items():
        assert scores.number(component, "mAP50").estimate == pytest.approx(expected["AP50"], abs=1e-6)
        assert scores.number(component, "mAP50:95").estimate == pytest.approx(expected["AP"], abs=1e-6)
        assert scores.number(component, "AR").estimate == pytest.approx(expected["AR100"], abs=1e-6)


TRUTH: dict[str, Any] = {"video": ["a"], "frame": [1], "class": [0], "box": [[0, 0, 40, 40]]}


@pytest.mark.parametrize(
    ("truth", "found", "options", "sentence"),
    [
        ({"class": None}, {}, {}, "targets: found video, frame, box, expected a column 'class'"),
        ({}, {"score": None}, {}, "predictions: found video, frame, class, box, expected a column 'score'"),
        ({"frame": [1, 2]}, {}, {}, "targets: frame: found 2 rows, expected 1 as in video"),
        ({}, {"box": [[0, 0, 4]]}, {}, "predictions: xywh: found shape (1, 3), expected four numbers per row"),
        ({}, {"score": [float("nan")]}, {}, "predictions: row 0: score: found nan, expected finite numbers"),
        ({}, {"frame": ["1"]}, {}, "frame: found whole numbers in one table and text in the other"),
        ({"frame": [1.5]}, {}, {}, "targets: frame: found Float64, expected whole numbers or text"),
        ({"video": [None]}, {}, {}, "targets: video: found an empty value, expected whole numbers or text"),
        ({}, {"box": [[0, 0, 0.5, 0.5]]}, {}, "predictions: box: found fractions of a frame"),
        ({"class": [-1]}, {}, {}, "targets: row 0: class: found -1, expected an id from 0"),
        (
            {},
            {"class": [100]},
            {"space": "cholect50"},
            "predictions: row 0: class: found 100, expected an id from 0 to 99",
        ),
        ({}, {"class": [10**6]}, {}, "predictions: row 0: class: found 1000000, expected an id from 0 to 4095"),
        ({}, {}, {"components": ["i"]}, "component 'i': expected one of ivt"),
        ({}, {}, {"box_format": "yxyx"}, "box_format 'yxyx': expected one of xywh, xyxy, cxcywh"),
        ({}, {}, {"convention": "voc"}, "convention 'voc': expected one of coco"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_sentence(
    truth: dict[str, Any], found: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    def table(change: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {name: value for name, value in {**TRUTH, **more, **change}.items() if value is not None}

    with pytest.raises(BadInput) as error:
        score_detection(table(found, score=[0.5]), table(truth), **options)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"video": None}, "predictions: video: found NoneType, expected a column"),
        ({"frame": np.array(5)}, "predictions: frame: found ndarray, expected a column"),
        ({"frame": [np.array([[1j]])]}, "predictions: frame: found lists or the like, expected whole numbers or text"),
        ({"class": [[0, [1]]]}, "predictions: class: found rows of several lengths, expected one column"),
        ({"class": [np.inf]}, "predictions: class: found float64 values that are no whole numbers"),
        ({"score": [[0.5, 0.5]]}, r"predictions: score: found shape \(1, 2\), expected one number per row"),
        ({"score": [10**400]}, "predictions: score: found int too large to convert to float, expected numbers"),
        ({"score": [1j]}, "predictions: score: found complex numbers, expected numbers"),
    ],
)
def test_columns_that_hold_no_numbers_are_refused_in_one_sentence(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        score_detection({**TRUTH, "score": [0.5], **changed}, TRUTH)


LABELS = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("targets", "scores", "videos", "options", "message"),
    [
        ([[1, 0], [0]], LABELS, ["a", "b"], {}, "targets: found rows of several lengths, expected"),
        (LABELS, [[1, 0], [0]], ["a", "b"], {}, "predictions: found rows of several lengths, expected"),
        (LABELS, [["x", "y"]] * 2, ["a", "b"], {}, "scores: found could not convert string to float"),
        (LABELS, [[1j, 0]] * 2, ["a", "b"], {}, "scores: found complex numbers, expected numbers"),
        (LABELS, LABELS, None, {}, "videos: found NoneType, expected the video of each frame"),
        (LABELS, LABELS, ["a", "\ud800"], {}, r"videos: found \\ud800, expected names in Unicode"),
        (LABELS, LABELS, ["a", "b"], {"components": ["x"]}, "component 'x': expected one of ivt"),
        (LABELS, LABELS, ["a", "b"], {"components": "ivt"}, "components: found 'ivt', expected a list of ivt"),
        (LABELS, LABELS, ["a", "b"], {"space": 5}, "space: found int, expected a label space or the name of one"),
    ],
)
def test_labels_and_scores_that_are_no_arrays_are_refused_in_one_sentence(
    targets: Any, scores: Any, videos: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        score_recognition(scores, targets, videos, **options)


def test_a_list_is_not_a_table() -> None:
    with pytest.raises(BadInput, match="targets: found list, expected columns by name"):
        score_detection({}, [])  # type: ignore[arg-type]


def test_a_label_space_without_triplets_scores_instruments() -> None:
    scores = score_detection({**TRUTH, "score": [1]}, TRUTH, space=load_labels("cholec80"))
    assert scores.settings["components"] == ["i"]
    assert scores.number("i").estimate == 1


def test_classes_that_nobody_calls_triplets_are_called_classes() -> None:
    labels = np.eye(3)[[0, 1, 2] * 8]
    videos = [f"v{k // 3}" for k in range(24)]
    bare = score_recognition(labels, labels, videos)
    assert bare.headlines()[0].label == "mAP" and "IVT" not in repr(bare)
    assert "It finds classes better than the class frequencies: mAP 1.000" in str(bare.verdict())
    assert readable_scores(bare)[0].frame["component"].to_list() == ["classes"]
    assert all("triplet" not in figure.title for figure in bare.figures.values())
    assert compare(bare, bare).numbers[0].label == "mAP"
    assert bare.number() == bare.headlines()[0].interval


def test_no_part_of_the_cost_aware_f1_reaches_beyond_its_weight() -> None:
    space = load_labels("phantom")
    truth = {"video": [f"v{k}" for k in range(7)], "frame": [1] * 7, "class": [0, 1, 0, 1, 0, 1, 0],
             "box": [[0, 0, 4, 4]] * 7}  # fmt: skip
    found = {**truth, "class": [0, 1, 0, 1, 0, 0, 1], "score": [0.9] * 7}
    scores = score_detection(found, truth, space=space)
    parts = {one.key.component: one.interval for one in scores.numbers if one.key.scope == "cost-aware"}
    for part, weight in {"bbox": 0.1, "i": 0.5, "v": 0.2, "t": 0.2, "ivt": 1.0}.items():
        assert parts[part].low <= parts[part].estimate <= parts[part].high <= weight + 1e-12, part
