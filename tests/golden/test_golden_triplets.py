"""Every golden triplets file under `--golden DIR`: what the reference packages give, to the last digits.

`det*.json` and `rec*.json.gz` are found by pattern, costaware files by content; the numbers must come out of the
functions *and* of the drop-in classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.conftest import golden_folder
from tests.golden.reading import load

from surgeval.compat import ivtd, ivtmetrics
from surgeval.metrics import (
    ASSOCIATION_COUNTS,
    Boxes,
    Convention,
    DetectionResult,
    DetectionSet,
    Scores,
    cost_aware_f1,
    evaluate_detection,
    evaluate_recognition,
    top_k,
)
from surgeval.vocab import load_labels

COLUMN = {"ivt": 0, "i": 1, "v": 3, "t": 4}
SIZE = {"ivt": "num_class", "i": "num_tool", "v": "num_verb", "t": "num_target"}
FIELD = {"AP": "AP", "Rec": "recall", "Pre": "precision", "F1": "F1", "AP_5095": "AP_5095", "AR_5095": "AR"}
SCOPES = ("global", "video")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = golden_folder(metafunc.config) / "triplets"
    files = sorted(p for p in folder.glob("*") if p.name.endswith((".json", ".json.gz")))
    for fixture, wanted in (
        ("detection_file", lambda d: d.get("kind") == "detection"),
        ("recognition_file", lambda d: d.get("kind") == "recognition"),
        ("cost_file", lambda d: "class_agnostic" in d),
    ):
        if fixture in metafunc.fixturenames:
            found = [p for p in files if wanted(load(p))]
            metafunc.parametrize(fixture, found, ids=[p.name.split(".")[0] for p in found])


def _floats(values: Any) -> npt.NDArray[np.float64]:
    return np.array(
        [np.nan if v is None else v for v in np.atleast_1d(np.array(values, dtype=object))], dtype=np.float64
    )


def _same(found: Any, expected: Any, tolerance: float, what: object) -> None:
    np.testing.assert_allclose(
        np.atleast_1d(found), _floats(expected), rtol=0, atol=tolerance, equal_nan=True, err_msg=str(what)
    )


@cache
def _data(file: Path, trailing: int = 0) -> DetectionSet:
    """The file as tables; `trailing` empty videos follow, as the reference's last `video_end` leaves one."""
    golden = load(file)
    frames = [(v, frame) for v, video in enumerate(golden["videos"]) for frame in video["frames"]]
    boxes = []
    for kind in ("pd", "gt"):
        rows = [row for _, frame in frames for row in frame[kind]]
        number = np.repeat(np.arange(len(frames)), [len(frame[kind]) for _, frame in frames])
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 9 if "v" in golden["components"] else 7)
        classes = {c: table[:, COLUMN[c]] for c in golden["components"]}
        boxes.append(Boxes.of(number, classes, table[:, -4:], table[:, 2]))
    predictions, targets = boxes
    return DetectionSet.of(predictions, targets, [v for v, _ in frames], n_videos=len(golden["videos"]) + trailing)


@cache
def _evaluated(file: Path, convention: Convention, style: str = "coco", trailing: int = 0) -> DetectionResult:
    golden = load(file)
    sizes = {c: golden["params"][SIZE[c]] for c in golden["components"]}
    return evaluate_detection(
        _data(file, trailing), sizes, convention=convention, iou=golden["params"]["threshold"], style=style
    )


def _scores(result: DetectionResult, component: str, scope: str) -> Scores:
    return result[component].overall if scope == "global" else result[component].video_wise


def _check_scores(scores: Scores, expected: dict[str, Any], keys: Sequence[str], what: object) -> None:
    for key in keys:
        if key in expected:
            _same(getattr(scores, FIELD[key]), expected[key], 1e-9, (what, key))
        if f"m{key}" in expected:
            _same(scores.mean(FIELD[key]), [expected[f"m{key}"]], 1e-9, (what, f"m{key}"))


def test_legacy_equals_the_reference_with_a_stable_sort(detection_file: Path) -> None:
    golden, result = load(detection_file), _evaluated(detection_file, "ivtd-legacy")
    assert result.association is not None
    for scope in SCOPES:
        association = result.association.overall() if scope == "global" else result.association.video_wise()
        for component in golden["components"]:
            expected = golden["expected_if_global_sort_stable"][scope][component]
            _check_scores(_scores(result, component, scope), expected, tuple(FIELD), (scope, component))
            _same(association, [expected[key] for key in ASSOCIATION_COUNTS], 1e-9, (scope, component, "association"))


def test_legacy_association_counts_equal_the_raw_ones_of_each_video(detection_file: Path) -> None:
    golden, result = load(detection_file), _evaluated(detection_file, "ivtd-legacy")
    assert result.association is not None
    for number, counts in enumerate(result.association.counts):
        raw = golden["raw"][f"vid{number + 1}"]
        assert counts.tolist() == [raw[key] for key in ASSOCIATION_COUNTS]
        assert result["ivt"].ranked.truths[number].tolist() == raw["npos"]


