"""Laws of the grounding metrics that hold for any map, any boxes and any motion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surgeval.metrics import (
    MATCH_LEVELS,
    Truth,
    box_mask,
    fixed_region,
    ground,
    ground_region,
    kept_pixels,
    lift,
    match_breakdown,
    prediction_sets,
    top_region,
    triplet_match,
)
from surgeval.records import Triplet

Floats = npt.NDArray[np.float64]
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12)
# Few distinct values, so that ties, zeros and flat maps are common.
COARSE = st.integers(-3, 8).map(lambda k: k / 4)
FINE = st.floats(-5, 5, allow_nan=False)
MAPS = st.one_of(hnp.arrays(np.float64, SHAPES, elements=COARSE), hnp.arrays(np.float64, SHAPES, elements=FINE))
SHARES = st.sampled_from([0.05, 0.2, 0.3, 0.5, 0.7, 0.8, 1.0])
EDGE = st.floats(-4, 16, allow_nan=False)
BOXES = st.lists(st.tuples(st.sampled_from(["hook", "bag"]), st.tuples(EDGE, EDGE, EDGE, EDGE)), max_size=4)
TRIPLETS = st.builds(Triplet, st.integers(-1, 2), st.integers(-1, 2), st.integers(-1, 2))


def flat(heat: Floats) -> bool:
    return "constant" in top_region(heat).flags


@given(MAPS, SHARES)
def test_the_literal_region_is_the_pixels_not_below_numpys_quantile(heat: Floats, keep: float) -> None:
    if flat(heat):
        return
    region = top_region(heat, keep, positive=False)
    quantile = np.quantile(heat, 1 - keep)
    # Neighbours closer than the interpolation can resolve may fall on either side of numpy's quantile.
    clear = np.abs(heat - quantile) > 1e-12
    np.testing.assert_array_equal(region.mask[clear], (heat >= quantile)[clear])


@given(MAPS, SHARES)
def test_a_region_is_as_large_as_asked_unless_a_flag_says_otherwise(heat: Floats, keep: float) -> None:
    region, kept = top_region(heat, keep), kept_pixels(heat.size, keep)
    assert region.size == np.count_nonzero(region.mask) and region.fraction == region.size / heat.size
    if not region.flags:
        assert region.size == kept
    assert ("empty_region" in region.flags) == (region.size == 0)
    if region.size > kept:
        assert region.flags & {"ties", "constant"}
    if region.size < kept:
        assert region.flags & {"sparse", "constant"}
    assert region.size == 0 or heat[region.mask].min() > 0
    outside = heat[~region.mask]
    assert not region.size or not outside.size or outside.max() < heat[region.mask].min()


@given(MAPS, SHARES, st.sampled_from([0.25, 2.0, 64.0]))
def test_scaling_a_map_changes_no_region(heat: Floats, keep: float, factor: float) -> None:
    np.testing.assert_array_equal(top_region(heat, keep).mask, top_region(factor * heat, keep).mask)
    np.testing.assert_array_equal(fixed_region(heat).mask, fixed_region(factor * heat).mask)


@given(MAPS, st.floats(0.01, 1))
def test_strict_never_keeps_more_and_a_higher_threshold_never_either(heat: Floats, threshold: float) -> None:
    kept = fixed_region(heat, threshold).mask
    assert not (fixed_region(heat, threshold, strict=True).mask & ~kept).any()
    assert not (fixed_region(heat, min(1.0, threshold * 1.5)).mask & ~kept).any()


@given(MAPS, BOXES, st.data())
def test_ratios_lie_in_order_between_0_and_1(
    heat: Floats, boxes: list[tuple[str, object]], data: st.DataObject
) -> None:
    motion = data.draw(hnp.arrays(np.bool_, heat.shape))
    labels, corners = [name for name, _ in boxes], np.array([box for _, box in boxes]).reshape(-1, 4)
    g = ground(heat, corners, labels, "hook", motion=motion, matched=True)
    if g.AC is None:
        assert "empty_region" in g.flags and g.AA is g.RAS_local is g.RAS_global is g.lift is None
        return
    assert g.AA is not None and g.RAS_local is not None and g.RAS_global is not None
    assert 0 <= g.AA <= g.AC <= g.RAS_global <= 1 and g.AA <= g.RAS_local <= g.RAS_global
    assert g.ARS == g.AA and g.present == ("hook" in labels)
    assert 0 <= g.chance_class <= g.chance <= 1
    assert (g.lift is None) == (g.chance == 0)
    assert ({"no_gt"} <= g.flags) == (not boxes)
    assert not g.chance or not g.flags & {"no_gt", "gt_not_visible"}
    assert "gt_empty" not in g.flags or not g.chance_class


@given(SHAPES, BOXES)
def test_a_uniform_map_scores_chance_and_the_oracle_1(shape: tuple[int, int], boxes: list[tuple[str, object]]) -> None:
    truth = Truth.of(np.array([box for _, box in boxes]).reshape(-1, 4), [name for name, _ in boxes], *shape)
    uniform = ground_region(top_region(np.ones(shape)), truth, "hook")
    assert uniform.chance == uniform.AC and uniform.chance_class == uniform.AA
    oracle = ground_region(top_region(truth.union.astype(float)), truth, "hook")
    assert (1.0 if truth.union.any() else None) == oracle.AC
    assert oracle.lift == lift(oracle.AC, truth.chance)


@given(SHAPES, BOXES, st.data())
def test_a_window_counts_exactly_its_part_of_the_frame(
    shape: tuple[int, int], boxes: list[tuple[str, object]], data: st.DataObject
) -> None:
    height, width = shape
    x1, y1 = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    x2, y2 = data.draw(st.integers(x1 + 1, width)), data.draw(st.integers(y1 + 1, height))
    corners = np.array([box for _, box in boxes]).reshape(-1, 4)
    np.testing.assert_array_equal(
        box_mask(corners, height, width, (x1, y1, x2, y2)), box_mask(corners, height, width)[y1:y2, x1:x2]
    )
    centres = [
        [any(b[0] <= j + 0.5 < b[2] and b[1] <= i + 0.5 < b[3] for b in corners) for j in range(width)]
        for i in range(height)
    ]
    np.testing.assert_array_equal(box_mask(corners, height, width), np.array(centres))


@given(st.lists(TRIPLETS, max_size=5), st.lists(TRIPLETS, max_size=5), st.data())
def test_every_labelled_triplet_is_counted_once_and_more_prompts_never_hurt(
    prompts: list[Triplet], truth: list[Triplet], data: st.DataObject
) -> None:
    scores = data.draw(st.lists(st.floats(0, 1), min_size=len(prompts), max_size=len(prompts)))
    matches = triplet_match(prompts, scores, truth)
    assert sum(match_breakdown(match.level for match in matches).values()) == len(truth)
    fewer = triplet_match(prompts[:-1], scores[:-1], truth)
    for more, less in zip(matches, fewer, strict=True):
        assert MATCH_LEVELS.index(more.level) <= MATCH_LEVELS.index(less.level)
        assert (more.prompt is None) == (more.level == "missed")
        if more.prompt is not None:
            assert prompts[more.prompt].instrument == more.truth.instrument


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=COARSE), st.floats(0, 0.99))
def test_the_best_class_is_said_unless_it_is_shared(scores: Floats, delta: float) -> None:
    for over in ("classes", "minmax"):
        said = prediction_sets(scores, delta, over=over)
        for row, chosen in zip(scores, said, strict=True):
            if over == "minmax" or np.count_nonzero(row == row.max()) == 1:  # a shared best may be the quantile itself
                assert chosen.any() == (row.max() > row.min())
            assert not chosen.any() or chosen[row == row.max()].all()
            assert not chosen.any() or row[chosen].min() > row[~chosen].max()
