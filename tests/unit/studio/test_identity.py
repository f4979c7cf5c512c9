"""The sector rule keeps instruments of a class apart; hand-set ids stay; a range can be numbered again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.studio.identity import Instances, NumberingRule, SectorRule, number_tracks, sectors_of, track_statistics
from surgeval.studio.identity.chain import _assign

Spot: TypeAlias = tuple[float, float]
SIZE = (200.0, 100.0)
LEFT, RIGHT, TOP = (0.0, 45.0), (200.0, 55.0), (100.0, 0.0)  # where shafts come in


def _box(entry: Spot, tip: Spot) -> list[float]:
    """The box around a shaft from its trocar's side to its tip."""
    (a, b), (c, d) = entry, tip
    return [min(a, c) - 3, min(b, d) - 3, max(a, c) + 3, max(b, d) + 3]


def _video(rows: list[tuple[int, list[float]]], **columns: Any) -> Instances:
    """(frame, box) rows at one frame a second."""
    frame = [row[0] for row in rows]
    columns = {"kind": [0] * len(rows), "time": frame, **columns}
    return Instances.of(frame=frame, xyxy=[row[1] for row in rows], size=SIZE, **columns)


def _two(tips: Sequence[tuple[Spot | None, Spot | None]], **columns: Any) -> Instances:
    """A left and a right instrument; None where one is not seen."""
    rows = [
        (frame, _box(entry, tip))
        for frame, pair in enumerate(tips)
        for entry, tip in zip((LEFT, RIGHT), pair, strict=True)
        if tip is not None
    ]
    return _video(rows, **columns)


APART: tuple[Spot, Spot] = ((80.0, 50.0), (120.0, 50.0))
CROSSED: tuple[Spot, Spot] = ((130.0, 60.0), (70.0, 40.0))


def test_two_that_cross_and_come_back_keep_their_numbers() -> None:
    numbers = number_tracks(_two([APART] * 4 + [CROSSED] * 3 + [APART] * 4))
    assert numbers.tolist() == [2, 1] * 11  # sector 0 is to the right, and newcomers are numbered by sector


def test_two_that_stay_crossed_keep_their_numbers() -> None:
    assert number_tracks(_two([APART] * 3 + [CROSSED] * 20)).tolist() == [2, 1] * 23


def test_one_covered_in_a_crossing_for_three_frames_comes_back_as_itself() -> None:
    hidden = [(None, CROSSED[1])] * 3
    numbers = number_tracks(_two([APART] * 3 + hidden + [APART] * 3))
    assert numbers.tolist() == [2, 1] * 3 + [1] * 3 + [2, 1] * 3


def test_an_absence_of_three_seconds_is_survived_and_one_of_four_is_not() -> None:
    for missing, expected in ((3, 1), (4, 2)):
        rows = [(0, _box(LEFT, (80, 50))), (missing + 1, _box(LEFT, (80, 50)))]
        assert number_tracks(_video(rows, step=1.0)).tolist() == [1, expected]


def test_the_gap_is_in_seconds_at_any_frame_rate() -> None:
    for fps in (1, 20):
        for missing, expected in ((3 * fps, 1), (3 * fps + 1, 2)):
            frames = [0, 1, 2 + missing]
            rows = [(frame, _box(LEFT, (80, 50))) for frame in frames]
            numbers = number_tracks(_video(rows, time=[frame / fps for frame in frames]))
            assert numbers.tolist() == [1, 1, expected], (fps, missing)


def test_after_the_gap_reuse_gives_the_number_of_the_sector_back() -> None:
    rows = [
        (0, _box(LEFT, (80, 50))),
        (0, _box(RIGHT, (120, 50))),
        (20, _box(LEFT, (70, 55))),
        (40, _box(RIGHT, (130, 52))),
    ]
    assert number_tracks(_video(rows, step=1.0)).tolist() == [2, 1, 3, 4]
    assert number_tracks(_video(rows, step=1.0), SectorRule(reuse="sector")).tolist() == [2, 1, 2, 1]


def test_one_that_comes_from_another_side_is_another_one() -> None:
    rows = [(0, _box(LEFT, (80, 50))), (1, _box(LEFT, (80, 50))), (2, _box(RIGHT, (120, 50)))]
    assert number_tracks(_video(rows)).tolist() == [1, 1, 2]


def test_classes_are_numbered_on_their_own() -> None:
    numbers = number_tracks(_two([APART] * 2, kind=[4, 7, 4, 7]))
    assert numbers.tolist() == [1, 1, 1, 1]


def test_rows_may_come_in_any_order() -> None:
    instances = _two([APART] * 4 + [CROSSED] * 3 + [APART] * 4)
    order = np.random.default_rng(0).permutation(len(instances))
    assert number_tracks(instances.take(order)).tolist() == number_tracks(instances)[order].tolist()


