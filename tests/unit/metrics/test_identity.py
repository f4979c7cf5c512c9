"""Names of instruments over time: cases whose IDF1, HOTA and swaps can be worked out by hand."""

from __future__ import annotations

import time
from math import sqrt
from typing import Any

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.metrics import Tracks, hota, id_scores, track_identity

LEFT, RIGHT = (0.0, 0.0, 10.0, 10.0), (50.0, 0.0, 60.0, 10.0)


def _video(*frames: dict[int, Any]) -> Tracks:
    """One dictionary a frame: name → box."""
    rows = [(number, name, box) for number, frame in enumerate(frames) for name, box in frame.items()]
    frame, name, box = zip(*rows, strict=True) if rows else ((), (), ())
    return Tracks.of(frame, name, box)


def test_a_name_lost_for_the_last_quarter_costs_a_quarter() -> None:
    truth = _video(*[{1: LEFT}] * 8)
    found = track_identity(_video(*[{1: LEFT}] * 6, *[{2: LEFT}] * 2), truth)
    assert (found.ids.idtp, found.ids.idfp, found.ids.idfn) == (6, 2, 2)
    assert found.ids.idf1 == found.ids.idp == found.ids.idr == 0.75
    assert found.swaps == 1
    # Association of a box: 6 of 8 for the first six, 2 of 8 for the others.
    assert found.hota.hota == pytest.approx(sqrt((6 * 6 / 8 + 2 * 2 / 8) / 8))


def test_names_exchanged_at_half_time_leave_half_of_the_boxes_right() -> None:
    truth = _video(*[{1: LEFT, 2: RIGHT}] * 10)
    found = track_identity(_video(*[{1: LEFT, 2: RIGHT}] * 5, *[{2: LEFT, 1: RIGHT}] * 5), truth)
    assert found.ids.idf1 == 0.5
    assert found.swaps == 2
    assert found.hota.DetA == 1.0
    assert found.hota.AssA == pytest.approx(5 / 15)  # 5 boxes in common, 10 + 10 − 5 in all


def test_missed_and_invented_boxes_count_on_their_side() -> None:
    truth = _video(*[{1: LEFT}] * 4)
    missed = id_scores(_video({1: LEFT}, {}, {1: LEFT}, {}), truth)
    assert (missed.idp, missed.idr) == (1.0, 0.5)
    invented = id_scores(_video(*[{1: LEFT, 9: RIGHT}] * 4), truth)
    assert [invented.idp, invented.idr, invented.idf1] == pytest.approx([0.5, 1.0, 2 / 3])


def test_a_box_half_off_counts_up_to_the_level_it_reaches() -> None:
    # Overlap 6 of 14: levels 0.05 … 0.40 are reached, 8 of 19.
    found = hota(_video({1: (4.0, 0.0, 14.0, 1.0)}), _video({1: (0.0, 0.0, 10.0, 1.0)}))
    assert found.hota == pytest.approx(8 / 19)
    assert found.LocA == pytest.approx((8 * 6 / 14 + 11) / 19)


def test_a_box_of_another_class_is_another_instrument() -> None:
    def boxes(kind: int) -> Tracks:
        return Tracks.of([0, 1], [1, 1], [LEFT, LEFT], [kind, kind])

    assert track_identity(boxes(3), boxes(3)).ids.idf1 == 1.0
    assert track_identity(boxes(4), boxes(3)).ids.idf1 == 0.0
    two = Tracks.of([0, 0], [1, 1], [LEFT, RIGHT], [3, 4])  # grasper #1 and hook #1 are two tracks
    assert track_identity(two, two).ids.idtp == 2


def test_a_swap_is_counted_over_an_absence_and_once() -> None:
    truth = _video({1: LEFT}, {}, {}, {1: LEFT}, {1: LEFT})
    assert track_identity(_video({4: LEFT}, {}, {}, {5: LEFT}, {5: LEFT}), truth).swaps == 1


def test_two_boxes_in_one_place_keep_the_names_they_had() -> None:
    near = (2.0, 0.0, 12.0, 10.0)
    truth = _video({1: LEFT, 2: RIGHT}, {1: LEFT, 2: near})
    # The found boxes of the second frame overlap both true ones; by overlap alone names would change.
    found = _video({7: LEFT, 8: RIGHT}, {8: (0.5, 0.0, 10.5, 10.0), 7: (1.5, 0.0, 11.5, 10.0)})
    assert track_identity(found, truth).swaps == 0


def test_nothing_true_or_nothing_tracked_scores_nothing() -> None:
    something, nothing = _video({1: LEFT}), _video()
    for truth, found in ((something, nothing), (nothing, something), (nothing, nothing)):
        scored = track_identity(found, truth)
        assert (scored.ids.idf1, scored.hota.hota, scored.swaps) == (0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (([0, 0], [1, 1], [LEFT, RIGHT]), "row 1: track: found 1 a second time in frame 0, expected it once"),
        (([0], [1], [[0, 0, np.nan, 1]]), "expected finite numbers"),
        (([0, 1], [1], [LEFT, LEFT]), "track: found 1 rows, expected 2 as in frame"),
        (([0], [0.5], [LEFT]), "expected integer ids"),
        (([0], [1], [[0, 0, 1]]), "expected four numbers per row"),
    ],
)
def test_a_table_that_cannot_be_scored_is_refused(columns: tuple[Any, Any, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        Tracks.of(*columns, name="truth")


def test_thirty_thousand_crowded_frames_are_scored_in_seconds() -> None:
    rng = np.random.default_rng(3)
    frames, places = 30_000, np.array([[0, 0], [12, 3], [40, 40]])
    corner = (np.tile(places, (frames, 1)) + rng.normal(0, 2, (3 * frames, 2))).astype(np.float64)
    frame, track = (
        np.repeat(np.arange(frames), 3),
        np.tile([1, 2, 3], frames) + 3 * np.repeat(np.arange(frames) // 500, 3),
    )
    truth = Tracks.of(frame, track, np.hstack([corner, corner + 20]))
    moved = corner + rng.normal(0, 1, corner.shape)
    found = Tracks.of(frame, track, np.hstack([moved, moved + 20]))
    start = time.process_time()
    scored = track_identity(found, truth)
    assert time.process_time() - start < 12
    assert scored.ids.idf1 > 0.95
