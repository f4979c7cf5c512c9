"""Frames as MP4 films (H.264), each frame shown at its own time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.images import read_image
from surgeval.errors import BadInput
from surgeval.files import path_inside
from surgeval.records import Frame, Video

_TICKS = 90_000  # per second; divides every usual frame rate


class Mp4Writer:
    """One film per video, without labels."""

    name = "mp4"
    keeps = frozenset({"time", "unlabelled", "fps", "seconds"})

    def write(self, out: Output) -> None:
        """`VIDEO.mp4`."""
        for video, _, name in out.named(splits=False):
            self._film(video, path_inside(out.folder, f"{name}.mp4"), out)

    def _film(self, video: Video, path: Path, out: Output) -> None:
        rate = video.fps if video.fps and video.fps >= 1 else 25.0
        container: Any = None
        last = -1
        for number, frame in enumerate(out.frames(video)):
            if frame.image is None:
                raise BadInput(f"{video.name} frame {frame.name}: found no image, expected one to film")
            pixels = out.pixels(frame) if out.pixels else read_image(frame.image)
            pixels = np.ascontiguousarray(pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2])
            if container is None:
                container, stream = _open(path, pixels.shape[1], pixels.shape[0], rate)
            if pixels.shape[:2] != (stream.height, stream.width):
                size = f"{pixels.shape[1]} × {pixels.shape[0]} pixels"
                raise BadInput(f"{video.name} frame {frame.name}: found {size}, expected the first frame's size")
            picture = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            last = max(_ticks(frame, number, rate), last + 1)
            picture.pts, picture.time_base = last, Fraction(1, _TICKS)
            for packet in stream.encode(picture):
                container.mux(packet)
            out.counts["images"] += 1
        if container is not None:
            for packet in stream.encode():
                container.mux(packet)
            container.close()


def _ticks(frame: Frame, number: int, rate: float) -> int:
    return round((frame.time if frame.time is not None else number / rate) * _TICKS)


def _open(path: Path, width: int, height: int, rate: float) -> tuple[Any, Any]:
    container = av.open(f"file:{path.absolute()}", "w", format="mp4")  # a name may look like an address
    stream = container.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001))
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    stream.time_base = stream.codec_context.time_base = Fraction(1, _TICKS)
    stream.options = {"crf": "18", "preset": "veryfast"}
    stream.codec_context.thread_count = 1  # the same bytes on every machine
    return container, stream
