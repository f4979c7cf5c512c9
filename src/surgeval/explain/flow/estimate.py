"""Optical flow between two frames: DIS (the default), Farnebäck, RAFT, or files computed elsewhere.

A flow is float32 (height, width, 2): the pixel (x, y) of the first frame is at (x + u, y + v) in the second. Images are
RGB or grey, uint8. Every method is a small frozen object with `pair`, so that a run can name it and repeat it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Protocol

import cv2
import numpy as np

from surgeval.arrays import AnyArray, Image, Singles
from surgeval.errors import BadInput, DataError
from surgeval.explain.flow.files import read_flo
from surgeval.files import leads_out

__all__ = ["FLOW_METHODS", "DisFlow", "FarnebackFlow", "FlowMethod", "FlowPair", "StoredFlow", "estimate_flow",
           "open_flow"]  # fmt: skip

_PIECES = 16
FLOW_METHODS = ("dis", "farneback", "raft", "files")
_SMALLEST = 32  # pixels: below, the pyramids of the methods have no level left
_PRESETS = {
    "ultrafast": cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
    "fast": cv2.DISOPTICAL_FLOW_PRESET_FAST,
    "medium": cv2.DISOPTICAL_FLOW_PRESET_MEDIUM,
}


@dataclass(frozen=True, slots=True, eq=False)
class FlowPair:
    """Flow from the first frame to the second, and back; each lives on the grid of the frame it starts from."""

    forward: Singles
    backward: Singles | None


class FlowMethod(Protocol):
    """A way to flow."""

    @property
    def name(self) -> str:
        """One of `FLOW_METHODS`, or a third party's."""
        ...

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a where wanted; `key` is "VIDEO/FRAME", for methods that look flow up."""
        ...

    def record(self) -> Mapping[str, object]:
        """What determines the result, for run.json."""
        ...


@dataclass(frozen=True, slots=True)
class DisFlow:
    """Dense inverse search (Kroeger et al. 2016) as OpenCV has it.

    `medium` is the default: on the phantom it underestimates motion at most half as much as `fast`, for 12 instead of
    3 ms per 448×256 field. The result does not depend on the number of threads.
    """

    name: ClassVar[str] = "dis"
    preset: str = "medium"

    def __post_init__(self) -> None:
        if self.preset not in _PRESETS:
            raise BadInput(f"DIS preset: found {self.preset!r}, expected one of {', '.join(_PRESETS)}")

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a where wanted."""
        first, second = grey_pair(a, b)
        # A fresh object each time: one that has run keeps buffers, and is not safe to share between threads.
        search = cv2.DISOpticalFlow.create(_PRESETS[self.preset])
        return FlowPair(search.calc(first, second, None), search.calc(second, first, None) if backward else None)

    def record(self) -> Mapping[str, object]:
        """Name, preset and OpenCV's version."""
        return {"flow": self.name, "preset": self.preset, "opencv": cv2.__version__}


