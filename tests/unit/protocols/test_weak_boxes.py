"""Boxes that nobody taught: pieces of heatmaps, and the guess of the most frequent triplet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from tests.conftest import Once
from tests.unit.protocols.conftest import SPACE, moment

from surgeval.cli.app import run
from surgeval.datasets import MemoryDataset, open_dataset
from surgeval.datasets.predictions import read_detections
from surgeval.errors import BadInput
from surgeval.models import Contrastive, Preparation, TextBank
from surgeval.phantom import write_phantom
from surgeval.protocols.majority import frequent_triplets, majority_triplets, truth_boxes
from surgeval.protocols.triplets import score_triplets
from surgeval.protocols.weak_boxes import HotBox, WeakSettings, hot_boxes, weak_boxes
from surgeval.records import Frame, ImageRef


def test_planted_blobs_come_back_as_their_exact_boxes_hottest_first() -> None:
    heat = np.zeros((60, 80), np.float32)
    heat[10:20, 5:25] = 0.8
    heat[40:55, 60:70] = 1.0
    heat[0:2, 40:42] = 0.4  # below half of the range
    first, second = hot_boxes(heat)
    assert first == HotBox(60, 40, 10, 15, 1.0)
    assert (second.x, second.y, second.w, second.h) == (5, 10, 20, 10) and second.heat == pytest.approx(0.8)
    assert hot_boxes(heat, most=1) == [HotBox(60, 40, 10, 15, 1.0)]
    assert [box.w * box.h for box in hot_boxes(heat, threshold=0.3, least=0)] == [150, 200, 4]
    assert [(box.x, box.y) for box in hot_boxes(heat + 5)] == [(60, 40), (5, 10)]  # only the range counts


def test_pieces_that_touch_at_a_corner_are_one_and_specks_are_none() -> None:
    heat = np.zeros((40, 40))
    heat[10:14, 10:14] = heat[14:18, 14:18] = 1.0
    heat[30, 30] = 1.0
    assert hot_boxes(heat, least=0.002) == [HotBox(10, 10, 8, 8, 1.0)]


@pytest.mark.parametrize("value", [0.0, 7.5, -3.0])
def test_a_flat_map_points_nowhere(value: float) -> None:
    assert hot_boxes(np.full((8, 8), value)) == []


def test_a_map_that_is_no_picture_is_refused() -> None:
    with pytest.raises(BadInput, match="heatmap: found"):
        hot_boxes(np.array([[0.0, np.nan]]))


class Looker:
    """A model whose trunk is the picture itself: it says `hook` and looks where the picture is red."""

    name, identity, family, logit_scale = "looker", "looker", "clip", 1.0
    preparation = Preparation(resize=(32, 64), resample="bilinear", mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    device = torch.device("cpu")

    def to(self, device: str) -> Contrastive:
        return self

    def texts(self, prompts: Sequence[str]) -> TextBank:
        vectors = [[1.0, 0.0] if "hook" in prompt else [0.0, 1.0] for prompt in prompts]
        return TextBank(tuple(prompts), torch.tensor(vectors))

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        assert texts.vectors is not None
        return self.head(self.trunk(pixels)) @ texts.vectors.T

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels[:, :2]

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features.mean(dim=(2, 3))


def test_a_red_tool_in_a_frame_is_found_where_it_is(tmp_path: Path) -> None:
    from PIL import Image

    picture = np.zeros((64, 128, 3), np.uint8)
    picture[16:48, 32:96, 0] = 255
    Image.fromarray(picture).save(tmp_path / "frame.png")
    frame = Frame("v1", "1", 1, None, ImageRef(tmp_path / "frame.png"), 128, 64)
    lost = Frame("v1", "2", 2, None, ImageRef(tmp_path / "lost.png"), 128, 64)
    assert isinstance(Looker(), Contrastive)
    found = weak_boxes(Looker(), MemoryDataset(SPACE, [frame, lost]), WeakSettings(top=1, threshold=0.6))
    (row,) = found.table.iter_rows(named=True)
    assert (row["triplet"], row["instrument"], row["verb"], row["target"]) == (2, 1, 1, 1)
    corners = np.array([row["x"], row["y"], row["x"] + row["w"], row["y"] + row["h"]])
    assert np.abs(corners - [32, 16, 96, 48]).max() <= 2  # a cell of the map is two pixels wide
    assert 0.3 < row["score"] < 1
    assert found.frames == 1 and len(found.unread) == 1 and "lost.png" in found.unread[0]
    named = weak_boxes(Looker(), MemoryDataset(SPACE, [frame]), WeakSettings("instruments", top=1)).table
    assert named.select("triplet", "instrument", "verb").row(0) == (-1, 1, -1)


@pytest.mark.parametrize(("field", "value"), [("prompts", "words"), ("top", 0), ("threshold", 0.0), ("iou", 1.2)])
def test_settings_that_cannot_be_used_are_named(field: str, value: object) -> None:
    made: Any = {field: value}
    with pytest.raises(BadInput, match=f"weak boxes: {field}: found"):
        WeakSettings(**made)


def test_an_embedded_model_becomes_a_detector_that_can_be_scored(
    once: Once, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.set_num_threads(1)

    def render(place: Path) -> None:
        write_phantom(place, videos=1, seconds=12, fps_labels=0.5, width=160, height=96, processes=1)

    folder, out = once("weak-phantom", render), tmp_path / "weak.parquet"
    data = open_dataset(folder)
    assert run(["weak-boxes", "--model", "phantom-clip", "--data", str(folder), "--out", str(out), "--top", "2",
                "--json"]) == 0  # fmt: skip
    told = json.loads(capsys.readouterr().out)
    assert (told["frames"], told["unread"]) == (6, [])
    assert len(read_detections(out, data)) == told["boxes"] > 0
    again = weak_boxes("phantom-clip", data, WeakSettings(top=2)).table
    assert again.equals(read_detections(out, data).table)
    scores = score_triplets(tmp_path / "weak.parquet", data)
    assert scores.task == "detection"


def test_every_box_gets_its_instruments_most_frequent_triplet() -> None:
    train = MemoryDataset(SPACE, [moment("v1", 1, 0, 1), moment("v1", 2, 1), moment("v2", 1, 2)])
    assert frequent_triplets(train) == {0: 1, 1: 2}
    assert frequent_triplets(train, ["v2"]) == {1: 2}
    equal = MemoryDataset(SPACE, [moment("v1", 1, 1, 0)])
    assert frequent_triplets(equal) == {0: 0}
    test = MemoryDataset(SPACE, [moment("v3", 1, 0, 2)])
    guessed = majority_triplets(truth_boxes(test), frequent_triplets(train), SPACE)
    assert guessed.select("triplet", "instrument", "verb", "target", "x").rows() == [
        (1, 0, 0, 1, 10.0),
        (2, 1, 1, 1, 60.0),
    ]
    alone = majority_triplets(truth_boxes(test), frequent_triplets(train, ["v2"]), SPACE)
    assert alone["triplet"].to_list() == [2]


def test_the_majority_baseline_knows_instruments_and_guesses_triplets() -> None:
    train = MemoryDataset(SPACE, [moment("v1", 1, 1), moment("v1", 2, 2)])
    test = MemoryDataset(SPACE, [moment("v3", n, 0, 2) for n in range(1, 4)] + [moment("v4", 1, 1, 2)])
    guessed = majority_triplets(truth_boxes(test), frequent_triplets(train), SPACE)
    scores = score_triplets(guessed, test)
    found = [one for one in scores.numbers if one.key.metric == "mAP50" and one.key.scope == "global"]
    mean = {one.key.component: one.interval.estimate for one in found}
    assert mean["i"] == pytest.approx(1.0)
    assert mean["ivt"] < 0.9


@pytest.mark.parametrize("frequent", [{0: 2}, {0: 99}])
def test_a_triplet_of_another_instrument_is_refused(frequent: dict[int, int]) -> None:
    with pytest.raises(BadInput, match="frequent triplets: found triplet"):
        majority_triplets(pl.DataFrame({"instrument": [0]}), frequent, SPACE)
