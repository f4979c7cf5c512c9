"""Video files: frames by number, exact also where the frame rate varies.

The index is the sorted list of presentation times, read once without decoding; frame n is the n-th of them. Reading
in order decodes each frame once, also where frames are skipped; a jump past a key frame, or back, seeks to the key
frame before the wanted one and decodes forward.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import av
import numpy as np

from surgeval.arrays import Floats, Image, Ints
from surgeval.datasets.base import Holds
from surgeval.datasets.io.layout import files_of
from surgeval.datasets.io.values import fits
from surgeval.errors import BadInput, DataError
from surgeval.files import Location, NotRegular, OnProblem, check_regular, raise_errors
from surgeval.records import Frame, ImageRef, Question, Video
from surgeval.vocab import LabelSpace

SUFFIXES = (".mp4", ".m4v", ".avi", ".mkv", ".mov", ".webm", ".mpg")
_OPEN = 4  # readers kept open per thread: each holds a decoder
# A name like `http:host?x.mp4` is a file here and no address, and a file that is a play list leads nowhere else.
_LOCAL = {"protocol_whitelist": "file",
          "format_whitelist": "mov,mp4,avi,matroska,webm,mpeg,mpegts,mpegvideo,asf,flv,ogg"}  # fmt: skip


@dataclass(frozen=True)
class VideoIndex:
    """Presentation time of every frame, in seconds from the first, and the size of the picture."""

    pts: Ints
    times: Floats
    width: int
    height: int

    def __len__(self) -> int:
        return len(self.pts)

    @property
    def seconds(self) -> float:
        """Duration: to the end of the last frame, assumed as long as the one before."""
        if len(self) < 2:
            return 0.0
        return float(2 * self.times[-1] - self.times[-2])

    @property
    def fps(self) -> float | None:
        """Mean frame rate."""
        return (len(self) - 1) / float(self.times[-1]) if len(self) > 1 else None


class _FrameReader:
    """One open video: its index, and a decoder that knows which frame comes next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.container: Any = av.open(f"file:{path.absolute()}", options=_LOCAL)
        except (av.FFmpegError, OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        if not self.container.streams.video or self.container.streams.video[0].codec_context is None:
            self.container.close()
            raise DataError(path, "found no video stream that can be decoded, expected a video", code="video-broken")
        self.stream: Any = self.container.streams.video[0]
        self.stream.thread_type = "AUTO"
        try:
            self.index = self._build()
        except (av.FFmpegError, OSError, ValueError, OverflowError, DataError) as error:
            self.container.close()
            raise error if isinstance(error, DataError) else _unreadable(path, error) from error
        self._frames: Iterator[Any] = iter(())
        self._next = -1

    def _build(self) -> VideoIndex:
        context = self.stream.codec_context
        pts, keys, complete = [], [], True
        for packet in self.container.demux(self.stream):
            if packet.size and not packet.is_discard:
                complete &= packet.pts is not None
                pts.append(packet.pts if packet.pts is not None else 0)
                if packet.is_keyframe:
                    keys.append(pts[-1])
        if not complete:  # AVI carries no presentation times: only decoding tells them
            self.container.seek(0)
            decoded = ((frame.pts, frame.key_frame) for frame in self.container.decode(self.stream))
            shown = [(time, key) for time, key in decoded if time is not None]
            pts, keys = [time for time, _ in shown], [time for time, key in shown if key]
        times = np.unique(np.asarray(pts, dtype=np.int64))
        self._keys = np.unique(np.asarray(keys, dtype=np.int64))
        if not times.size or not fits(context.width, context.height):
            raise DataError(self.path, "found no decodable frame, expected a video", code="video-broken")
        seconds = (times - times[0]) * float(self.stream.time_base)
        return VideoIndex(times, seconds, int(context.width), int(context.height))

    def read(self, number: int) -> Image:
        wanted = int(self.index.pts[number])
        picture = self._forward(wanted) if self._near(number) else None
        if picture is None:
            # A key frame at or before the wanted time may still come too late: pictures that lean on the group
            # before it cannot be decoded from there. Then one key frame earlier, at last the beginning.
            keys = self._keys[: int(np.searchsorted(self._keys, wanted, side="right"))].tolist()
            for key in (*keys[:-4:-1], int(self.index.pts[0])):
                self.container.seek(key, stream=self.stream, backward=True, any_frame=False)
                self._frames = self.container.decode(self.stream)
                picture = self._forward(wanted)
                if picture is not None:
                    break
        self._next = number + 1 if picture is not None else -1
        if picture is None:
            raise DataError(
                self.path, "found nothing to decode, expected a frame", record=f"frame {number}", code="video-broken"
            )
        pixels: Image = picture.to_ndarray(format="rgb24")
        return pixels

    def _near(self, number: int) -> bool:
        """Whether decoding on is the shortest way there: no key frame lies in between."""
        if not 0 <= self._next <= number:
            return False
        ahead, wanted = (int(self.index.pts[n]) for n in (self._next, number))
        keys = self._keys.searchsorted((ahead, wanted), side="right")
        return number == self._next or bool(keys[0] == keys[1])

    def _forward(self, wanted: int) -> Any:
        """Decode on to the frame shown at this time; None when it does not come."""
        for frame in self._frames:
            if frame.pts is not None and frame.pts >= wanted:
                return frame if frame.pts == wanted else None
        return None

    def close(self) -> None:
        self.container.close()


_local = threading.local()
# Closing a decoder waits for its threads, which a fork does not copy: a forked process that let go of a decoder of its
# parent would wait for ever. So it keeps this thread's, and never collects what was garbage when it began.
_left_behind: list[object] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=gc.freeze)


