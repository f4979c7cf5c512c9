"""`open_detector`: a detector by the place of its weights, whatever kind it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch

from surgeval.detector.checkpoint import load_detector
from surgeval.detector.inference.tdnet import Precision, TDNetDetector
from surgeval.detector.interface import Network
from surgeval.errors import BadInput
from surgeval.models import EMBEDDED, embedded_names
from surgeval.models.weights import digest

__all__ = ["TRAINED", "detector_digest", "detector_files", "open_detector"]

TRAINED = "detector.safetensors"  # in a training folder
_RTDETR = ("config.json", "model.safetensors", "surgeval.json")
_EXPECTED = (
    "a detector: a .safetensors or .onnx file, a training folder, an RT-DETR folder, or the name of an embedded one "
    f"({', '.join(embedded_names('detector'))})"
)


def open_detector(
    spec: str | Path,
    *,
    device: torch.device | str = "cpu",
    half: bool | Precision = False,
    aux: bool = True,
    graph: bool = False,
) -> Network:
    """Open a detector for looking at frames.

    `spec` is a TDnet file (.safetensors), a folder that training wrote, an ONNX file, an RT-DETR folder, or the name of
    an embedded detector. `half` computes in float16 (or the type named) on a GPU. `aux=False` skips the auxiliary
    heads, which triplets do not need.

    >>> import tempfile
    >>> from surgeval.detector import Classes, build_tdnet, save_detector
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("phantom"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.safetensors"
    ...     save_detector(file, build_tdnet("p", classes), classes, size="p", image_size=64)
    ...     detector = open_detector(file, aux=False)
    >>> detector.name, list(detector.raw(torch.zeros(1, 3, 64, 64, dtype=torch.uint8)).probabilities)
    ('mine', ['ivt'])
    >>> embedded = open_detector("tdnet-p")
    >>> embedded.name, embedded.classes.space.name, embedded.image_size
    ('tdnet-p', 'phantom', 320)
    """
    from surgeval.models import usable_device

    torch_device = usable_device(str(device))
    precision: Precision = half if isinstance(half, str) else "float16" if half else "float32"
    files = detector_files(spec)
    name = _name(spec, files[0])
    if files[0].suffix.lower() == ".onnx":
        from surgeval.detector.inference.onnx import OnnxDetector

        if precision != "float32":
            raise BadInput(f"{files[0]}: found {precision}, expected float32: an ONNX file says itself how it computes")
        return OnnxDetector(files[0], name=name, device=torch_device, aux=aux)
    if len(files) > 1:
        return _rtdetr(files[0].parent, name, torch_device, precision, aux)
    loaded = load_detector(files[0])
    return TDNetDetector(loaded, name=name, device=torch_device, precision=precision, aux=aux, graph=graph)


def detector_files(spec: str | Path) -> tuple[Path, ...]:
    """The files that a detector is read from.

    >>> [path.name for path in detector_files("tdnet-p")]
    ['detector.safetensors']
    >>> detector_files("nowhere.safetensors")
    Traceback (most recent call last):
    surgeval.errors.BadInput: nowhere.safetensors: found no such file or folder, expected a detector: a .safetensors...
    """
    if str(spec) in embedded_names("detector"):
        return (EMBEDDED[str(spec)].path,)
    path = Path(spec)
    if path.is_dir():
        if (path / TRAINED).is_file():
            return (path / TRAINED,)
        if all((path / name).is_file() for name in _RTDETR):
            return tuple(path / name for name in _RTDETR)
        unfinished = " yet" if (path / "train.json").is_file() else ""
        raise BadInput(f"{path}: found no {TRAINED}{unfinished}, expected {_EXPECTED}")
    if not path.is_file():
        raise BadInput(f"{path}: found no such file or folder, expected {_EXPECTED}")
    if path.suffix.lower() not in (".safetensors", ".onnx"):
        raise BadInput(f"{path}: found suffix {path.suffix!r}, expected {_EXPECTED}")
    return (path,)


def detector_digest(spec: str | Path) -> str:
    """A hash of a detector's files: what tells whether stored detections are its own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.onnx").write_bytes(b"1")
    ...     len(detector_digest(Path(folder) / "a.onnx"))
    64
    """
    return digest(detector_files(spec))


def _name(spec: str | Path, file: Path) -> str:
    path = Path(spec)
    return path.name if file.parent == path or not path.suffix else path.stem


def _rtdetr(folder: Path, name: str, device: torch.device, precision: Precision, aux: bool) -> Network:
    from surgeval.detector.rtdetr import load_rtdetr

    network: Any = load_rtdetr(folder, aux=aux).to(device)
    network.name = name
    if precision != "float32":
        if device.type != "cuda":
            raise BadInput(f"precision: found {precision} on {device.type}, expected float32: half needs a GPU")
        network.half_features = True
    return cast(Network, network)
