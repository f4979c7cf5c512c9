"""The embedded detector at the demo's frames: a table to be scored, and a film of its boxes.

It was taught on operations of phantom seed 11; those of the demo have another seed, so it has seen none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from surgeval.arrays import Image
    from surgeval.detector import Classes, Network
    from surgeval.detector.nms import Found
    from surgeval.records import Frame

__all__ = ["NETWORK", "film_boxes", "found_by_network", "opened_network"]

NETWORK = "tdnet-p"
_PICTURES = 3  # of the film in a second
_ZOOM = 2  # the phantom's frames are smaller than names on boxes need


@contextmanager
def opened_network() -> Iterator[Network]:
    """The detector, with one thread: another chapter has the other core."""
    import torch

    from surgeval.detector.inference import open_detector

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield open_detector(NETWORK, aux=False)
    finally:
        torch.set_num_threads(before)


def found_by_network(network: Network, frames: Iterable[Frame]) -> pl.DataFrame:
    """What it finds, chosen as every detector is evaluated."""
    from surgeval.detector.inference import detect_frames, detection_table

    seen = list(detect_frames(network, frames, workers=1))
    return detection_table(seen, network.classes, probabilities=False)


def film_boxes(network: Network, frames: Iterable[Frame], path: Path) -> Path:
    """The frames with the boxes it is sure of, one per instrument, as an MP4 in quick motion."""
    from surgeval.datasets import read_image
    from surgeval.detector.inference import detect_frames, write_film
    from surgeval.detector.nms import SELECTING

    seen = detect_frames(network, frames, selecting=SELECTING["viewer"], workers=1)
    pictures = (_drawn(read_image(frame.image), boxes, network.classes) for frame, boxes in seen if frame.image)
    write_film(path, ((number / _PICTURES, picture) for number, picture in enumerate(pictures)))
    return path


def _drawn(pixels: Image, detected: Found, classes: Classes) -> Image:
    import cv2

    from surgeval.detector.inference import DrawnBox, draw_boxes

    large = cv2.resize(pixels, None, fx=_ZOOM, fy=_ZOOM, interpolation=cv2.INTER_CUBIC)
    boxes = _ZOOM * detected.boxes.double().numpy()
    drawn = []
    for box, score, kind in zip(boxes, detected.scores.tolist(), detected.classes.tolist(), strict=True):
        words = classes.space.triplet_name(kind).replace(",", " ")
        drawn.append(DrawnBox(box, f"{words} {score:.2f}", int(classes.parts[kind, 0])))
    return draw_boxes(large, drawn)
