"""One stage of training, seen from inside: what is measured and kept, when it stops, what the last epochs show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.detector.coloured import coloured
from tests.unit.detector.networks import CLASSES, pictures, small
from torch import Tensor, nn

from surgeval.detector import student_of
from surgeval.detector.assign import BatchTruth
from surgeval.detector.data import PLAIN
from surgeval.detector.losses import Losses, LossSettings
from surgeval.detector.state import load_state
from surgeval.detector.training import TrainSettings, read_curves, train_tdnet
from surgeval.detector.training.compute import open_compute
from surgeval.detector.training.hands import Hands
from surgeval.detector.training.resume import LAST, Counters
from surgeval.detector.training.stage import VALIDATION, Measured, Stage, run_stage
from surgeval.detector.training.student import distilling
from surgeval.progress import advance, phases

SETTINGS = TrainSettings(size="p", batch=4, image_size=64, workers=0)


class Small(nn.Module):
    """One weight that learns the mean of the pictures, and remembers what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))


class Watched:
    """A stage of `Small`, what it was shown, and which network was measured and kept."""

    def __init__(self, folder: Path, fitness: Callable[[int], float] | None, **options: Any) -> None:
        self.shown: list[Tensor] = []
        self.measured: list[Tensor] = []
        self.kept: list[Tensor] = []
        self.told: list[str] = []

        def loss(network: nn.Module, images: Tensor, truth: BatchTruth) -> Losses:
            self.shown.append((images * 255).round().byte())
            total = (network.get_parameter("weight") - images.mean()).square().sum() * len(images)
            return Losses(total, {"off": total.detach()}, truth.mask.sum())

        def measure(network: nn.Module) -> Measured:
            self.measured.append(network.get_parameter("weight").detach().clone())
            assert fitness is not None
            return Measured({}, fitness(len(self.measured)))

        def keep(_path: Path, network: nn.Module, _told: Mapping[str, Any]) -> None:
            self.kept.append(network.get_parameter("weight").detach().clone())

        self.stage = Stage("teacher", folder, Small(), loss, keep, measure if fitness is not None else None,
                           **{"rate": 0.1, "epochs": 8, "patience": 100, **options})  # fmt: skip

    def run(self, settings: TrainSettings = SETTINGS, frames: int = 4) -> Counters:
        augment, compute = replace(PLAIN, mosaic=1.0), open_compute("cpu")
        with Hands(settings.workers, settings.batch, compute) as hands:
            return run_stage(
                self.stage,
                coloured(["a"], frames, 64),
                settings,
                augment,
                compute,
                hands,
                self.told.append,
                self.told.append,
            )


def test_the_average_is_measured_and_kept_not_the_network(tmp_path: Path) -> None:
    watched = Watched(tmp_path, lambda number: float(number), epochs=3)
    watched.run()
    tensors, _ = load_state(tmp_path / LAST)
    assert torch.equal(watched.measured[-1], tensors["average.weight"])
    assert torch.equal(watched.kept[-1], tensors["average.weight"])
    assert not torch.equal(tensors["average.weight"], tensors["network.weight"])


def test_too_few_minutes_for_the_rate_to_rise_are_told(tmp_path: Path) -> None:
    watched = Watched(tmp_path, None, epochs=2, budget=1e-3)
    ended = watched.run()
    said = f"the rate rises over 100 batches and the training has {ended.step}: more minutes would do it good"
    assert watched.told[-1] == f"teacher: {said}"


def test_the_display_counts_the_frames_of_evaluations_too(tmp_path: Path) -> None:
    with phases(show=False) as shown:
        Watched(tmp_path, lambda number: float(number), epochs=4, evaluate_every=2, looked_at=10).run()
        assert "teacher images 16/16, validation frames 0/20" in shown.line()
        advance(VALIDATION, 5)
        assert "validation frames 5/20" in shown.line()


def test_it_stops_when_patience_epochs_were_no_better(tmp_path: Path) -> None:
    ended = Watched(tmp_path, lambda number: 1 / number, patience=2).run()
    assert (ended.epoch, ended.best_epoch, ended.done) == (3, 1, True)


def test_of_equally_good_epochs_the_first_is_kept(tmp_path: Path) -> None:
    watched = Watched(tmp_path, lambda _number: 0.5, epochs=3)
    assert watched.run().best_epoch == 1
    assert len(watched.kept) == 1


def test_the_last_epochs_show_whole_pictures(tmp_path: Path) -> None:
    watched = Watched(tmp_path, None, epochs=2)
    watched.run()
    data = coloured(["a"], 4, 64)
    whole = {data.sample(index).image.transpose(2, 0, 1).tobytes() for index in range(4)}
    first, last = ({image.numpy().tobytes() for image in batch} for batch in watched.shown)
    assert last == whole
    assert not first & whole


def test_gradients_left_at_the_end_of_an_epoch_are_used(tmp_path: Path) -> None:
    watched = Watched(tmp_path, None, epochs=1)
    # In the first step of the warm-up one batch is an update, in the second eleven would be: the third is the last.
    ended = watched.run(replace(SETTINGS, nominal=4000), frames=12)
    assert (ended.step, ended.updates) == (3, 2)


def test_a_batch_of_more_frames_than_there_are_is_timed_with_those_there_are(tmp_path: Path) -> None:
    watched = Watched(tmp_path, None, budget=0.1, rate=1e-12)  # the decay grows with the batch that was asked for
    watched.run(replace(SETTINGS, batch=10**12, minutes=0.01), frames=6)
    assert {len(images) for images in watched.shown} == {6}


def test_a_student_that_hardly_learns_is_its_teacher_and_fusion_decides_what_it_learns(tmp_path: Path) -> None:
    data = coloured(["a"], 8, 64)
    losses = []
    for fusion in (0.0, 1.0):
        gentle = replace(SETTINGS, epochs=1, student_epochs=1, student_rate=1e-9, fusion=fusion)
        made = train_tdnet(data, None, data.classes, tmp_path / str(fusion), gentle)
        assert made.student is not None
        teacher, student = load_state(made.best)[0], load_state(made.student)[0]
        for name, value in teacher.items():
            torch.testing.assert_close(student[name], value, rtol=0, atol=1e-6)
        row = read_curves(made.folder / "student")[0]
        assert row["rate"] == pytest.approx(1e-9 / 100)  # the second of the hundred steps in which it rises
        losses.append(row["loss ivt"])
    assert losses[0] > 2 * losses[1]  # labels of 1 are far from a new teacher's scores; these are its own


def test_the_students_loss_weighs_every_image() -> None:
    teacher = small()
    teacher.requires_grad_(False)
    student = student_of(teacher)
    loss = distilling(teacher, LossSettings(), 0.8, open_compute("cpu"))
    labels = {head: torch.eye(count, dtype=torch.bool)[:1] for head, count in CLASSES.counts.items()}
    box, image = torch.tensor([[8.0, 8, 56, 56]]), pictures(1, 64, 64)
    one = loss(student, image, BatchTruth.of([box], [labels]))
    two = loss(student, image.repeat(2, 1, 1, 1), BatchTruth.of([box, box], [labels, labels]))
    assert int(two.positives) == 2 * int(one.positives) > 0
    assert two.total.item() == pytest.approx(2 * one.total.item(), rel=1e-5)
