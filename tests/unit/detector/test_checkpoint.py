"""A detector's file: it comes back as it was, or one sentence says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.detector.networks import CLASSES, awake, pictures, small

from surgeval.detector import Classes, build_tdnet, load_detector, load_state, save_detector, save_state, student_of
from surgeval.errors import BadInput, DataError
from surgeval.vocab import load_labels


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("detector") / "detector.safetensors"
    save_detector(file, small(), CLASSES, size="p", image_size=320, extra={"fill": 114, "epochs": 3})
    return file


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_detector(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    return sentence


def edited(saved: Path, folder: Path, tensors: dict[str, torch.Tensor | None] | None = None, **metadata: Any) -> Path:
    """The saved detector with some tensors replaced (None: left out) and some metadata."""
    stored, told = load_state(saved)
    stored |= {name: value for name, value in (tensors or {}).items() if value is not None}
    for name in [name for name, value in (tensors or {}).items() if value is None]:
        del stored[name]
    save_state(folder / "edited.safetensors", stored, told | metadata)
    return folder / "edited.safetensors"


def test_a_detector_comes_back_as_it_was(saved: Path) -> None:
    loaded, x = load_detector(saved), pictures(1, 64, 64)
    assert loaded.classes == CLASSES and (loaded.size, loaded.image_size) == ("p", 320)
    assert loaded.extra == {"fill": 114, "epochs": 3}
    assert not loaded.model.training and all(weight.requires_grad for weight in loaded.model.parameters())
    with torch.no_grad():
        old, new = small()(x), loaded.model(x)
    assert torch.equal(old.box, new.box) and all(torch.equal(old.logits[h], new.logits[h]) for h in old.logits)


def test_half_the_bytes_and_nearly_the_same_boxes(saved: Path, tmp_path: Path) -> None:
    file, x = tmp_path / "half.safetensors", pictures(1, 64, 64)
    save_detector(file, small(), CLASSES, size="p", image_size=320, half=True)
    assert file.stat().st_size < 0.55 * saved.stat().st_size
    model = load_detector(file).model
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    with torch.no_grad():
        torch.testing.assert_close(model(x).boxes(), small()(x).boxes(), rtol=0, atol=0.5)


def test_what_float16_cannot_hold_is_stored_in_full(tmp_path: Path) -> None:
    network = small()
    network.get_buffer("backbone.down2.norm.running_var").fill_(1e6)
    save_detector(tmp_path / "d", network, CLASSES, size="p", image_size=320, half=True)
    assert (load_detector(tmp_path / "d").model.get_buffer("backbone.down2.norm.running_var") == 1e6).all()


def test_the_smallest_size_for_the_phantom_stays_below_two_megabytes(tmp_path: Path) -> None:
    classes = Classes.of(load_labels("phantom"))
    save_detector(tmp_path / "p", awake(build_tdnet("p", classes)), classes, size="p", image_size=320, half=True)
    assert (tmp_path / "p").stat().st_size < 2_000_000


def test_without_auxiliary_heads_and_for_instruments(tmp_path: Path) -> None:
    save_detector(tmp_path / "plain", small(aux=False), CLASSES, size="p", image_size=64)
    assert load_detector(tmp_path / "plain").model.heads == ("ivt",)
    tools = Classes.of(load_labels("cholec80"))
    save_detector(tmp_path / "tools", build_tdnet("p", tools), tools, size="p", image_size=64)
    assert load_detector(tmp_path / "tools").model.heads == ("i",)


def test_a_student_is_stored_as_a_detector(tmp_path: Path) -> None:
    save_detector(tmp_path / "s", student_of(small()), CLASSES, size="p", image_size=64)
    loaded = load_detector(tmp_path / "s").model
    assert not loaded.student and all(weight.requires_grad for weight in loaded.parameters())


def test_what_does_not_belong_together_is_not_stored(tmp_path: Path) -> None:
    for network, classes, size in (
        (small().fused(), CLASSES, "p"),
        (small(), CLASSES, "n"),
        (small(), Classes.of(load_labels("phantom")), "p"),
    ):
        with pytest.raises(BadInput, match="found a network that is fused, or not of size"):
            save_detector(tmp_path / "d", network, classes, size=size, image_size=320)
    with pytest.raises(BadInput, match="image size: found 300, expected a multiple of 32 up to 4096"):
        save_detector(tmp_path / "d", small(), CLASSES, size="p", image_size=300)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("metadata", "complaint"),
    [
        ({"kind": "training"}, "kind: found 'training', expected 'tdnet'"),
        ({"version": 2}, "version: found 2, expected version 1"),
        ({"size": "x"}, "size: found 'x', expected one of p, n, s, m, l"),
        ({"size": ["p"]}, "size: found ['p']"),
        ({"size": "n"}, "weights: does not fit"),
        ({"aux": False}, "is not part of the network"),
        ({"aux": 1}, "aux: found 1, expected true or false"),
        ({"image_size": 10**9}, "image_size: found 1000000000"),
        ({"image_size": 320.0}, "image_size: found 320.0"),
        ({"image_size": True}, "image_size: found True"),
        ({"extra": []}, "extra: found a list, expected an object"),
        ({"classes": None}, "classes: found a NoneType"),
        (
            {"classes": Classes.of(load_labels("phantom")).to_json()},
            "head ivt: found weights for 5 classes, expected 100, the number of its class names",
        ),
    ],
)
def test_metadata_that_disagrees_is_refused(
    saved: Path, tmp_path: Path, metadata: dict[str, Any], complaint: str
) -> None:
    assert complaint in refusal(edited(saved, tmp_path, **metadata))


@pytest.mark.parametrize(
    ("tensors", "complaint"),
    [
        (
            {"neck.out8.join.conv.weight": None},
            "the 775 tensors of TDnet-p: neck.out8.join.conv.weight is missing",
        ),
        ({"more": torch.ones(1)}, "more is not part of the network"),
        (
            {"backbone.down2.conv.weight": torch.ones(8, 3, 5, 5)},
            "backbone.down2.conv.weight has shape (8, 3, 5, 5) instead of (8, 3, 3, 3)",
        ),
        ({"backbone.down2.norm.bias": torch.ones(8, dtype=torch.int64)}, "backbone.down2.norm.bias has type int64"),
        ({"backbone.down2.norm.bias": torch.full((8,), torch.nan)}, "norm.bias: contains NaN or infinity"),
        ({"backbone.down2.norm.bias": torch.full((8,), -torch.inf)}, "norm.bias: contains NaN or infinity"),
        (
            {"backbone.down2.norm.bias": torch.full((8,), 1e300, dtype=torch.float64)},
            "norm.bias: contains NaN or infinity",
        ),
        ({"backbone.down2.norm.running_var": torch.full((8,), -1.0)}, "found a variance below 0"),
        ({"head.stacks.ivt.0.4.weight": torch.tensor(1.0)}, "head ivt: found weights for 0 classes"),
    ],
)
def test_weights_that_are_not_the_networks_are_refused(
    saved: Path, tmp_path: Path, tensors: dict[str, torch.Tensor | None], complaint: str
) -> None:
    assert complaint in refusal(edited(saved, tmp_path, tensors))


def test_weights_of_great_size_that_sum_beyond_float32_are_no_infinity(saved: Path, tmp_path: Path) -> None:
    file = edited(saved, tmp_path, {"backbone.down2.norm.bias": torch.full((8,), 3e38)})
    assert (load_detector(file).model.get_parameter("backbone.down2.norm.bias") == 3e38).all()


def test_a_file_of_a_training_is_no_detector(tmp_path: Path) -> None:
    save_state(tmp_path / "last.safetensors", {"step": torch.ones(1)}, {"epoch": 1})
    assert "kind: found None, expected 'tdnet' (a TDnet detector written by surgeval)" in refusal(
        tmp_path / "last.safetensors"
    )
    assert "found no such file, expected a TDnet detector" in refusal(tmp_path / "absent")
