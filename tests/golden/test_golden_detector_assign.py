"""Every golden assignment scene under `--golden DIR`, under both rules: owners exact, soft targets to 1e-5."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from surgeval.detector.assign import ASSIGNMENT_RULES, Assignment, assign


def _cases(folder: Path) -> list[dict[str, Any]]:
    cases = []
    for file in sorted((folder / "detector").glob("*.json.gz")):
        entries = json.loads(gzip.decompress(file.read_bytes()))
        if isinstance(entries, list) and entries and "gt_boxes" in entries[0]:
            cases += entries
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scene" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--golden")
        cases = _cases(Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden")
        metafunc.parametrize("scene", cases, ids=[case["case"] for case in cases])


def _assigned(scene: dict[str, Any], rule: str, dtype: Any, *, fixed_shapes: bool) -> Assignment:
    def values(name: str) -> Any:
        return torch.tensor(scene[name], dtype=torch.float32).to(dtype)

    labels = torch.nn.functional.one_hot(torch.tensor(scene["gt_labels"]), scene["num_classes"]).bool()
    boxes = values("gt_boxes").reshape(-1, 4)
    mask = torch.tensor(scene["gt_mask"]).bool()
    batch = (values("scores")[None], values("boxes")[None], values("points"), boxes[None], labels[None], mask[None])
    return assign(*batch, ASSIGNMENT_RULES[rule], fixed_shapes=fixed_shapes)


@pytest.mark.parametrize("fixed_shapes", [False, True], ids=["as-on-the-cpu", "as-on-the-device"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", ["paper", "ultralytics"])
def test_a_scene_is_assigned_as_the_reference_does(
    scene: dict[str, Any], rule: str, dtype: str, fixed_shapes: bool
) -> None:
    expected = scene[rule]
    found = _assigned(scene, rule, getattr(torch, dtype), fixed_shapes=fixed_shapes)
    positive = (found.owner[0] >= 0).nonzero()[:, 0]
    assert positive.tolist() == expected["fg"]
    assert found.owner[0, positive].tolist() == expected["owner"]
    target = torch.zeros_like(found.target[0])
    for point, label, value in expected["target_scores"]:
        target[int(point), int(label)] = value
    torch.testing.assert_close(found.target[0], target, atol=1e-5, rtol=1e-5)
    assert float(found.total) == pytest.approx(expected["target_scores_sum"], abs=1e-4)


@pytest.mark.parametrize("rule", ["paper", "ultralytics"])
def test_the_list_of_positives_says_the_same_as_the_owners(scene: dict[str, Any], rule: str) -> None:
    found = _assigned(scene, rule, torch.float32, fixed_shapes=False)
    point, row = found.point[0][found.positive[0]], found.row[0][found.positive[0]]
    assert sorted(point.tolist()) == scene[rule]["fg"]
    assert torch.equal(found.owner[0, point], row)
    assert not found.weight[0][~found.positive[0]].any()
