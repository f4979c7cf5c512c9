"""Frames as a browser shows them: encoded pictures, with some before and after the last one ready in advance.

An image file that every browser shows as it is stored goes out as it is; other files and frames of films are decoded
and encoded. A film is decoded by one thread and always forward, because that is cheap: to go back, a run of frames is
decoded that ends where the annotator is.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import TracebackType

import cv2
from PIL import Image, UnidentifiedImageError

from surgeval.arrays import Image as Pixels
from surgeval.datasets import image_size, read_image
from surgeval.errors import BadInput, DataError
from surgeval.files import open_regular
from surgeval.records import ImageRef
from surgeval.studio.media import check_inside

__all__ = ["EncodedPicture", "Pictures", "encode_frame", "encode_pixels"]

_SHOWN = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
_MODES = ("RGB", "L")
_ORIENTATION = 0x0112  # of EXIF: a browser would turn the picture, and its boxes would lie elsewhere
_MOST_BYTES = 1 << 26  # of a file that goes out as it is
_MOST_SHOWN = 1 << 26  # pixels: what a browser may be asked to show
_MOST_DECODED = 1 << 24  # pixels, twice a 4K frame: decoded and encoded they take fifteen bytes each for a moment
_MANY = 1 << 22  # pixels of which only one picture at a time is decoded
_QUALITY = 95
_FILE_THREADS = 2
_turn = threading.Lock()


@dataclass(frozen=True)
class EncodedPicture:
    """An encoded picture and its media type."""

    data: bytes
    kind: str


def encode_frame(ref: ImageRef) -> EncodedPicture:
    """The picture of a frame; a file or frame that cannot be read raises `DataError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/a.png")
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/b.bmp")
    ...     [encode_frame(ImageRef(Path(folder) / name)).kind for name in ("a.png", "b.bmp")]
    ['image/png', 'image/jpeg']
    """
    if ref.frame is not None:
        return encode_pixels(read_image(ref))
    return _as_stored(ref.path) or _converted(ref)


def _as_stored(path: Path) -> EncodedPicture | None:
    """The file itself, where a browser shows its pixels as we count them; None for all others, broken ones too."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(BytesIO(data), formats=tuple(_SHOWN)) as image:
                small = image.width * image.height <= _MOST_SHOWN
                plain = small and image.mode in _MODES and not _may_turn(image, data)
                return EncodedPicture(data, _SHOWN[image.format or ""]) if plain else None
    except (OSError, UnidentifiedImageError, ValueError, SyntaxError, KeyError, Image.DecompressionBombError):
        return None  # `read_image` says what is wrong with it


def _may_turn(image: Image.Image, data: bytes) -> bool:
    """Whether a browser might turn the picture; a PNG would be decoded only to be asked for its EXIF."""
    if image.format == "PNG" and "exif" not in image.info:
        return b"eXIf" in data
    return bool(image.getexif().get(_ORIENTATION, 1) != 1)


def _converted(ref: ImageRef) -> EncodedPicture:
    """A file that browsers do not show as we count its pixels; a large one waits for its turn."""
    width, height = image_size(ref.path) or (0, 0)
    if width * height > _MOST_DECODED:
        expected = f"at most {_MOST_DECODED} in a file that must be converted for the browser"
        raise DataError(ref.path, f"found {width} × {height} pixels, expected {expected}")
    with _turn if width * height > _MANY else nullcontext():
        return encode_pixels(read_image(ref))


def encode_pixels(pixels: Pixels) -> EncodedPicture:
    """Pixels as a JPEG.

    >>> import numpy as np
    >>> encode_pixels(np.zeros((4, 4, 3), np.uint8)).kind
    'image/jpeg'
    """
    done, data = cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    if not done:
        raise BadInput(f"picture: found {pixels.shape[1]} × {pixels.shape[0]} pixels, expected a size that JPEG holds")
    return EncodedPicture(data.tobytes(), "image/jpeg")


class Pictures:
    """The pictures of a project's videos, kept up to `budget` bytes; `get` also prepares the neighbours.

    With `inside`, a file that a link leads to outside of that folder is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(3):
    ...         Image.new("L", (64, 48)).save(f"{folder}/{k}.png")
    ...     frames = [ImageRef(Path(folder) / f"{k}.png") for k in range(3)]
    ...     with Pictures({"V1": frames}) as pictures:
    ...         pictures.get("V1", 1).kind
    'image/png'
    """

    def __init__(
        self,
        frames: Mapping[str, Sequence[ImageRef]],
        *,
        inside: str | Path | None = None,
        budget: int = 64 << 20,
        ahead: int = 12,
        behind: int = 4,
    ) -> None:
        self._inside = None if inside is None else Path(inside)
        self._frames, self._budget, self._ahead, self._behind = frames, budget, ahead, behind
        self._kept: OrderedDict[tuple[str, int], EncodedPicture] = OrderedDict()
        self._bytes = 0
        self._asked: dict[tuple[str, int], Future[EncodedPicture]] = {}
        self._lock = threading.Lock()
        self._wanted: dict[str, tuple[int, int]] = {}  # of each video: frames worth preparing
        self._waited: Counter[tuple[str, int]] = Counter()  # frames that somebody waits for
        self._last: dict[str, int] = {}
        # One thread for films, as a second one would decode the same film again from a key frame.
        self._film = ThreadPoolExecutor(1, "film")
        self._files = ThreadPoolExecutor(_FILE_THREADS, "pictures")

    def __enter__(self) -> Pictures:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads; what they were preparing is dropped."""
        for pool in (self._film, self._files):
            pool.shutdown(wait=True, cancel_futures=True)

    def refs(self, video: str) -> Sequence[ImageRef]:
        """Where the pictures of a video are, by frame number."""
        return self._frames.get(video, ())

    def get(self, video: str, index: int) -> EncodedPicture:
        """A picture, from memory where it is there; frames around it are prepared while it is looked at."""
        frames = self._frames.get(video)
        if frames is None or not 0 <= index < len(frames):
            count = len(frames) if frames is not None else 0
            raise BadInput(f"video {video!r}: found no frame {index}, expected one of its {count}")
        back = index < self._last.get(video, 0)
        self._last[video] = index
        before, after = (self._ahead, self._behind) if back else (self._behind, self._ahead)
        first, last = max(index - before, 0), min(index + after, len(frames) - 1)
        self._wanted[video] = first, last
        if back and frames[index].frame is not None:
            # A film decodes the frames before the wanted one on its way: one seek serves a dozen steps back.
            for number in range(first, index):
                self._ask(video, number)
        picture = self._wait(video, index)
        for near in range(first, last + 1):
            self._ask(video, near)
        return picture

    def _wait(self, video: str, index: int) -> EncodedPicture:
        key = video, index
        with self._lock:
            self._waited[key] += 1
        try:
            while True:
                try:
                    return self._ask(video, index).result()
                except _NotWantedError:
                    continue  # it was asked for as a neighbour and given up just now
        finally:
            with self._lock:
                self._waited -= Counter({key: 1})  # drops what nobody waits for

    def _ask(self, video: str, index: int) -> Future[EncodedPicture]:
        """The picture from memory, or from the thread that will make it."""
        key = video, index
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                done: Future[EncodedPicture] = Future()
                done.set_result(self._kept[key])
                return done
            if key not in self._asked:
                pool = self._files if self._frames[video][index].frame is None else self._film
                self._asked[key] = pool.submit(self._make, key)
            return self._asked[key]

    def _make(self, key: tuple[str, int]) -> EncodedPicture:
        try:
            first, last = self._wanted[key[0]]
            with self._lock:
                awaited = key in self._waited  # by somebody who looks elsewhere in the same video
            if not awaited and not first <= key[1] <= last:
                raise _NotWantedError
            ref = self._frames[key[0]][key[1]]
            if self._inside is not None:
                check_inside(self._inside, ref.path)
            picture = encode_frame(ref)
            with self._lock:
                self._kept[key] = picture
                self._bytes += len(picture.data)
                while self._bytes > self._budget and len(self._kept) > 1:
                    self._bytes -= len(self._kept.popitem(last=False)[1].data)
            return picture
        finally:
            with self._lock:
                self._asked.pop(key, None)


class _NotWantedError(Exception):
    """The annotator has gone elsewhere before a neighbour was prepared."""
