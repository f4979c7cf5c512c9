"""Every golden file of YOLOv12's sizes under `--golden DIR`: parameter counts and output shapes, exactly.

Files are known by their content: rows with `backbone_and_neck`. Our network has no fixed projection among its weights.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from surgeval.detector import STRIDES, Classes, TDNet
from surgeval.detector.network import empty_tdnet
from surgeval.vocab import LabelSpace


@cache
def _load(file: Path) -> Any:
    raw = file.read_bytes()
    return json.loads(gzip.decompress(raw) if file.suffix == ".gz" else raw)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--golden")
    folder = (Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden") / "detector"
    files = sorted(p for p in folder.glob("*") if p.name.endswith((".json", ".json.gz")))
    rows = [
        row
        for file in files
        if isinstance(content := _load(file), list)
        for row in content
        if isinstance(row, dict) and "backbone_and_neck" in row
    ]
    if "row" in metafunc.fixturenames:
        metafunc.parametrize("row", rows, ids=[f"{row['size']}-{row['num_classes']}" for row in rows])


def _network(row: dict[str, Any]) -> TDNet:
    """A network with one class stack, without memory: shapes and counts need none."""
    names = tuple(f"class {k}" for k in range(row["num_classes"]))
    network = empty_tdnet(row["size"], Classes.of(LabelSpace("golden", names)))
    network.eval()
    return network


def _count(*modules: torch.nn.Module) -> int:
    return sum(weight.numel() for module in modules for weight in module.parameters())


def test_every_part_has_the_published_number_of_parameters(row: dict[str, Any]) -> None:
    network = _network(row)
    assert _count(network.backbone, network.neck) == row["backbone_and_neck"]
    assert _count(network.head.box) == row["box_branch"]
    assert _count(*network.class_stacks()) == row["class_branch"]
    assert _count(network) + row["of_which_fixed_projection"] == row["parameters"]
    assert [branch[0].conv.in_channels for branch in network.head.box] == row["level_channels"]
    assert list(STRIDES) == row["strides"]


def test_outputs_have_the_published_shapes(row: dict[str, Any]) -> None:
    network = _network(row)
    for expected in row["outputs"]:
        batch = expected["decoded"][0]
        with torch.no_grad():
            images = torch.zeros(batch, 3, *expected["input_hw"], device="meta")
            levels = network.features(images)
            output = network.head(levels)
        channels = output.box.shape[-1] + output.logits["i"].shape[-1]
        assert [[batch, channels, *level.shape[-2:]] for level in levels] == expected["levels"]
        boxes, logits = output.boxes(), output.logits["i"]
        assert [batch, boxes.shape[-1] + logits.shape[-1], boxes.shape[1]] == expected["decoded"]
        assert output.points.shape == (boxes.shape[1], 2) and output.strides.shape == (boxes.shape[1],)
