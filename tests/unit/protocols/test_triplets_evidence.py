"""What became of every object, in a frame where each kind of error is planted."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import polars as pl
import pytest

from surgeval.datasets import MemoryDataset
from surgeval.errors import DataError
from surgeval.protocols.triplets import load_triplets, score_triplets
from surgeval.protocols.triplets.page import write_page_of
from surgeval.protocols.triplets.result import TripletScores
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet
from surgeval.vocab import load_labels

SPACE = load_labels("cholect50")
LABELS = ((17, 0), (17, 100), (60, 200), (12, 300))  # triplet id and left edge; boxes are 50 × 50
SAID = (  # triplet, left edge, score, what it is
    (17, 0, 0.9, "matched"),
    (17, 2, 0.8, "duplicate"),
    (12, 205, 0.7, "confused"),
    (12, 335, 0.6, "wrong place"),
    (60, 500, 0.5, "false positive"),
)


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> TripletScores:
    picture = tmp_path_factory.mktemp("data") / "1.png"
    cv2.imwrite(str(picture), np.full((360, 640, 3), 80, np.uint8))
    seen = tuple(Instance(Triplet(*SPACE.triplets[triplet]), Box(x, 40, 50, 50)) for triplet, x in LABELS)
    frames = [
        Frame("V1", "1", 1, None, ImageRef(picture), 640, 360, seen),
        Frame("V1", "2", 2, None, ImageRef(picture.with_name("gone.png")), 640, 360, seen[:1]),
        Frame("V2", "1", 1, None, None, 640, 360, ()),
    ]
    rows = [("V1", "1", triplet, score, x, 40.0, 50.0, 50.0) for triplet, x, score, _ in SAID]
    rows.append(("V1", "2", 17, 0.9, 0, 40.0, 50.0, 50.0))
    found = pl.DataFrame(rows, schema=["video", "frame", "triplet", "score", *"xywh"], orient="row", strict=False)
    return score_triplets(found, MemoryDataset(SPACE, frames), name="net", pictures=9)


def test_each_planted_error_is_named(scores: TripletScores) -> None:
    assert scores.objects is not None
    cut = scores.thresholds["ivt"]
    said = scores.objects.filter((pl.col("frame") == "1") & (pl.col("side") == "said"))
    assert dict(said.select("score", "outcome").iter_rows()) == {s: what for _, _, s, what in SAID if s >= cut}
    assert cut <= 0.9


def test_each_planted_error_is_named_at_a_threshold_that_lets_all_pass(scores: TripletScores) -> None:
    from surgeval.metrics import Boxes, DetectionSet
    from surgeval.protocols.triplets.scoring.objects import box_objects

    truth = Boxes.of([0] * 4, {"ivt": [t for t, _ in LABELS]}, [[x, 40, 50, 50] for _, x in LABELS])
    said = Boxes.of([0] * 5, {"ivt": [t for t, *_ in SAID]}, [[x, 40, 50, 50] for _, x, *_ in SAID],
                    [score for *_, score, _ in SAID])  # fmt: skip
    frames = pl.DataFrame({"video": ["V"], "frame": ["1"], "width": [640], "height": [360]})
    names = [str(number) for number in range(100)]
    objects = box_objects(frames, DetectionSet.of(said, truth, [0]), "ivt", names, np.array([np.nan]))
    assert objects.filter(pl.col("side") == "said")["outcome"].to_list() == [what for *_, what in SAID]
    labels = objects.filter(pl.col("side") == "label")
    assert labels.select("outcome", "partner").rows() == [
        ("matched", ""), ("missed", ""), ("confused", "12"), ("missed", ""),
    ]  # fmt: skip


def test_a_frame_is_a_row_with_its_worst_verdict_and_its_boxes(scores: TripletScores) -> None:
    shown = scores.evidence()
    assert shown is not None
    verdicts = dict(shown.cases.select("id", "verdict").iter_rows())
    assert verdicts == {"V1/1": "missed", "V1/2": "all right", "V2/1": "all right"}
    row = shown.cases.row(0, named=True)
    assert "missed" in row["errors"] and row["count"] >= 2 and " missed" in row["reason"].split(", ")[0]
    assert set(shown.boxes.filter(pl.col("id") == "V1/1")["kind"]) >= {"hit", "missed", "label"}
    assert list(shown.pictures) == ["V1/1"]  # the other frames' images are not there: their boxes still are
    assert shown.cases.row(2, named=True)["reference"] == "nothing"


def test_the_page_is_made_again_byte_for_byte_from_the_folder(scores: TripletScores, tmp_path: Path) -> None:
    page = write_page_of([scores], scores.save(tmp_path / "run").parent).read_bytes()
    assert b"ev-data" in page
    assert write_page_of([load_triplets(tmp_path / "run")], tmp_path / "again").read_bytes() == page


def test_objects_of_another_scoring_are_refused(scores: TripletScores, tmp_path: Path) -> None:
    scores.save(tmp_path)
    pl.DataFrame({"video": ["V1"]}).write_parquet(tmp_path / "objects.parquet")
    with pytest.raises(DataError, match=r"objects\.parquet"):
        load_triplets(tmp_path)


def test_a_damaged_file_of_pictures_costs_the_pictures_and_a_note(scores: TripletScores, tmp_path: Path) -> None:
    scores.save(tmp_path)
    pl.DataFrame({"case": ["V1/1"], "jpeg": ["no picture"]}).write_parquet(tmp_path / "pictures.parquet")
    loaded = load_triplets(tmp_path)
    assert not loaded.pictures and "the page has no pictures" in loaded.notes[-1]
