"""The drop-in classes: same calls as the originals, their defects repaired or, on request, reproduced."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from surgeval.compat.ivtd import Detection, Recognition
from surgeval.compat.ivtmetrics import Detection as IvtDetection
from surgeval.compat.ivtmetrics import Recognition as IvtRecognition
from surgeval.errors import BadInput

TRUE = [22, 1, 1.0, 0, 0, 0.1, 0.1, 0.2, 0.2]
HIT = [22, 1, 0.9, 0, 0, 0.1, 0.1, 0.2, 0.2]
MISS = [22, 1, 0.8, 0, 0, 0.7, 0.7, 0.1, 0.1]


def _fed(mode: str, *videos: tuple[list[Any], list[Any]]) -> Detection:
    metric = Detection(mode=mode)
    for truth, found in videos:
        metric.update(truth, found, format="list")
        metric.video_end()
    return metric


def test_reset_forgets_when_fixed_and_keeps_old_videos_when_legacy() -> None:
    bad, good = ([[TRUE]], [[MISS]]), ([[TRUE]], [[HIT]])
    for mode, expected in (("fixed", 0.995), ("legacy", 0.6225)):
        metric = _fed(mode, bad, bad, bad)
        metric.reset_global()
        metric.update(*good)
        metric.video_end()
        assert metric.compute_global_AP("ivt")["mAP"] == pytest.approx(expected)
        assert metric.compute_video_AP("ivt")["mAP"] == pytest.approx(0.995)


def test_compute_ap_is_the_current_video_or_the_one_just_ended() -> None:
    for mode in ("fixed", "legacy"):
        metric = _fed(mode, ([[TRUE]], [[MISS]]), ([[TRUE]], [[HIT]]))
        assert metric.compute_AP()["mAP"] == pytest.approx(0.995)
        metric.update([[TRUE]], [[MISS]])
        assert metric.compute_AP()["mAP"] == 0
        metric.update([[TRUE]], [[HIT]])
        assert metric.compute_AP()["mAP"] > 0


def test_frames_without_a_counterpart_are_an_error_when_fixed_and_dropped_when_legacy() -> None:
    with pytest.raises(BadInput, match="2 frames of targets and 1 of predictions"):
        Detection().update([[TRUE], [TRUE]], [[HIT]])
    metric = _fed("legacy", ([[TRUE], [TRUE]], [[HIT]]))
    assert metric.compute_global_AP()["mAP"] == pytest.approx(0.995)


def test_a_far_box_of_the_right_class_is_missed_localisation_only_when_fixed() -> None:
    video = ([[TRUE]], [[MISS]])
    assert _fed("fixed", video).compute_global_AP()["mil"] == 1
    legacy = _fed("legacy", video).compute_global_AP()
    assert (legacy["mil"], legacy["fp"], legacy["fn"]) == (0, 0.5, 0.5)


def test_seven_columns_score_triplets_and_instruments_only() -> None:
    seven = [[[0, 1, 1.0, 0.1, 0.1, 0.2, 0.2]]]
    metric = _fed("fixed", (seven, seven))
    assert metric.compute_video_AP("i")["mAP"] == pytest.approx(0.995)
    assert np.isnan(metric.compute_video_AP("v")["mAP"])


def test_seven_and_nine_columns_in_one_frame_are_refused_and_leave_nothing_behind() -> None:
    metric = Detection()
    with pytest.raises(BadInput, match="frame 0: rows of 7 and of 9 columns"):
        metric.update([[[0, 1, 1.0, 0.1, 0.1, 0.2, 0.2]]], [[HIT]])
    metric.update([[TRUE]], [[HIT]])
    assert metric.compute_global_AP()["mAP"] == pytest.approx(0.995)


def test_seven_and_nine_columns_in_different_frames_are_refused_for_verbs_when_fixed() -> None:
    seven = [0, 1, 1.0, 0.1, 0.1, 0.2, 0.2]
    frames = [[TRUE], [seven]], [[HIT], [seven]]
    with pytest.raises(BadInput, match="frame 1: its rows have 7 columns"):
        _fed("fixed", frames).compute_global_AP("v")
    assert _fed("legacy", frames).compute_global_AP("v")["mAP"] == pytest.approx(0.995)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1, 2, 3], "frame 0: predictions: rows must have 7 columns .* got 3"),
        ([1, 2, 0.5, "x", 0, 0, 0], "must hold numbers"),
        ([22, 1, 0.5, 0, 0, 0, 0, float("nan"), 1], "predictions: row 0: xywh"),
        ([22.5, 1, 0.5, 0, 0, 0, 0, 1, 1], "whole numbers"),
    ],
)
def test_ill_formed_rows_are_refused(row: list[Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        _fed("fixed", ([[]], [[row]])).compute_global_AP()


def test_negative_ids_are_refused_in_both_modes() -> None:
    for mode in ("fixed", "legacy"):
        with pytest.raises(BadInput, match="found class -1"):
            _fed(mode, ([[TRUE]], [[[-1, *HIT[1:]]]])).compute_global_AP()


def test_dictionaries_are_read_like_lists() -> None:
    box = {"triplet": 22, "instrument": [1, 0.9, 0.1, 0.1, 0.2, 0.2], "verb": 0, "target": 0}
    metric = Detection()
    metric.update([[box]], [[box]], format="dict")
    assert metric.compute_AP("t")["mAP"] == pytest.approx(0.995)
    with pytest.raises(BadInput, match="frame 1: targets"):
        metric.update([[{"triplet": 3}]], [[]], format="dict")
    with pytest.raises(BadInput, match="'list' or 'dict'"):
        metric.update([], [], format="yolo")


def test_arrays_and_empty_frames_are_accepted() -> None:
    metric = Detection()
    metric.update([np.array([TRUE]), [], [[]]], [np.array([HIT]), np.zeros((0, 9)), []])
    assert metric.compute_AP()["mAP"] == pytest.approx(0.995)


def test_an_empty_detector_answers_nan_with_all_keys() -> None:
    for mode in ("fixed", "legacy"):
        metric = Detection(mode=mode)
        for compute in (metric.compute_AP, metric.compute_video_AP, metric.compute_global_AP):
            answer = compute("ivt")
            assert np.isnan(answer["mAP"])
            assert np.isnan(answer["lm"])


def test_map5095_can_be_switched_off_as_in_the_original() -> None:
    metric = Detection(enable_map5095=False)
    metric.update([[TRUE]], [[HIT]])
    assert "mAP_5095" not in metric.compute_AP()


def test_top_class_lists_the_best_classes() -> None:
    metric = _fed("fixed", ([[TRUE, [3, 0, 1.0, 1, 1, 0.5, 0.5, 0.1, 0.1]]], [[HIT]]))
    assert list(metric.topClass(2)) == [22, 3]


def test_asking_twice_about_an_unended_video_changes_nothing() -> None:
    random = np.random.default_rng(0)
    labels, scores = (random.random((9, 100)) < 0.1).astype(int), random.random((9, 100))
    metric = IvtRecognition()
    metric.update(labels, scores)
    answers = [metric.compute_global_AP()["mAP"], metric.compute_global_AP()["mAP"], metric.topK(5)]
    assert answers[0] == answers[1]
    assert metric.topK(5) == answers[2]
    assert metric.compute_video_AP()["mAP"] == metric.compute_AP()["mAP"] == answers[0]


def test_absent_classes_are_nan_when_fixed_and_zero_when_legacy() -> None:
    labels, scores = np.zeros((4, 100)), np.zeros((4, 100))
    labels[0, 0] = labels[1, 5] = scores[0, 0] = scores[1, 5] = 1
    fixed, legacy = IvtRecognition(), IvtRecognition(mode="legacy")
    for metric in (fixed, legacy):
        metric.update(labels, scores)
        metric.video_end()
    assert fixed.compute_video_AP()["mAP"] == 1
    assert legacy.compute_video_AP()["mAP"] == pytest.approx(0.02)


def test_ignore_null_of_the_constructor_works_when_fixed_only() -> None:
    labels = np.zeros((2, 100))
    labels[0, 99] = labels[1, 3] = 1
    for mode, size in (("fixed", 94), ("legacy", 100)):
        metric = Recognition(ignore_null=True, mode=mode)
        metric.update(labels, labels)
        assert len(metric.compute_AP("ivt")["AP"]) == size
        assert len(metric.compute_AP("ivt", ignore_null=True)["AP"]) == 94
        assert len(metric.compute_AP("v", ignore_null=True)["AP"]) == 10


def test_prostatd_components_work_with_89_triplets() -> None:
    labels = np.eye(89)[:10]
    metric = Recognition(num_class=89)
    metric.update(labels, labels)
    assert metric.compute_AP("i")["mAP"] == 1
    assert len(metric.compute_AP("it")["AP"]) == 51
    with pytest.raises(BadInput, match="CholecT50"):
        metric.compute_AP(ignore_null=True)
    with pytest.raises(BadInput, match="num_class 100 or 89"):
        Recognition(num_class=12).extract(np.zeros((1, 12)), "i")


def test_reset_of_recognition_forgets_the_current_video_only() -> None:
    labels = np.eye(100)[:4]
    metric = Recognition()
    metric.update(labels, labels)
    metric.video_end()
    metric.update(labels, 1 - labels)
    metric.reset()
    assert metric.compute_global_AP()["mAP"] == 1
    metric.reset_global()
    assert np.isnan(metric.compute_global_AP()["mAP"])
    assert np.isnan(metric.compute_video_AP()["mAP"])


def test_wrong_shapes_and_modes_are_refused() -> None:
    with pytest.raises(BadInput, match="frames × 100"):
        Recognition().update(np.zeros((1, 89)), np.zeros((1, 89)))
    for kind in (Recognition, Detection):
        with pytest.raises(BadInput, match="fixed, legacy"):
            kind(mode="old")
    with pytest.raises(BadInput, match="component"):
        Detection().compute_global_AP("iv")


def test_metrics_work_from_a_read_only_installation_without_a_cache_folder(tmp_path: Any) -> None:
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"  # what numba is left with when nothing is writable
        "from surgeval.metrics import average_precision\n"
        "print(average_precision([[0.9], [0.1]], [[1], [0]])[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1.0"


@pytest.mark.skipif(sys.platform == "win32", reason="a user always has a profile there")
def test_kernels_are_cached_in_the_temporary_folder_where_package_and_home_are_read_only(tmp_path: Any) -> None:
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = [c.UserProvidedCacheLocator]\n"  # neither the package nor a home is writable
        "from surgeval.metrics import average_precision\n"
        "from surgeval.metrics.sort import radix_order\n"
        "average_precision([[0.9], [0.1]], [[1], [0]])\n"
        "print(sum(radix_order.stats.cache_hits.values()))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    hits = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                       env={**environment, "TMPDIR": str(tmp_path)}).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert hits == ["0", "1"]
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("metric", [Detection, IvtDetection])
@pytest.mark.parametrize("format", ["list", "dict"])
@pytest.mark.parametrize("given", [None, [None], [[None]], 5, [5], "ab", [[[10**400, 0, 0.5, 0, 0, 1, 1]]]], ids=repr)
def test_what_is_no_frame_is_one_sentence(metric: Any, format: str, given: Any) -> None:
    for targets, predictions in ((given, [[]]), ([[]], given)):
        with pytest.raises(BadInput, match=r"targets|predictions"):
            metric(mode="legacy").update(targets, predictions, format=format)
