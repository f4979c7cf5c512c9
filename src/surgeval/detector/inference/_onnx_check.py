"""An ONNX file of a stranger, checked before anything runs: one graph of known operators whose every size is foretold.

Refused are files that point to other files, bring operators or functions of their own, branch or loop, or whose
intermediate results would not fit; and files that do not say which classes they speak of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.detector._classes import Classes
from surgeval.errors import DataError
from surgeval.files import BrokenJson, parse_json, read_bounded

__all__ = ["KEY", "KIND", "VERSION", "OnnxParts", "read_onnx"]

KEY, KIND, VERSION = "surgeval", "detector", 1
INPUT, BOXES = "images", "boxes"
EXPECTED = "a detector that surgeval wrote as ONNX"
_LIMIT = 1 << 30  # bytes of a file
_MOST_NODES = 50_000
_MOST_NUMBERS = 1 << 28  # in one intermediate result, for one picture
_LARGEST_IMAGE = 4096
_UINT8, _FLOAT = 2, 1  # TensorProto's numbers for types
# What detectors are made of. No operator that runs a graph inside (If, Loop, Scan) and none that draws or waits.
_OPERATORS = frozenset((
    "Add", "And", "ArgMax", "AveragePool", "BatchNormalization", "Cast", "Ceil", "Clip", "Concat", "Constant",
    "ConstantOfShape", "Conv", "Cos", "Div", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather",
    "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "Greater", "GreaterOrEqual", "GridSample",
    "HardSigmoid", "HardSwish", "Identity", "LayerNormalization", "Less", "LessOrEqual", "Log", "MatMul", "Max",
    "MaxPool", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceMax",
    "ReduceMean", "ReduceSum", "Relu", "Reshape", "Resize", "ScatterND", "Shape", "Sigmoid", "Sign", "Sin", "Slice",
    "Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "Tile", "TopK", "Transpose", "Trilu",
    "Unsqueeze", "Where", "Xor",
))  # fmt: skip


@dataclass(frozen=True)
class OnnxParts:
    """A checked file: its bytes, and what its metadata say."""

    data: bytes
    classes: Classes
    image_size: int
    fill: int
    heads: tuple[str, ...]


def read_onnx(path: Path) -> OnnxParts:
    """Read and check a file; whatever is wrong raises `DataError`."""
    import onnx

    data = read_bounded(path, _LIMIT, EXPECTED)
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:  # protobuf's own type is in a package that is not ours to import
        raise DataError(path, found=f"no ONNX ({_first(error)})", expected=EXPECTED) from error
    _check_contents(path, model)
    try:
        onnx.checker.check_model(data)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise DataError(path, found=f"a broken graph ({_first(error)})", expected=EXPECTED) from None
    classes, image_size, fill, heads = _metadata(path, model)
    _check_shapes(path, model, classes, image_size, heads)
    return OnnxParts(data, classes, image_size, fill, heads)


def _check_contents(path: Path, model: Any) -> None:
    """One flat graph of known operators with all its numbers inside the file."""
    if len(model.graph.node) > _MOST_NODES:
        raise DataError(path, found=f"{len(model.graph.node)} operators", expected=f"at most {_MOST_NODES}")
    if len(model.functions) or len(model.training_info):
        raise DataError(path, found="functions or training steps of its own", expected=EXPECTED)
    for node in model.graph.node:
        name = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        if name not in _OPERATORS:
            raise DataError(path, field="operator", found=name[:80], expected="one that detectors are made of")
        if any(attribute.HasField("g") or len(attribute.graphs) for attribute in node.attribute):
            raise DataError(path, field=node.op_type, found="a graph inside", expected="one flat graph")
    for tensor in _tensors(model.graph):
        if tensor.data_location or len(tensor.external_data):
            raise DataError(path, field=tensor.name[:80], found="numbers in another file",
                            expected="all numbers in this file")  # fmt: skip


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)


def _metadata(path: Path, model: Any) -> tuple[Classes, int, int, tuple[str, ...]]:
    entries = [entry.value for entry in model.metadata_props if entry.key == KEY]
    if len(entries) != 1:
        raise DataError(path, field="metadata", found=f"{len(entries)} entries {KEY!r}", expected=EXPECTED)
    try:
        metadata = parse_json(entries[0])
    except BrokenJson as error:
        raise DataError(path, field="metadata", found=f"broken JSON ({error})", expected=EXPECTED) from None
    if not isinstance(metadata, dict) or metadata.get("kind") != KIND or metadata.get("version") != VERSION:
        raise DataError(path, field="metadata", found="another kind or version", expected=f"{KIND} {VERSION}")
    classes = Classes.from_json(metadata.get("classes"), path)
    side, fill, heads = (metadata.get(key) for key in ("image_size", "fill", "heads"))
    if type(side) is not int or not 32 <= side <= _LARGEST_IMAGE:
        raise DataError(path, field="image_size", found=repr(side)[:80], expected=f"32 to {_LARGEST_IMAGE}")
    if type(fill) is not int or not 0 <= fill <= 255:
        raise DataError(path, field="fill", found=repr(fill)[:80], expected="0 to 255")
    known = list(classes.heads)
    if not isinstance(heads, list) or not heads or heads[0] != classes.main or any(h not in known for h in heads):
        raise DataError(path, field="heads", found=repr(heads)[:80], expected=f"{classes.main} first, of {known}")
    if len(set(heads)) != len(heads):
        raise DataError(path, field="heads", found="a head twice", expected="each once")
    return classes, side, fill, tuple(heads)


def _check_shapes(path: Path, model: Any, classes: Classes, side: int, heads: tuple[str, ...]) -> None:
    """Names, types and sizes of what goes in and out; every size in between follows from one picture and is bounded."""
    import onnx

    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in stored]
    if [value.name for value in inputs] != [INPUT]:
        raise DataError(path, field="inputs", found=", ".join(v.name for v in inputs)[:80] or "none", expected=INPUT)
    tensor = inputs[0].type.tensor_type
    if tensor.elem_type != _UINT8 or _dims(inputs[0])[1:] != [3, side, side] or len(tensor.shape.dim) != 4:
        raise DataError(path, field=INPUT, found=f"type {tensor.elem_type}, shape {_dims(inputs[0])}",
                        expected=f"bytes of shape (batch, 3, {side}, {side})")  # fmt: skip
    tensor.shape.dim[0].dim_value = 1
    names = [BOXES, *heads]
    if [value.name for value in model.graph.output] != names:
        outputs = ", ".join(value.name for value in model.graph.output)
        raise DataError(path, field="outputs", found=outputs[:80], expected=", ".join(names))
    del model.graph.value_info[:]  # what the file says of them is not believed
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        whole = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        raise DataError(path, found=f"sizes that do not fit ({_first(error)})", expected=EXPECTED) from None
    values = (*whole.graph.value_info, *whole.graph.output)
    # Without a shape a value could have any; an empty shape is a single number.
    known = {value.name: _dims(value) for value in values if value.type.tensor_type.HasField("shape")}
    for name in (name for node in whole.graph.node for name in node.output if name):
        shape = known.get(name)
        if shape is None or None in shape:
            raise DataError(path, field=name[:80], found="a size that depends on the picture", expected="a fixed size")
        if math.prod(side or 0 for side in shape) > _MOST_NUMBERS:
            raise DataError(path, field=name[:80], found=f"shape {shape}", expected=f"at most {_MOST_NUMBERS} numbers")
    candidates = (known[BOXES] + [None] * 3)[1]
    wanted: Mapping[str, list[int | None]] = {
        BOXES: [1, candidates, 4], **{head: [1, candidates, len(classes.heads[head])] for head in heads}}  # fmt: skip
    for value in whole.graph.output:
        if value.type.tensor_type.elem_type != _FLOAT or known[value.name] != wanted[value.name]:
            raise DataError(path, field=value.name, found=f"shape {known[value.name]}",
                            expected=f"float32 of shape {wanted[value.name]}")  # fmt: skip


def _dims(value: Any) -> list[int | None]:
    return [int(d.dim_value) if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim]


def _first(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:160] if lines else type(error).__name__
