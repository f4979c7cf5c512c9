"""RT-DETR in the shared training loop: it learns, goes on exactly, and leaves a folder that can be looked at with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.detector.coloured import coloured

from surgeval.detector.inference import open_detector
from surgeval.detector.rtdetr import (
    TrainedRTDetr,
    build_rtdetr,
    load_rtdetr,
    pretrained_rtdetr,
    rtdetr_settings,
    save_rtdetr,
    train_rtdetr,
)
from surgeval.detector.rtdetr.adamw import AdamW
from surgeval.detector.state import load_state
from surgeval.detector.training import TrainRecord, read_curves
from surgeval.detector.training.schedule import StepSettings
from surgeval.errors import BadInput, DataError, RunError

SETTINGS = rtdetr_settings(size="tiny", epochs=3, batch=4, image_size=64, rate=1e-3, aux=True, mosaic=0.5)
MOMENT = StepSettings(rate=1e-3, bias_rate=1e-3, momentum=0.9, accumulate=1)
pytestmark = pytest.mark.usefixtures("one_thread")


def train(folder: Path, tell: Callable[[str], None] = lambda _line: None, **changed: Any) -> TrainedRTDetr:
    torch.set_num_threads(1)
    data, validation = coloured(["a", "b"], 4, 64), coloured(["c"], 2, 64)
    weights = changed.pop("weights", None)
    settings = replace(SETTINGS, **changed)
    return train_rtdetr(data, validation, data.classes, folder, settings, weights=weights, progress=tell)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> TrainedRTDetr:
    return train(tmp_path_factory.mktemp("undisturbed"))


def test_the_folder_is_a_detector_with_curves_and_a_record(undisturbed: TrainedRTDetr) -> None:
    curves, record = read_curves(undisturbed.folder), TrainRecord.load(undisturbed.folder)
    assert [row["epoch"] for row in curves] == [1, 2, 3]
    assert {"mAP50", "mAP50:95", "loss l1", "loss giou", "loss ivt", "loss i", "rate"} <= set(curves[0])
    assert (record.model, record.status) == ("rtdetr", "done")
    assert curves[2]["loss"] < curves[0]["loss"]
    made = load_rtdetr(undisturbed.detector)
    seen = open_detector(undisturbed.folder).raw(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
    assert set(seen.probabilities) == {"ivt", "i", "v", "t"}
    best = load_rtdetr(undisturbed.best)
    assert all(torch.equal(a, b) for a, b in zip(made.state_dict().values(), best.state_dict().values(), strict=True))
    assert made.aux and made.image_size == 64 and undisturbed.result["rtdetr"]["epochs"] == 3


def test_stopped_by_hand_it_ends_with_the_same_weights(undisturbed: TrainedRTDetr, tmp_path: Path) -> None:
    def stop(line: str) -> None:
        if line.startswith("rtdetr 2/3"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop)
    assert TrainRecord.load(tmp_path).status == "interrupted"
    torch.rand(5)  # the noise of denoising queries comes from torch's random numbers
    told: list[str] = []
    train(tmp_path, told.append)
    assert told[0] == "rtdetr: goes on after epoch 2"
    mine, theirs = (load_state(place / "last.safetensors")[0] for place in (tmp_path, undisturbed.folder))
    assert mine.keys() == theirs.keys() and any(name.endswith("exp_avg_sq") for name in mine)
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    with pytest.raises(RunError, match="holds a training with aux true"):
        train(tmp_path, aux=False)


def test_given_weights_are_where_it_begins_and_are_part_of_what_it_is(
    undisturbed: TrainedRTDetr, tmp_path: Path
) -> None:
    told: list[str] = []
    train(tmp_path / "on", told.append, weights=undisturbed.detector, epochs=1, aux=False)
    assert told[0].startswith("began with the weights of ")
    digest = TrainRecord.load(tmp_path / "on").data["weights"]
    assert isinstance(digest, str) and len(digest) == 64
    with pytest.raises(RunError, match=r"other data \(weights\)"):
        train(tmp_path / "on", weights=None, epochs=1, aux=False)


def test_a_trained_backbone_learns_at_a_tenth_and_norms_do_not_decay(tmp_path: Path) -> None:
    classes = coloured(["a"], 1, 64).classes
    save_rtdetr(tmp_path, build_rtdetr("tiny", classes, image_size=64))
    network = pretrained_rtdetr(tmp_path, classes, image_size=64)
    optimiser = AdamW(network, backbone=0.1)
    optimiser.set(MOMENT)
    groups = optimiser.torch_optimiser.param_groups
    rates = {
        (id(p) in {id(q) for q in network.net.model.backbone.parameters()}, p.ndim > 1): (
            group["lr"],
            group["weight_decay"],
        )
        for group in groups
        for p in group["params"]
    }
    assert rates == {(True, True): (pytest.approx(1e-4), 1e-4), (True, False): (pytest.approx(1e-4), 0.0),
                     (False, True): (1e-3, 1e-4), (False, False): (1e-3, 0.0)}  # fmt: skip
    assert sum(len(group["params"]) for group in groups) == len(list(network.parameters()))


def test_gradients_are_clipped_and_what_adam_remembers_comes_back() -> None:
    classes = coloured(["a"], 1, 64).classes

    def updated(times: int, optimiser: AdamW) -> None:
        for _ in range(times):
            for p in optimiser.parameters:
                p.grad = torch.full_like(p, 0.5)
            optimiser.set(MOMENT)
            assert float(optimiser.update()) > 0.1

    first, second = (build_rtdetr("tiny", classes, image_size=64) for _ in range(2))
    one, two = AdamW(first), AdamW(second)
    updated(2, one)
    kept = {name: value.clone() for name, value in one.tensors().items()}
    length = sum(float((value / 0.1).square().sum()) for name, value in kept.items() if name.endswith("exp_avg")) ** 0.5
    assert length < 2.2 * 0.1  # two clipped gradients, not two of length 0.5 · √600 000
    second.load_state_dict(first.state_dict())
    two.restore(kept, "last.safetensors")
    updated(1, one)
    updated(1, two)
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )
    name = next(iter(kept)).rpartition(".")[0]
    shape = tuple(first.get_parameter(name).shape)
    for change, told in (
        ({"strange.exp_avg": torch.zeros(1)}, r"strange\.exp_avg is not part of the network"),
        ({f"{name}.exp_avg": torch.zeros(7, 7)}, r"has shape \(7, 7\) instead of"),
        ({f"{name}.exp_avg": torch.zeros(shape, dtype=torch.int64)}, "has type int64 instead of"),
        ({f"{name}.step": torch.tensor(-1.0)}, r"\.step: found others among them, expected finite numbers from 0"),
        ({f"{name}.exp_avg_sq": torch.full(shape, -1.0)}, r"_sq: found others among them, expected finite numbers fr"),
        ({f"{name}.exp_avg": torch.full(shape, torch.inf)}, r"exp_avg: found others among them, expected finite num"),
    ):
        with pytest.raises(DataError, match=f"momentum.*{told}"):
            AdamW(second).restore({**kept, **change}, "last.safetensors")
    for gone in ((f"{name}.exp_avg",), tuple(f"{name}.{kind}" for kind in ("step", "exp_avg", "exp_avg_sq"))):
        with pytest.raises(DataError, match="is missing"):
            AdamW(second).restore({key: kept[key] for key in kept if key not in gone}, "last.safetensors")


def test_before_a_gradient_adam_remembers_what_it_begins_with() -> None:
    network = build_rtdetr("tiny", coloured(["a"], 1, 64).classes, image_size=64)
    optimiser = AdamW(network)
    kept = optimiser.tensors()
    assert len(kept) == 3 * len(optimiser.parameters) and not any(bool(value.any()) for value in kept.values())
    optimiser.restore(kept, "last.safetensors")


def test_settings_that_are_not_for_it_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="size: found 'n', expected one of tiny, r18, r50"):
        train(tmp_path, size="n")
    with pytest.raises(BadInput, match="compile: found true"):
        train(tmp_path, compile=True)
    with pytest.raises(BadInput, match="found pictures of 64 pixels, expected 96"):
        train(tmp_path, image_size=96)
    with pytest.raises(DataError, match=r"config\.json: no such file"):
        train(tmp_path / "run", weights=tmp_path)
