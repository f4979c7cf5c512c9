"""A detector as an ONNX file, computed by onnxruntime: the same squares go in, the same boxes come out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch

from surgeval.detector.inference.onnx_check import open_onnx
from surgeval.detector.interface import Raw
from surgeval.errors import MissingExtra

__all__ = ["OnnxDetector"]


class OnnxDetector:
    """An ONNX file, run in a child process; on a GPU where onnxruntime's CUDA build is installed."""

    def __init__(
        self, path: Path, *, name: str = "", device: torch.device | str = "cpu", aux: bool = True, threads: int = 0
    ) -> None:
        for package in ("onnx", "onnxruntime"):
            if find_spec(package) is None:
                raise MissingExtra(f"{path.name}", package, "onnx")
        cuda = torch.device(device).type == "cuda"
        self._graph = open_onnx(path, cuda=cuda, threads=threads or torch.get_num_threads())
        self.name, self.classes = name or path.stem, self._graph.classes
        self.image_size, self.fill = self._graph.image_size, self._graph.fill
        self.heads = self._graph.heads if aux else self._graph.heads[:1]
        self.device = torch.device("cpu")  # the child process takes arrays from there and moves them to its device

    def raw(self, images: torch.Tensor) -> Raw:
        """Look at pictures: bytes (batch, 3, side, side), RGB."""
        boxes, *values = self._graph.run(images.contiguous().numpy(), self.heads)
        tensors = {head: torch.from_numpy(array) for head, array in zip(self.heads, values, strict=True)}
        return Raw(torch.from_numpy(boxes), tensors)
