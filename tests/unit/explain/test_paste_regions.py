"""Maps on the frame, and regions on the device equal to the metrics' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.explain import Paste, box_masks, overlap, top_regions, whole
from surgeval.explain.regions import count_packed, fixed_regions, select_by_bracket
from surgeval.metrics.grounding import box_mask, fixed_region, pixel_window, top_region
from surgeval.models.preparation import Preparation, View


def _noise(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("grid", "size"), [((7, 7), (224, 224)), ((4, 7), (65, 111)), ((1, 3), (9, 5)), ((9, 9), (4, 4))]
)
def test_over_a_whole_image_it_is_torchs_bilinear(grid: tuple[int, int], size: tuple[int, int]) -> None:
    maps = torch.from_numpy(_noise(2, 3, *grid))
    expected = torch.nn.functional.interpolate(maps, size=size, mode="bilinear", align_corners=False)
    assert torch.allclose(whole(grid, *size).upsample_torch(maps), expected, atol=2e-6)


@given(
    frame=st.tuples(st.integers(2, 40), st.integers(2, 40)),
    edges=st.tuples(*[st.floats(0, 1)] * 4),
    grid=st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_a_pixel_is_visible_when_its_centre_is_in_the_window(frame: Any, edges: Any, grid: Any) -> None:
    height, width = frame
    x1, x2 = sorted((edges[0] * width, edges[2] * width))
    y1, y2 = sorted((edges[1] * height, edges[3] * height))
    centres_x, centres_y = np.arange(width) + 0.5, np.arange(height) + 0.5
    seen_x, seen_y = (centres_x >= x1) & (centres_x < x2), (centres_y >= y1) & (centres_y < y2)
    if not (seen_x.any() and seen_y.any()):
        with pytest.raises(BadInput, match="window"):
            Paste(frame, (x1, y1, x2, y2), grid)
        return
    paste = Paste(frame, (x1, y1, x2, y2), grid)
    assert paste.pixels == pixel_window((x1, y1, x2, y2), height, width)
    maps = _noise(2, *grid)
    seen = paste.upsample(maps)
    pasted = paste.full(seen)
    assert np.array_equal(~np.isnan(pasted[0]), seen_y[:, None] & seen_x[None, :])
    np.testing.assert_allclose(paste.upsample_torch(torch.from_numpy(maps)).numpy(), seen, rtol=1e-6, atol=1e-7)
    assert seen.min() >= maps.min() - 1e-6 and seen.max() <= maps.max() + 1e-6
    assert np.allclose(paste.rows.sum(1), 1) and np.allclose(paste.columns.sum(1), 1)


def test_a_patch_lands_where_the_model_saw_it() -> None:
    view = Preparation(resize=(360, 640), crop=(224, 224), resample="bilinear").view(1080, 1920)
    heat = np.zeros((7, 7), np.float32)
    heat[3, 3] = 1  # the middle patch: the crop is centred, so this is the middle of the frame
    paste = Paste.of(view, (7, 7))
    on_frame = np.nan_to_num(paste.full(paste.upsample(heat)))
    rows, columns = np.nonzero(on_frame == on_frame.max())
    assert (rows.mean() + 0.5, columns.mean() + 0.5) == pytest.approx((540, 960))
    assert paste.shape == (672, 672)  # 224 pixels of a frame enlarged three times
    stretched = Paste.of(view, (7, 7), "stretch")
    assert stretched.shape == (1080, 1920)
    heat[:] = 0
    heat[0, 0] = 1  # window: the crop's corner; stretched: the frame's corner
    assert divmod(int(np.argmax(stretched.upsample(heat))), 1920) == (0, 0)
    assert divmod(int(np.nanargmax(paste.full(paste.upsample(heat)))), 1920) == (204, 624)


def test_a_window_that_shows_nothing_and_a_map_of_another_size_are_refused() -> None:
    with pytest.raises(BadInput, match="must have finite x1 < x2"):
        Paste((10, 10), (5, 0, 5, 10), (2, 2))
    with pytest.raises(BadInput, match="Use window or stretch"):
        Paste.of(View((10, 10), (0, 0, 10, 10)), (2, 2), "zoom")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"shape \(3, 3\) does not end with the grid \(2, 2\)"):
        whole((2, 2), 8, 8).upsample(np.zeros((3, 3)))


@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    values=st.sampled_from(["smooth", "ties", "sparse", "flat", "zero", "negative"]),
    keep_top=st.sampled_from([0.2, 0.8, 0.3, 1.0, 0.013]),
    positive=st.booleans(),
    double=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_regions_on_the_device_are_the_metrics_regions(
    shape: Any, values: str, keep_top: float, positive: bool, double: bool, seed: int
) -> None:
    noise = np.random.default_rng(seed)
    maps = noise.normal(size=(3, *shape))
    if values == "ties":
        maps = np.round(maps)
    elif values == "sparse":
        maps = np.maximum(maps - 1, 0)
    elif values == "flat":
        maps = np.full_like(maps, 0.37) * (1 + 1e-8 * maps)
    elif values == "zero":
        maps = np.zeros_like(maps)
    elif values == "negative":
        maps = -np.abs(maps)
    maps = maps.astype(np.float64 if double else np.float32)
    found = top_regions(torch.from_numpy(maps), keep_top, positive)
    for number in range(3):
        expected = top_region(maps[number], keep_top, positive)
        assert np.array_equal(found.masks[number].numpy(), expected.mask)
        assert int(found.sizes[number]) == expected.size
        assert float(found.fractions[number]) == expected.fraction
        assert float(found.thresholds[number]) == expected.threshold
        assert found.flags(number) == expected.flags


def test_a_region_is_numpys_quantile() -> None:
    maps = _noise(4, 33, 47, seed=5)
    found = top_regions(torch.from_numpy(maps), 0.2)
    for number in range(4):
        quantile = np.quantile(maps[number].astype(np.float64), 0.8)
        assert np.array_equal(found.masks[number].numpy(), maps[number] >= quantile)


@given(
    boxes=st.lists(st.tuples(*[st.floats(-3, 14)] * 4), max_size=4),
    window=st.sampled_from([(0, 0, 12, 9), (3, 2, 9, 8)]),
)
def test_boxes_on_the_device_are_the_metrics_boxes(boxes: Any, window: Any) -> None:
    padded = torch.full((2, 5, 4), torch.nan, dtype=torch.float64)
    for number, box in enumerate(boxes):
        padded[1, number] = torch.tensor(box, dtype=torch.float64)
    found = box_masks(padded, window)
    assert not found[0].any()
    assert np.array_equal(found[1].numpy(), box_mask(np.array(boxes).reshape(-1, 4), 9, 12, window))


def test_overlaps_are_whole_pixels() -> None:
    noise = np.random.default_rng(1)
    masks, truths = noise.random((3, 8, 9)) > 0.5, noise.random((3, 2, 8, 9)) > 0.5
    found = overlap(torch.from_numpy(masks), torch.from_numpy(truths))
    assert found.dtype == torch.int64
    assert np.array_equal(found.numpy(), (masks[:, None] & truths).sum((2, 3)))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_map_that_is_not_finite_is_refused(bad: float) -> None:
    maps = torch.rand(2, 3, 3)
    maps[1, 2, 2] = bad
    with pytest.raises(BadInput, match="NaN or infinity"):
        top_regions(maps)


def test_a_share_outside_zero_to_one_is_refused() -> None:
    for share in (0.0, 1.5):
        with pytest.raises(BadInput, match="keep_top: found"):
            top_regions(torch.rand(1, 3, 3), share)
    with pytest.raises(BadInput, match=r"must be numbers of shape \(maps, rows, columns\)"):
        top_regions(torch.rand(3, 3))


@given(
    kind=st.sampled_from(["smooth", "noise", "sparse", "steps", "sorted"]),
    size=st.integers(8, 3000),
    share=st.floats(0, 1),
    sample=st.sampled_from([16, 128]),
    margin=st.sampled_from([0, 3, 40]),
    seed=st.integers(0, 1000),
)
def test_a_bracketed_selection_is_exact_whatever_the_sample_missed(
    kind: str, size: int, share: float, sample: int, margin: int, seed: int
) -> None:
    values = np.random.default_rng(seed).normal(size=(4, size)).astype(np.float32)
    if kind == "smooth":
        values = np.sin(np.arange(size) / 50 + values[:, :1]).astype(np.float32)
    elif kind == "sparse":
        values = np.maximum(values - 1, 0)
    elif kind == "steps":
        values = np.round(values)
    elif kind == "sorted":
        values = np.sort(values, axis=1)
    k = min(1 + int(share * size), size)
    found = select_by_bracket(torch.from_numpy(values), k, sample, margin)
    assert np.array_equal(found.numpy(), np.sort(values, axis=1)[:, k - 1])


@given(
    words=st.integers(1, 40),
    group=st.sampled_from([1, 16, 255]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 100),
)
def test_counting_eight_at_a_time_is_counting(words: int, group: int, share: float, seed: int) -> None:
    masks = np.random.default_rng(seed).random((2, 3, words * group * 8)) < share
    assert np.array_equal(count_packed(torch.from_numpy(masks), group).numpy(), masks.sum(-1))


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 0.5, 1.0]), st.booleans())
def test_fixed_regions_are_those_of_the_metrics(seed: int, threshold: float, strict: bool) -> None:
    maps = np.random.default_rng(seed).normal(size=(3, 6, 7)).round(1)
    maps[2] = 0.4
    found = fixed_regions(torch.from_numpy(maps), threshold, strict)
    for number in range(3):
        expected = fixed_region(maps[number], threshold, strict)
        assert np.array_equal(found.masks[number].numpy(), expected.mask)
        assert found.flags(number) == expected.flags
