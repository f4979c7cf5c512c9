"""Optical flow between two frames: DIS (the default), Farnebäck, RAFT, or files computed elsewhere.

A flow is float32 (height, width, 2): the pixel (x, y) of the first frame is at (x + u, y + v) in the second. Images are
RGB or grey, uint8. A method is a small object with `pair`, and with `record` for run.json.

RAFT (Teed & Deng 2020) runs through torchvision, with weights from a file of the user's: a state dict of `raft_large`
or `raft_small`, read with `weights_only=True`. Stored flow is in Middlebury's `.flo` files: twelve bytes of header (the
number 202021.25, width, height), then u, v per pixel, row by row, all little-endian 4-byte numbers.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Protocol

import cv2
import numpy as np

from surgeval.arrays import AnyArray, Image, Singles
from surgeval.errors import BadInput, DataError, MissingExtra
from surgeval.files import file_digest, leads_out

__all__ = [
    "FLOW_METHODS",
    "DisFlow",
    "FarnebackFlow",
    "FlowMethod",
    "FlowPair",
    "StoredFlow",
    "estimate_flow",
    "open_flow",
    "read_flo",
]

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
    """Flow from the first frame to the second, and back; each on the pixels of the frame that it starts from."""

    forward: Singles
    backward: Singles | None


class FlowMethod(Protocol):
    """A method that computes optical flow."""

    @property
    def name(self) -> str:
        """One of `FLOW_METHODS`, or the name of another package's method."""
        ...

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a with `backward`; `key` is "VIDEO/FRAME", for methods that read stored flow."""
        ...

    def record(self) -> Mapping[str, object]:
        """The settings that determine the result, for run.json."""
        ...


@dataclass(frozen=True, slots=True)
class DisFlow:
    """Dense inverse search (Kroeger et al. 2016) of OpenCV.

    `medium` is the default: on the phantom it underestimates motion at most half as much as `fast`, for 12 instead of
    3 ms per 448×256 field. The result does not depend on the number of threads.
    """

    name: ClassVar[str] = "dis"
    preset: str = "medium"

    def __post_init__(self) -> None:
        if self.preset not in _PRESETS:
            raise BadInput(f"Unknown DIS preset {self.preset!r}. Use one of {', '.join(_PRESETS)}.")

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a with `backward`."""
        first, second = grey_pair(a, b)
        # A new object each time: it keeps buffers and is not safe to share between threads.
        search = cv2.DISOpticalFlow.create(_PRESETS[self.preset])
        return FlowPair(search.calc(first, second, None), search.calc(second, first, None) if backward else None)

    def record(self) -> Mapping[str, object]:
        """Name, preset and OpenCV's version."""
        return {"flow": self.name, "preset": self.preset, "opencv": cv2.__version__}


@dataclass(frozen=True, slots=True)
class FarnebackFlow:
    """Polynomial expansion (Farnebäck 2003) of OpenCV; smooth, and blurred at the edges of instruments."""

    name: ClassVar[str] = "farneback"
    levels: int = 4
    window: int = 21
    iterations: int = 4

    def __post_init__(self) -> None:
        if not (1 <= self.levels <= 10 and 3 <= self.window <= 255 and 1 <= self.iterations <= 100):
            found = f"levels={self.levels}, window={self.window}, iterations={self.iterations}"
            raise BadInput(
                f"Farnebäck flow: levels 1 to 10, window 3 to 255 and iterations 1 to 100 are allowed, not {found}."
            )

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a with `backward`."""
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
    """Flow computed elsewhere: `FOLDER/VIDEO/FRAME.flo`, and `FOLDER/VIDEO/FRAME.back.flo` backwards."""

    name: ClassVar[str] = "files"
    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise DataError(self.folder, "no such folder", code="file-missing")

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """The stored fields of this frame; their size must be the frame's."""
        check_pair(a, b)
        size = (a.shape[0], a.shape[1])
        forward = read_flo(self._path(key, ".flo"), size)
        return FlowPair(forward, read_flo(self._path(key, ".back.flo"), size) if backward else None)

    def _path(self, name: str, suffix: str = "") -> Path:
        """The file of a video's frame; raises `BadInput` for a name that leads out of the folder, even by a link."""
        parts = PurePosixPath(name).parts
        if not parts or any(part in ("..", "/") or "\\" in part or "\0" in part for part in parts):
            raise BadInput(f"Stored flow is found by VIDEO/FRAME, and {name!r} is not such a name.")
        path = self.folder.joinpath(*parts[:-1], parts[-1] + suffix)
        if leads_out(path, self.folder):
            raise BadInput(f"Stored flow is found by VIDEO/FRAME, and {name!r} leads out of {self.folder}.")
        return path

    def check(self, videos: Sequence[str], *, backward: bool = True) -> None:
        """Raise `DataError` if there is no flow for any of the videos; a frame without flow fails by itself later."""
        for kind in ("*.flo", *(["*.back.flo"] if backward else [])):
            if not any(next(self._path(video).glob(kind), None) for video in videos):
                expected = "VIDEO/FRAME.flo" + (" and VIDEO/FRAME.back.flo" if backward else "")
                sentence = f"no {kind}; stored flow is {expected}"
                raise DataError(self.folder / videos[0], sentence, code="file-missing")

    def record(self) -> Mapping[str, object]:
        """Name, folder, and a hash of every file's name, size and some pieces: reading everything would take long."""
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
                sentence = f"cannot be read: {error.strerror or type(error).__name__}"
                raise DataError(path, sentence, code="file-unreadable") from None
        return {"flow": self.name, "folder": str(self.folder), "files_sha256": digest.hexdigest()}


