"""A short training on easy frames learns them; its student keeps every box and changes only what it says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.conftest import Once
from tests.unit.detector.coloured import coloured

from surgeval.detector import Loaded, load_detector
from surgeval.detector.data import batches
from surgeval.detector.evaluation import evaluate_detector
from surgeval.detector.state import load_state
from surgeval.detector.training import Trained, TrainRecord, TrainSettings, read_curves, train_tdnet
from surgeval.detector.training.compute import open_compute
from surgeval.detector.training.tdnet import look_with

# Small updates, so that there are many; no mosaics, which a picture of 64 pixels cannot hold.
SETTINGS = TrainSettings(
    size="p", epochs=14, batch=4, nominal=4, rate=0.02, image_size=64, mosaic=0.0, evaluate_every=7, student_epochs=2
)
pytestmark = pytest.mark.usefixtures("one_thread")


SEEN = "seen.jsonl"  # beside the training: its curves as another process would have read them, after every epoch


def learn(folder: Path) -> None:
    torch.set_num_threads(1)
    data, validation = coloured(["a", "b"], 24, 64), coloured(["c"], 16, 64)

    def look(line: str) -> None:
        if line.startswith("teacher") and " · " in line:
            with folder.with_name(SEEN).open("a") as file:
                file.write(json.dumps(read_curves(folder)) + "\n")

    train_tdnet(data, validation, data.classes, folder, SETTINGS, progress=look)


@pytest.fixture(scope="module")
def trained(once: Once) -> Trained:
    folder = once("coloured-training", learn)
    return Trained(folder, TrainRecord.load(folder).result or {})


@pytest.fixture(scope="module")
def pair(trained: Trained) -> tuple[Loaded, Loaded]:
    assert trained.student is not None
    return load_detector(trained.best), load_detector(trained.student)


def test_the_loss_falls_and_held_out_triplets_are_found(trained: Trained) -> None:
    rows = read_curves(trained.folder)
    assert len(rows) == 14
    assert rows[-1]["loss"] < 0.2 * rows[0]["loss"]
    assert rows[-1]["loss box"] < 0.6 * rows[0]["loss box"]
    assert rows[-1]["mAP50"] > 0.3  # untrained: 0
    assert rows[-1]["v mAP50"] > 0.3
    assert trained.result["teacher"]["mAP50"] == rows[-1]["mAP50"]


def test_curves_can_be_read_while_it_trains(trained: Trained) -> None:
    seen = [json.loads(line) for line in trained.folder.with_name(SEEN).read_text().splitlines()]
    assert [len(rows) for rows in seen] == list(range(1, 15))
    assert {"epoch", "stage", "loss", "rate", "seconds", "images_per_second"} <= seen[0][0].keys()
    assert [row["epoch"] for row in seen[-1] if "mAP50" in row] == [7, 14]


def test_the_students_boxes_are_the_teachers_bit_by_bit(pair: tuple[Loaded, Loaded]) -> None:
    data = coloured(["c"], 8, 64)
    images = next(iter(batches(data, batch=8))).images.float() / 255
    teacher, student = (one.model(images) for one in pair)
    assert torch.equal(teacher.box, student.box)
    assert torch.equal(teacher.boxes(), student.boxes())
    for head in ("ivt", "i", "v", "t"):
        assert not torch.equal(teacher.logits[head], student.logits[head])


def test_only_the_class_stacks_changed_and_no_statistics(pair: tuple[Loaded, Loaded]) -> None:
    teacher, student = (one.model.state_dict() for one in pair)
    changed = {name for name in teacher if not torch.equal(teacher[name], student[name])}
    assert changed
    assert all(name.startswith("head.stacks.") for name in changed)
    assert not any("running" in name for name in changed)
    assert any("norm.weight" in name for name in changed)  # the scales inside the stacks do train


def test_background_scores_are_measured_in_every_epoch(trained: Trained) -> None:
    rows = read_curves(trained.folder / "student")
    assert len(rows) == 2
    for row in rows:
        assert 0 < row["background teacher"] < 0.2
        assert row["drift"] == pytest.approx(row["background student"] - row["background teacher"], abs=1e-5)
    assert rows[0]["background teacher"] == rows[1]["background teacher"]
    assert rows[0]["background student"] != rows[1]["background student"]


def test_the_detector_of_the_training_is_the_student_and_scores_as_its_curve_says(trained: Trained) -> None:
    assert trained.student is not None
    assert trained.detector.read_bytes() == trained.student.read_bytes()
    loaded = load_detector(trained.detector)
    assert loaded.extra["stage"] == "student"
    assert loaded.extra["fill"] == 114
    validation = coloured(["c"], 16, 64)
    found = evaluate_detector(look_with(loaded.model, open_compute("cpu")), validation, loaded.classes, batch=5)
    assert found.at50["ivt"] == pytest.approx(trained.result["student"]["mAP50"], abs=1e-4)


def test_without_auxiliary_heads_or_a_student_there_are_none(tmp_path: Path) -> None:
    data = coloured(["a"], 8, 64)
    plain = TrainSettings(size="p", epochs=1, batch=8, image_size=64, aux=False, student_epochs=0)
    made = train_tdnet(data, None, data.classes, tmp_path, plain)
    assert made.student is None
    assert load_detector(made.detector).model.heads == ("ivt",)
    assert "loss i" not in read_curves(tmp_path)[0]
    assert TrainRecord.load(tmp_path).result == made.result


def test_without_validation_the_last_epoch_of_either_stage_is_kept(tmp_path: Path) -> None:
    data = coloured(["a"], 4, 64)
    short = TrainSettings(size="p", epochs=2, batch=4, image_size=64, student_epochs=3, student_patience=2)
    made = train_tdnet(data, None, data.classes, tmp_path, short)
    assert [made.result[stage]["epoch"] for stage in ("teacher", "student")] == [2, 3]
    kept, (last, _) = load_detector(made.detector).model.state_dict(), load_state(tmp_path / "student/last.safetensors")
    assert all(torch.equal(value, last[f"average.{name}"]) for name, value in kept.items())


def test_while_nothing_is_found_the_later_epoch_is_the_better_one(tmp_path: Path) -> None:
    data, validation = coloured(["a"], 4, 64), coloured(["b"], 4, 64)
    slow = TrainSettings(size="p", epochs=3, batch=4, image_size=64, student_epochs=0, rate=1e-9, patience=1)
    made = train_tdnet(data, validation, data.classes, tmp_path, slow)
    assert made.result["teacher"]["mAP50"] == 0
    assert made.result["teacher"]["epoch"] == 3


def test_minutes_end_a_training_in_an_orderly_way(tmp_path: Path) -> None:
    data = coloured(["a"], 8, 64)
    hurried = TrainSettings(size="p", batch=8, image_size=64, minutes=2 / 60, student_epochs=0)
    made = train_tdnet(data, None, data.classes, tmp_path, hurried)
    rows = read_curves(tmp_path)
    assert len(rows) >= 2
    assert rows[0]["mosaic"] and not rows[-1]["mosaic"]
    assert rows[-1]["rate"] > 0
    last_two = sum(row["seconds"] for row in rows[-2:])  # on a busy machine one epoch may take as long as two
    assert made.result["teacher"]["total_seconds"] - last_two < 2
