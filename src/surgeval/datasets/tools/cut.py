"""Cutting video into what models are fed: single frames at a rate or stride, or one clip; times are exact.

Frames are found by presentation time, so variable-rate video is cut where its frames really are. The time burnt in by
`overlay` is that of the source video (hh:mm:ss), the form in which questions and answers speak of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.datasets.io.images import read_image
from surgeval.datasets.io.video import VideoIndex, video_index
from surgeval.errors import BadInput
from surgeval.files import atomic_file, path_inside, write_atomically
from surgeval.records import ImageRef

__all__ = ["clip_video", "clock", "cut_frames"]

_JPEG_QUALITY = 95
_TICKS = 90_000  # per second


def clock(seconds: float) -> str:
    """Whole seconds as hh:mm:ss.

    >>> clock(3725.9)
    '01:02:05'
    """
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def cut_frames(
    video: str | Path,
    out: str | Path,
    *,
    every: float | None = None,
    stride: int = 1,
    window: tuple[float, float] | None = None,
    overlay: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write frames as `OUT/NUMBER.jpg`, where NUMBER counts the frames of the video from 0.

    `every` seconds (the frame shown at each tick), or each `stride`-th frame; `window` is (start, end) in seconds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = cv2.VideoWriter(f"{folder}/op.mp4", cv2.VideoWriter_fourcc(*"mp4v"), 25, (64, 48))
    ...     _ = [film.write(np.zeros((48, 64, 3), np.uint8)) for _ in range(50)]
    ...     film.release()
    ...     [path.name for path in cut_frames(Path(folder) / "op.mp4", Path(folder) / "frames", every=1.0)]
    ['000000.jpg', '000025.jpg']
    """
    video, out = Path(video), Path(out)
    numbers = _chosen(video_index(video), every, stride, window, video)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for done, (number, image) in enumerate(_images(video, numbers, overlay), start=1):
        path = path_inside(out, f"{number:06d}.jpg")
        coded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1]
        write_atomically(path, coded.tobytes())
        written.append(path)
        if progress:
            progress(done, len(numbers))
    return written


def clip_video(video: str | Path, out: str | Path, window: tuple[float, float], *, overlay: bool = False) -> Path:
    """Write the frames of a window as one H.264 clip, each at its own time from the start of the window.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = cv2.VideoWriter(f"{folder}/op.mp4", cv2.VideoWriter_fourcc(*"mp4v"), 25, (64, 48))
    ...     _ = [film.write(np.zeros((48, 64, 3), np.uint8)) for _ in range(50)]
    ...     film.release()
    ...     clip = clip_video(Path(folder) / "op.mp4", Path(folder) / "clip.mp4", (0.0, 1.0))
    ...     len(video_index(clip).times)
    26
    """
    video, out = Path(video), Path(out)
    index = video_index(video)
    numbers = _chosen(index, None, 1, window, video)
    width, height = index.width // 2 * 2, index.height // 2 * 2
    out.parent.mkdir(parents=True, exist_ok=True)
    # Written to an open file: the encoder would take a name like `http:host` for an address.
    with atomic_file(out) as file, av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(index.fps or 25).limit_denominator(1001))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, _TICKS)
        stream.options = {"crf": "18", "preset": "veryfast"}
        for number, image in _images(video, numbers, overlay):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image[:height, :width]), format="rgb24")
            frame.pts = round((index.times[number] - index.times[numbers[0]]) * _TICKS)
            frame.time_base = Fraction(1, _TICKS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return out


def _chosen(
    index: VideoIndex, every: float | None, stride: int, window: tuple[float, float] | None, video: Path
) -> list[int]:
    if every is not None and not every > 0:
        raise BadInput(f"every: found {every:g} seconds, expected more than 0")
    if stride < 1:
        raise BadInput(f"stride: found {stride}, expected at least 1")
    last = float(index.times[-1])
    start, end = window if window else (0.0, last)
    if not 0 <= start <= end:
        raise BadInput(f"window: found {start:g} to {end:g} seconds, expected 0 ≤ start ≤ end")
    if start > last + 1e-9:
        raise BadInput(f"{video}: found {last:.2f} seconds of video, expected it to reach {start:g} s")
    if every is not None:
        ticks = np.arange(start, min(end, last) + 1e-9, every)
        shown = np.searchsorted(index.times, ticks + 1e-6, side="right") - 1  # the frame on screen at each tick
        return sorted({int(number) for number in np.maximum(shown, 0)})
    inside = np.flatnonzero((index.times >= start - 1e-6) & (index.times <= end + 1e-6))
    return [int(number) for number in inside[::stride]]


def _images(video: Path, numbers: list[int], overlay: bool) -> Iterator[tuple[int, Image]]:
    times = video_index(video).times
    for number in numbers:
        image = read_image(ImageRef(video, number))
        yield number, with_clock(image, float(times[number])) if overlay else image


def with_clock(image: Image, seconds: float) -> Image:
    """A copy of the image with the time in its upper left corner.

    >>> frame = np.zeros((120, 160, 3), np.uint8)
    >>> clocked = with_clock(frame, 75.0)
    >>> clocked.shape == frame.shape, bool(clocked.any()), bool(frame.any())
    (True, True, False)
    """
    drawn = np.ascontiguousarray(image).copy()
    size = max(drawn.shape[1] / 900, 0.4)
    at = (round(10 * size), round(28 * size))
    for colour, thickness in (((0, 0, 0), 4), ((255, 255, 255), 1)):
        cv2.putText(
            drawn,
            clock(seconds),
            at,
            cv2.FONT_HERSHEY_SIMPLEX,
            size,
            colour,
            max(round(thickness * size), 1),
            cv2.LINE_AA,
        )
    return drawn
