"""Training on a GPU: the schedule of the CPU in half precision, no waiting inside a step, and too little memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.detector.coloured import coloured

from surgeval.detector import build_tdnet, load_detector, teacher_loss
from surgeval.detector.data import batches
from surgeval.detector.state import load_state
from surgeval.detector.training import TrainSettings, read_curves, train_tdnet
from surgeval.detector.training.compute import open_compute, ready_batches
from surgeval.detector.training.ema import Ema
from surgeval.detector.training.optimiser import Optimiser
from surgeval.detector.training.schedule import StepSettings
from surgeval.detector.training.settings import Precision
from surgeval.detector.training.tally import LossTally

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")

SETTINGS = TrainSettings(
    size="p", epochs=14, batch=4, nominal=4, rate=0.02, image_size=64, mosaic=0.0, evaluate_every=7, student_epochs=2,
    device="cuda",
)  # fmt: skip


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32"])
def test_every_precision_learns_easy_frames_and_keeps_the_students_boxes(tmp_path: Path, precision: Precision) -> None:
    data, validation = coloured(["a", "b"], 24, 64), coloured(["c"], 16, 64)
    settings = replace(SETTINGS, precision=precision)
    made = train_tdnet(data, validation, data.classes, tmp_path, settings)
    rows = read_curves(tmp_path)
    assert rows[-1]["loss"] < 0.3 * rows[0]["loss"]
    assert rows[-1]["mAP50"] > 0.25
    assert made.student is not None
    images = next(iter(batches(data, batch=8))).images.float() / 255
    teacher, student = (load_detector(path).model(images) for path in (made.best, made.student))
    assert torch.equal(teacher.box, student.box)
    assert not torch.equal(teacher.logits["ivt"], student.logits["ivt"])


def test_a_step_never_waits_for_the_device() -> None:
    data = coloured(["a"], 8, 64)
    compute = open_compute("cuda")
    network = compute.place(build_tdnet("p", data.classes)).train()
    average, optimiser, tally = Ema(network), Optimiser(network, decay=5e-4), LossTally()
    optimiser.set(StepSettings(0.01, 0.01, 0.9, 1))
    every = list(batches(data, batch=4, pin=True))

    def step() -> None:
        for ready in ready_batches(every, compute):
            with compute.autocast():
                output = network(compute.images(ready.images))
            losses = teacher_loss(output, ready.truth, "ivt")
            losses.total.backward()
            norm = optimiser.update()
            average.update(network, 1)
            tally.add(losses.parts, ready.frames, norm)

    step()  # what is made once (grids, plans of convolutions) may wait
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert tally.means()["box"] > 0


@contextmanager
def limited(free: int) -> Iterator[None]:
    """Only so many bytes more than are in use."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_reserved() + free) / total))
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_batch_that_does_not_fit_is_done_in_pieces(tmp_path: Path) -> None:
    data = coloured(["a"], 32, 640)
    told: list[str] = []
    settings = TrainSettings(size="n", epochs=1, batch=32, image_size=640, student_epochs=0, device="cuda")
    with limited(3 << 30):
        made = train_tdnet(data, None, data.classes, tmp_path, settings, progress=told.append)
    assert load_state(made.folder / "last.safetensors")[1]["pieces"] > 1
    assert any("did not fit into the memory of cuda" in line for line in told)


def test_a_training_begun_on_a_gpu_goes_on_on_a_cpu(tmp_path: Path) -> None:
    data = coloured(["a"], 8, 64)
    settings = replace(SETTINGS, epochs=2, student_epochs=0, evaluate_every=1)

    def stop(line: str) -> None:
        if line.startswith("teacher 1/2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_tdnet(data, None, data.classes, tmp_path, settings, progress=stop)
    made = train_tdnet(data, None, data.classes, tmp_path, replace(settings, device="cpu"))
    assert [row["epoch"] for row in read_curves(made.folder)] == [1, 2]
