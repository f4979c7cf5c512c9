"""A detector as an ONNX file, computed by onnxruntime: the same squares go in, the same boxes come out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from surgeval.detector._interface import Raw
from surgeval.detector.inference._onnx_check import BOXES, INPUT, read_onnx
from surgeval.errors import BadInput, DataError, MissingExtra

__all__ = ["OnnxDetector"]


class OnnxDetector:
    """A checked ONNX file; on a GPU where onnxruntime's CUDA build is installed."""

    def __init__(
        self, path: Path, *, name: str = "", device: torch.device | str = "cpu", aux: bool = True, threads: int = 0
    ) -> None:
        for package in ("onnx", "onnxruntime"):
            if find_spec(package) is None:
                raise MissingExtra(f"{path.name}", package, "onnx")
        parts = read_onnx(path)
        self.name, self.classes = name or path.stem, parts.classes
        self.image_size, self.fill = parts.image_size, parts.fill
        self.heads = parts.heads if aux else parts.heads[:1]
        self.device = torch.device("cpu")  # onnxruntime takes arrays from there, and moves them by itself
        self._session = _session(parts.data, path, torch.device(device), threads)

    def raw(self, images: torch.Tensor) -> Raw:
        """Look at pictures: bytes (batch, 3, side, side), RGB."""
        try:
            boxes, *values = self._session.run([BOXES, *self.heads], {INPUT: images.contiguous().numpy()})
        except Exception as error:  # onnxruntime's own types share no base but this
            reason = str(error).splitlines()[0][:160]
            raise BadInput(f"{self.name}: found a graph that fails ({reason}), expected boxes and scores") from error
        tensors = {head: torch.from_numpy(array) for head, array in zip(self.heads, values, strict=True)}
        return Raw(torch.from_numpy(boxes), tensors)


def _session(data: bytes, path: Path, device: torch.device, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; warnings are about its own optimisations
    options.intra_op_num_threads = threads or torch.get_num_threads()
    wanted = "CUDAExecutionProvider" if device.type == "cuda" else "CPUExecutionProvider"
    if wanted not in onnxruntime.get_available_providers():
        raise BadInput(f"device: found {str(device)!r}, but onnxruntime here computes on the CPU only, expected cpu")
    # From bytes and never from a path: nothing beside the file can be opened.
    try:
        return onnxruntime.InferenceSession(data, options, providers=[wanted])
    except Exception as error:  # see above
        raise DataError(path, found=f"a graph that onnxruntime refuses ({str(error).splitlines()[0][:160]})",
                        expected="a detector as ONNX") from error  # fmt: skip
