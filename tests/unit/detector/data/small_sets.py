"""Small datasets whose every pixel is known: each instrument is a bright rectangle on dark tissue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from surgeval.arrays import Image as Pixels
from surgeval.datasets import MemoryDataset
from surgeval.detector import Classes
from surgeval.detector.data import TrainingSet
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet
from surgeval.vocab import load_labels

WIDTH, HEIGHT = 96, 64
TISSUE = (60, 20, 20)
SPACE = load_labels("cholect50")
TOOLS = Classes.of(load_labels("cholec80"))
TRIPLETS = Classes.of(SPACE)


def instance(triplet: int = 17, box: tuple[float, float, float, float] | None = (8, 16, 24, 32)) -> Instance:
    """An instrument that does triplet number `triplet`."""
    return Instance(Triplet(*SPACE.triplets[triplet]), Box(*box) if box else None)


def frame(number: int, instances: Sequence[Instance] = (), *, video: str = "VID01", path: Path | None = None,
          labelled: bool = True) -> Frame:  # fmt: skip
    """One frame; with a folder its picture is written there."""
    image = None
    if path is not None:
        file = path / video / f"{number:06d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(number)).save(file)
        image = ImageRef(file)
    return Frame(video, f"{number:06d}", number, None, image, WIDTH, HEIGHT, tuple(instances), labelled=labelled)


def picture(number: int, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    """Noise of its own for every number."""
    return np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)


def training_set(
    frames: Sequence[Frame], classes: Classes = TRIPLETS, size: int = 96, **settings: object
) -> TrainingSet:
    """Frames whose pictures are drawn, not read."""
    given: dict[str, object] = {"read": lambda one: picture(one.index), **settings}
    return TrainingSet.of(frames, classes, image_size=size, **given)  # type: ignore[arg-type]


def mixed_set(size: int = 96, count: int = 12) -> TrainingSet:
    """Frames with none to three boxes of six triplets, in two videos."""
    frames = []
    for k in range(count):
        rng = np.random.default_rng([7, k])
        boxes = [(float(rng.uniform(0, 60)), float(rng.uniform(0, 40)), float(rng.uniform(6, 36)),
                  float(rng.uniform(6, 24))) for _ in range(k % 4)]  # fmt: skip
        frames.append(frame(k, [instance(10 + 7 * (n + k % 2), box) for n, box in enumerate(boxes)],
                            video=f"VID0{1 + k % 2}"))  # fmt: skip
    return training_set(frames, size=size)


def on_disk(folder: Path, frames: Sequence[tuple[int, Sequence[Instance]]]) -> MemoryDataset:
    """A dataset whose pictures are files."""
    return MemoryDataset(SPACE, [frame(number, instances, path=folder) for number, instances in frames])
