"""An annotated film: the frames as they were looked at, with boxes, names and scores drawn on them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.detector.inference.draw import DrawnBox, draw_boxes
from surgeval.files import atomic_file

__all__ = ["DrawnBox", "draw_boxes", "write_film"]

_TICKS = 90_000  # per second; divides every usual frame rate
_LONGEST = 8192  # pixels of a side: H.264 encodes little more


def write_film(path: str | Path, shown: Iterable[tuple[float, Image]]) -> int:
    """Write pictures, each shown from its own second on, as H.264; the number of pictures written.

    Pictures are cut to an even number of rows and columns, and later ones are resized to the first. Sides that no film
    can have (of one pixel, or of many thousands) are scaled to ones that it can.

    >>> import tempfile
    >>> from surgeval.datasets import video_index
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     black = np.zeros((48, 64, 3), np.uint8)
    ...     count = write_film(Path(folder) / "op.mp4", [(0.0, black), (0.04, black), (1.0, black)])
    ...     count, video_index(Path(folder) / "op.mp4").times.tolist()
    (3, [0.0, 0.04, 1.0])
    """
    path = Path(path)
    count, before, start = 0, -1, 0.0
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written to an open file: the encoder would take a name like `http:host` for an address.
    with atomic_file(path) as file, av.open(file, "w", format="mp4") as container:
        stream = None
        for seconds, picture in shown:
            if stream is None:
                stream, start = _stream(container, picture), seconds
            if not (0 <= picture.shape[0] - stream.height <= 1 and 0 <= picture.shape[1] - stream.width <= 1):
                picture = cv2.resize(picture, (stream.width, stream.height), interpolation=cv2.INTER_AREA)
            even = np.ascontiguousarray(picture[: stream.height, : stream.width])
            frame = av.VideoFrame.from_ndarray(even, format="rgb24")
            before = max(round((seconds - start) * _TICKS), before + 1)
            frame.pts, frame.time_base = before, Fraction(1, _TICKS)
            container.mux(stream.encode(frame))
            count += 1
        if stream is not None:
            container.mux(stream.encode())
    if not count:
        path.unlink()  # a film of nothing plays nowhere
    return count


def film_size(height: int, width: int) -> tuple[int, int]:
    """The size of a film of such pictures: even sides, as H.264 wants them.

    >>> film_size(481, 640), film_size(1, 20_000)
    ((480, 640), (2, 8192))
    """
    shrunk = min(1.0, _LONGEST / max(height, width))
    rows, columns = (max(2, int(side * shrunk) // 2 * 2) for side in (height, width))
    return rows, columns


def _stream(container: av.container.OutputContainer, picture: Image) -> av.VideoStream:
    stream = container.add_stream("libx264", rate=25)
    stream.height, stream.width = film_size(picture.shape[0], picture.shape[1])
    stream.pix_fmt = "yuv420p"
    stream.time_base = stream.codec_context.time_base = Fraction(1, _TICKS)
    stream.options = {"crf": "20", "preset": "veryfast"}
    return stream