def test_within_a_sector_orientation_decides() -> None:
    # Both come from the left; one points up, the other down, and their tips change places in height.
    up, down = _box((0, 60), (60, 20)), _box((0, 40), (60, 80))
    rows = [(frame, box) for frame in range(4) for box in (up, down)]
    numbers = number_tracks(_video(rows, kind=[0] * 8), SectorRule(order=("sector", "orientation", "keypoint")))
    assert len(set(numbers[::2])) == len(set(numbers[1::2])) == 1
    assert numbers[0] != numbers[1]


def test_a_known_tip_is_the_key_point() -> None:
    box = _box(LEFT, (80, 50))
    rows = [(0, box), (0, box), (1, box), (1, box)]
    tips = [[80, 47], [80, 53], [80, 53], [80, 47]]
    assert number_tracks(_video(rows, tip=tips)).tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize(
    ("order", "expected"),
    [("left-right", [1, 2, 3]), ("right-left", [3, 2, 1]), ("top-bottom", [2, 1, 3]), ("bottom-top", [2, 3, 1])],
)
def test_a_coordinate_order_says_who_is_number_one(order: str, expected: list[int]) -> None:
    boxes = [[10.0, 20, 30, 40], [80.0, 5, 99, 10], [150.0, 60, 180, 90]]
    rows = [(frame, box) for frame in range(3) for box in boxes]
    assert number_tracks(_video(rows), SectorRule(order=(order,))).tolist() == expected * 3


def test_outlines_tell_what_boxes_cannot() -> None:
    # Two shafts along the two diagonals of one and the same box.
    box = np.array([[40.0, 20.0], [100.0, 20.0], [100.0, 80.0], [40.0, 80.0]])
    falling, rising = box[[0, 2]], box[[3, 1]]
    aside = np.array([2.0, 0.0])
    thick = [np.concatenate([line - aside, line[::-1] + aside]) for line in (falling, rising)]
    instances = Instances.of(
        frame=[0, 0, 1, 1],
        time=[0, 0, 1, 1],
        kind=[0] * 4,
        size=SIZE,
        outlines=[thick[0], thick[1], thick[1], thick[0]],
    )
    first, second, third, fourth = number_tracks(instances).tolist()
    assert (first, second) == (fourth, third)
    assert first != second
    assert sectors_of(instances).tolist()[:2] == sectors_of(instances).tolist()[:1:-1]


def test_an_outline_without_area_has_a_direction_all_the_same() -> None:
    flat = [[0.0, 50.0], [40.0, 50.0], [80.0, 50.0]]
    point = [[150.0, 50.0]]
    instances = Instances.of(frame=[0, 0], time=[0, 0], kind=[0, 0], size=SIZE, outlines=[flat, point])
    assert sectors_of(instances).tolist() == [4, 0]
    assert sorted(number_tracks(instances).tolist()) == [1, 2]


@pytest.mark.parametrize("rule", ["sector", "bytetrack", "centres", "upstream"])
def test_hand_set_ids_stay_under_every_rule(rule: Any) -> None:
    fixed = np.full(22, -1)
    fixed[[0, 9, 16]] = [5, 1, 5]
    instances = _two([APART] * 4 + [CROSSED] * 3 + [APART] * 4, fixed=fixed)
    numbers = number_tracks(instances, rule)
    assert numbers[[0, 9, 16]].tolist() == [5, 1, 5]
    numbered = numbers >= 0
    pairs = set(zip(instances.frame[numbered].tolist(), numbers[numbered].tolist(), strict=True))
    assert len(pairs) == numbered.sum()  # one of each number in a frame


def test_a_hand_set_id_names_its_whole_track_and_others_avoid_it() -> None:
    fixed = [-1, -1] * 3 + [1, -1] + [-1, -1] * 2  # the left one is called #1 in the fourth frame
    assert number_tracks(_two([APART] * 6, fixed=fixed)).tolist() == [1, 2] * 6


def test_ids_exchanged_by_hand_go_on_exchanged() -> None:
    fixed = [1, 2] + [-1, -1] * 3 + [2, 1] + [-1, -1] * 6
    assert number_tracks(_two([APART] * 11, fixed=fixed)).tolist() == [1, 2] * 4 + [2, 1] * 7


def test_an_id_set_by_hand_after_a_long_absence_is_the_old_one() -> None:
    rows = [(frame, _box(LEFT, (80, 50))) for frame in (0, 1, 50, 51)]
    assert number_tracks(_video(rows, fixed=[3, -1, 3, -1])).tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("rule", ["sector", "centres", "bytetrack"])
def test_numbering_a_range_again_leaves_the_rest_alone(rule: Any) -> None:
    instances = _two([APART] * 12)
    current = np.tile([4, 9], 12)
    current[8:16] = [9, 4] * 4  # someone got frames 4 to 7 wrong
    again = number_tracks(instances, rule, within=(4, 7), current=current)
    assert again.tolist() == [4, 9] * 12
    spoilt = current.copy()
    spoilt[20:] = -1
    again = number_tracks(instances, rule, within=(4, 7), current=spoilt)
    assert again[20:].tolist() == [-1] * 4
    assert again[:20].tolist() == [4, 9] * 10