def test_legacy_equals_the_reference_as_run_where_no_ties_matter(detection_file: Path) -> None:
    golden = load(detection_file)
    if golden["expected_if_global_sort_stable"]["fields_differing_from_asrun"]:
        pytest.skip("ties: as-run values depend on the numpy version")
    result = _evaluated(detection_file, "ivtd-legacy")
    assert result.association is not None
    for component in golden["components"]:
        for scope in SCOPES:
            expected = golden["expected"]["coco"][scope][component]
            _check_scores(_scores(result, component, scope), expected, tuple(FIELD), (scope, component))
        videos = result[component].per_video
        for v, expected in enumerate(block[component] for block in golden["expected"]["coco"]["per_video"]):
            _same(videos.AP[v], expected["AP"], 1e-9, (v, component))
            fields = ("AP", "AP_5095", "AR", "precision", "recall", "F1")
            one = Scores(**{name: getattr(videos, name)[v] for name in fields})
            _check_scores(one, {k: x for k, x in expected.items() if k.startswith("m")}, tuple(FIELD), (v, component))
            _same(result.association.per_video()[v], expected["assoc"], 1e-9, (v, "association"))


def test_legacy_11point_equals_the_reference(detection_file: Path) -> None:
    golden = load(detection_file)
    if golden["expected_if_global_sort_stable"]["fields_differing_from_asrun"]:
        pytest.skip("ties: as-run values depend on the numpy version")
    result = _evaluated(detection_file, "ivtd-legacy", "11point", trailing=1)
    for component in golden["components"]:
        for scope in SCOPES:
            for block in ("11point", "11point_scalar_rec_broadcast"):
                expected = golden["expected"][block][scope][component]
                if "error" not in expected:  # the crash itself is not reproduced
                    _check_scores(_scores(result, component, scope), expected, tuple(FIELD), (block, scope, component))


def test_ivtd_gives_precision_recall_and_f1_on_sorted_confidences(detection_file: Path) -> None:
    golden, result = load(detection_file), _evaluated(detection_file, "ivtd")
    for scope in SCOPES:
        for component, expected in golden["expected_prf_sorted_confidence"][scope].items():
            _check_scores(_scores(result, component, scope), expected, tuple(FIELD), (scope, component))


@pytest.mark.parametrize("mode", ["legacy", "fixed"])
def test_the_drop_in_detection_class_gives_the_same(detection_file: Path, mode: str) -> None:
    golden = load(detection_file)
    metric = ivtd.Detection(**golden["params"], mode=mode)
    for video in golden["videos"]:
        metric.update([frame["gt"] for frame in video["frames"]], [frame["pd"] for frame in video["frames"]])
        metric.video_end()
    stable, repaired = golden["expected_if_global_sort_stable"], golden["expected_prf_sorted_confidence"]
    for component in golden["components"]:
        for scope, compute in (("global", metric.compute_global_AP), ("video", metric.compute_video_AP)):
            answer = compute(component=component, style="coco")
            expected = stable[scope][component]
            assert set(answer) == set(expected)
            if mode == "fixed":
                expected = {k: x for k, x in expected.items() if k not in ASSOCIATION_COUNTS}
                expected |= repaired[scope][component]
            for key, value in expected.items():
                _same(answer[key], value, 1e-9, (scope, component, key))


def test_the_drop_in_detection_class_gives_the_11point_style_and_the_last_video(detection_file: Path) -> None:
    golden = load(detection_file)
    if golden["expected_if_global_sort_stable"]["fields_differing_from_asrun"]:
        pytest.skip("ties: as-run values depend on the numpy version")
    metric = ivtd.Detection(**golden["params"], mode="legacy")
    for video, expected in zip(golden["videos"], golden["expected"]["coco"]["per_video"], strict=True):
        metric.update([frame["gt"] for frame in video["frames"]], [frame["pd"] for frame in video["frames"]])
        metric.video_end()
        for component in golden["components"]:
            _same(metric.compute_AP(component)["AP"], expected[component]["AP"], 1e-9, (video["name"], component))
    block = golden["expected"]["11point_scalar_rec_broadcast"]
    for component in golden["components"]:
        for scope, compute in (("global", metric.compute_global_AP), ("video", metric.compute_video_AP)):
            answer = compute(component, style="11point")
            for key, value in block[scope][component].items():
                _same(answer[key], value, 1e-9, (scope, component, key))