@dataclass(frozen=True, slots=True)
class FarnebackFlow:
    """Polynomial expansion (Farnebäck 2003) as OpenCV has it; smooth fields, blurred at the edges of instruments."""

    name: ClassVar[str] = "farneback"
    levels: int = 4
    window: int = 21
    iterations: int = 4

    def __post_init__(self) -> None:
        if not (1 <= self.levels <= 10 and 3 <= self.window <= 255 and 1 <= self.iterations <= 100):
            found = f"levels={self.levels}, window={self.window}, iterations={self.iterations}"
            raise BadInput(f"Farnebäck flow: found {found}, expected 1 to 10, 3 to 255 and 1 to 100")

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a where wanted."""
        first, second = grey_pair(a, b)
        return FlowPair(self._one(first, second), self._one(second, first) if backward else None)

    def _one(self, first: Image, second: Image) -> Singles:
        flow: Singles = cv2.calcOpticalFlowFarneback(
            first, second, None, 0.5, self.levels, self.window, self.iterations, 7, 1.5,
            cv2.OPTFLOW_FARNEBACK_GAUSSIAN,
        )  # fmt: skip
        return flow

    def record(self) -> Mapping[str, object]:
        """Name, settings and OpenCV's version."""
        return {
            "flow": self.name, "levels": self.levels, "window": self.window, "iterations": self.iterations,
            "opencv": cv2.__version__,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredFlow:
    """Flow computed elsewhere: `FOLDER/VIDEO/FRAME.flo`, and `FOLDER/VIDEO/FRAME.back.flo` for the way back."""

    name: ClassVar[str] = "files"
    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise DataError(self.folder, "found no such folder, expected a folder with VIDEO/FRAME.flo")

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """The stored fields of this frame; their size must be the frame's."""
        check_pair(a, b)
        size = (a.shape[0], a.shape[1])
        forward = read_flo(self._path(key, ".flo"), size)
        return FlowPair(forward, read_flo(self._path(key, ".back.flo"), size) if backward else None)

    def _path(self, name: str, suffix: str = "") -> Path:
        """What a dataset's own names lead to: inside the folder, also behind links, or refused."""
        parts = PurePosixPath(name).parts
        if not parts or any(part in ("..", "/") or "\\" in part or "\0" in part for part in parts):
            raise BadInput(f"stored flow: found the frame name {name!r}, expected VIDEO/FRAME")
        path = self.folder.joinpath(*parts[:-1], parts[-1] + suffix)
        if leads_out(path, self.folder):
            raise BadInput(f"stored flow: found {name!r}, which leads out of {self.folder}, expected VIDEO/FRAME")
        return path

    def check(self, videos: Sequence[str], *, backward: bool = True) -> None:
        """Refuse a folder that has no flow for any of the videos; single missing files are a matter of their frame."""
        for kind in ("*.flo", *(["*.back.flo"] if backward else [])):
            if not any(next(self._path(video).glob(kind), None) for video in videos):
                expected = "VIDEO/FRAME.flo" + (" and VIDEO/FRAME.back.flo" if backward else "")
                raise DataError(self.folder / videos[0], f"found no {kind}, expected {expected}")

    def record(self) -> Mapping[str, object]:
        """Name, folder, and a hash of every file's name, size and spaced pieces: reading all of it would take long."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self.folder.rglob("*.flo") if path.is_file()):
            try:
                size = path.stat().st_size
                name = path.relative_to(self.folder).as_posix()
                digest.update(f"{name}\0{size}\0".encode(errors="backslashreplace"))
                with path.open("rb") as stream:
                    for piece in range(_PIECES):
                        stream.seek(size * piece // _PIECES)
                        digest.update(stream.read(1024))
            except OSError as error:
                raise DataError(path, f"found {error.strerror or 'an error'}, expected a readable .flo file") from None
        return {"flow": self.name, "folder": str(self.folder), "files_sha256": digest.hexdigest()}


def open_flow(
    method: str = "dis", *, preset: str = "medium", weights: str | Path | None = None, folder: str | Path | None = None,
    device: str = "cpu",
) -> FlowMethod:  # fmt: skip
    """The method of this name; RAFT needs a file of `weights` and torchvision, `files` a `folder`.

    >>> open_flow("dis").record()["preset"]
    'medium'
    """
    weights = None if weights is None else Path(weights)
    folder = None if folder is None else Path(folder)
    if method not in FLOW_METHODS:
        raise BadInput(f"flow method: found {method!r}, expected one of {', '.join(FLOW_METHODS)}")
    if method == "files":
        if folder is None:
            raise BadInput("flow method files: found no folder, expected one with VIDEO/FRAME.flo")
        return StoredFlow(folder)
    if method == "raft":
        from surgeval.explain.flow.raft import RaftFlow

        if weights is None:
            raise BadInput("flow method raft: found no weights file, expected a state dict of torchvision's RAFT")
        return RaftFlow(weights, device)
    return DisFlow(preset) if method == "dis" else FarnebackFlow()


def estimate_flow(a: Image, b: Image, method: FlowMethod | str = "dis") -> Singles:
    """The forward flow a → b, float32 (H, W, 2).

    >>> first = np.random.default_rng(0).integers(0, 255, (64, 64), np.uint8)
    >>> first = cv2.GaussianBlur(first, (0, 0), 2.0)
    >>> second = np.roll(first, 3, axis=1)  # everything moves three pixels to the right
    >>> np.round(np.median(estimate_flow(first, second), axis=(0, 1))).tolist()
    [3.0, 0.0]
    """
    estimator = open_flow(method) if isinstance(method, str) else method
    return estimator.pair(a, b, backward=False).forward


def grey_pair(a: Image, b: Image) -> tuple[Image, Image]:
    """Both frames in grey, checked."""
    check_pair(a, b)
    first, second = (x if x.ndim == 2 else cv2.cvtColor(x, cv2.COLOR_RGB2GRAY) for x in (a, b))
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


def check_pair(a: AnyArray, b: AnyArray) -> None:
    """Refuse anything but two pictures of one size."""
    for image in (a, b):
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
            found = f"{image.dtype} of shape {image.shape}"
            raise BadInput(f"frame: found {found}, expected uint8 of shape (height, width, 3) or (height, width)")
    if a.shape[:2] != b.shape[:2]:
        found = f"{a.shape[1]}×{a.shape[0]} and {b.shape[1]}×{b.shape[0]}"
        raise BadInput(f"frames: found sizes {found}, expected two frames of one size")
    if min(a.shape[:2]) < _SMALLEST:
        found = f"{a.shape[1]}×{a.shape[0]}"
        raise BadInput(f"frames: found {found} pixels, expected sides of at least {_SMALLEST}")
