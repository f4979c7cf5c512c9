"""What detectors with several heads add to a table of detections, and frames in which they found nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from surgeval.datasets import MemoryDataset, Problem
from surgeval.datasets.predictions import GroundTruth, ground_truth, join, read_detections, write_detections
from surgeval.errors import DataError
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

BOX = {"x": [10.0], "y": [10.0], "w": [50.0], "h": [40.0]}


@pytest.fixture
def truth() -> GroundTruth:
    space = load_labels("cholect50")
    seen = Instance(Triplet(*space.triplets[17]), Box(10, 10, 50, 40))
    frames = [Frame("VID68", name, 0, None, None, 854, 480, (seen,)) for name in ("000001", "000002", "000003")]
    return ground_truth(MemoryDataset(space, frames))


def found(**more: object) -> pl.DataFrame:
    return pl.DataFrame({"video": ["VID68"], "frame": ["000001"], "triplet": [17], "score": [0.9], **BOX, **more})


def test_all_probabilities_of_a_box_are_written_and_no_reader_minds(truth: GroundTruth, tmp_path: Path) -> None:
    table = found(p_ivt=[[0.01] * 100], p_i=[[0.9, 0.1]])
    assert write_detections(table, tmp_path / "all.parquet", dataset=truth).losses == ()
    assert pl.read_parquet(tmp_path / "all.parquet")["p_i"].to_list() == [[0.9, 0.1]]
    heard: list[Problem] = []
    back = read_detections(tmp_path / "all.parquet", truth, on_problem=heard.append)
    assert (len(back), heard, set(back.table.columns) & {"p_ivt", "p_i"}) == (1, [], set())
    lost = write_detections(table, tmp_path / "all.csv", dataset=truth).losses
    assert lost == ("table: probabilities of all classes of 1 boxes are not kept (Parquet holds them)",)
    assert len(read_detections(tmp_path / "all.csv", truth)) == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_parts_of_the_heads_may_contradict_the_triplet_only_where_the_table_says_so(
    suffix: str, truth: GroundTruth, tmp_path: Path
) -> None:
    own, _, target = truth.space.triplets[17]
    verb = next(v for _, v, _ in truth.space.triplets if v != truth.space.triplets[17][1])
    table = found(instrument=[own], verb=[verb], target=[target])
    with pytest.raises(DataError, match=rf"verb: found {verb} beside triplet 17"):
        write_detections(table, tmp_path / f"clash{suffix}", dataset=truth)
    said = table.with_columns(components=pl.lit("heads"))
    path = tmp_path / f"own{suffix}"
    write_detections(said, path, dataset=truth)
    back = read_detections(path, truth)
    assert back.table.select("triplet", "instrument", "verb", "target").row(0) == (17, own, verb, target)
    classes = join(back, truth).predictions.classes
    assert (classes["ivt"].tolist(), classes["v"].tolist()) == ([17], [verb])
    losses = write_detections(back, tmp_path / "coco.json", dataset=truth).losses
    assert losses == ("coco: instrument, verb and target of 1 boxes as the heads chose them are not kept",)
    with pytest.raises(DataError, match="components: found 'mine', expected ivt or heads"):
        write_detections(table.with_columns(components=pl.lit("mine")), path, dataset=truth)


def test_a_frame_that_was_seen_is_told_from_one_that_was_not(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("video,frame,triplet,score,x,y,w,h\nVID68,000001,17,0.9,10,10,50,40\nVID68,000002,-1,,,,,\n")
    back = read_detections(path, truth)
    assert (len(back), back.empty.rows()) == (1, [("VID68", "000002")])
    assert join(back, truth).missing.rows() == [("VID68", "000003")]
    path.write_text("video,frame,triplet,score,x,y,w,h\nVID68,000009,-1,,,,,\n")
    with pytest.raises(DataError, match="frame: found '000009', expected a frame of video VID68"):
        read_detections(path, truth)


def test_half_a_row_is_an_error_and_not_an_empty_frame(truth: GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("video,frame,triplet,score,x,y,w,h\nVID68,000001,17,,,,,\n")
    with pytest.raises(DataError, match="x: found nothing, expected a finite number"):
        read_detections(path, truth)
