"""Detectors that learn nothing and know everything: the machinery around folds without a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.datasets import Dataset
from surgeval.phantom import simulate_detector
from surgeval.protocols.training.detectors import FoldDetections, Tell, TrainableDetector
from surgeval.protocols.training.scheme import Fold

FOLDS = {"a": ["v0", "v3", "v6"], "b": ["v1", "v4", "v7"], "c": ["v2", "v5", "v8"]}


def write_curves(folder: Path, epochs: int, stage: str = "teacher", start: float = 0.1) -> None:
    """Curves as a training writes them."""
    rows = [
        {"epoch": n, "stage": stage, "loss": 9.0 / n, "loss box": 5.0 / n, "loss ivt": 4.0 / n, "rate": 0.01,
         "mAP50": start + 0.05 * n, "mAP50:95": 0.5 * (start + 0.05 * n), "seconds": 2.0, "images_per_second": 80.0}
        for n in range(1, epochs + 1)
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "curves.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_record(folder: Path, **more: Any) -> None:
    """The record of a training."""
    record: dict[str, Any] = {
        "format": 1, "model": "tdnet", "status": "done", "reason": "", "notes": [],
        "settings": {"size": "n", "epochs": 6, "fusion": 0.8},
        "classes": {"main": "ivt", "heads": {"ivt": ["grasper,grasp,liver", "hook,dissect,gallbladder"]}},
        "data": {"train": {"frames": 48, "counts": [30, 12]}, "validation": {"frames": 8, "counts": [5, 0]}},
        "versions": {"surgeval": "0", "torch": "2"}, "result": None,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.json").write_text(json.dumps(record | more))


def simulated(
    quality: Any = "good", *, name: str = "simulated", seed: int = 0, trained: Any = None
) -> TrainableDetector:
    """A method whose boxes are the labels, spoiled; `trained` collects the folds that were trained."""

    def learn(dataset: Dataset, fold: Fold, out: Path, tell: Tell) -> None:
        assert not set(fold.test) & {*fold.train, *fold.val}
        if trained is not None:
            trained.append(fold.name)
        write_record(out)
        write_curves(out, 6)

    def detect(dataset: Dataset, videos: Sequence[str], out: Path) -> FoldDetections:
        assert (out / "curves.jsonl").exists()
        table = simulate_detector(dataset, quality, seed).filter(pl.col("video").is_in(list(videos)))
        return FoldDetections(table, 8 * len(videos), 0.5, "cpu")

    return TrainableDetector(name, {"quality": quality, "seed": seed}, learn, detect)
