"""Triplet metrics against their peers: CPU time and peak memory on synthetic data of ProstaTD's and CholecT50's size.

Each measurement runs in its own process (so memory is its own), with warm kernels, in CPU seconds of that process.
Peers are found in the environment or in `.bench` (`pip install --target .bench -r
benchmarks/requirements-triplets.txt`); one that is missing is named and left out. ivtdmetrics is on no index: its cost
is the recorded 1.355 CPU-ms per frame. `--full` runs the peers at every size instead of the small ones only.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.metrics import (
    Boxes,
    DetectionSet,
    evaluate_detection,
    evaluate_recognition,
    prepare_recognition,
    rank_detections,
    weighted_ap,
    weighted_average_precision,
)
from surgeval.vocab import load_labels

IVTDMETRICS_MS_PER_FRAME = 1.355
FRAMES = (5_000, 20_000, 71_775)
CLASSES = {"ivt": 89, "i": 7, "v": 10, "t": 10}
VIDEOS = 21
RECOGNITION_FRAMES = (3_000, 90_000)
RECOGNITION_VIDEOS = 50
RECOGNITION_COMPONENTS = ("i", "v", "t", "iv", "it", "ivt")
PEERS = Path(__file__).parents[1] / ".bench"


def cpu(function: Callable[[], object], repeats: int = 5) -> float:
    """The least CPU seconds of a few calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def synthetic_boxes(n_frames: int) -> DetectionSet:
    """About 2.9 ground truths and 9.5 predictions per frame: near copies, confused copies and strays."""
    random = np.random.default_rng(0)
    space = load_labels("prostatd")
    frame = np.repeat(np.arange(n_frames), random.poisson(2.9, n_frames))
    popularity = 1.0 / np.arange(1, CLASSES["ivt"] + 1)
    triplet = random.choice(CLASSES["ivt"], len(frame), p=popularity / popularity.sum())

    def anywhere(n: int) -> Any:
        return np.column_stack([random.uniform(0, 500, (n, 2)), random.uniform(30, 140, (n, 2))])

    box = anywhere(len(frame))
    truth = Boxes.of(frame, {"ivt": triplet}, box)
    copies = np.repeat(np.arange(len(frame)), random.binomial(3, 0.6, len(frame)))
    said = np.where(random.random(len(copies)) < 0.7, triplet[copies], random.integers(0, 89, len(copies)))
    strays = np.repeat(np.arange(n_frames), random.poisson(9.5 - len(copies) / n_frames, n_frames))
    predictions = Boxes.of(
        np.concatenate([frame[copies], strays]),
        {"ivt": np.concatenate([said, random.integers(0, 89, len(strays))])},
        np.concatenate([box[copies] + random.normal(0, 8, (len(copies), 4)), anywhere(len(strays))]),
        np.concatenate([random.beta(4, 2, len(copies)), random.beta(1, 4, len(strays))]),
    )
    both = [boxes.with_components(space, ("i", "v", "t")) for boxes in (truth, predictions)]
    return DetectionSet.of(both[1], both[0], np.sort(random.integers(0, VIDEOS, n_frames)), n_videos=VIDEOS)


def synthetic_scores(n_frames: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    labels = random.random((n_frames, 100)) < 0.5 / np.arange(1, 101) ** 0.9
    scores = (0.4 * labels + random.random((n_frames, 100))).astype(np.float32)
    return labels, scores, np.sort(random.integers(0, RECOGNITION_VIDEOS, n_frames))


def ours_detection(n_frames: int, convention: Any) -> dict[str, Any]:
    data = synthetic_boxes(n_frames)
    evaluate_detection(data.select_videos([0]), CLASSES, convention=convention)
    seconds = cpu(lambda: evaluate_detection(data, CLASSES, convention=convention))
    result = evaluate_detection(data, CLASSES, convention=convention)
    ranked = rank_detections(data, "ivt", CLASSES["ivt"], convention)
    draw = np.bincount(np.random.default_rng(1).integers(0, VIDEOS, VIDEOS), minlength=VIDEOS)
    return {
        "cpu": seconds,
        "rows": [len(data.targets), len(data.predictions)],
        "mAP_5095": {c: result[c].overall.mAP_5095 for c in CLASSES},
        "resample_ms": 1000 * cpu(lambda: weighted_ap(ranked, draw)),
    }


def ours_recognition(n_frames: int) -> dict[str, Any]:
    labels, scores, video = synthetic_scores(n_frames)
    space = load_labels("cholect50")

    def run() -> Any:
        return evaluate_recognition(scores, labels, video, space=space, components=RECOGNITION_COMPONENTS)

    evaluate_recognition(scores[:100], labels[:100], video[:100], space=space, components=("i", "ivt"))
    ranked = prepare_recognition(scores, labels, video)
    draw = np.bincount(
        np.random.default_rng(1).integers(0, ranked.n_videos, ranked.n_videos), minlength=ranked.n_videos
    )
    weighted_average_precision(ranked, draw)
    return {
        "cpu": cpu(run, 3),
        "mAP": {c: r.class_first_mAP for c, r in run().items()},
        "resample_ms": 1000 * cpu(lambda: weighted_average_precision(ranked, draw)),
    }


def coco_peer(n_frames: int, package: str) -> dict[str, Any]:
    """Global scores of the four components: no video-wise numbers, no P/R/F1, loading not counted."""
    if package == "pycocotools":
        COCO = import_module("pycocotools.coco").COCO
        Evaluation = import_module("pycocotools.cocoeval").COCOeval
    else:
        COCO = import_module("faster_coco_eval").COCO
        Evaluation = import_module("faster_coco_eval").COCOeval_faster
    data = synthetic_boxes(n_frames)
    seconds, means = 0.0, {}
    for component, size in CLASSES.items():
        rows = [
            [
                {"id": k + 1, "image_id": int(f) + 1, "category_id": int(c) + 1, "bbox": b, "area": b[2] * b[3]}
                | {"iscrowd": 0, "score": float(s)}
                for k, (f, c, b, s) in enumerate(
                    zip(part.frame, part.classes[component], part.xywh.tolist(), part.score, strict=True)
                )
            ]
            for part in (data.targets, data.predictions)
        ]
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO()
            truth.dataset = {
                "info": {},
                "images": [{"id": f + 1} for f in range(n_frames)],
                "categories": [{"id": c + 1, "name": str(c)} for c in range(size)],
                "annotations": rows[0],
            }
            truth.createIndex()
            evaluation = Evaluation(truth, truth.loadRes(rows[1]), "bbox")
            start = time.process_time()
            evaluation.evaluate()
            evaluation.accumulate()
            seconds += time.process_time() - start
            evaluation.summarize()
        means[component] = float(evaluation.stats[0])
    return {"cpu": seconds, "mAP_5095": means}


def ivtmetrics_peer(n_frames: int) -> dict[str, Any]:
    labels, scores, video = synthetic_scores(n_frames)
    metric = import_module("ivtmetrics").Recognition(num_class=100)
    start = time.process_time()
    for number in range(RECOGNITION_VIDEOS):
        metric.update(labels[video == number].astype(int), scores[video == number])
        metric.video_end()
    means = {c: float(metric.compute_video_AP(c)["mAP"]) for c in RECOGNITION_COMPONENTS}
    for component in RECOGNITION_COMPONENTS:
        metric.compute_global_AP(component)
    return {"cpu": time.process_time() - start, "mAP": means}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "detection": ours_detection,
    "recognition": ours_recognition,
    "coco": coco_peer,
    "ivtmetrics": ivtmetrics_peer,
}


