"""`export_onnx`: a detector as one ONNX file that knows its classes and takes the same squares as the network."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from surgeval._version import __version__
from surgeval.detector.checkpoint import Loaded, load_detector
from surgeval.detector.classes import Classes
from surgeval.detector.inference.onnx_check import BOXES, INPUT, KEY, KIND, VERSION, open_onnx
from surgeval.detector.inference.open import detector_files
from surgeval.detector.inference.tdnet import fill_of
from surgeval.errors import BadInput, MissingExtra
from surgeval.files import write_atomically

__all__ = ["export_onnx"]

_OPSET = 20
_MOST_AT_ONCE = 1024  # pictures in a batch


class _AsRaw(nn.Module):
    """Bytes in, boxes in pixels and probabilities out: what `Network.raw` does, as a graph."""

    def __init__(self, network: nn.Module, heads: tuple[str, ...]) -> None:
        super().__init__()
        self.network, self.heads = network, heads

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output = self.network(images.to(torch.float32) / 255, heads=self.heads)
        return output.boxes(), *output.probabilities().values()


def export_onnx(spec: str | Path | Loaded, out: str | Path, *, aux: bool = True) -> Path:
    """Write a detector (TDnet: file, training folder, embedded name, loaded; RT-DETR: folder) as ONNX for any batch.

    Class names, picture size and padding go into the file's metadata. The file is read back by the same checks that
    files of strangers meet. `aux=False` leaves the auxiliary heads out.

    >>> export_onnx("nowhere.safetensors", "detector.onnx")
    Traceback (most recent call last):
    surgeval.errors.BadInput: nowhere.safetensors: found no such file or folder, expected a detector...
    """
    for package in ("onnx", "onnxscript"):
        if find_spec(package) is None:
            raise MissingExtra("export", package, "onnx")
    path = Path(out)
    if path.suffix.lower() != ".onnx":
        raise BadInput(f"{path}: found suffix {path.suffix!r}, expected .onnx")
    network = _tdnet(spec, aux) if isinstance(spec, Loaded) else _opened(spec, aux)
    with network.tracing:
        model = _traced(network.module, network.image_size, network.heads)
    about = {
        "kind": KIND, "version": VERSION, "classes": network.classes.to_json(), "image_size": network.image_size,
        "fill": network.fill, "heads": list(network.heads), "size": network.size, "surgeval": __version__,
    }  # fmt: skip
    del model.metadata_props[:]
    entry = model.metadata_props.add()
    entry.key, entry.value = KEY, json.dumps(about, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _without_traces(model).SerializeToString())
    open_onnx(path).process.close()
    return path


@dataclass(frozen=True)
class _Made:
    """A graph to trace, and what the file says of it."""

    module: nn.Module
    heads: tuple[str, ...]
    classes: Classes
    image_size: int
    fill: int
    size: str
    tracing: AbstractContextManager[object] = field(default_factory=nullcontext)


def _opened(spec: str | Path, aux: bool) -> _Made:
    files = detector_files(spec)
    if len(files) > 1:
        return _rtdetr(files[0].parent, aux)
    if files[0].suffix != ".safetensors":
        raise BadInput(
            f"{spec}: found an ONNX file, expected a TDnet (.safetensors or a training folder) or an RT-DETR"
        )
    return _tdnet(load_detector(files[0]), aux)


def _tdnet(loaded: Loaded, aux: bool) -> _Made:
    heads = loaded.model.heads if aux else (loaded.model.main,)
    module = _AsRaw(loaded.model.fused().cpu().float(), heads).eval()
    return _Made(module, heads, loaded.classes, loaded.image_size, fill_of(loaded.extra, loaded.classes), loaded.size)


def _rtdetr(folder: Path, aux: bool) -> _Made:
    from surgeval.detector.rtdetr import load_rtdetr
    from surgeval.detector.rtdetr.onnx import DetrAsRaw, any_batch

    network = load_rtdetr(folder, aux=aux)
    module = DetrAsRaw(network).eval()
    return _Made(module, module.heads, network.classes, network.image_size, network.fill, network.size, any_batch())


def _traced(module: nn.Module, side: int, heads: tuple[str, ...]) -> Any:
    batch = torch.export.Dim("batch", min=1, max=_MOST_AT_ONCE)
    example = torch.zeros(2, 3, side, side, dtype=torch.uint8)
    with _silent(), torch.no_grad():
        program = torch.onnx.export(
            module, (example,), dynamo=True, opset_version=_OPSET, verbose=False, input_names=[INPUT],
            output_names=[BOXES, *heads], dynamic_shapes={"images": {0: batch}},
        )  # fmt: skip
    return program.model_proto


def _without_traces(model: Any) -> Any:
    """Without notes on where in which file each operator was made: they name this machine's folders."""
    model.producer_name, model.producer_version, model.doc_string = "surgeval", __version__, ""
    graph = model.graph
    graph.doc_string = ""
    del graph.value_info[:]
    for part in (graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        part.doc_string = ""
        del part.metadata_props[:]
    return model


@contextmanager
def _silent() -> Iterator[None]:
    """The exporter tells of packages that it could use and of its own deprecated calls; neither is about the model."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
