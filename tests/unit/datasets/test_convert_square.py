"""The 640-pixel square, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.datasets.test_convert import Make, frames_of

from surgeval.datasets import (
    Letterbox,
    MemoryDataset,
    check,
    convert,
    open_dataset,
    read_image,
)
from surgeval.records import Box, Instance, Mask, Triplet


def test_the_square_is_centred_black_and_of_the_asked_size(make: Make, tmp_path: Path) -> None:
    convert(make(), tmp_path / "out", "labelme", size=192)
    dataset = open_dataset(tmp_path / "out")
    frame = next(iter(dataset.frames("VID01")))
    assert (frame.width, frame.height) == (192, 192)
    assert frame.instances[0].box == Box(16, 64, 48, 64)  # twice as large, 16 rows of padding above
    assert frame.image is not None
    pixels = read_image(frame.image)
    assert pixels.shape == (192, 192, 3)
    assert pixels[:28].max() < 12
    assert pixels[-28:].max() < 12
    assert pixels[96].mean() > 50
    with Image.open(frame.image.path) as image:
        assert image.format == "JPEG"
        assert image.layer[1][1:3] == (1, 1)  # type: ignore[attr-defined]  # no chroma subsampling
    assert check(dataset).ok


@pytest.mark.parametrize("original", [True, False])
def test_restore_is_the_exact_inverse(make: Make, tmp_path: Path, same: Callable[..., None], original: bool) -> None:
    source = make()
    past = Instance(Triplet(*source.space.triplets[17]), Box(-4.0, 10.0, 30.0, 20.0))
    frames = frames_of(source)
    frames[0] = replace(frames[0], instances=(*frames[0].instances, past) if original else frames[0].instances)
    convert(MemoryDataset(source.space, frames), tmp_path / "square", "labelme", size=640)
    if not original:
        for path in (tmp_path / "square").rglob("0*.json"):
            data = json.loads(path.read_text())
            for shape in data["shapes"]:
                del shape["originalPoints"]
            path.write_text(json.dumps(data))
    convert(open_dataset(tmp_path / "square"), tmp_path / "back", "labelme", restore=True)
    for one, other in zip(frames, frames_of(open_dataset(tmp_path / "back")), strict=True):
        same(one, other, 0.0 if original else 1e-9)
        assert other.image is not None
        assert read_image(other.image).shape == (64, 96, 3)


def test_every_frame_of_the_square_says_how_to_go_back(make: Make, tmp_path: Path) -> None:
    source = make()
    frames = [replace(frame, labelled=False, instances=()) for frame in frames_of(source)][:1]
    convert(MemoryDataset(source.space, frames), tmp_path / "out", "labelme", size=640)
    data = json.loads((tmp_path / "out" / "VID01" / "000025.json").read_text())
    assert data["noAnnotation"] is True
    assert data["transformInfo"] == {
        "originalWidth": 96, "originalHeight": 64, "squareSize": 96, "pasteX": 0, "pasteY": 16,
        "scaleFactor": 640 / 96, "targetWidth": 640, "targetHeight": 640,
    }  # fmt: skip


def test_odd_padding_goes_to_the_right_and_below() -> None:
    letterbox = Letterbox(101, 64, 101)
    assert letterbox.paste == (0, 18)
    square = letterbox.image(np.full((64, 101, 3), 200, np.uint8))
    rows = np.flatnonzero(square.max(axis=(1, 2)) > 100)
    assert (rows[0], rows[-1]) == (18, 81)


def test_a_large_reduction_goes_in_steps_and_keeps_the_picture() -> None:
    rng = np.random.default_rng(0)
    picture = np.kron(rng.integers(0, 255, (12, 16, 3)), np.ones((100, 100, 1))).astype(np.uint8)
    small = Letterbox(1600, 1200, 640).image(picture)
    assert small.shape == (640, 640, 3)
    centre = small[80 + 20 : 560 : 40, 20:640:40].astype(int)
    assert np.abs(centre - picture[50::100, 50::100]).max() <= 6


def test_a_mask_moves_with_its_box() -> None:
    letterbox = Letterbox(96, 64, 192)
    mask = np.zeros((64, 96), bool)
    mask[10:30, 20:50] = True
    box = Mask.from_array(mask).box()
    assert box is not None
    assert Mask.from_array(letterbox.mask(mask)).box() == letterbox.forward(box)


def test_motion_moves_with_the_square(tmp_path: Path, phantom: Path) -> None:
    from surgeval.datasets.tools.convert import _Squared

    source = open_dataset(phantom)
    frame = next(iter(source.frames("PA1")))
    square = next(iter(_Squared(source, 640).frames("PA1")))
    letterbox = Letterbox(frame.width, frame.height)

    def apply(motion: tuple[float, ...] | None, point: tuple[float, float]) -> tuple[float, float]:
        a, b, c, d, e, f = motion or ()
        return a * point[0] + b * point[1] + c, d * point[0] + e * point[1] + f

    moved = letterbox.forward_point(apply(frame.instances[0].motion, (30.0, 20.0)))
    assert apply(square.instances[0].motion, letterbox.forward_point((30.0, 20.0))) == pytest.approx(moved)