def measure(job: str, peers: Path, *arguments: object) -> dict[str, Any] | None:
    """Run one job in its own process; None when it needs a peer that is not installed."""
    command = [sys.executable, __file__, "--peers", str(peers), "--job", json.dumps([job, *arguments])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr:
            return None
        raise SystemExit(f"{job} {arguments} failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def run_job(text: str) -> None:
    job, *arguments = json.loads(text)
    answer = JOBS[job](*arguments)
    answer["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(answer))


def difference(a: dict[str, float], b: dict[str, float]) -> float:
    return max(abs(a[key] - b[key]) for key in a)


def detection_table(peers: Path, full: bool) -> None:
    print("detection: 4 components, global and video-wise, 10 IoUs, P/R/F1, association")
    print(f"{'frames':>8} {'what':<34} {'CPU s':>9} {'µs/frame':>9} {'peak MB':>8}  ours is … times less")
    for n in FRAMES:
        ours = {c: measure("detection", peers, n, c) for c in ("coco", "ivtd", "ivtd-legacy")}
        recorded = IVTDMETRICS_MS_PER_FRAME * n / 1000
        print(f"{n:>8} {'ivtdmetrics (recorded per frame)':<34} {recorded:>9.2f}")
        for convention, answer in ours.items():
            assert answer is not None
            row(n, f"surgeval {convention}", answer, f"{recorded / answer['cpu']:.0f}× (ivtdmetrics)")
        coco = ours["coco"]
        assert coco is not None
        print(f"{'':>8} one video resample of ivt, 10 IoUs: {coco['resample_ms']:.1f} CPU-ms (not in the above)")
        for package in ("faster-coco-eval", "pycocotools") if full or n == FRAMES[0] else ():
            answer = measure("coco", peers, n, package)
            if answer is None:
                print(f"{n:>8} {package}: not installed")
                continue
            gap = difference(coco["mAP_5095"], answer["mAP_5095"])
            row(n, f"{package}, global only", answer, f"{answer['cpu'] / coco['cpu']:.0f}×, mAP differs by {gap:.1e}")


def recognition_table(peers: Path, full: bool) -> None:
    print("\nrecognition: 100 classes, 6 components, global and video-wise, 50 videos")
    for n in RECOGNITION_FRAMES:
        ours = measure("recognition", peers, n)
        assert ours is not None
        row(n, "surgeval", ours, "")
        print(f"{'':>8} one video resample of ivt: {ours['resample_ms']:.1f} CPU-ms (not in the above)")
        if full or n == RECOGNITION_FRAMES[0]:
            peer = measure("ivtmetrics", peers, n)
            if peer is None:
                print(f"{n:>8} ivtmetrics: not installed")
                continue
            row(n, "ivtmetrics", peer, f"{peer['cpu'] / ours['cpu']:.0f}×")


def row(n: int, what: str, answer: dict[str, Any], remark: str) -> None:
    seconds = answer["cpu"]
    print(f"{n:>8} {what:<34} {seconds:>9.3f} {1e6 * seconds / n:>9.2f} {answer['MB']:>8.0f}  {remark}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="run peers at every size (many minutes)")
    parser.add_argument("--peers", type=Path, default=PEERS, help="folder with installed peers")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peers.is_dir():
        sys.path.append(str(options.peers))  # last, so that our own numpy is used
    if options.job:
        run_job(options.job)
        return
    detection_table(options.peers, options.full)
    recognition_table(options.peers, options.full)


if __name__ == "__main__":
    main()
