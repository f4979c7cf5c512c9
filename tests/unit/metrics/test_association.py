"""Association counts: the hand cases of the reference, and what the repaired convention makes of them."""

from __future__ import annotations

import pytest

from surgeval.metrics import ASSOCIATION_COUNTS, Boxes, DetectionSet, associate

A, B, C = [0.0, 0.0, 10.0, 10.0], [30.0, 0.0, 10.0, 10.0], [60.0, 0.0, 10.0, 10.0]
Row = tuple[int, list[float]]


def _counts(truth: list[Row], found: list[Row], legacy: bool) -> dict[str, int]:
    parts = [
        Boxes.of([0] * len(rows), {"ivt": [c for c, _ in rows]}, [b for _, b in rows], scores)
        for rows, scores in ((truth, None), (found, [0.9 - 0.1 * k for k in range(len(found))]))
    ]
    data = DetectionSet.of(parts[1], parts[0], [0])
    counts = associate(data, "ivtd-legacy" if legacy else "ivtd").counts[0].tolist()
    return {key: n for key, n in zip(ASSOCIATION_COUNTS, counts, strict=True) if n}


@pytest.mark.parametrize(
    ("truth", "found", "fixed", "legacy"),
    [
        pytest.param([(1, A)], [(1, A)], {"lm": 1}, {"lm": 1}, id="found"),
        pytest.param([(1, A)], [(1, [8.0, 0.0, 10.0, 10.0])], {"plm": 1}, {"plm": 1}, id="partly found"),
        pytest.param([(1, A)], [(1, B)], {"mil": 1}, {"fp": 1, "fn": 1}, id="right class, far box"),
        # The first switch uses the ground truth of its class up, which the second box lay on: it has missed its own.
        pytest.param(
            [(1, A), (2, B)], [(1, B), (2, A)], {"ids": 1, "mil": 1}, {"ids": 1, "fp": 1, "fn": 1}, id="swapped"
        ),
        pytest.param([(1, A)], [(2, A)], {"idm": 1, "fn": 1}, {"fn": 1}, id="right box, wrong class"),
        pytest.param(
            [(1, A)], [(1, A), (2, B), (3, C)], {"lm": 1, "fp": 2}, {"lm": 1}, id="one hit, two of absent classes"
        ),
        pytest.param([], [(1, A)], {"fp": 1}, {"fp": 1}, id="nothing there"),
        pytest.param([(1, A)], [], {"fn": 1}, {"fn": 1}, id="nothing said"),
        pytest.param([], [], {}, {}, id="empty frame"),
    ],
)
def test_a_frame_is_counted_as_described(
    truth: list[Row], found: list[Row], fixed: dict[str, int], legacy: dict[str, int]
) -> None:
    assert _counts(truth, found, legacy=False) == fixed
    assert _counts(truth, found, legacy=True) == legacy


def test_fractions_are_per_video_and_over_all() -> None:
    truth = Boxes.of([0, 1, 2], {"ivt": [1, 1, 1]}, [A, A, A])
    found = Boxes.of([0], {"ivt": [1]}, [A], [0.9])
    result = associate(DetectionSet.of(found, truth, [0, 1, 1], n_videos=3))
    assert result.overall()[0] == pytest.approx(1 / 3)
    assert result.video_wise()[0] == pytest.approx(1 / 2)  # videos 1.0 and 0.0; the empty third is left out