def test_a_range_keeps_what_was_set_by_hand_in_it() -> None:
    fixed = np.full(24, -1)
    fixed[10] = 7
    numbers = number_tracks(_two([APART] * 12, fixed=fixed), within=(4, 7), current=np.tile([4, 9], 12))
    assert numbers[10] == 7
    assert numbers[:8].tolist() == [4, 9] * 4
    assert numbers[16:].tolist() == [4, 9] * 4


def test_upstream_ids_are_taken_as_they_are() -> None:
    numbers = number_tracks(_two([APART] * 2, upstream=[17, -1, 17, 3], fixed=[-1, -1, -1, 2]), "upstream")
    assert numbers.tolist() == [17, -1, 17, 2]


def test_bytetrack_leaves_doubtful_boxes_without_a_number() -> None:
    numbers = number_tracks(_two([APART] * 2, score=[0.9, 0.05, 0.9, 0.05]), "bytetrack")
    assert numbers.tolist() == [1, -1, 1, -1]


def test_nothing_is_numbered_as_nothing() -> None:
    nothing = Instances.of(frame=[], time=[], kind=[], size=SIZE, xyxy=[])
    for rule in get_args(NumberingRule):
        assert number_tracks(nothing, rule).tolist() == []
    assert track_statistics(nothing, number_tracks(nothing)) == ()


def test_statistics_of_a_track_count_what_is_seen_and_what_is_missing() -> None:
    rows = [(frame, _box(LEFT, (80, 50))) for frame in (0, 1, 2, 5, 6, 8)] + [(3, _box(RIGHT, (120, 50)))]
    instances = _video(rows)
    left, right = sorted(track_statistics(instances, number_tracks(instances)), key=lambda one: one.first)
    assert (left.first, left.last, left.frames, left.seconds) == (0, 8, 6, 6.0)
    assert (left.gaps, left.longest_gap) == (2, 2.0)
    assert left.mean_box == tuple(_box(LEFT, (80, 50)))
    assert (right.frames, right.gaps) == (1, 0)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"time": [0, 2]}, "row 1: time: found 2 s in frame 0, expected one time for a frame"),
        ({"frame": [0, 1], "time": [1, 1]}, "expected times that rise with the frames"),
        ({"xyxy": [[0, 0, 9, 9], [0, 0, np.inf, 9]]}, "row 1: xyxy: found .*, expected finite numbers"),
        ({"fixed": [3, 3]}, "row 1: fixed: found #3 of class 0 a second time in frame 0, expected it once"),
        ({"fixed": [0, -1]}, "row 0: fixed: found 0, expected a number from 1, or −1"),
        ({"size": (0, 10)}, "size: found 0×10, expected width and height above 0"),
        ({"kind": [0.5, 1]}, "kind: found float64 in 1 dimensions, expected whole numbers"),
        ({"outlines": [None, [[0, 1, 2]]]}, "row 1: outline: found shape"),
        ({"xyxy": None}, "row 0: found neither box nor outline"),
        ({"step": -1.0}, "step: found -1, expected seconds from 0"),
    ],
)
def test_instances_that_cannot_be_numbered_are_refused(columns: dict[str, Any], sentence: str) -> None:
    good = {"frame": [0, 0], "time": [0, 0], "kind": [0, 0], "size": SIZE, "xyxy": [[0, 0, 9, 9], [5, 5, 20, 20]]}
    with pytest.raises(BadInput, match=sentence):
        Instances.of(**{**good, **columns})


def test_a_frame_crowded_beyond_reason_is_refused() -> None:
    with pytest.raises(BadInput, match="frame 3: found 201 instances of class 0, expected at most 200"):
        _video([(3, [0.0, 0.0, 1.0, 1.0])] * 201)


@pytest.mark.parametrize(
    "wrong", [{"sectors": 1}, {"k": 0}, {"gap": -1.0}, {"reuse": "always"}, {"order": ()}, {"reach": np.nan}]
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=f"{next(iter(wrong))}: found"):
        SectorRule(**wrong)


def test_unknown_rules_and_ranges_are_refused() -> None:
    instances = _two([APART])
    with pytest.raises(BadInput, match="rule: found 'best', expected sector, bytetrack, centres, upstream"):
        number_tracks(instances, "best")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="found no current numbers"):
        number_tracks(instances, within=(0, 1))
    with pytest.raises(BadInput, match="expected the first one first"):
        number_tracks(instances, within=(3, 1), current=np.array([1, 2]))


def test_the_kernels_assignment_is_scipys() -> None:
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(1, 7))
        cost = rng.integers(0, 9, (n, n + int(rng.integers(0, 4)))).astype(np.float64)
        mine = _assign(cost)
        assert len(set(mine.tolist())) == n
        assert cost[np.arange(n), mine].sum() == cost[linear_sum_assignment(cost)].sum()
