"""One map against the labels of its frame: regions, ratios, chance, and a flag for what is not as it seems."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from surgeval.errors import BadInput
from surgeval.metrics import (
    EXCLUDED,
    FLAGS,
    Grounding,
    Truth,
    ars,
    attention_accuracy,
    attention_coverage,
    box_mask,
    fixed_region,
    ground,
    ground_counts,
    ground_region,
    kept_pixels,
    pixel_window,
    ras,
    top_region,
)

HOOK = [[2.0, 2.0, 6.0, 6.0]]


def heat(height: int = 10, width: int = 10) -> npt.NDArray[np.float64]:
    """All values different, highest top left."""
    return np.linspace(1, 0.01, height * width).reshape(height, width)


def scored(**changes: object) -> Grounding:
    arguments: dict[str, object] = {"boxes_xyxy": HOOK, "classes": ["hook"], "predicted": "hook"} | changes
    return ground(arguments.pop("map", heat()), **arguments)  # type: ignore[arg-type]


def test_an_oracle_box_map_scores_ac_1_and_aa_1() -> None:
    g = scored(map=box_mask(HOOK, 10, 10).astype(float))
    assert (g.AC, g.AA) == (1.0, 1.0)
    assert g.lift == pytest.approx(100 / 16)


def test_a_uniform_map_scores_chance_and_only_reference_rows_may_count_it() -> None:
    g = scored(map=np.full((10, 10), 0.3))
    assert g.AC == g.chance == 0.16 and g.lift == 1.0
    assert "constant" in g.flags
    assert not g.counts_in_means() and g.counts_in_means(reference=True)


def test_a_map_that_is_flat_up_to_rounding_is_flat() -> None:
    noise = 0.3 + 1e-9 * np.random.default_rng(0).random((10, 10))
    assert "constant" in top_region(noise).flags and top_region(noise).size == 100
    assert "constant" in fixed_region(noise).flags and fixed_region(noise).size == 0


def test_a_map_of_zeros_has_no_region_and_no_value_but_keeps_its_chance() -> None:
    g = scored(map=np.zeros((10, 10)))
    assert (g.AC, g.AA, g.lift) == (None, None, None) and g.chance == 0.16
    assert {"empty_region", "constant"} <= g.flags


def test_a_sparse_map_keeps_only_what_is_above_zero() -> None:
    sparse = np.zeros((10, 10))
    sparse[3, 3] = 5
    assert scored(map=sparse).AC == 1.0
    literal = scored(map=sparse, positive=False)
    assert literal.AC == 0.16 and literal.fraction == 1.0 and {"sparse", "ties"} <= literal.flags


def test_ties_make_the_region_larger_and_are_flagged() -> None:
    tied = heat()
    tied[:6] = 1.0
    region = top_region(tied)
    assert region.fraction == 0.6 and region.flags == {"ties"}
    assert top_region(heat()).flags == frozenset() and top_region(heat()).size == kept_pixels(100, 0.2) == 20


def test_the_fixed_threshold_includes_equality_unless_strict() -> None:
    scaled = (np.arange(11) / 10).reshape(1, 11)
    assert (fixed_region(scaled).size, fixed_region(scaled, strict=True).size) == (8, 7)
    assert scored(map=heat(), fixed=0.9, strict=True).fraction < scored(map=heat(), fixed=0.5).fraction


def test_overlapping_boxes_count_once() -> None:
    assert np.count_nonzero(box_mask([[0, 0, 4, 4], [2, 0, 6, 4]], 10, 10)) == 24


@pytest.mark.parametrize(
    ("box", "pixels"),
    [
        ([0.5, 0, 1.5, 1], 1),  # centre 0.5 is in, 1.5 is not
        ([0.6, 0, 1.4, 1], 0),  # between two centres
        ([-5, -5, 50, 50], 100),
        ([6, 6, 2, 2], 0),  # corners in the wrong order cover nothing
    ],
)
def test_a_pixel_is_in_a_box_when_its_centre_is(box: list[float], pixels: int) -> None:
    assert np.count_nonzero(box_mask([box], 10, 10)) == pixels


def test_a_frame_without_boxes_scores_0_and_is_left_out_of_means() -> None:
    g = scored(boxes_xyxy=[], classes=[])
    assert g.AC == 0.0 and g.lift is None and g.flags == {"no_gt"}
    assert not g.counts_in_means()


def test_a_box_of_no_area_counts_as_present_with_0() -> None:
    g = scored(boxes_xyxy=[[3, 3, 3, 8]])
    assert g.present and g.AC == g.AA == 0.0 and {"gt_empty", "class_empty"} == g.flags
    assert g.counts_in_means()


def test_a_box_beside_the_window_is_not_visible_and_one_beside_the_frame_is_empty() -> None:
    window = (0, 0, 10, 10)
    hidden = scored(boxes_xyxy=[[20, 0, 30, 10]], window=window, frame=(20, 40))
    assert "gt_not_visible" in hidden.flags and not hidden.counts_in_means()
    outside = scored(boxes_xyxy=[[50, 0, 60, 10]], window=window, frame=(20, 40))
    assert "gt_empty" in outside.flags and "gt_not_visible" not in outside.flags


def test_chance_is_the_labelled_share_of_what_the_model_saw() -> None:
    boxes = [[8.0, 0.0, 12.0, 10.0]]
    seen = scored(boxes_xyxy=boxes, window=(0, 0, 10, 10), frame=(10, 40))
    whole = scored(map=heat(10, 40), boxes_xyxy=boxes)
    assert (seen.chance, whole.chance) == (0.2, 0.1)
    assert Truth.of(boxes, ["hook"], 10, 40, (0, 0, 10, 10)).visible_share == 0.5


def test_the_class_may_be_hidden_while_another_is_seen() -> None:
    g = scored(boxes_xyxy=[[0, 0, 10, 1], [90, 90, 99, 99]], classes=["bag", "hook"])
    assert g.present and g.AA == 0.0 and g.AC == 0.5
    assert g.flags == {"class_empty", "gt_empty"}  # R6: its box lies outside the frame


def test_a_wrong_prediction_has_no_tp_columns() -> None:
    right, wrong = scored(), scored(predicted="bag")
    assert wrong.AA == 0.0  # by the formula
    assert (wrong.TP_AA, wrong.TP_AC, wrong.FP_AC) == (None, None, wrong.AC)
    assert (right.TP_AA, right.TP_AC, right.FP_AC) == (right.AA, right.AC, None)


def test_ars_is_0_for_a_mismatch_even_without_a_region() -> None:
    truth, empty = Truth.of(HOOK, ["hook"], 10, 10), top_region(np.zeros((10, 10)))
    assert ars(empty, truth, "hook", matched=False) == 0.0
    assert ars(empty, truth, "hook", matched=True) is None
    assert scored(matched=False).ARS == 0.0 and scored(matched=True).ARS == scored().AA
    assert scored().ARS is None


def test_ras_joins_motion_with_the_instrument_or_with_all_boxes() -> None:
    motion = np.zeros((10, 10), dtype=bool)
    motion[0] = True  # half of the region
    boxes, classes = [[0, 1, 5, 2], [5, 1, 10, 2]], ["hook", "bag"]
    g = scored(boxes_xyxy=boxes, classes=classes, motion=motion)
    assert (g.AC, g.AA, g.RAS_local, g.RAS_global) == (0.5, 0.25, 0.75, 1.0)
    assert (g.chance_local, g.chance_global) == (0.15, 0.2)
    assert scored().RAS_local is None
    still = scored(motion=np.zeros((10, 10), dtype=bool))
    assert still.RAS_global == still.AC and "motion_empty" in still.flags


def test_the_single_ratios_agree_with_ground() -> None:
    boxes, classes = [*HOOK, [0.0, 0.0, 3.0, 3.0]], ["hook", "bag"]
    truth, region, motion = Truth.of(boxes, classes, 10, 10), top_region(heat()), box_mask([[5, 0, 9, 3]], 10, 10)
    g = ground_region(region, truth, "bag", motion=motion)
    assert attention_coverage(region, truth.union) == g.AC
    assert attention_accuracy(region, truth, "bag") == g.AA
    assert g.RAS_local == ras(region, motion, truth.of_class("bag"))
    assert g.RAS_global == ras(region, motion, truth.union)
    assert g == scored(boxes_xyxy=boxes, classes=classes, predicted="bag", motion=motion)


def test_a_row_has_a_column_for_every_value_and_flag() -> None:
    row = scored(map=np.zeros((10, 10))).row()
    assert row["AC"] is None and row["empty_region"] is True and row["no_gt"] is False
    assert set(FLAGS) < set(row) and {"lift", "chance", "fraction"} < set(row)
    assert set(FLAGS) >= EXCLUDED


def test_means_may_be_told_to_leave_out_more() -> None:
    assert scored().counts_in_means(exclude=FLAGS)
    assert not scored(boxes_xyxy=[[3, 3, 3, 8]]).counts_in_means(exclude=FLAGS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"map": np.array([[0.1, np.nan]])}, "map: found"),
        ({"map": np.array([[0.1, np.inf]])}, "map: found"),
        ({"map": np.zeros((0, 4))}, "map: found shape"),
        ({"map": np.zeros((2, 2, 2))}, "map: found shape"),
        ({"keep_top": 0.0}, "keep_top"),
        ({"keep_top": float("nan")}, "keep_top"),
        ({"fixed": 0.0}, "threshold"),
        ({"boxes_xyxy": [[0, 0, np.nan, 4]]}, "box: found"),
        ({"boxes_xyxy": [[0, 0, 4]]}, "boxes: found shape"),
        ({"classes": []}, "one class per box"),
        ({"motion": np.zeros((3, 3), dtype=bool)}, "motion: found shape"),
        ({"window": (0, 0, 10, 10)}, "frame: found none"),
        ({"window": (0, 0, 50, 10), "frame": (20, 40)}, "window: found"),
        ({"frame": (20, 40)}, "map: found shape"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_a_sentence(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        scored(**changes)


def test_a_motion_mask_of_another_size_is_refused() -> None:
    with pytest.raises(BadInput, match="motion: found shape"):
        ras(top_region(heat()), np.zeros((3, 3), dtype=bool), np.zeros((10, 10), dtype=bool))
    with pytest.raises(BadInput, match="four finite numbers"):
        pixel_window((0, 0, 1), 10, 10)


def test_impossible_counts_and_unknown_flags_are_refused() -> None:
    with pytest.raises(BadInput, match="counts: found"):
        ground_counts("a", area=10, region=2, sizes={"all": 5, "class": 5}, hits={"all": 3, "class": 0}, present=True)
    with pytest.raises(BadInput, match="flags: found"):
        ground_counts(
            "a", area=9, region=2, sizes={"all": 5, "class": 5}, hits={"all": 1, "class": 0}, present=True, flags=["x"]
        )