def open_flow(
    method: str = "dis", *, preset: str = "medium", weights: str | Path | None = None, folder: str | Path | None = None,
    device: str = "cpu",
) -> FlowMethod:  # fmt: skip
    """The flow method of this name; `raft` needs a file of `weights` and torchvision, `files` a `folder`.

    >>> open_flow("dis").record()["preset"]
    'medium'
    """
    weights = None if weights is None else Path(weights)
    folder = None if folder is None else Path(folder)
    if method not in FLOW_METHODS:
        raise BadInput(f"Unknown flow method {method!r}. Use one of {', '.join(FLOW_METHODS)}.")
    if method == "files":
        if folder is None:
            raise BadInput("Flow method files needs a folder with VIDEO/FRAME.flo.")
        return StoredFlow(folder)
    if method == "raft":
        if weights is None:
            raise BadInput("Flow method raft needs a weights file: a state dict of torchvision's RAFT.")
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
    """Both frames in grey; raises `BadInput` unless they have one size."""
    check_pair(a, b)
    first, second = (x if x.ndim == 2 else cv2.cvtColor(x, cv2.COLOR_RGB2GRAY) for x in (a, b))
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


def check_pair(a: AnyArray, b: AnyArray) -> None:
    """Raise `BadInput` unless these are two images of one size."""
    for image in (a, b):
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
            found = f"{image.dtype} of shape {image.shape}"
            raise BadInput(f"A frame must be uint8 of shape (height, width, 3) or (height, width), not {found}.")
    if a.shape[:2] != b.shape[:2]:
        found = f"{a.shape[1]}×{a.shape[0]} and {b.shape[1]}×{b.shape[0]}"
        raise BadInput(f"Optical flow needs two frames of one size, not {found}.")
    if min(a.shape[:2]) < _SMALLEST:
        found = f"{a.shape[1]}×{a.shape[0]}"
        raise BadInput(f"Frames of {found} pixels are too small for optical flow: a side needs {_SMALLEST}.")


_MAGIC = 202021.25
_HEADER = struct.Struct("<fii")
_MAX_SIDE = 16_384
_UNKNOWN = 1e9  # a larger number marks a pixel without flow


