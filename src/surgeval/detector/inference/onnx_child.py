"""Run one ONNX graph under limits on memory and time; `_onnx_process` starts this program and sends it requests.

It does not import torch, so it starts in half a second. Requests and replies are a line of JSON, then as many bytes
as the line says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import onnx
import onnxruntime

from surgeval.processes import limit_memory

_THREAD = 1 << 27  # bytes of address space that a thread may take for its stack and its share of malloc
_SHORT = "a graph that needs more memory than it may take"
_FIRST = 160  # characters of another package's error message


class Refused(Exception):
    """A file or graph that is refused; the message is a phrase for the error."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code


def main(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until the parent ends."""
    os.chdir(os.sep)  # a graph names files relative to it
    session: Any = None
    while line := requests.readline():
        asked = json.loads(line)
        data = requests.read(asked["bytes"])
        arrays: list[np.ndarray[Any, Any]] = []
        try:
            if asked["memory"] is not None:
                limit_memory(_THREAD * asked["threads"] + asked["memory"])
            if asked["do"] == "open":
                reply = _describe(data, asked["key"])
                session = _session(data, asked)
            else:
                picture = np.frombuffer(data, np.uint8).reshape(asked["shape"])
                arrays = _compute(session, picture, asked)
                reply = {"arrays": [[str(array.dtype), list(array.shape)] for array in arrays]}
        except Refused as refused:
            reply = {"refused": str(refused), "code": refused.code}
        except MemoryError:
            reply = {"refused": _SHORT}
        except Exception as error:  # noqa: BLE001 - onnxruntime's own types share no base but this
            short = "allocat" in str(error) or "bad_alloc" in str(error)
            reply = {"refused": _SHORT if short else f"a graph that fails ({_first(error)})"}
        _send(replies, reply, arrays if "arrays" in reply else [])


def _send(replies: BinaryIO, reply: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> None:
    replies.write(json.dumps(reply).encode() + b"\n")
    for array in arrays:
        replies.write(array.reshape(-1).view(np.uint8).data)
    replies.flush()


def _describe(data: bytes, key: str) -> dict[str, Any]:
    """Metadata, inputs and outputs of the file; one that refers to other files is refused before it is run."""
    try:
        model = onnx.load_model_from_string(data)
    except MemoryError:
        raise
    except Exception as error:  # protobuf's own type
        raise Refused(f"no ONNX ({_first(error)})") from error
    graphs = [model.graph, *(step.algorithm for step in model.training_info)]
    graphs += [step.initialization for step in model.training_info]
    for tensor in _tensors([*graphs, *model.functions]):
        if tensor.data_location or len(tensor.external_data):
            raise Refused(f"numbers of {tensor.name[:80]!r} in another file")
    try:
        onnx.checker.check_model(data)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise Refused(f"a broken graph ({_first(error)})") from None
    stored = {tensor.name for tensor in model.graph.initializer}
    return {
        "metadata": [entry.value for entry in model.metadata_props if entry.key == key],
        "inputs": [[value.name, value.type.tensor_type.elem_type, _sides(value)] for value in model.graph.input
                   if value.name not in stored],
        "outputs": [value.name for value in model.graph.output],
    }  # fmt: skip


def _tensors(graphs: list[Any]) -> Iterator[Any]:
    """Every stored tensor of these graphs and functions, and of the graphs inside their operators."""
    while graphs:
        graph = graphs.pop()
        yield from getattr(graph, "initializer", ())
        for sparse in getattr(graph, "sparse_initializer", ()):
            yield from (sparse.values, sparse.indices)
        for attribute in (attribute for node in graph.node for attribute in node.attribute):
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            graphs += [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs


def _sides(value: Any) -> list[int | None]:
    return [int(d.dim_value) if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim]


def _session(data: bytes, asked: dict[str, Any]) -> Any:
    if asked["provider"] not in onnxruntime.get_available_providers():
        raise Refused("a device that onnxruntime does not have here", code="no-device")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # standard error is discarded
    options.intra_op_num_threads = asked["threads"]
    # From bytes and never from a path: nothing beside the file can be opened.
    try:
        return onnxruntime.InferenceSession(data, options, providers=[asked["provider"]])
    except MemoryError:
        raise
    except Exception as error:  # onnxruntime's own types share no base but this
        raise Refused(f"a graph that onnxruntime refuses ({_first(error)})") from error


def _compute(session: Any, picture: np.ndarray[Any, Any], asked: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    arrays = session.run(asked["outputs"], {asked["input"]: picture})
    if not all(isinstance(array, np.ndarray) and array.dtype.kind in "fiub" for array in arrays):
        raise Refused("outputs that are not numbers")
    if sum(array.nbytes for array in arrays) > asked["most"]:
        raise Refused("outputs that are too large")
    return [np.ascontiguousarray(array) for array in arrays]


def _first(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:_FIRST] if lines else type(error).__name__
