"""Joining predictions to a dataset: what is a miss, what is left out, what is an error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from surgeval.datasets import MemoryDataset, Problem
from surgeval.datasets.predictions import Detections, GroundTruth, ground_truth, join, read_detections
from surgeval.errors import BadInput, DataError
from surgeval.metrics import evaluate_detection
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

Table = Callable[..., pl.DataFrame]


def test_a_labelled_frame_without_predictions_is_a_miss(truth: GroundTruth, found: pl.DataFrame) -> None:
    joined = join(found, truth)
    assert joined.missing.rows() == [("VID70", "000012"), ("VID70", "000033")]
    data = joined.data()
    assert (data.n_frames, data.n_videos, len(data.targets), len(data.predictions)) == (4, 2, 3, 3)
    result = evaluate_detection(data, joined.n_classes())["ivt"].overall
    assert result.AP[17] == pytest.approx(51 / 101)  # one of two found, first in the ranking
    assert result.AP[60] == 1.0
    assert joined.notes()[0] == (
        "2 of 4 labelled frames have no predictions: their ground truths are misses (all frames of VID70)"
    )


def test_without_any_prediction_every_ground_truth_is_a_miss(truth: GroundTruth, found: pl.DataFrame) -> None:
    joined = join(found.clear(), truth)
    result = evaluate_detection(joined.data(), joined.n_classes())["i"].overall
    assert (len(joined.missing), result.mAP, result.mAR) == (4, 0.0, 0.0)


def test_components_of_a_prediction_follow_from_its_triplet(
    truth: GroundTruth, found: pl.DataFrame, space: LabelSpace
) -> None:
    joined = join(found, truth)
    assert joined.predictions.classes["v"].tolist() == [space.triplets[k][1] for k in (17, 60, 17)]
    assert joined.predictions.classes["it"].tolist() == space.component_ids("it")[[17, 60, 17]].tolist()


def test_the_order_of_rows_within_a_frame_is_kept(truth: GroundTruth, found: pl.DataFrame) -> None:
    swapped = found[[2, 1, 0]]
    data = join(swapped, truth).data()
    assert data.predictions.score.tolist() == [0.75, 0.9, 0.3]
    assert data.predictions.frame.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("frame", "meant"), [("12", "000012"), ("000012.jpg", "000012"), ("VID68_000012", "000012"), ("12.0", "000012")]
)
def test_an_unknown_frame_is_an_error_that_names_what_is_meant(
    truth: GroundTruth, found: pl.DataFrame, frame: str, meant: str
) -> None:
    wrong = found.with_columns(frame=pl.lit(frame))
    expected = f"predictions: row 0 \\(VID68 {frame}\\): frame: found '{frame}' in 3 rows, expected a frame of video "
    with pytest.raises(DataError, match=expected + f"VID68 \\(did you mean '{meant}'\\?\\)"):
        join(wrong, truth)


def test_a_frame_number_as_integer_is_not_taken_for_a_name(truth: GroundTruth, found: pl.DataFrame) -> None:
    with pytest.raises(DataError, match=r"frame: found '12'.*did you mean '000012'\?"):
        join(found.with_columns(frame=pl.lit(12)), truth)


def test_an_unknown_video_is_told_once(truth: GroundTruth, found: pl.DataFrame) -> None:
    heard: list[Problem] = []
    wrong = found.with_columns(video=pl.lit("VID068"))
    joined = join(wrong, truth, on_problem=heard.append)
    assert [str(problem) for problem in heard] == [
        "predictions: row 0 (VID068 000012): video: found 'VID068' in 3 rows, expected a video of memory "
        "(did you mean 'VID68'?)"
    ]
    assert len(joined.predictions) == 0


def test_a_frame_of_another_video_is_unknown_here(truth: GroundTruth, table: Table) -> None:
    with pytest.raises(DataError, match=r"row 0 \(VID70 000019\): frame: found '000019'.*VID70 \(such as '000012'"):
        join(table(("VID70", "000019", 17, 0.9, 1.0, 2.0, 30.0, 40.0)), truth)


def test_predictions_in_unlabelled_frames_are_left_out_and_said(truth: GroundTruth, table: Table) -> None:
    joined = join(table(("VID68", "000026", 17, 0.9, 1.0, 2.0, 30.0, 40.0)), truth)
    assert (joined.unlabelled, len(joined.predictions)) == (1, 0)
    assert "1 predictions in frames without labels were left out" in joined.notes()


def test_predictions_for_other_videos_of_the_dataset_are_left_out_of_a_fold(
    dataset: MemoryDataset, found: pl.DataFrame
) -> None:
    fold = ground_truth(dataset, videos=["VID70"])
    joined = join(found, fold)
    assert (joined.elsewhere, len(joined.predictions), len(joined.missing)) == (3, 0, 2)
    assert "3 predictions in videos that are not scored were left out" in joined.notes()


def test_detections_read_for_one_fold_are_not_joined_to_another(
    dataset: MemoryDataset, found: pl.DataFrame, tmp_path: object
) -> None:
    path = f"{tmp_path}/found.csv"
    found.write_csv(path)
    detections = read_detections(path, ground_truth(dataset, videos=["VID70"]))
    assert detections.elsewhere == 3
    with pytest.raises(BadInput, match="not read for video 'VID68'"):
        join(detections, ground_truth(dataset, videos=["VID68"]))


def test_a_fold_is_the_same_as_selecting_its_videos_afterwards(dataset: MemoryDataset, found: pl.DataFrame) -> None:
    chosen = join(found, ground_truth(dataset, videos=["VID68"])).data()
    selected = join(found, dataset).data().select_videos([0])
    np.testing.assert_array_equal(chosen.predictions.xywh, selected.predictions.xywh)
    np.testing.assert_array_equal(chosen.targets.xywh, selected.targets.xywh)
    assert chosen.n_frames == selected.n_frames == 2


def test_an_unknown_class_is_an_error_only_where_it_is_scored(truth: GroundTruth, table: Table) -> None:
    columns = ("video", "frame", "instrument", "score", "x", "y", "w", "h")
    joined = join(table(("VID68", "000012", 0, 0.9, 101.0, 120.0, 60.0, 80.0), columns=columns), truth)
    assert evaluate_detection(joined.data(("i",)), joined.n_classes(("i",)))["i"].overall.AP[0] > 0
    message = r"row 0 \(VID68 000012\): triplet: found -1, expected a class id, because component 'ivt' is scored"
    with pytest.raises(DataError, match=message):
        joined.data()


def test_the_record_is_named_right_after_rows_were_left_out(truth: GroundTruth, table: Table) -> None:
    columns = ("video", "frame", "instrument", "score", "x", "y", "w", "h")
    rows = [("VID68", frame, 0, 0.9, 101.0, 120.0, 60.0, 80.0) for frame in ("000026", "000019")]
    with pytest.raises(DataError, match=r"row 1 \(VID68 000019\): triplet: found -1"):
        join(table(*rows, columns=columns), truth).data()


def test_ground_truth_without_a_verb_is_scored_by_instrument_alone(space: LabelSpace, found: pl.DataFrame) -> None:
    box = Box(100, 120, 60, 80)
    instances = (Instance(Triplet(*space.triplets[17]), box), Instance(Triplet(1), box))
    frames = [Frame("VID68", "000012", 12, None, None, 854, 480, instances), Frame("VID68", "000019", 19, None, None,
              854, 480)]  # fmt: skip
    joined = join(found, MemoryDataset(space, frames))
    assert (len(joined.data(("i",)).targets), joined.unclassed(("i",))) == (2, 0)
    assert (len(joined.data().targets), joined.unclassed()) == (1, 1)
    assert "1 labelled boxes without a class in a scored component were left out" in joined.notes()


def test_a_component_that_the_label_space_lacks_is_refused(truth: GroundTruth, found: pl.DataFrame) -> None:
    with pytest.raises(BadInput, match="component 'phase': expected one of ivt, i, v, t, iv, it, vt"):
        join(found, truth).data(("phase",))


def test_boxes_without_area_are_kept_and_counted(truth: GroundTruth, found: pl.DataFrame) -> None:
    flat = found.with_columns(h=pl.Series([0.0, 90.0, -4.0]))
    joined = join(flat, truth)
    assert len(joined.predictions) == 3
    assert "2 predicted boxes have no area and overlap nothing" in joined.notes()
    assert evaluate_detection(joined.data(), joined.n_classes())["ivt"].overall.AP[17] == 0.0


def test_a_frame_in_which_nothing_was_found_is_not_missing(truth: GroundTruth, found: pl.DataFrame) -> None:
    empty = pl.DataFrame({"video": ["VID70"], "frame": ["000012"]})
    detections = Detections(join_table(truth, found), "rows", truth.videos, empty=empty)
    joined = join(detections, truth)
    assert joined.missing.rows() == [("VID70", "000033")]
    assert joined.silent == 1


def join_table(truth: GroundTruth, found: pl.DataFrame) -> pl.DataFrame:
    kept = join(found, truth)
    ids = {name: kept.predictions.classes[c] for name, c in (("instrument", "i"), ("verb", "v"), ("target", "t"))}
    return found.with_columns(**{name: pl.Series(values) for name, values in ids.items()})


def test_a_table_that_lacks_a_column_is_refused_by_its_name(truth: GroundTruth, found: pl.DataFrame) -> None:
    with pytest.raises(
        DataError,
        match=r"predictions: score: found the columns .*, expected video, .*; 'scores' is probably score",
    ):
        join(found.rename({"score": "scores"}), truth)
    with pytest.raises(DataError, match="predictions: triplet: found"):
        join(found.drop("triplet"), truth)
