"""Laws of the detection metrics, on random boxes: without tied scores first, then with little else."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.metrics import (
    CONVENTIONS,
    Boxes,
    Convention,
    DetectionResult,
    DetectionSet,
    Scores,
    confusion_matrix,
    cost_aware_f1,
    evaluate_detection,
    global_ap,
    rank_detections,
    video_ap,
    weighted_ap,
)
from surgeval.vocab import load_labels

PROSTATD = load_labels("prostatd")
SIZES = {c: PROSTATD.num_classes(c) for c in ("ivt", "i", "v", "t")}
SEED = st.integers(0, 2**32 - 1)
CONVENTION = st.sampled_from(CONVENTIONS)
FIELDS = ("AP", "AP_5095", "AR", "precision", "recall", "F1")


def _random_set(seed: int) -> DetectionSet:
    """A few videos of a few frames: near copies of the truths, confused ones and strays, of six triplets."""
    random = np.random.default_rng(seed)
    n_frames = int(random.integers(1, 12))
    triplets = random.choice(89, 6, replace=False)
    frame = np.repeat(np.arange(n_frames), random.integers(0, 5, n_frames))
    truth = np.column_stack([random.uniform(0, 60, (len(frame), 2)), random.uniform(10, 40, (len(frame), 2))])
    number = random.choice(triplets, len(frame))
    copies = np.repeat(np.arange(len(frame)), random.integers(0, 3, len(frame)))
    strays = np.repeat(np.arange(n_frames), random.integers(0, 3, n_frames))
    boxes = np.concatenate(
        [
            truth[copies] + random.normal(0, 2, (len(copies), 4)),
            np.column_stack([random.uniform(0, 60, (len(strays), 2)), random.uniform(1, 40, (len(strays), 2))]),
        ]
    )
    said = np.concatenate([number[copies], random.choice(triplets, len(strays))])
    said = np.where(random.random(len(said)) < 0.8, said, random.choice(triplets, len(said)))
    scores = random.permutation(len(said)) / (len(said) + 1) + 0.001  # no two are equal
    found = Boxes.of(np.concatenate([frame[copies], strays]), {"ivt": said}, boxes, scores)
    return DetectionSet.of(
        found.with_components(PROSTATD, ("i", "v", "t")),
        Boxes.of(frame, {"ivt": number}, truth).with_components(PROSTATD, ("i", "v", "t")),
        np.sort(random.integers(0, 3, n_frames)),
        n_videos=3,
    )


def _same(a: Scores, b: Scores) -> None:
    for field in FIELDS:
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=0, atol=1e-12, err_msg=field)


def _same_everywhere(a: DetectionResult, b: DetectionResult) -> None:
    for component in SIZES:
        _same(a[component].overall, b[component].overall)
        _same(a[component].video_wise, b[component].video_wise)
    assert a.association is not None
    assert b.association is not None
    np.testing.assert_array_equal(a.association.counts.sum(axis=0), b.association.counts.sum(axis=0))


def _shuffled(boxes: Boxes, random: np.random.Generator, place: npt.NDArray[np.int64], rows: bool) -> Boxes:
    order = random.permutation(len(boxes)) if rows else np.arange(len(boxes))
    return boxes.take(order, place[boxes.frame[order]])


@given(SEED)
def test_coco_does_not_depend_on_the_order_of_frames_videos_or_rows(seed: int) -> None:
    data, random = _random_set(seed), np.random.default_rng(seed + 1)
    place = random.permutation(data.n_frames)
    video = np.empty_like(data.videos)
    video[place] = random.permutation(3)[data.videos]
    truth, found = (_shuffled(boxes, random, place, rows=True) for boxes in (data.targets, data.predictions))
    moved = evaluate_detection(DetectionSet.of(found, truth, video, n_videos=3), SIZES)
    original = evaluate_detection(data, SIZES)
    for component in SIZES:
        _same(original[component].overall, moved[component].overall)
        _same(original[component].video_wise, moved[component].video_wise)


@given(SEED)
def test_ivtd_does_not_depend_on_the_order_of_frames_videos_or_prediction_rows(seed: int) -> None:
    data, random = _random_set(seed), np.random.default_rng(seed + 1)
    place = random.permutation(data.n_frames)
    video = np.empty_like(data.videos)
    video[place] = random.permutation(3)[data.videos]
    truth = _shuffled(data.targets, random, place, rows=False)
    found = _shuffled(data.predictions, random, place, rows=True)
    moved = DetectionSet.of(found, truth, video, n_videos=3)
    _same_everywhere(*(evaluate_detection(d, SIZES, convention="ivtd") for d in (data, moved)))


@given(SEED, CONVENTION, st.floats(0.0005, 1.5))
def test_adding_a_false_positive_never_raises_ap(seed: int, convention: Convention, score: float) -> None:
    data = _random_set(seed)
    random = np.random.default_rng(seed + 2)
    triplet = random.choice(data.targets.classes["ivt"]) if len(data.targets) else 0
    extra = Boxes.of([random.integers(data.n_frames)], {"ivt": [triplet]}, [[900, 900, 5, 5]], [score])
    extra = extra.with_components(PROSTATD, ("i", "v", "t"))
    old = data.predictions
    more = Boxes(
        np.concatenate([old.frame, extra.frame]),
        {c: np.concatenate([old.classes[c], extra.classes[c]]) for c in SIZES},
        np.concatenate([old.score, extra.score]),
        np.concatenate([old.xywh, extra.xywh]),
    )
    worse = DetectionSet.of(more, data.targets, data.videos, n_videos=3)
    for component, size in SIZES.items():
        before, after = (rank_detections(d, component, size, convention) for d in (data, worse))
        assert np.all(np.nan_to_num(global_ap(after)) <= np.nan_to_num(global_ap(before)) + 1e-12)
        assert np.all(np.nan_to_num(video_ap(after)) <= np.nan_to_num(video_ap(before)) + 1e-12)


@given(SEED, CONVENTION)
def test_perfect_predictions_score_one_and_0_995_under_the_linear_tail(seed: int, convention: Convention) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 20))
    # Boxes side by side: under first-match, overlapping truths of one class may be taken in the wrong order.
    boxes = np.column_stack([np.arange(n) * 20.0, random.uniform(0, 9, n), random.uniform(5, 19, (n, 2))])
    truth = Boxes.of(random.integers(0, 4, n), {"ivt": random.integers(0, 89, n)}, boxes)
    truth = truth.with_components(PROSTATD, ("i", "v", "t"))
    found = Boxes(truth.frame, truth.classes, random.uniform(0.1, 1, n), truth.xywh)
    result = evaluate_detection(DetectionSet.of(found, truth, [0, 0, 1, 1]), SIZES, convention=convention)
    best = 1.0 if convention == "coco" else 0.995
    for component in SIZES:
        for scores in (result[component].overall, result[component].video_wise):
            assert scores.mAP == pytest.approx(best, abs=1e-12)
            assert scores.mAP_5095 == pytest.approx(best, abs=1e-12)
            assert scores.mAR == 1


@given(SEED, CONVENTION, st.integers(-8, 8))
def test_scaling_all_boxes_changes_nothing(seed: int, convention: Convention, power: int) -> None:
    data = _random_set(seed)
    # A power of two keeps every IoU exactly; any other factor may move one across a threshold in its last bit.
    scaled = [Boxes(b.frame, b.classes, b.score, b.xywh * 2.0**power) for b in (data.targets, data.predictions)]
    other = DetectionSet.of(scaled[1], scaled[0], data.videos, n_videos=3)
    _same_everywhere(*(evaluate_detection(d, SIZES, convention=convention) for d in (data, other)))


@given(SEED, CONVENTION)
def test_duplicated_videos_leave_video_wise_numbers_unchanged(seed: int, convention: Convention) -> None:
    data = _random_set(seed)
    twice = evaluate_detection(data.select_videos([0, 1, 2, 0, 1, 2]), SIZES, convention=convention)
    once = evaluate_detection(data, SIZES, convention=convention)
    for component in SIZES:
        _same(once[component].video_wise, twice[component].video_wise)
        for field, value in once[component].per_video.video_first().items():
            assert twice[component].per_video.video_first()[field] == pytest.approx(value, abs=1e-12, nan_ok=True)


@given(SEED, CONVENTION)
def test_component_ap_from_triplet_ids_equals_that_from_component_ids(seed: int, convention: Convention) -> None:
    data = _random_set(seed)
    columns = np.array(PROSTATD.triplets)
    by_hand = [
        Boxes(b.frame, {c: columns[b.classes["ivt"], "ivt".index(c)] for c in "ivt"}, b.score, b.xywh)
        for b in (data.targets, data.predictions)
    ]
    other = DetectionSet.of(by_hand[1], by_hand[0], data.videos, n_videos=3)
    sizes = {c: SIZES[c] for c in "ivt"}
    a, b = (evaluate_detection(d, sizes, convention=convention) for d in (data, other))
    for component in sizes:
        _same(a[component].overall, b[component].overall)


@given(SEED, CONVENTION, st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_a_weighted_resample_is_the_copied_videos(seed: int, convention: Convention, multiplicity: list[int]) -> None:
    data = _random_set(seed)
    copied = data.select_videos([v for v, m in enumerate(multiplicity) for _ in range(m)])
    for component in ("ivt", "i"):
        weighted = weighted_ap(rank_detections(data, component, SIZES[component], convention), np.array(multiplicity))
        plain = global_ap(rank_detections(copied, component, SIZES[component], convention))
        np.testing.assert_allclose(weighted, plain, rtol=0, atol=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 12))
def test_both_average_precisions_equal_their_textbook_formulas(hits: list[bool], missed: int) -> None:
    n, total = len(hits), sum(hits) + missed
    if total == 0:
        return
    box = [0.0, 0.0, 10.0, 10.0]
    truth_frames = [f for f, hit in enumerate(hits) if hit] + [n + k for k in range(missed)]
    truth = Boxes.of(truth_frames, {"i": [0] * total}, [box] * total)
    scores = 1 - np.arange(n) / (n + 1)
    data = DetectionSet.of(Boxes.of(np.arange(n), {"i": [0] * n}, [box] * n, scores), truth, [0] * (n + missed))
    recall, precision = np.cumsum(hits) / total, np.cumsum(hits) / np.arange(1, n + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    grid = np.linspace(0, 1, 101)
    first = np.searchsorted(recall, grid)
    step = np.append(envelope, 0)[np.minimum(first, n)].mean()
    assert global_ap(rank_detections(data, "i", 1))[0, 0] == pytest.approx(step, abs=1e-12)
    x, y = np.concatenate([[0], recall, [1]]), np.concatenate([[1], precision, [0]])
    curve = np.interp(grid, x, np.maximum.accumulate(y[::-1])[::-1])
    assert global_ap(rank_detections(data, "i", 1, "ivtd"))[0, 0] == pytest.approx(np.trapezoid(curve, grid), abs=1e-12)
    eleven = np.mean([precision[recall >= r / 10].max(initial=0) for r in range(11)])
    assert global_ap(rank_detections(data, "i", 1, "ivtd"), "11point")[0, 0] == pytest.approx(eleven, abs=1e-12)


def _tied_set(seed: int) -> DetectionSet:
    """Three videos whose boxes lie on a coarse grid: many scores, overlaps and whole boxes are equal."""
    random = np.random.default_rng(seed)
    n_frames = int(random.integers(1, 10))
    triplets = random.choice(89, 3, replace=False)

    def boxes(most: int, scores: npt.NDArray[np.float64]) -> Boxes:
        frame = np.repeat(np.arange(n_frames), random.integers(0, most, n_frames))
        xywh = np.column_stack([random.integers(0, 4, (len(frame), 2)), random.integers(3, 6, (len(frame), 2))])
        found = Boxes.of(frame, {"ivt": random.choice(triplets, len(frame))}, xywh, random.choice(scores, len(frame)))
        return found.with_components(PROSTATD, ("i", "v", "t"))

    scores = random.random(int(random.integers(1, 4))) * 2  # one, two or three different ones, some above 1
    videos = np.sort(random.integers(0, 3, n_frames))
    return DetectionSet.of(boxes(8, scores), boxes(5, np.ones(1)), videos, n_videos=3)


def _permuted(data: DetectionSet, random: np.random.Generator) -> tuple[DetectionSet, npt.NDArray[np.int64]]:
    """The same boxes with videos, frames and rows in another order, and the new number of each video."""
    place, number = random.permutation(data.n_frames), random.permutation(3)
    video = np.empty_like(data.videos)
    video[place] = number[data.videos]
    truth, found = (_shuffled(boxes, random, place, rows=True) for boxes in (data.targets, data.predictions))
    return DetectionSet.of(found, truth, video, n_videos=3), number


@given(SEED, CONVENTION, st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_with_free_ties_no_digit_depends_on_the_order_of_videos_frames_or_rows(
    seed: int, convention: Convention, multiplicity: list[int]
) -> None:
    data = _tied_set(seed)
    moved, number = _permuted(data, np.random.default_rng(seed + 1))
    drawn = np.array(multiplicity)
    drawn_there = np.empty_like(drawn)
    drawn_there[number] = drawn
    here, there = (evaluate_detection(d, SIZES, convention=convention, ties="free") for d in (data, moved))
    for component in SIZES:
        a, b = here[component], there[component]
        for one, other in (
            (a.overall, b.overall),
            (a.video_wise, b.video_wise),
            (a.resampled(drawn), b.resampled(drawn_there)),
            (a.per_video.class_first(drawn), b.per_video.class_first(drawn_there)),
        ):
            for field in FIELDS:
                np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
            np.testing.assert_array_equal(one.threshold, other.threshold)
        np.testing.assert_array_equal(
            list(a.per_video.video_first(drawn).values()), list(b.per_video.video_first(drawn_there).values())
        )
        at = -np.inf if np.isnan(a.overall.threshold) else a.overall.threshold
        counts = [confusion_matrix(d, component, SIZES[component], min_score=at).counts for d in (data, moved)]
        np.testing.assert_array_equal(counts[0], counts[1])
    assert here.association is not None
    assert there.association is not None
    np.testing.assert_array_equal(here.association.counts, there.association.counts[number])
    np.testing.assert_array_equal(here.association.video_wise(), there.association.video_wise())
    costs = [cost_aware_f1(d, 89) for d in (data, moved)]
    for part in costs[0].scores:
        np.testing.assert_array_equal(costs[0].scores[part].f1, costs[1].scores[part].f1)


def _by_the_rule(data: DetectionSet, component: str, least: float) -> list[float]:
    """AP of each class with free ties, step by step as docs/which-map.md words it: slow, and without a kernel."""
    result = []
    for label in range(SIZES[component]):
        truths = [n for n in range(len(data.targets)) if data.targets.classes[component][n] == label]
        said = [n for n in range(len(data.predictions)) if data.predictions.classes[component][n] == label]
        taken: set[int] = set()
        hits = dict.fromkeys(said, False)
        for score in sorted({data.predictions.score[n] for n in said}, reverse=True):
            pairs = []
            for n in (n for n in said if data.predictions.score[n] == score):
                for g in (g for g in truths if data.targets.frame[g] == data.predictions.frame[n]):
                    a, b = data.predictions.xywh[n], data.targets.xywh[g]
                    w, h = (min(a[k] + a[k + 2], b[k] + b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
                    common = max(w, 0) * max(h, 0)
                    overlap = common / (a[2] * a[3] + b[2] * b[3] - common)
                    pairs.append((-overlap, *a[:2], *(a[:2] + a[2:]), *b[:2], *(b[:2] + b[2:]), n, g))
            for overlap, *_, n, g in sorted(pairs):
                if -overlap >= min(least, 1 - 1e-10) and not hits[n] and g not in taken:
                    hits[n] = True
                    taken.add(g)
        steps = []
        for score in sorted(set(data.predictions.score[said]), reverse=True):
            above = [hits[n] for n in said if data.predictions.score[n] >= score]
            steps.append((sum(above) / max(len(truths), 1), sum(above) / len(above)))
        best = [max((p for r, p in steps if r >= recall), default=0.0) for recall in np.linspace(0, 1, 101)]
        result.append(float(np.mean(best)) if truths else float("nan"))
    return result


@given(SEED)
def test_free_ties_follow_their_rule(seed: int) -> None:
    data = _tied_set(seed)
    ap = global_ap(rank_detections(data, "i", SIZES["i"]))
    for column, least in ((0, 0.5), (4, 0.7)):
        np.testing.assert_allclose(ap[:, column], _by_the_rule(data, "i", least), rtol=0, atol=1e-12)
