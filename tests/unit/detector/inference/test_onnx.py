"""An ONNX file gives the boxes of its network; one from a stranger runs within limits, in a process of its own."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tests.conftest import Once
from tests.fault.engine_runs import alive, wait_until
from tests.unit.detector.inference.detectors import TINY, operation

from surgeval.detector import Classes
from surgeval.detector.geometry import iou_matrix
from surgeval.detector.inference import Looker, export_onnx, onnx_process, open_detector
from surgeval.detector.inference.onnx_check import open_onnx
from surgeval.detector.nms import Selecting
from surgeval.errors import BadInput, DataError

SIDE, POINTS = 64, 4


@pytest.fixture(scope="session")
def exported(once: Once, trained: Path) -> Path:
    def make(folder: Path) -> None:
        folder.mkdir()
        export_onnx(trained, folder / "tiny.onnx")

    return once("exported", make) / "tiny.onnx"


def test_the_same_boxes_and_scores_to_a_thousandth(exported: Path, trained: Path) -> None:
    network, file = open_detector(trained), open_detector(exported)
    assert (file.classes, file.image_size, file.fill) == (network.classes, network.image_size, network.fill)
    chosen = Selecting(confidence=0.01)
    frames = [operation(second) for second in range(10, 35, 5)]  # five: any batch size fits
    pairs = zip(Looker(network, chosen).look(frames), Looker(file, chosen).look(frames), strict=True)
    compared = 0
    for one, other in pairs:
        assert len(one) == len(other)
        overlaps = iou_matrix(one.boxes, other.boxes) * (one.classes[:, None] == other.classes[None])
        partner = overlaps.argmax(1)
        assert sorted(partner.tolist()) == list(range(len(one)))  # one to one
        assert (one.boxes - other.boxes[partner]).abs().max() <= 1e-3
        assert (one.scores - other.scores[partner]).abs().max() <= 1e-3
        for head, values in one.heads.items():
            assert (values - other.heads[head][partner]).abs().max() <= 1e-3
        compared += len(one)
    assert compared > 50


def test_a_file_names_no_folder_of_the_machine_that_made_it(exported: Path) -> None:
    data = exported.read_bytes()
    assert str(Path(torch.__file__).parent).encode() not in data
    assert b"site-packages" not in data


def test_heads_can_be_left_out_and_half_precision_is_the_files_own(exported: Path) -> None:
    assert list(
        open_detector(exported, aux=False).raw(torch.zeros(1, 3, 320, 320, dtype=torch.uint8)).probabilities
    ) == ["ivt"]
    with pytest.raises(BadInput, match="found float16, expected float32: an ONNX file says itself how it computes"):
        open_detector(exported, half=True)


def test_an_onnx_file_is_not_exported_again(exported: Path, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="found an ONNX file, expected a TDnet"):
        export_onnx(exported, tmp_path / "again.onnx")
    with pytest.raises(BadInput, match=r"found suffix '\.txt', expected \.onnx"):
        export_onnx(trained, tmp_path / "again.txt")


def small() -> onnx.ModelProto:
    """A valid file: constant boxes and scores for four points."""
    classes = Classes.of(TINY)
    shapes = {"boxes": 4, **classes.counts}
    nodes, stored = [], []
    nodes.append(helper.make_node("Cast", ["images"], ["numbers"], to=TensorProto.FLOAT))
    nodes.append(helper.make_node("ReduceMax", ["numbers", "axes"], ["one"], keepdims=1))  # (batch, 1, 1, 1)
    nodes.append(helper.make_node("Squeeze", ["one", "last"], ["flat"]))  # (batch, 1, 1)
    stored.append(numpy_helper.from_array(np.array([1, 2, 3]), "axes"))
    stored.append(numpy_helper.from_array(np.array([3]), "last"))
    for name, width in shapes.items():
        stored.append(numpy_helper.from_array(np.full((1, POINTS, width), 0.001, np.float32), f"{name} base"))
        nodes.append(helper.make_node("Mul", ["flat", f"{name} base"], [name]))
    picture = helper.make_tensor_value_info("images", TensorProto.UINT8, ["batch", 3, SIDE, SIDE])
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", POINTS, w]) for n, w in shapes.items()]
    graph = helper.make_graph(nodes, "small", [picture], outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    describe(model)
    return model


def describe(model: onnx.ModelProto, **changed: Any) -> None:
    about = {"kind": "detector", "version": 1, "classes": Classes.of(TINY).to_json(), "image_size": SIDE, "fill": 114,
             "heads": ["ivt", "i", "v", "t"]}  # fmt: skip
    del model.metadata_props[:]
    helper.set_model_props(model, {"surgeval": json.dumps(about | changed)})


def test_a_small_file_is_taken(tmp_path: Path) -> None:
    onnx.save(small(), tmp_path / "small.onnx")
    raw = open_detector(tmp_path / "small.onnx").raw(torch.full((3, 3, SIDE, SIDE), 200, dtype=torch.uint8))
    assert raw.boxes.shape == (3, POINTS, 4)
    assert raw.boxes[0, 0, 0].item() == pytest.approx(0.2)


def external(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[2]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"


def external_inside(model: onnx.ModelProto) -> None:
    """In a graph inside an operator, where a search of the outer graph does not come."""
    tensor = onnx.TensorProto(name="hidden", data_type=TensorProto.FLOAT, dims=[1])
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"
    inner = helper.make_graph([], "inner", [], [], [tensor])
    model.graph.node[0].attribute.append(helper.make_attribute("then", inner))


def foreign(model: onnx.ModelProto) -> None:
    model.graph.node[0].domain = "com.evil"
    model.opset_import.append(helper.make_opsetid("com.evil", 1))


def insert_bombs(model: onnx.ModelProto, count: int, size: int) -> None:
    """So many results of so many bytes each, all needed at once."""
    model.graph.initializer.append(numpy_helper.from_array(np.array([size // 4, 1, 1]), "size"))
    names = [f"bomb {n}" for n in range(count)]
    nodes = [helper.make_node("Expand", ["flat", "size"], ["wide"])]
    for n, name in enumerate(names):
        model.graph.initializer.append(numpy_helper.from_array(np.array(n + 2, np.float32), f"factor {n}"))
        nodes.append(helper.make_node("Mul", ["wide", f"factor {n}"], [name]))
    nodes += [helper.make_node("Max", names, ["all"]), helper.make_node("ReduceMax", ["all"], ["worst"], keepdims=1),
              helper.make_node("Add", ["flat", "worst"], ["exploded"])]  # fmt: skip
    for node in model.graph.node[3:]:
        node.input[0] = "exploded"
    for number, node in enumerate(nodes):
        model.graph.node.insert(3 + number, node)


def expanding(model: onnx.ModelProto) -> None:
    """Four petabytes from forty bytes."""
    insert_bombs(model, 1, 1 << 52)


def expanding_often(model: onnx.ModelProto) -> None:
    """Each result is within bounds, and their sum is not."""
    insert_bombs(model, 40, 1 << 28)


def other_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT


def other_size(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 96


def second_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))


def renamed(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "numbers"


def narrow(model: onnx.ModelProto) -> None:
    model.graph.initializer[3].CopyFrom(numpy_helper.from_array(np.zeros((1, POINTS, 2), np.float32), "ivt base"))


def cyclic(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "one"


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (external, "numbers of .* in another file"),
        (external_inside, "numbers of 'hidden' in another file"),
        (foreign, "com.evil"),
        (expanding, "a graph that (fails|needs more memory)"),
        (expanding_often, "a graph that needs more memory than it may take"),
        (other_input, "images: found type 1"),
        (other_size, r"images: found type 2, shape \[None, 3, 96, 64\]"),
        (second_input, "inputs: found images, more"),
        (renamed, "outputs: found numbers"),
        (narrow, r"ivt: found float32 of shape \[1, 4, 2\]"),
        (cyclic, "a broken graph"),
        (lambda model: describe(model, image_size=10**9), "image_size: found 1000000000"),
        (lambda model: describe(model, fill=300), "fill: found 300"),
        (lambda model: describe(model, heads=["i"]), r"heads: found \['i'\]"),
        (lambda model: describe(model, heads=["ivt", "ivt"]), "heads: found a head twice"),
        (lambda model: describe(model, kind="cat"), "metadata: found another kind or version"),
        (lambda model: describe(model, classes=[]), "classes: found a list"),
        (lambda model: helper.set_model_props(model, {"other": "1"}), "found 0 entries 'surgeval'"),
        (lambda model: helper.set_model_props(model, {"surgeval": "{"}), "metadata: found broken JSON"),
    ],
)
def test_a_harmful_or_foreign_file_is_refused(
    harm: Callable[[onnx.ModelProto], None], found: str, tmp_path: Path
) -> None:
    model = small()
    if harm.__name__ == "<lambda>":
        del model.metadata_props[:]
    harm(model)
    path = tmp_path / "bad.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(DataError, match=found):
        open_onnx(path)


def write_endless(path: Path) -> None:
    """A loop of 10¹⁵ steps, from a few bytes."""
    true, count = helper.make_tensor_value_info("go", TensorProto.BOOL, []), TensorProto.INT64
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Sin", ["old"], ["new"])], "body",
        [helper.make_tensor_value_info("step", count, []), true,
         helper.make_tensor_value_info("old", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []),
         helper.make_tensor_value_info("new", TensorProto.FLOAT, None)],
    )  # fmt: skip
    model = small()
    model.graph.initializer.append(numpy_helper.from_array(np.array(10**15), "most"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "yes"))
    for node in model.graph.node[3:]:
        node.input[0] = "late"
    model.graph.node.insert(3, helper.make_node("Loop", ["most", "yes", "flat"], ["late"], body=body))
    path.write_bytes(model.SerializeToString())


def test_a_graph_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "late.onnx"
    write_endless(path)
    monkeypatch.setattr(onnx_process, "RUN_SECONDS", 1.0)
    monkeypatch.setattr(onnx_process, "PICTURE_SECONDS", 0.0)
    with pytest.raises(DataError, match=r"late\.onnx: found a graph that took more than 1 s"):
        open_onnx(path)


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are counted in /proc")
def test_the_process_of_an_endless_graph_ends_when_its_parent_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "late.onnx"
    write_endless(path)
    program = (
        "import sys\nfrom surgeval.detector.inference.onnx_check import open_onnx\nprint(flush=True)\n"
        "open_onnx(sys.argv[1])"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()  # the imports are done
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        wait_until(lambda: bool(children.read_text()), "the child to start")
        child = int(children.read_text().split()[0])
        wait_until(lambda: processor_seconds(child) > 2, "the graph to run")  # its imports take less
        parent.kill()
    wait_until(lambda: not alive(child), "the child to end")


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_process_of_a_graph_ends_with_its_detector(tmp_path: Path) -> None:
    onnx.save(small(), tmp_path / "small.onnx")
    graph = open_onnx(tmp_path / "small.onnx")
    child = graph.process._child._process
    assert child.poll() is None
    del graph
    gc.collect()
    assert child.poll() == 0


def test_bytes_that_are_no_onnx_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    for data in (b"", b"\xff" * 100, b"PK\x03\x04" + b"\x00" * 200, small().SerializeToString()[:-40]):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"bad\.onnx"):
            open_onnx(path)