def _reader(path: Path) -> _FrameReader:
    readers: OrderedDict[Path, tuple[tuple[int, int, int], _FrameReader]] | None = getattr(_local, "readers", None)
    if readers is None or _local.process != os.getpid():  # a decoder does not survive a fork
        _left_behind.append(readers)
        readers = _local.readers = OrderedDict()
        _local.process = os.getpid()
    try:
        status = path.stat()
    except (OSError, ValueError):
        raise DataError(path, "found no such file, expected a video", code="file-missing") from None
    try:
        check_regular(path)
    except NotRegular as error:
        raise DataError(path, f"found {error}, expected a regular file", code=error.code) from None
    stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
    cached = readers.pop(path, None)
    if cached is not None and cached[0] != stamp:
        cached[1].close()
        cached = None
    readers[path] = cached or (stamp, _FrameReader(path))
    while len(readers) > _OPEN:
        readers.popitem(last=False)[1][1].close()
    return readers[path][1]


def _unreadable(path: Path, error: Exception) -> DataError:
    message = str(getattr(error, "strerror", None) or error)  # `str` adds number and path
    reason = (message.splitlines() or [type(error).__name__])[0]
    found = f"a damaged video ({reason})"
    return DataError(path, f"found {found}, expected a video that can be decoded", code="video-broken")


def video_index(path: str | Path) -> VideoIndex:
    """The frames of a video file; an unreadable file raises `DataError`.

    >>> import cv2, numpy, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = cv2.VideoWriter(f"{folder}/op.mp4", cv2.VideoWriter_fourcc(*"mp4v"), 25, (64, 48))
    ...     _ = [film.write(numpy.zeros((48, 64, 3), numpy.uint8)) for _ in range(50)]
    ...     film.release()
    ...     index = video_index(Path(folder) / "op.mp4")
    >>> len(index.times), float(index.times[25])
    (50, 1.0)
    """
    return _reader(Path(path)).index


def read_video_frame(path: Path, number: int) -> Image:
    """Frame `number` (from 0, in display order) as RGB."""
    reader = _reader(path)
    if not 0 <= number < len(reader.index):
        last = len(reader.index) - 1
        expected = f"a number from 0 to {last}"
        raise DataError(path, f"found no frame {number}, expected {expected}", code="frame-unknown")
    try:
        return reader.read(number)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise _unreadable(path, error) from error


class VideoDataset:
    """Frames of video files without labels: all of them, or one every `every` seconds."""

    format: ClassVar[str] = "video"

    def __init__(self, path: Path, every: float | None = None, labels: LabelSpace | None = None) -> None:
        if every is not None and not every > 0:
            raise BadInput(f"every={every}: expected a positive number of seconds")
        self.root, self.every = path, every
        self.space = labels or LabelSpace("none", ("instrument",))
        files = [path] if path.is_file() else video_files(path)
        self._files = {file.stem: file for file in files}
        self._clashes = [file for file in files if self._files[file.stem] != file]

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per file."""
        for file in self._clashes:
            Location(str(file), on_problem).error(
                "id-duplicate", "found another video of this name, expected distinct names"
            )
        result = []
        for name, file in self._files.items():
            try:
                index = video_index(file)
            except DataError as error:
                Location(error.path, on_problem).error(error.code, error.sentence)
                continue
            result.append(Video(name, fps=index.fps, seconds=index.seconds, frames=len(self._chosen(index))))
        return tuple(result)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The frames in display order; `labelled` is false."""
        if video not in self._files:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._files)}")
        file = self._files[video]
        try:
            index = video_index(file)
        except DataError as error:
            Location(error.path, on_problem).error(error.code, error.sentence)
            return
        for n in self._chosen(index).tolist():
            yield Frame(video, f"{n:06d}", n, float(index.times[n]), ImageRef(file, n), index.width, index.height,
                        labelled=False)  # fmt: skip

    def _chosen(self, index: VideoIndex) -> Ints:
        if self.every is None:
            return np.arange(len(index))
        ticks = np.arange(0, float(index.times[-1]) + 1e-9, self.every)
        return np.unique(np.searchsorted(index.times, ticks - 1e-9))

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


class VideoFormat:
    """Video files."""

    name = "video"
    title = "one video file or a folder of them (MP4, AVI, MKV, MOV), without labels"
    holds: Holds = "media"

    def detect(self, path: Path) -> bool:
        """By the names of the files."""
        return path.suffix.lower() in SUFFIXES if path.is_file() else bool(video_files(path))

    def open(self, path: Path, labels: LabelSpace | None = None) -> VideoDataset:
        """All frames; use `open_video` to take one every few seconds."""
        return VideoDataset(path, labels=labels)


def video_files(folder: str | Path) -> list[Path]:
    """The video files of a folder by name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("op 2.mp4", "op 10.MP4", "notes.txt"):
    ...         (Path(folder) / name).touch()
    ...     [path.name for path in video_files(Path(folder))]
    ['op 2.mp4', 'op 10.MP4']
    """
    return files_of(Path(folder), SUFFIXES)
