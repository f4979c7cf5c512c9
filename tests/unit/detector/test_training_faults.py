"""What goes wrong in a training: losses that are no number, too little memory; each told, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.detector.coloured import coloured

from surgeval.detector import TDNet, load_detector
from surgeval.detector.data import epoch_order
from surgeval.detector.head import HeadOutput
from surgeval.detector.state import load_state, save_state
from surgeval.detector.training import NotFinite, TrainRecord, TrainSettings, read_curves, train_tdnet
from surgeval.errors import BadInput, DataError, RunError

SETTINGS = TrainSettings(size="p", epochs=2, batch=4, image_size=64, student_epochs=0)
pytestmark = pytest.mark.usefixtures("one_thread")


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
    record = TrainRecord.load(tmp_path)
    assert (record.status, record.reason) == ("stopped", str(stopped.value))
    tensors, place = load_state(tmp_path / "last.safetensors")
    assert place["epoch"] == 1
    assert all(bool(value.isfinite().all()) for value in tensors.values())
    made = train_tdnet(data, None, data.classes, tmp_path, SETTINGS)  # the fault has gone: it goes on
    assert made.result["teacher"]["epoch"] == 2


def test_a_number_lost_in_an_auxiliary_head_alone_is_found_too(tmp_path: Path) -> None:
    data = coloured(["a"], 4, 64)

    def spoil(module: torch.nn.Module, _inputs: Any, output: HeadOutput) -> HeadOutput | None:
        if not (isinstance(module, TDNet) and module.training):
            return None
        return replace(output, logits={**output.logits, "v": output.logits["v"] * float("nan")})

    handle = torch.nn.modules.module.register_module_forward_hook(spoil)
    try:
        with pytest.raises(NotFinite):
            train_tdnet(data, None, data.classes, tmp_path, SETTINGS)
    finally:
        handle.remove()
    assert not (tmp_path / "last.safetensors").exists()


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
    assert load_state(made.folder / "last.safetensors")[1]["pieces"] == 4
    assert [line.partition(";")[2].strip() for line in told if "did not fit" in line] == [
        "from here on it is done in 2 pieces of 2 whose gradients add up",
        "from here on it is done in 4 pieces of 1 whose gradients add up",
    ]
    assert sum("did not fit" in note for note in TrainRecord.load(tmp_path).notes) == 2
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
    weights = first.detector.rename(tmp_path / "teacher · a.safetensors")
    second = train_tdnet(data, None, data.classes, tmp_path / "second", gentle, weights=weights, progress=told.append)
    assert told[0].startswith("began with ")
    notes = TrainRecord.load(tmp_path / "second").notes
    assert told[0] in notes
    assert not any("images/s" in note for note in notes)
    given, now = (load_detector(made).model.state_dict() for made in (weights, second.detector))
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
    text = (tmp_path / "train.json").read_text().replace('"done"', '"running"')
    (tmp_path / "train.json").write_text(text)
    tensors, place = load_state(tmp_path / "last.safetensors")
    name = "network.backbone.down2.conv.weight"
    for spoilt, field in (
        ({**tensors, name: tensors[name][:1]}, "shape"),
        ({key: value for key, value in tensors.items() if key != name}, "is missing"),
        ({**tensors, name: tensors[name] * float("nan")}, "contains NaN or infinity"),
    ):
        save_state(tmp_path / "last.safetensors", spoilt, place)
        with pytest.raises(DataError, match=field):
            train_tdnet(data, None, data.classes, tmp_path, replace(SETTINGS, epochs=1))
    save_state(tmp_path / "last.safetensors", tensors, {**place, "epoch": -1})
    with pytest.raises(DataError, match="epoch: found -1"):
        train_tdnet(data, None, data.classes, tmp_path, replace(SETTINGS, epochs=1))


def unfinished(folder: Path, **changed: object) -> None:
    """A finished training as one that was killed before it said so, with other counters."""
    record = folder / "train.json"
    record.write_text(record.read_text().replace('"done"', '"running"'))
    tensors, place = load_state(folder / "last.safetensors")
    save_state(folder / "last.safetensors", tensors, {**place, **changed})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, folder = coloured(["a"], 4, 64), tmp_path_factory.mktemp("finished")
    train_tdnet(data, None, data.classes, folder, SETTINGS)
    return folder


def refused(folder: Path) -> str:
    data = coloured(["a"], 4, 64)
    with pytest.raises(DataError) as error:
        train_tdnet(data, None, data.classes, folder, SETTINGS)
    return str(error.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    ("counters", "sentence"),
    [
        ({"epochs": 0}, "epochs: found 0, expected a number from 1 to 2"),
        ({"epochs": 2**53, "epoch": 1, "done": False}, f"epochs: found {2**53}, expected a number from 1 to 2"),
        ({"pieces": 10**9}, "pieces: found 1000000000, expected a number from 1 to 65536"),
        ({"seconds": -5.0}, f"seconds: found -5.0, expected a number from 0 to {2**53}"),
        ({"epoch": 10**30}, f"epoch: found {10**30}, expected a number from 0 to {2**53}"),
        ({"updates": 2**54}, f"updates: found {2**54}, expected a number from 0 to {2**53}"),
    ],
)
def test_counters_that_no_training_has_are_refused(
    finished: Path, tmp_path: Path, counters: dict[str, object], sentence: str
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run", **counters)
    assert refused(tmp_path / "run") == f"last.safetensors: {sentence}"


def test_momentum_that_is_no_number_is_refused(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run")
    tensors, place = load_state(tmp_path / "run" / "last.safetensors")
    name = "momentum.backbone.down2.conv.weight"
    save_state(tmp_path / "run" / "last.safetensors", {**tensors, name: tensors[name] * float("inf")}, place)
    assert refused(tmp_path / "run") == f"last.safetensors: {name}: contains NaN or infinity"


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda _value: None, "is missing"),
        (lambda value: value.double(), "has type float64 instead of float32"),
        (lambda value: value[:1], "has shape (1, 3, 3, 3) instead of (8, 3, 3, 3)"),
    ],
)
def test_momentum_that_is_missing_or_another_is_refused(
    finished: Path, tmp_path: Path, spoil: Callable[[torch.Tensor], torch.Tensor | None], told: str
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run")
    tensors, place = load_state(tmp_path / "run" / "last.safetensors")
    name = "momentum.backbone.down2.conv.weight"
    spoilt = {**tensors, name: spoil(tensors[name])}
    kept = {key: value for key, value in spoilt.items() if value is not None}
    save_state(tmp_path / "run" / "last.safetensors", kept, place)
    assert refused(tmp_path / "run").endswith(f": {name} {told}")


def test_momentum_of_no_parameter_is_refused(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run")
    tensors, place = load_state(tmp_path / "run" / "last.safetensors")
    save_state(tmp_path / "run" / "last.safetensors", {**tensors, "momentum.other": torch.zeros(2)}, place)
    assert refused(tmp_path / "run").endswith("momentum.other is not part of the network")


@pytest.mark.parametrize("tenth", range(0, 10, 1 if os.environ.get("SURGEVAL_LONG") else 4))
def test_curves_that_are_cut_off_are_one_sentence(finished: Path, tmp_path: Path, tenth: int) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run")
    curves = tmp_path / "run" / "curves.jsonl"
    curves.write_bytes(curves.read_bytes()[: curves.stat().st_size * tenth // 10])
    assert refused(tmp_path / "run") == "curves.jsonl: found no line of epoch 2, expected one: it is the best"


@pytest.mark.parametrize("line", ['{"epoch": 1}', '{"epoch": 1, "seconds": "x"}', '{"epoch": 1, "seconds": -1}'])
def test_a_curve_without_its_seconds_is_refused(finished: Path, tmp_path: Path, line: str) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run", epoch=1, done=False)
    (tmp_path / "run" / "curves.jsonl").write_text(f"{line}\n")
    assert refused(tmp_path / "run").startswith("curves.jsonl: epoch 1: seconds: found ")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"images_per_second": None}, "epoch 2: images_per_second must be a number, got None"),
        ({"images_per_second": [1]}, "epoch 2: images_per_second must be a number, got [1]"),
        ({"mAP50": [float("nan")]}, "line 2: found the number NaN is not allowed, expected a JSON object"),
    ],
)
def test_a_best_epoch_that_no_training_wrote_is_refused(
    finished: Path, tmp_path: Path, changed: dict[str, object], sentence: str
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run")
    curves = tmp_path / "run" / "curves.jsonl"
    first, second = curves.read_text().splitlines()
    curves.write_text(f"{first}\n{json.dumps(json.loads(second) | changed)}\n")
    assert refused(tmp_path / "run") == f"curves.jsonl: {sentence}"


def test_a_pipe_in_place_of_the_best_detector_is_named(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    unfinished(tmp_path / "run")
    (tmp_path / "run" / "best.safetensors").unlink()
    os.mkfifo(tmp_path / "run" / "best.safetensors")
    assert refused(tmp_path / "run") == ("best.safetensors: expected a file, got a named pipe, a device or the like")


@pytest.mark.parametrize("result", [{"teacher": 5}, {"teacher": {"epoch": [1]}}, {"teacher": {"epoch": 1}}])
def test_a_finished_training_with_an_odd_result_is_refused(
    finished: Path, tmp_path: Path, result: dict[str, object]
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    record = tmp_path / "run" / "train.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "result": result}))
    assert refused(tmp_path / "run").startswith("train.json: result.teacher: ")


def test_a_finished_training_whose_detector_was_taken_away_makes_it_again(finished: Path, tmp_path: Path) -> None:
    data = coloured(["a"], 4, 64)
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "detector.safetensors").unlink()
    made = train_tdnet(data, None, data.classes, tmp_path / "run", SETTINGS)
    assert made.detector.read_bytes() == (finished / "detector.safetensors").read_bytes()
    assert TrainRecord.load(tmp_path / "run").status == "done"


def test_the_largest_seed_trains(tmp_path: Path) -> None:
    data = coloured(["a"], 2, 64)
    made = train_tdnet(data, None, data.classes, tmp_path, replace(SETTINGS, seed=2**53 - 1, epochs=1))
    assert made.result["teacher"]["epoch"] == 1