def read_flo(path: Path, size: tuple[int, int] | None = None) -> Singles:
    """Read the flow (H, W, 2) of a `.flo` file; `size` is the (height, width) that it must have."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(path, "not a regular file", code="file-not-regular")
        with path.open("rb") as stream:
            length = os.fstat(stream.fileno()).st_size
            height, width = _check_header(path, stream.read(_HEADER.size), length, size)
            body = stream.read(8 * width * height)
    except FileNotFoundError:
        raise DataError(path, "no such file", code="file-missing") from None
    except ValueError:  # a name with a zero byte
        raise DataError(path, "not a possible file name", code="name-unsafe") from None
    except OSError as error:
        sentence = f"cannot be read: {error.strerror or type(error).__name__}"
        raise DataError(path, sentence, code="file-unreadable") from None
    if len(body) != 8 * width * height:
        raise DataError(path, "the file became shorter while it was read", code="file-broken")
    flow = np.frombuffer(body, dtype="<f4").reshape(height, width, 2).astype(np.float32)
    bad = ~(np.abs(flow) < _UNKNOWN).all(axis=2)
    if bad.any():
        row, column = (int(axis[0]) for axis in np.nonzero(bad))
        u, v = flow[row, column].tolist()
        raise DataError(
            path,
            f"({u:g}, {v:g}) is not a finite flow; {int(bad.sum())} pixels have none",
            record=f"row {row}, column {column}",
            field="flow",
            code="not-finite",
        )
    return flow


def _check_header(path: Path, header: bytes, length: int, size: tuple[int, int] | None) -> tuple[int, int]:
    if len(header) < _HEADER.size:
        raise DataError(path, f"{len(header)} bytes, too few for the header of a .flo file", code="file-broken")
    magic, width, height = _HEADER.unpack(header)
    if magic != _MAGIC:
        sentence = f"not a little-endian .flo file: it begins with {magic:g} instead of {_MAGIC}"
        raise DataError(path, sentence, field="magic", code="file-broken")
    if not (1 <= width <= _MAX_SIDE and 1 <= height <= _MAX_SIDE):
        sentence = f"expected sides from 1 to {_MAX_SIDE}, got {width}×{height}"
        raise DataError(path, sentence, field="size", code="wrong-value")
    if length != _HEADER.size + 8 * width * height:
        sentence = f"{length} bytes; {width}×{height} pixels need {_HEADER.size + 8 * width * height}"
        raise DataError(path, sentence, field="length", code="file-broken")
    if size is not None and (height, width) != size:
        sentence = f"{width}×{height} differs from the frame's {size[1]}×{size[0]}"
        raise DataError(path, sentence, field="size", code="image-size")
    return height, width


_FIRST = "feature_encoder.convnormrelu.0.weight"
_MODELS = {64: "raft_large", 32: "raft_small"}  # channels of the first convolution tell them apart
_STATE_DICT = "a state dict of torchvision's raft_large or raft_small"
_LEAST = 128  # pixels: RAFT's correlation pyramid needs 16 cells of 8 pixels


class RaftFlow:
    """RAFT on CPU or GPU; both directions are computed as one batch."""

    name = "raft"

    def __init__(self, weights: Path, device: str = "cpu") -> None:
        try:
            import torchvision.models.optical_flow  # noqa: F401 (tells whether it is installed)
        except ImportError:
            raise MissingExtra("flow method raft", "torchvision", "flow") from None
        except RuntimeError as error:  # its operators are compiled for another torch
            why = str(error).strip().splitlines()[0]
            raise BadInput(f"Flow method raft: the installed torchvision does not fit this torch: {why}") from None
        self.weights, self.device = weights, device
        self._state = _read_state_dict(weights)
        self.model = _MODELS[int(self._state[_FIRST].shape[0])]

    @cached_property
    def _network(self) -> Any:
        import torchvision.models.optical_flow as networks

        network = getattr(networks, self.model)(weights=None)
        try:
            network.load_state_dict(self._state)
        except RuntimeError as error:
            reasons = str(error).strip().splitlines()[1:2] or ["other names or shapes"]
            sentence = f"not {_STATE_DICT}: {reasons[0].strip()}"
            raise DataError(self.weights, sentence, code="wrong-shape") from None
        return network.eval().to(self.device)

    def pair(self, a: Image, b: Image, *, key: str = "", backward: bool = True) -> FlowPair:
        """Flow a → b, and b → a with `backward`."""
        import torch

        check_pair(a, b)
        height, width = a.shape[:2]
        if min(height, width) < _LEAST:
            raise BadInput(f"Frames of {width}×{height} are too small for RAFT: a side needs {_LEAST} pixels.")
        first, second = _pad_to_eight(a), _pad_to_eight(b)
        starts, ends = ([first, second], [second, first]) if backward else ([first], [second])
        with torch.inference_mode():
            before, after = (torch.from_numpy(np.stack(x)).to(self.device) for x in (starts, ends))
            fields: Singles = self._network(before, after)[-1].float().cpu().numpy()
        flows = np.ascontiguousarray(np.moveaxis(fields[:, :, :height, :width], 1, -1), dtype=np.float32)
        return FlowPair(flows[0], flows[1] if backward else None)

    def record(self) -> Mapping[str, object]:
        """Name, network, and the hash of its weights."""
        return {"flow": self.name, "network": self.model, "weights_sha256": file_digest(self.weights)}


def _pad_to_eight(image: Image) -> Singles:
    """The image as (3, h, w) in −1 … 1, padded to multiples of 8 by repeating the last row and column."""
    colour = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    down, right = -image.shape[0] % 8, -image.shape[1] % 8
    full = np.pad(colour, ((0, down), (0, right), (0, 0)), mode="edge")
    return np.ascontiguousarray(np.moveaxis(full, -1, 0), dtype=np.float32) / np.float32(127.5) - np.float32(1)


def _read_state_dict(path: Path) -> dict[str, Any]:
    from surgeval.models.weights import read_torch

    state = read_torch(path)
    first = state.get(_FIRST)
    if first is None or not first.ndim or int(first.shape[0]) not in _MODELS:
        raise DataError(path, f"not {_STATE_DICT}", field=_FIRST, code="wrong-shape")
    return state
