"""Open an untrusted ONNX file: parse, check and try it on one picture in a process with limits on memory and time.

Refused are files that refer to other files, lack the metadata of a detector, have other inputs or outputs than a
detector, or exceed the limits. The operators are not checked: the limits hold for any graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.arrays import AnyArray, Bytes
from surgeval.detector.classes import Classes
from surgeval.detector.inference.onnx_process import GraphProcess, GraphRefused
from surgeval.errors import BadInput, DataError
from surgeval.files import BrokenJson, parse_json, read_bounded

__all__ = ["BOXES", "INPUT", "KEY", "KIND", "VERSION", "OnnxGraph", "open_onnx"]

KEY, KIND, VERSION = "surgeval", "detector", 1
INPUT, BOXES = "images", "boxes"
EXPECTED = "a detector that surgeval wrote as ONNX"
_LIMIT = 1 << 30  # bytes of a file
_LARGEST_IMAGE = 4096
_UINT8 = 2  # TensorProto's number for the type


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A checked file with its process and the contents of its metadata."""

    path: Path
    process: GraphProcess
    classes: Classes
    image_size: int
    fill: int
    heads: tuple[str, ...]

    def run(self, pictures: Bytes, heads: Sequence[str]) -> list[AnyArray]:
        """Boxes and the probabilities of these heads, checked; a graph that fails raises `DataError`."""
        with _name_file(self.path):
            arrays = self.process.run(INPUT, pictures, [BOXES, *heads])
        shape = arrays[0].shape
        candidates = shape[1] if len(shape) > 1 else 0
        widths = {BOXES: 4, **{head: len(self.classes.heads[head]) for head in heads}}
        for (name, width), array in zip(widths.items(), arrays, strict=True):
            wanted = (len(pictures), candidates, width)
            if array.dtype != np.float32 or array.shape != wanted:
                raise DataError(
                    self.path,
                    f"found {array.dtype} of shape {list(array.shape)}, expected float32 of shape {list(wanted)}",
                    field=name,
                )
        return arrays


def open_onnx(path: Path, *, cuda: bool = False, threads: int = 1) -> OnnxGraph:
    """Read, check and try a file; whatever is wrong raises `DataError`."""
    data = read_bounded(path, _LIMIT)
    with _name_file(path):
        process = GraphProcess(data, key=KEY, cuda=cuda, threads=threads)
    try:
        about = process.about
        classes, image_size, fill, heads = _metadata(path, about["metadata"])
        _check_ends(path, about, image_size, heads)
        graph = OnnxGraph(path, process, classes, image_size, fill, heads)
        graph.run(np.zeros((1, 3, image_size, image_size), np.uint8), heads)
    except BaseException:
        process.close()
        raise
    return graph


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Turn a refusal of the graph into an error that names the file."""
    try:
        yield
    except GraphRefused as refused:
        if refused.code == "no-device":
            raise BadInput("device: onnxruntime here computes on the CPU only; use cpu") from None
        raise DataError(path, f"found {refused}, expected {EXPECTED}") from None


def _metadata(path: Path, entries: Sequence[str]) -> tuple[Classes, int, int, tuple[str, ...]]:
    if len(entries) != 1:
        raise DataError(path, f"found {len(entries)} entries {KEY!r}, expected {EXPECTED}", field="metadata")
    try:
        metadata = parse_json(entries[0])
    except BrokenJson as error:
        raise DataError(path, f"found broken JSON ({error}), expected {EXPECTED}", field="metadata") from None
    if not isinstance(metadata, dict) or metadata.get("kind") != KIND or metadata.get("version") != VERSION:
        raise DataError(path, f"found another kind or version, expected {KIND} {VERSION}", field="metadata")
    classes = Classes.from_json(metadata.get("classes"), path)
    side, fill, heads = (metadata.get(key) for key in ("image_size", "fill", "heads"))
    if type(side) is not int or not 32 <= side <= _LARGEST_IMAGE:
        raise DataError(path, f"found {repr(side)[:80]}, expected 32 to {_LARGEST_IMAGE}", field="image_size")
    if type(fill) is not int or not 0 <= fill <= 255:
        raise DataError(path, f"found {repr(fill)[:80]}, expected 0 to 255", field="fill")
    known = list(classes.heads)
    if not isinstance(heads, list) or not heads or heads[0] != classes.main or any(h not in known for h in heads):
        raise DataError(path, f"found {repr(heads)[:80]}, expected {classes.main} first, of {known}", field="heads")
    if len(set(heads)) != len(heads):
        raise DataError(path, "found a head twice, expected each once", field="heads")
    return classes, side, fill, tuple(heads)


def _check_ends(path: Path, about: Mapping[str, Any], side: int, heads: tuple[str, ...]) -> None:
    """Check the name, type and size of the input and the names of the outputs."""
    inputs = about["inputs"]
    if [name for name, *_ in inputs] != [INPUT]:
        found = ", ".join(str(name) for name, *_ in inputs)
        raise DataError(path, f"found {found[:80] or 'none'}, expected {INPUT}", field="inputs")
    ((_, kind, sides),) = inputs
    if kind != _UINT8 or len(sides) != 4 or sides[1:] != [3, side, side]:
        raise DataError(
            path, f"found type {kind}, shape {sides}, expected bytes of shape (batch, 3, {side}, {side})", field=INPUT
        )
    names = [BOXES, *heads]
    if about["outputs"] != names:
        outputs = ", ".join(map(str, about["outputs"]))
        raise DataError(path, f"found {outputs[:80]}, expected {', '.join(names)}", field="outputs")
