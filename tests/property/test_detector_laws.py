"""Laws of the detector's arithmetic: assignment and suppression equal slow loops, the letterbox undoes itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.detector.scenes import scene

from surgeval.detector.assign import ASSIGNMENT_RULES, AssignmentRule, assign
from surgeval.detector.geometry import Fit, ciou, decode, iou
from surgeval.detector.nms import Selecting, nms, select
from surgeval.detector.suppress import suppress

Box = tuple[float, float, float, float]
SEEDS = st.integers(0, 2**32 - 1)


def _iou(a: Box, b: Box) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / union if union > 0 else 0.0


def _ciou(a: Box, b: Box, tiny: float = 1e-7) -> float:
    width_a, height_a, width_b, height_b = a[2] - a[0], a[3] - a[1] + tiny, b[2] - b[0], b[3] - b[1] + tiny
    shared = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    overlap = shared / (width_a * height_a + width_b * height_b - shared + tiny)
    hull = (max(a[2], b[2]) - min(a[0], b[0])) ** 2 + (max(a[3], b[3]) - min(a[1], b[1])) ** 2 + tiny
    apart = ((a[0] + a[2] - b[0] - b[2]) ** 2 + (a[1] + a[3] - b[1] - b[3]) ** 2) / 4
    ratio = 4 / math.pi**2 * (math.atan(width_b / height_b) - math.atan(width_a / height_a)) ** 2
    return overlap - apart / hull - ratio * ratio / (ratio - overlap + 1 + tiny)


def _loop(
    scores: list[list[float]], boxes: list[Box], points: list[tuple[float, float]], truth: list[Box],
    labels: list[list[bool]], rule: AssignmentRule,
) -> dict[int, tuple[int, float]]:  # fmt: skip
    """Owner and soft target of the positives of one image, in plain Python."""
    s: dict[tuple[int, int], float] = {}
    shared: dict[tuple[int, int], float] = {}
    for g, box in enumerate(truth):
        for a, (x, y) in enumerate(points):
            if box[0] < x < box[2] and box[1] < y < box[3] and any(labels[g]):
                overlap = _iou(box, boxes[a]) if rule.overlap == "iou" else max(0.0, _ciou(box, boxes[a]))
                best = max(score for score, mark in zip(scores[a], labels[g], strict=True) if mark)
                shared[g, a], s[g, a] = overlap, best**rule.alpha * overlap**rule.beta
    claims: dict[int, list[int]] = {}
    for g in range(len(truth)):
        mine = sorted((a for h, a in s if h == g and s[g, a] > 0), key=lambda a: -s[g, a])
        for a in mine[: rule.topk]:
            claims.setdefault(a, []).append(g)
    owner: dict[int, int] = {}
    for a, boxes_of_a in claims.items():
        if len(boxes_of_a) == 1:
            owner[a] = boxes_of_a[0]
        elif rule.conflict == "score":
            owner[a] = max(boxes_of_a, key=lambda g: (s[g, a], -g))
        else:
            owner[a] = max((g for g, b in shared if b == a), key=lambda g: (shared[g, a], -g))
    positives = {}
    for a, g in owner.items():
        kept = [b for b, h in owner.items() if h == g]
        largest = max(s[g, b] for b in kept) + rule.damping
        positives[a] = g, s[g, a] / largest * max(shared[g, b] for b in kept)
    return positives


@pytest.mark.parametrize("fixed_shapes", [False, True], ids=["as-on-the-cpu", "as-on-the-device"])
@pytest.mark.parametrize("preset", ["paper", "ultralytics"])
@given(seed=SEEDS, rows=st.integers(0, 6), twins=st.booleans(), topk=st.sampled_from([1, 3, 10, 200]))
def test_assignment_is_that_of_a_slow_loop(
    preset: str, fixed_shapes: bool, seed: int, rows: int, twins: bool, topk: int
) -> None:
    rule = ASSIGNMENT_RULES[preset]
    rule = AssignmentRule(topk, rule.alpha, rule.beta, rule.overlap, rule.conflict, damping=rule.damping)
    output, truth = scene(seed, images=2, rows=rows)
    if twins and rows > 1:  # the second row repeats the first: everything between them ties
        truth.boxes[:, 1], truth.mask[:, 1] = truth.boxes[:, 0], truth.mask[:, 0]
        truth.labels["ivt"][:, 1] = truth.labels["ivt"][:, 0]
    with torch.no_grad():
        scores = output.logits["ivt"].sigmoid()
        boxes = decode(output.box, output.points, output.strides)
    found = assign(
        scores,
        boxes,
        output.points.double(),
        truth.boxes,
        truth.labels["ivt"],
        truth.mask,
        rule,
        fixed_shapes=fixed_shapes,
    )
    for image in range(2):
        count = int(truth.mask[image].sum())
        positives = _loop(
            scores[image].tolist(), boxes[image].tolist(), output.points.tolist(), truth.boxes[image, :count].tolist(),
            truth.labels["ivt"][image, :count].tolist(), rule,
        )  # fmt: skip
        owner = found.owner[image].tolist()
        assert {a: g for a, g in enumerate(owner) if g >= 0} == {a: g for a, (g, _) in positives.items()}
        target = found.target[image].amax(-1).tolist()
        assert target == pytest.approx(
            [positives[a][1] if a in positives else 0.0 for a in range(len(owner))], abs=1e-9
        )
        listed = found.point[image][found.positive[image]].tolist()
        assert sorted(listed) == sorted(positives)


def _boxes(random: np.random.Generator, *shape: int) -> torch.Tensor:
    """Boxes on a coarse raster: overlaps and scores tie often, some boxes have no area."""
    corner, side = random.integers(0, 12, (*shape, 2)), random.integers(0, 8, (*shape, 2))
    return torch.from_numpy(np.concatenate((corner, corner + side), -1).astype(np.float32))


def _slow_nms(boxes: list[Box], scores: list[float], classes: list[int], threshold: float) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        rivals = (j for j in kept if classes[j] == classes[i])
        if all(_iou(boxes[j], boxes[i]) <= threshold for j in rivals):
            kept.append(i)
    return kept


@given(seed=SEEDS, count=st.integers(0, 90), kinds=st.integers(1, 4), threshold=st.sampled_from([0.0, 0.3, 0.5, 0.7]))
def test_suppression_is_that_of_a_slow_loop(seed: int, count: int, kinds: int, threshold: float) -> None:
    random = np.random.default_rng(seed)
    boxes, classes = _boxes(random, count), torch.from_numpy(random.integers(0, kinds, count))
    scores = torch.from_numpy(random.integers(0, 20, count) / np.float32(20))
    plain = boxes.tolist(), scores.tolist()
    assert nms(boxes, scores, classes, iou=threshold).tolist() == _slow_nms(*plain, classes.tolist(), threshold)
    assert nms(boxes, scores, iou=threshold).tolist() == _slow_nms(*plain, [0] * count, threshold)


@given(seed=SEEDS, count=st.integers(0, 1200), most=st.sampled_from([1, 7, 300]), threshold=st.sampled_from([0.2, 0.7]))
def test_suppression_in_blocks_is_that_box_by_box(seed: int, count: int, most: int, threshold: float) -> None:
    random = np.random.default_rng(seed)
    boxes, groups = 5 * _boxes(random, 2, count), torch.from_numpy(random.integers(0, 3, (2, count)))
    valid = torch.from_numpy(random.random((2, count)) < 0.9)
    ways = [suppress(boxes, groups, valid, iou=threshold, most=most, blockwise=way) for way in (False, True)]
    assert torch.equal(ways[0][1], ways[1][1])
    for image, number in enumerate(ways[0][1].tolist()):
        assert torch.equal(ways[0][0][image, :number], ways[1][0][image, :number])


@given(seed=SEEDS, points=st.integers(1, 30), multi_label=st.booleans(), most=st.sampled_from([3, 300]))
def test_a_batch_is_selected_image_by_image(seed: int, points: int, multi_label: bool, most: int) -> None:
    random = np.random.default_rng(seed)
    boxes = _boxes(random, 3, points)
    scores = torch.from_numpy(random.integers(0, 10, (3, points, 4)) / np.float32(10))
    settings = Selecting(confidence=0.3, iou=0.5, most=most, multi_label=multi_label)
    for image, found in enumerate(select(boxes, {"ivt": scores}, "ivt", None, settings)):
        values = scores[image].tolist()
        pairs = [
            (a, c)
            for a in range(points)
            for c in (range(4) if multi_label else [max(range(4), key=lambda c: (values[a][c], -c))])
            if scores[image, a, c] > settings.confidence
        ]
        kept = _slow_nms([boxes[image, a].tolist() for a, _ in pairs], [values[a][c] for a, c in pairs],
                         [c for _, c in pairs], 0.5)[:most]  # fmt: skip
        assert found.classes.tolist() == [pairs[i][1] for i in kept]
        assert torch.equal(found.boxes, boxes[image, [pairs[i][0] for i in kept]])


SIDES = st.integers(1, 3000)


@given(
    height=SIDES, width=SIDES, size=st.sampled_from([32, 320, 640]), up=st.booleans(), center=st.booleans(), seed=SEEDS
)
def test_the_letterbox_undoes_itself(height: int, width: int, size: int, up: bool, center: bool, seed: int) -> None:
    fit = Fit.of(height, width, size, scaleup=up, center=center)
    assert min(fit.left, fit.top, fit.right, fit.bottom) >= 0
    corners = np.random.default_rng(seed).random((6, 4)) * [width, height, width, height]
    inside = fit.forward(corners)
    assert inside.min() >= 0
    assert inside.max() <= size
    np.testing.assert_allclose(fit.back(inside), corners, atol=1e-9 * max(height, width))


@given(seed=SEEDS)
def test_complete_iou_is_never_above_iou(seed: int) -> None:
    random = np.random.default_rng(seed)
    corner, side = random.random((2, 2)) * 50, 1 + random.random((2, 2)) * 50
    a, b = torch.from_numpy(np.concatenate((corner, corner + side), 1))
    assert float(ciou(a, b)) <= float(iou(a, b)) + 1e-9
    assert float(ciou(a, b)) == pytest.approx(_ciou(tuple(a.tolist()), tuple(b.tolist())), abs=1e-12)
