"""Ground truth in columns."""

from __future__ import annotations

import numpy as np
import pytest

from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import GroundTruth, ground_truth
from surgeval.errors import BadInput, DataError
from surgeval.metrics import Boxes
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace, load_labels


def test_instances_without_a_box_count_for_recognition_and_not_for_detection(truth: GroundTruth) -> None:
    assert (truth.instances, len(truth.boxes), truth.without_box) == (4, 3, 1)
    assert [np.flatnonzero(row).tolist() for row in truth.labels] == [[17, 60], [], [17], [19]]


def test_a_frame_that_nobody_labelled_is_listed_and_not_scored(truth: GroundTruth) -> None:
    assert truth.unlabelled == 1
    assert truth.frames["number"].to_list() == [0, 1, -1, 2, 3]
    assert truth.video.tolist() == [0, 0, 1, 1]
    assert truth.scored.row(1) == ("VID68", "000019")


def test_component_ids_are_those_the_metrics_derive_from_the_triplet(truth: GroundTruth, space: LabelSpace) -> None:
    plain = Boxes.of(truth.boxes.frame, {"ivt": truth.boxes.classes["ivt"]}, truth.boxes.xywh)
    derived = plain.with_components(space, ("i", "v", "t", "iv", "it", "vt")).classes
    assert set(derived) == set(truth.boxes.classes)
    for component, ids in derived.items():
        assert truth.boxes.classes[component].tolist() == ids.tolist()


def test_chosen_videos_come_in_the_order_they_were_chosen(dataset: MemoryDataset) -> None:
    fold = ground_truth(dataset, videos=["VID70"])
    assert (fold.videos, fold.others, fold.n_frames) == (("VID70",), ("VID68",), 2)
    assert ground_truth(dataset, videos=["VID70", "VID68"]).scored["video"].to_list()[0] == "VID70"


def test_a_chosen_video_that_is_not_there_is_named_with_the_one_that_is_meant(dataset: MemoryDataset) -> None:
    with pytest.raises(BadInput, match=r"no video 'vid68'.*did you mean 'VID68'\?"):
        ground_truth(dataset, videos=["vid68"])
    with pytest.raises(BadInput, match="'VID68' twice"):
        ground_truth(dataset, videos=["VID68", "VID68"])


def test_two_frames_of_one_name_cannot_be_joined_to(space: LabelSpace) -> None:
    twice = [Frame("v", "000001", n, None, None, 64, 64) for n in (1, 2)]
    with pytest.raises(DataError, match=r"video v: frame: found '000001' twice, expected a name of its own"):
        ground_truth(MemoryDataset(space, twice))


def test_a_space_of_instruments_is_scored_by_instrument() -> None:
    frames = [Frame("v", "1", 1, None, None, 64, 64, (Instance(Triplet(3), Box(1, 2, 3, 4)),))]
    truth = ground_truth(MemoryDataset(load_labels("cholec80"), frames))
    assert truth.class_kind == "instrument"
    assert np.argwhere(truth.labels).tolist() == [[0, 3]]
    assert {component: ids.tolist() for component, ids in truth.boxes.classes.items()} == {"i": [3]}


def test_an_instance_whose_verb_is_unknown_keeps_its_instrument(space: LabelSpace) -> None:
    instance = Instance(Triplet(1, -1, -1), Box(1, 2, 3, 4))
    truth = ground_truth(MemoryDataset(space, [Frame("v", "1", 1, None, None, 64, 64, (instance,))]))
    ids = {component: int(values[0]) for component, values in truth.boxes.classes.items()}
    assert ids == {"ivt": -1, "i": 1, "v": -1, "t": -1, "iv": -1, "it": -1, "vt": -1}
    assert truth.without_label == 1


def test_an_empty_dataset_has_no_frames_and_no_boxes(space: LabelSpace) -> None:
    truth = ground_truth(MemoryDataset(space, []))
    assert (truth.n_frames, len(truth.boxes), truth.labels.shape) == (0, 0, (0, 100))
