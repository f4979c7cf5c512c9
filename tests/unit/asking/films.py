"""A small film whose frames can be told apart."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np


def film(path: Path, frames: int = 40, rate: int = 4) -> Path:
    """Frame n is grey of brightness 5 n."""
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(rate))
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for n in range(frames):
            pixels = np.full((48, 64, 3), 5 * n, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path
