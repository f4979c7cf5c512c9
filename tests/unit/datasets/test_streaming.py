"""Memory does not grow with the number of frames (beyond their names or places in a file)."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path

import pytest

from surgeval.datasets import check, open_dataset
from surgeval.vocab import load_labels


def coco(root: Path, frames: int) -> Path:
    images = [{"id": n, "file_name": f"V{n // 150}/{n:06d}.jpg", "width": 80, "height": 40} for n in range(frames)]
    annotations = [
        {"id": 2 * n + k, "image_id": n, "category_id": 1, "bbox": [k + 1, 2, 30.5, 20.25], "note": "x" * 100}
        for n in range(frames)
        for k in range(2)
    ]
    path = root / f"{frames}.json"
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "Hook"}]}
    path.write_text(json.dumps(document))
    return path


def yolo(root: Path, frames: int) -> Path:
    folder = root / f"yolo{frames}"
    (folder / "labels").mkdir(parents=True)
    (folder / "labels.json").write_text(json.dumps(load_labels("cholec80").to_json()))
    for n in range(frames):
        (folder / "labels" / f"V{n // 150}_{n:06d}.txt").write_text("1 0.5 0.5 0.2 0.2\n" * 3)
    return folder


def measured(path: Path) -> tuple[int, int, int]:
    """Bytes kept after opening, further bytes at the peak of reading, frames."""
    tracemalloc.start()
    dataset = open_dataset(path)
    gc.collect()  # what is kept, not what waits to be collected
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    frames = sum(1 for video in dataset.videos() for _ in dataset.frames(video.name))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept, peak - kept, frames


@pytest.mark.parametrize(("write", "each"), [(coco, 150), (yolo, 300)])
def test_reading_holds_one_frame_at_a_time(tmp_path: Path, write: object, each: int) -> None:
    assert callable(write)
    few, many = write(tmp_path, 200), write(tmp_path, 800)
    measured(few)  # caches of the first time
    small, large = (min(measured(path) for _ in range(2)) for path in (few, many))  # the least: caches come and go
    assert (small[2], large[2]) == (200, 800)
    assert (large[0] - small[0]) / 600 < each  # bytes kept per frame: names or places, not records
    assert large[1] < small[1] + 200_000  # reading four times as many frames needs no more


def test_a_check_keeps_no_more_problems_than_asked(tmp_path: Path) -> None:
    path = coco(tmp_path, 500)
    path.write_text(path.read_text().replace('"category_id": 1', '"category_id": 9'))
    report = check(open_dataset(path), keep=10)
    assert report.errors == 1000
    assert len(report.problems) == 10
