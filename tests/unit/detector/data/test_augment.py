"""Augmentation moves pixels and boxes alike, and is a function of (seed, epoch, index) alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.detector.data.small_sets import HEIGHT, TOOLS, WIDTH, frame, instance, mixed_set, training_set

from surgeval.arrays import Bools, Singles
from surgeval.arrays import Image as Pixels
from surgeval.detector.data import PLAIN, Augment, TrainingSet
from surgeval.detector.data.augment import Draw, Tile, compose, draw, flipped, recoloured
from surgeval.errors import BadInput
from surgeval.records import Box, Frame, Instance, Triplet

DATA = mixed_set()
STILL = Draw(False, (0.0, 0.0, 0.0), (1.0, 1.0), 1.0, (0.0, 0.0), False, (0.0, 1.0, 1.0))
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0))
numbers = st.integers(0, 2**40)


@given(seed=numbers, epoch=st.integers(0, 1000), index=st.integers(0, len(DATA) - 1), mosaic=st.booleans())
def test_boxes_stay_inside_and_keep_an_area(seed: int, epoch: int, index: int, mosaic: bool) -> None:
    augment = Augment() if mosaic else Augment().without_mosaic()
    sample = DATA.sample(index, epoch, seed, augment)
    assert sample.image.shape == (96, 96, 3) and sample.image.dtype == np.uint8
    assert ((sample.boxes >= 0) & (sample.boxes <= 96)).all()
    assert (sample.boxes[:, 2:] - sample.boxes[:, :2] >= 2).all()
    assert sample.boxes.dtype == np.float32
    assert {len(rows) for rows in sample.labels.values()} == {len(sample.boxes)}
    assert (sample.labels["ivt"].sum(axis=1) == 1).all()
    assert sample.labels["i"].any(axis=1).all()


@given(seed=numbers, epoch=st.integers(0, 100))
def test_the_same_key_gives_the_same_bytes_in_any_order(seed: int, epoch: int) -> None:
    order = np.random.default_rng(seed).permutation(len(DATA))
    first = {int(k): DATA.sample(int(k), epoch, seed, Augment()) for k in order[:5]}
    for k in order[:5][::-1]:
        again = DATA.sample(int(k), epoch, seed, Augment())
        assert again.image.tobytes() == first[int(k)].image.tobytes()
        assert again.boxes.tobytes() == first[int(k)].boxes.tobytes()


def test_other_keys_give_other_draws() -> None:
    keys = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (2**62, 0, 0, 0)]
    assert len({draw(Augment(), *key) for key in keys}) == len(keys)


def test_draws_are_spread_as_the_settings_say() -> None:
    drawn = [draw(Augment(mosaic=0.3), 5, epoch, index) for epoch in range(10) for index in range(200)]
    assert abs(np.mean([d.mosaic for d in drawn]) - 0.3) < 0.05
    assert abs(np.mean([d.flip for d in drawn]) - 0.5) < 0.05
    for values, low, high in (
        ([d.scale for d in drawn], 0.5, 1.5), ([d.shift[0] for d in drawn], -0.1, 0.1),
        ([d.shift[1] for d in drawn], -0.1, 0.1), ([d.centre[0] for d in drawn], 0.5, 1.5),
        ([d.centre[1] for d in drawn], 0.5, 1.5),
        ([d.colour[0] for d in drawn], -0.015, 0.015), ([d.colour[1] for d in drawn], 0.3, 1.7),
        ([d.colour[2] for d in drawn], 0.6, 1.4), ([d.partners[2] for d in drawn], 0.0, 1.0),
    ):  # fmt: skip
        assert low <= min(values) < low + 0.02 * (high - low)
        assert high - 0.02 * (high - low) < max(values) <= high
        assert abs(np.mean(values) - (low + high) / 2) < 0.03 * (high - low)


def test_luck_of_one_setting_does_not_hang_on_another() -> None:
    one, other = draw(Augment(), 1, 2, 3), draw(Augment(mosaic=0, flip=0, hue=0), 1, 2, 3)
    assert (one.scale, one.shift, one.centre, one.partners) == (other.scale, other.shift, other.centre, other.partners)


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 40), st.integers(0, 5))
def test_flipping_twice_is_identity_and_once_moves_pixels_and_boxes_alike(
    seed: int, height: int, width: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    corners = np.sort(rng.integers(0, [width + 1, height + 1], (count, 2, 2)), axis=1).reshape(-1, 4)
    boxes = corners.astype(np.float32)
    once = flipped(image, boxes)
    again = flipped(*once)
    assert (again[0] == image).all() and (again[1] == boxes).all()
    for before, after in zip(corners, once[1].astype(int), strict=True):
        inside = image[before[1] : before[3], before[0] : before[2]]
        assert (once[0][after[1] : after[3], after[0] : after[2]] == inside[:, ::-1]).all()


@given(st.integers(0, 2**32), st.floats(-0.5, 0.5), st.floats(0, 2), st.floats(0, 2))
def test_colour_keeps_shape_and_range(seed: int, turn: float, saturation: float, value: float) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (8, 6, 3), dtype=np.uint8)
    before = image.copy()
    changed = recoloured(image, (turn, saturation, value))
    assert changed.shape == image.shape and changed.dtype == np.uint8
    assert (image == before).all()  # the picture in memory is not written to
    grey = np.repeat(image[..., :1], 3, axis=2)
    assert (np.ptp(recoloured(grey, (turn, saturation, 1.0)), axis=2) == 0).all()  # grey has no hue


def test_colour_changes_what_it_says() -> None:
    image = np.full((2, 2, 3), (200, 100, 100), np.uint8)
    assert recoloured(image, (0.0, 1.0, 0.5))[0, 0].tolist() == pytest.approx([100, 50, 50], abs=1)
    assert recoloured(image, (0.0, 0.0, 1.0))[0, 0].tolist() == [200, 200, 200]
    assert recoloured(image, (1 / 3, 1.0, 1.0))[0, 0].tolist() == pytest.approx([100, 200, 100], abs=2)
    # Red is both ends of the scale: a small turn either way stays a small change of colour.
    red = np.full((2, 2, 3), (200, 20, 20), np.uint8)
    for turn in (-0.015, 0.015):
        assert np.abs(recoloured(red, (turn, 1.0, 1.0)).astype(int) - red).max() <= 20


def solid_set(size: int = 128) -> TrainingSet:
    """Four frames of one colour each, each one with a box of the class of its colour."""
    frames = [Frame("V", str(k), k, None, None, WIDTH, HEIGHT, (Instance(Triplet(k), Box(16, 8, 60, 44)),))
              for k in range(4)]  # fmt: skip
    return training_set(
        frames,
        TOOLS,
        size=size,
        fill=0,
        read=lambda one: np.full((HEIGHT, WIDTH, 3), COLOURS[one.index], np.uint8),
    )


def test_a_mosaic_puts_boxes_on_their_own_colours() -> None:
    data = solid_set()
    seen = np.zeros(4, int)
    for epoch in range(60):
        for index in range(4):
            sample = data.sample(index, epoch, 0, Augment(hue=0, saturation=0, value=0))
            for box, marks in zip(sample.boxes, sample.labels["i"], strict=True):
                number = int(np.flatnonzero(marks)[0])
                x1, y1, x2, y2 = np.concatenate([np.ceil(box[:2]), np.floor(box[2:])]).astype(int)
                assert (sample.image[y1:y2, x1:x2] == COLOURS[number]).all()
                seen[number] += 1
    assert (seen > 50).all()


def test_what_is_in_a_box_is_what_was_in_it_before() -> None:
    """A white rectangle on black, somewhere: its box encloses exactly the white pixels, whatever was drawn."""
    rng = np.random.default_rng(3)
    places = rng.integers([2, 2], [40, 20], (20, 2)), rng.integers([12, 12], [50, 40], (20, 2))
    frames = [Frame("V", str(k), k, None, None, WIDTH, HEIGHT,
                    (Instance(Triplet(k % 7), Box(*places[0][k].tolist(), *places[1][k].tolist())),))
              for k in range(20)]  # fmt: skip

    def read(one: Frame) -> Pixels:
        image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        (x, y), (w, h) = places[0][one.index], places[1][one.index]
        image[y : y + h, x : x + w] = 255
        return image

    data = training_set(frames, TOOLS, size=160, fill=0, read=read)
    compared = 0
    for index in range(20):
        for epoch in range(10):
            augment = Augment(mosaic=0, hue=0, saturation=0, value=0, visible=0, smallest=0)
            sample = data.sample(index, epoch, 1, augment)
            rows, columns = np.nonzero(sample.image[..., 0] > 127)
            if len(sample.boxes) and len(rows):
                tight = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
                assert np.abs(tight - sample.boxes[0]).max() <= 1.0
                compared += 1
    assert compared > 150


def tile(boxes: list[list[float]], size: int = 64) -> Tile:
    rows = np.array(boxes, np.float32).reshape(-1, 4)
    return Tile(np.zeros((size, size, 3), np.uint8), rows, np.eye(len(rows), 8, dtype=bool), (0, 0))


def composed(one: Tile, augment: Augment = PLAIN, **changes: object) -> tuple[Singles, Bools]:
    _, boxes, main = compose([one], replace(STILL, **changes), augment, 64, 0)  # type: ignore[arg-type]
    return boxes, main


def test_a_box_stays_while_a_tenth_of_it_is_seen() -> None:
    one = tile([[0, 0, 20, 20], [40, 40, 60, 60]])
    boxes, main = composed(one, shift=(-17.5 / 64, 0.0))  # 2.5 of 20 columns: an eighth
    assert boxes.tolist() == [[0, 0, 2.5, 20], [22.5, 40, 42.5, 60]]
    boxes, main = composed(one, shift=(-18.5 / 64, 0.0))  # 1.5 of 20: less than a tenth
    assert boxes.tolist() == [[21.5, 40, 41.5, 60]]
    assert np.flatnonzero(main[0]).tolist() == [1]  # labels follow their boxes
    assert len(composed(one, Augment(visible=0.2), shift=(-17.5 / 64, 0.0))[0]) == 1


def test_a_box_that_was_tiny_stays_unless_it_is_cut() -> None:
    one = tile([[10, 10, 11, 11.5]])
    assert composed(one)[0].tolist() == [[10, 10, 11, 11.5]]
    assert len(composed(one, shift=(-10.5 / 64, 0.0))[0]) == 0


def test_scaling_is_about_the_middle() -> None:
    boxes, _ = composed(tile([[22, 12, 42, 52]]), scale=0.5)
    assert boxes.tolist() == [[27, 22, 37, 42]]
    boxes, _ = composed(tile([[22, 12, 42, 52]]), scale=1.5)
    assert boxes.tolist() == [[17, 2, 47, 62]]


def test_a_mosaic_shows_four_corners_that_meet() -> None:
    tiles = [Tile(np.full((64, 64, 3), 50 * (k + 1), np.uint8), np.zeros((0, 4), np.float32), np.zeros((0, 8), bool),
                  (0, 0)) for k in range(4)]  # fmt: skip
    image, _, _ = compose(tiles, replace(STILL, mosaic=True), PLAIN, 64, 0)
    assert (image[:32, :32] == 50).all() and (image[:32, 32:] == 100).all()
    assert (image[32:, :32] == 150).all() and (image[32:, 32:] == 200).all()


def test_partners_come_from_all_frames_and_follow_the_sampling() -> None:
    frames = [frame(k, [instance(17)]) for k in range(39)] + [frame(39, [instance(60)])]
    data = training_set(frames, size=32)
    shares = {}
    for partners in ("all", "repeat-factor", "balanced"):
        augment = Augment(partners=partners, threshold=0.5, visible=0, smallest=0)
        marks = [data.sample(0, epoch, 0, augment).labels["ivt"][:, 60].sum() for epoch in range(400)]
        shares[partners] = float(np.sum(marks)) / 1200
    assert 0 < shares["all"] < shares["repeat-factor"] < shares["balanced"]


@pytest.mark.parametrize("setting", ["mosaic", "flip", "scale", "translate", "hue", "visible"])
def test_impossible_settings_are_refused(setting: str) -> None:
    for value in (-0.1, 1.1, float("nan")):
        with pytest.raises(BadInput, match=f"augmentation: {setting}"):
            Augment(**{setting: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [(-1, 0, 0), (0, -1, 0), (2**64, 0, 0)])
def test_impossible_keys_are_refused(key: tuple[int, int, int]) -> None:
    with pytest.raises(BadInput, match="expected a whole number from 0"):
        draw(Augment(), *key)


def _tile(pixels: Pixels) -> Tile:
    return Tile(pixels, np.zeros((0, 4), np.float32), np.zeros((0, 1), bool), (0, 0))


def test_pixels_are_scaled_from_centre_to_centre() -> None:
    ramp = np.broadcast_to(np.arange(0, 256, 8, dtype=np.uint8)[None, :, None], (32, 32, 3)).copy()
    image, _, _ = compose([_tile(ramp)], replace(STILL, scale=1.5), PLAIN, 32, 114)
    # The middle stays: pixel k has its centre at k + 0.5, which was at 16 + (k + 0.5 − 16) / 1.5 in the tile.
    expected = 8 * (16 + (np.arange(32) + 0.5 - 16) / 1.5 - 0.5)
    assert np.abs(image[16, :, 0] - expected).max() <= 0.51


def test_a_mosaic_ends_at_its_canvas_of_twice_the_side() -> None:
    tiles = [_tile(np.full((32, 32, 3), 200, np.uint8)) for _ in range(4)]
    drawn = replace(STILL, mosaic=True, centre=(1.5, 1.5), scale=0.5, shift=(-0.125, -0.125))
    image, _, _ = compose(tiles, drawn, PLAIN, 32, 114)
    # The last tile reaches from 1.5 to 2.5 sides; halved and moved, the canvas ends at 28 of 32 pixels.
    assert (image[20:28, 20:28] == 200).all()
    assert (image[28:] == 114).all() and (image[:, 28:] == 114).all()
