"""Every golden suppression case under `--golden DIR`: kept indices exact, with classes and without."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from surgeval.detector.nms import nms


def _cases(folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    cases = []
    for file in sorted((folder / "detector").glob("*.json.gz")):
        entries = json.loads(gzip.decompress(file.read_bytes()))
        if isinstance(entries, list) and entries and "expected" in entries[0]:
            cases += [(entry, expected) for entry in entries for expected in entry["expected"]]
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "nms_case" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--golden")
        cases = _cases(Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden")
        metafunc.parametrize("nms_case", cases, ids=[f"{case['case']}-{expected['iou']}" for case, expected in cases])


def test_the_kept_boxes_are_the_golden_ones(nms_case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    case, expected = nms_case
    boxes = torch.tensor(case["boxes"], dtype=torch.float32).reshape(-1, 4)
    scores = torch.tensor(case["scores"], dtype=torch.float32)
    classes = torch.tensor(case["classes"], dtype=torch.long)
    assert nms(boxes, scores, iou=expected["iou"]).tolist() == expected["nms"]
    assert nms(boxes, scores, classes, iou=expected["iou"]).tolist() == expected["batched"]
