"""What goes wrong in a training: losses that are no number, too little memory; each told, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.detector.coloured import coloured

from surgeval.detector import TDNet, load_detector
from surgeval.detector._head import HeadOutput
from surgeval.detector._state import load_state, save_state
from surgeval.detector.data import epoch_order
from surgeval.detector.training import NotFinite, TrainSettings, load_training, read_curves, train_tdnet
from surgeval.errors import BadInput, DataError, RunError

SETTINGS = TrainSettings(size="p", epochs=2, batch=4, image_size=64, student_epochs=0)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@contextmanager
def broken_output(at: int) -> Iterator[None]:
    """The network's pass with this number (while it trains) gives NaN, as an overflow does."""
    count = 0

    def spoil(module: torch.nn.Module, _inputs: Any, output: HeadOutput) -> HeadOutput | None:
        nonlocal count
        if not (isinstance(module, TDNet) and module.training):
            return None
        count += 1
        return replace(output, box=output.box * float("nan")) if count == at else None

    handle = torch.nn.modules.module.register_module_forward_hook(spoil)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def small_memory(images: int) -> Iterator[None]:
    """A device on which training fits so many images."""

    def refuse(module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        if isinstance(module, TDNet) and module.training and len(inputs[0]) > images:
            raise torch.OutOfMemoryError("CUDA out of memory")

    handle = torch.nn.modules.module.register_module_forward_pre_hook(refuse)
    try:
        yield
    finally:
        handle.remove()


def test_a_loss_that_is_no_number_names_its_frames_and_keeps_the_last_epoch(tmp_path: Path) -> None:
    data = coloured(["a"], 8, 64)
    with broken_output(at=4), pytest.raises(NotFinite) as stopped:  # the second batch of the second epoch
        train_tdnet(data, None, data.classes, tmp_path, SETTINGS)
    frames = [data.name(index) for index in epoch_order(data, epoch=1, seed=0)[4:]]
    assert f"found nan in the batch of {', '.join(frames)}, expected a finite number" in str(stopped.value)
    record = load_training(tmp_path)
    assert (record.status, record.reason) == ("failed", str(stopped.value))
    tensors, place = load_state(tmp_path / "last.safetensors")
    assert place["epoch"] == 1
    assert all(bool(value.isfinite().all()) for value in tensors.values())
    made = train_tdnet(data, None, data.classes, tmp_path, SETTINGS)  # the fault has gone: it goes on
    assert made.result["teacher"]["epoch"] == 2


def test_a_gradient_that_is_no_number_never_reaches_a_checkpoint(tmp_path: Path) -> None:
    data = coloured(["a"], 4, 64)

    def spoil(gradient: torch.Tensor) -> torch.Tensor:
        return gradient * float("inf")

    def hook(module: torch.nn.Module, _inputs: Any, output: HeadOutput) -> None:
        if isinstance(module, TDNet) and module.training:
            output.box.register_hook(spoil)

    handle = torch.nn.modules.module.register_module_forward_hook(hook)
    try:
        with pytest.raises(NotFinite):
            train_tdnet(data, None, data.classes, tmp_path, SETTINGS)
    finally:
        handle.remove()
    assert not (tmp_path / "last.safetensors").exists()


def test_too_little_memory_makes_smaller_pieces_and_is_told(tmp_path: Path) -> None:
    data = coloured(["a"], 8, 64)
    told: list[str] = []
    with small_memory(images=1):
        made = train_tdnet(data, None, data.classes, tmp_path, SETTINGS, progress=told.append)
    assert load_state(made.last)[1]["pieces"] == 4
    assert [line.partition(";")[2].strip() for line in told if "did not fit" in line] == [
        "from here on it is done in 2 pieces of 2 whose gradients add up",
        "from here on it is done in 4 pieces of 1 whose gradients add up",
    ]
    assert sum("did not fit" in note for note in load_training(tmp_path).notes) == 2
    assert len(read_curves(tmp_path)) == 2


def test_memory_for_not_even_one_image_is_an_error(tmp_path: Path) -> None:
    data = coloured(["a"], 4, 64)
    with small_memory(images=0), pytest.raises(RunError, match="too little for one image of 64 pixels"):
        train_tdnet(data, None, data.classes, tmp_path, SETTINGS)


def test_weights_of_another_detector_are_begun_with(tmp_path: Path) -> None:
    data = coloured(["a"], 4, 64)
    first = train_tdnet(data, None, data.classes, tmp_path / "first", SETTINGS)
    told: list[str] = []
    gentle = replace(SETTINGS, preset="paper", rate=1e-12, epochs=1)
    second = train_tdnet(
        data, None, data.classes, tmp_path / "second", gentle, weights=first.detector, progress=told.append
    )
    assert told[0].startswith("began with ")
    given, now = (load_detector(made.detector).model.state_dict() for made in (first, second))
    kernel = "backbone.down2.conv.weight"
    assert torch.allclose(given[kernel], now[kernel], atol=1e-6)
    with pytest.raises(BadInput, match="preset paper: found no weights"):
        train_tdnet(data, None, data.classes, tmp_path / "third", replace(SETTINGS, preset="paper"))


def test_a_video_on_both_sides_is_refused(tmp_path: Path) -> None:
    data = coloured(["a", "b"], 2, 64)
    with pytest.raises(BadInput, match="found video b, which is trained on"):
        train_tdnet(data, coloured(["b"], 2, 64), data.classes, tmp_path, SETTINGS)


def test_a_place_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    data = coloured(["a"], 4, 64)
    train_tdnet(data, None, data.classes, tmp_path, replace(SETTINGS, epochs=1))
    text = (tmp_path / "train.json").read_text().replace('"finished"', '"running"')
    (tmp_path / "train.json").write_text(text)
    tensors, place = load_state(tmp_path / "last.safetensors")
    name = "network.backbone.down2.conv.weight"
    for spoilt, field in (
        ({**tensors, name: tensors[name][:1]}, "shape"),
        ({key: value for key, value in tensors.items() if key != name}, "found nothing"),
        ({**tensors, name: tensors[name] * float("nan")}, "found NaN or infinity"),
    ):
        save_state(tmp_path / "last.safetensors", spoilt, place)
        with pytest.raises(DataError, match=field):
            train_tdnet(data, None, data.classes, tmp_path, replace(SETTINGS, epochs=1))
    save_state(tmp_path / "last.safetensors", tensors, {**place, "epoch": -1})
    with pytest.raises(DataError, match="epoch: found -1"):
        train_tdnet(data, None, data.classes, tmp_path, replace(SETTINGS, epochs=1))