@pytest.mark.parametrize("component", ["i", "v", "t", "iv", "it", "ivt"])
def test_recognition_equals_ivtmetrics(recognition_file: Path, component: str) -> None:
    golden = load(recognition_file)
    targets, scores, video = _recognition(recognition_file)
    result = evaluate_recognition(scores, targets, video, space=load_labels("cholect50"), components=[component])[
        component
    ]
    expected = golden["expected"]
    _same(result.AP, expected["global"][component]["AP"], 1e-12, "global AP")
    _same(result.mAP, [expected["global"][component]["mAP"]], 1e-12, "global mAP")
    _same(result.video_wise, expected["video"][component]["AP"], 1e-12, "video AP")
    _same(result.class_first_mAP, [expected["video"][component]["mAP"]], 1e-12, "video mAP")
    for number, block in enumerate(expected["per_video"]):
        value = block[component]["AP"] if isinstance(block[component], dict) else block[component]
        _same(result.per_video[number], value, 1e-12, (number, "AP"))


@pytest.mark.parametrize("mode", ["fixed", "legacy"])
def test_the_drop_in_recognition_class_gives_the_same(recognition_file: Path, mode: str) -> None:
    golden = load(recognition_file)
    targets, scores, video = _recognition(recognition_file)
    metric = ivtmetrics.Recognition(num_class=golden["num_class"], mode=mode)
    for number in range(len(golden["videos"])):
        here = np.flatnonzero(video == number)
        for batch in np.array_split(here, 3):
            metric.update(targets[batch], scores[batch])
        metric.video_end()
    for key in golden["expected"]["global"]:
        component, null = key.split("_")[0], key.endswith("ignore_null")
        for scope, compute in (("global", metric.compute_global_AP), ("video", metric.compute_video_AP)):
            answer = compute(component, ignore_null=null)
            if mode == "fixed":
                expected = golden["expected"][scope][key]
                _same(answer["AP"], expected["AP"], 1e-12, (scope, key))
                _same(answer["mAP"], [expected["mAP"]], 1e-12, (scope, key))
            else:
                _same(answer["mAP"], [golden["expected_sklearn_new"][f"{scope}_mAP"][key]], 1e-12, (scope, key))
    if mode == "fixed":
        # Among equal APs the reference's choice is unspecified, so the values are compared, not the class ids.
        best = [v for v in golden["expected"]["topClass10_ivt"].values() if v is not None]
        found = [v for v in metric.topClass(10, "ivt").values() if not np.isnan(v)]
        assert found == pytest.approx(sorted(best, reverse=True), abs=1e-12)


def test_top_k_equals_ivtmetrics_where_no_scores_tie(recognition_file: Path) -> None:
    golden = load(recognition_file)
    targets, scores, _ = _recognition(recognition_file)
    metric = ivtmetrics.Recognition(num_class=golden["num_class"])
    metric.update(targets, scores)
    compared = 0
    for component, by_k in golden["expected"]["topK"].items():
        values = metric.extract(scores, component)
        if any(len(np.unique(row)) < len(row) for row in values):
            continue
        for k, expected in by_k.items():
            assert top_k(values, metric.extract(targets, component), int(k)) == pytest.approx(expected, abs=1e-12)
            assert metric.topK(int(k), component) == pytest.approx(expected, abs=1e-12)
            compared += 1
    if not compared:
        pytest.skip("tied scores: the reference's order is unspecified")


@cache
def _recognition(file: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    golden = load(file)
    ids = [positive for video in golden["videos"] for positive in video["targets_positive_ids"]]
    targets = np.zeros((len(ids), golden["num_class"]), np.int64)
    for row, positive in enumerate(ids):
        targets[row, positive] = 1
    scores = np.array([row for video in golden["videos"] for row in video["predictions"]], dtype=np.float64)
    video = np.repeat(np.arange(len(golden["videos"])), [len(v["predictions"]) for v in golden["videos"]])
    return targets, scores, video


@pytest.mark.parametrize(("block", "matching"), [("class_agnostic", "any-class"), ("same_class", "same-class")])
def test_cost_aware_scores_equal_the_worked_example(cost_file: Path, block: str, matching: str) -> None:
    golden = load(cost_file)
    boxes = []
    for kind in ("pd", "gt"):
        rows = [(f, row) for f, frame in enumerate(golden["frames"]) for row in frame[kind]]
        classes = {c: [row["cls" if c == "ivt" else c] for _, row in rows] for c in COLUMN}
        boxes.append(
            Boxes.of([f for f, _ in rows], classes, [row["box"] for _, row in rows], [row["conf"] for _, row in rows])
        )
    predictions, targets = boxes
    data = DetectionSet.of(predictions, targets, [0] * len(golden["frames"]))
    result = cost_aware_f1(data, 89, matching=matching)
    for number, parts in golden[block].items():
        for part, expected in parts.items():
            scores = result.scores[part]
            found = [scores.precision[int(number)], scores.recall[int(number)], scores.f1[int(number)]]
            _same(found, [expected["P"], expected["R"], expected["F1"]], 1e-12, (block, number, part))
