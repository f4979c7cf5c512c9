"""Frames that are easy to learn: coloured rectangles as instruments; the colour says which triplet it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.detector import Classes
from surgeval.detector.data import TrainingSet
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

SPACE = LabelSpace(
    "coloured", ("hook", "grasper", "clipper"), ("cut", "hold"), ("liver", "duct"),
    ((0, 0, 0), (1, 1, 0), (1, 1, 1), (2, 0, 1)),
)  # fmt: skip
COLOURS = np.array([(230, 40, 40), (40, 220, 60), (60, 90, 240), (240, 220, 40)], np.uint8)
SIDE = 96


@cache
def frame(video: str, number: int) -> tuple[Frame, Image]:
    """A frame of one to two rectangles, and its pixels."""
    chance = np.random.default_rng([number, *video.encode()])
    pixels = chance.integers(20, 60, (SIDE, SIDE, 3), dtype=np.uint8)
    instances = []
    for part in range(int(chance.integers(1, 3))):
        kind = int(chance.integers(len(COLOURS)))
        w, h = (int(side) for side in chance.integers(24, 40, 2))
        x, y = int(chance.integers(0, SIDE // 2 - w // 2)) + part * SIDE // 2, int(chance.integers(0, SIDE - h))
        x = min(x, SIDE - w)
        pixels[y : y + h, x : x + w] = COLOURS[kind]
        instances.append(Instance(Triplet(*SPACE.triplets[kind]), Box(x, y, w, h)))
    return Frame(video, f"{number:04d}", number, None, None, SIDE, SIDE, tuple(instances)), pixels


def read(wanted: Frame) -> Image:
    """The pixels of a frame."""
    return frame(wanted.video, wanted.index)[1].copy()


def coloured(videos: Sequence[str], frames: int, image_size: int = SIDE) -> TrainingSet:
    """Frames of these videos, as a detector learns them."""
    every = [frame(video, number)[0] for video in videos for number in range(frames)]
    return TrainingSet.of(every, Classes.of(SPACE), image_size=image_size, read=read)


def write_yolo(folder: Path, videos: Sequence[str], frames: int) -> Path:
    """The same frames as a YOLO dataset with triplets, as `surgeval train` reads it."""
    for place in ("images", "labels"):
        (folder / place).mkdir(parents=True)
    (folder / "labels.json").write_text(json.dumps(SPACE.to_json()))
    for video in videos:
        for number in range(frames):
            told, pixels = frame(video, number)
            name = f"{video}_{told.name}"
            cv2.imwrite(str(folder / "images" / f"{name}.png"), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
            lines = []
            for instance in told.instances:
                kind, box = SPACE.triplets.index(_ids(instance.triplet)), instance.box
                assert box is not None
                shares = ((box.x + box.w / 2) / SIDE, (box.y + box.h / 2) / SIDE, box.w / SIDE, box.h / SIDE)
                lines.append(" ".join(map(str, (kind, *_ids(instance.triplet), *shares))) + "\n")
            (folder / "labels" / f"{name}.txt").write_text("".join(lines))
    return folder


def _ids(triplet: Triplet) -> tuple[int, int, int]:
    return triplet.instrument, triplet.verb, triplet.target
