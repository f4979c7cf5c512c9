"""Mosaic samples per second and core: `TrainingSet.sample` against a plain OpenCV loop, at 320 and 640 pixels.

The loop does what the augmentation says step by step and keeps nothing: four JPEGs decoded and scaled, pasted on a
canvas of twice the side, one affine warp, flip, colour. CPU seconds of one thread. What threads add depends on the
cores: with `--workers N` the same samples come through `batches`, in seconds on the clock.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from surgeval.arrays import Image as Pixels
from surgeval.detector import Classes
from surgeval.detector.data import Augment, TrainingSet, batches
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet
from surgeval.vocab import load_labels

HEIGHT, WIDTH, FRAMES = 480, 854, 64
GOAL = 2.0


def frames(folder: Path) -> list[Frame]:
    """Tissue-like pictures with two instruments each."""
    made = []
    for k in range(FRAMES):
        rng = np.random.default_rng(k)
        small = rng.integers(40, 220, (HEIGHT // 16, WIDTH // 16, 3), dtype=np.uint8)
        pixels = cv2.resize(small, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        Image.fromarray(pixels).save(folder / f"{k}.jpg", quality=90)
        boxes = rng.uniform([0, 0, 60, 60], [600, 300, 250, 180], (2, 4))
        tools = tuple(Instance(Triplet(k % 7), Box(*box)) for box in boxes.tolist())
        made.append(Frame("V1", str(k), k, None, ImageRef(folder / f"{k}.jpg"), WIDTH, HEIGHT, tools))
    return made


def by_steps(known: list[Frame], index: int, size: int) -> tuple[Pixels, np.ndarray]:
    """The peer: every step for itself, every picture from its file."""
    rng = np.random.default_rng(index)
    canvas = np.full((2 * size, 2 * size, 3), 114, np.uint8)
    x, y = rng.integers(size // 2, 3 * size // 2, 2)
    boxes = []
    for place, number in enumerate([index, *rng.integers(0, len(known), 3).tolist()]):
        path = known[number].image
        image = cv2.cvtColor(cv2.imread(str(path.path if path else "")), cv2.COLOR_BGR2RGB)
        ratio = size / max(image.shape[:2])
        image = cv2.resize(image, (round(WIDTH * ratio), round(HEIGHT * ratio)), interpolation=cv2.INTER_LINEAR)
        height, width = image.shape[:2]
        left, top = (x - width if place % 2 == 0 else x), (y - height if place < 2 else y)
        x1, y1, x2, y2 = max(left, 0), max(top, 0), min(left + width, 2 * size), min(top + height, 2 * size)
        canvas[y1:y2, x1:x2] = image[y1 - top : y2 - top, x1 - left : x2 - left]
        boxes += [
            np.array(one.box.corners) * ratio + [left, top, left, top] for one in known[number].instances if one.box
        ]
    scale, shift = rng.uniform(0.5, 1.5), size * (0.5 + rng.uniform(-0.1, 0.1, 2))
    matrix = np.array([[scale, 0, shift[0] - scale * size], [0, scale, shift[1] - scale * size]])
    result = cv2.warpAffine(canvas, matrix, (size, size), borderValue=(114, 114, 114))
    moved = np.clip(np.array(boxes) * scale + np.tile(matrix[:, 2], 2), 0, size)
    if rng.random() < 0.5:
        result, moved = (
            cv2.flip(result, 1),
            np.stack([size - moved[:, 2], moved[:, 1], size - moved[:, 0], moved[:, 3]], 1),
        )
    hue, saturation, value = cv2.split(cv2.cvtColor(result, cv2.COLOR_RGB2HSV))
    steps, gains = np.arange(256), rng.uniform(-1, 1, 3) * (0.015, 0.7, 0.4) + 1
    tables = ((steps * gains[0]) % 180, np.clip(steps * gains[1], 0, 255), np.clip(steps * gains[2], 0, 255))
    parts = [
        cv2.LUT(part, table.astype(np.uint8)) for part, table in zip((hue, saturation, value), tables, strict=True)
    ]
    return cv2.cvtColor(cv2.merge(parts), cv2.COLOR_HSV2RGB), moved


def per_second(work: Callable[[int], object], repeats: int = 3) -> float:
    """Samples per CPU second of one thread, in the fastest of several rounds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        for index in range(FRAMES):
            work(index)
        best = min(best, time.process_time() - start)
    return FRAMES / best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="threads for `batches`; 0: not measured")
    workers = parser.parse_args().workers
    cv2.setNumThreads(1)
    met = True
    print(f"mosaic samples of {WIDTH}×{HEIGHT} frames per CPU second of one thread")
    with tempfile.TemporaryDirectory() as folder:
        known = frames(Path(folder))
        classes = Classes.of(load_labels("cholec80"))
        for size in (320, 640):
            kept = TrainingSet.of(known, classes, image_size=size)
            unkept = TrainingSet.of(known, classes, image_size=size, cache_bytes=0)
            theirs = per_second(lambda index, size=size: by_steps(known, index, size))  # type: ignore[misc]
            ours = per_second(lambda index, data=kept: data.sample(index, 0, 0, Augment()))  # type: ignore[misc]
            again = per_second(lambda index, data=unkept: data.sample(index, 0, 0, Augment()))  # type: ignore[misc]
            whole = per_second(lambda index, data=kept: data.sample(index, 0, 0, Augment().without_mosaic()))  # type: ignore[misc]
            met &= ours / theirs >= GOAL
            print(f"{size}: loop {theirs:.0f}  ours {ours:.0f}  ratio {ours / theirs:.1f}×  "
                  f"not kept in memory {again:.0f} ({again / theirs:.1f}×)  without mosaic {whole:.0f}")  # fmt: skip
            if workers:
                start = time.perf_counter()
                order = np.arange(FRAMES).repeat(16)
                for _ in batches(kept, batch=32, augment=Augment(), order=order, workers=workers):
                    pass
                print(f"{size}: batches with {workers} threads {len(order) / (time.perf_counter() - start):.0f}/s")
    print(f"goal: {GOAL:.0f}× the loop: {'met' if met else 'NOT MET'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
