"""Every golden loss file under `--golden DIR`: CIoU with gradient, DFL, box losses, and the whole detection loss."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from surgeval.detector.assign import ASSIGNMENT_RULES, Assignment, BatchTruth
from surgeval.detector.geometry import ciou, iou
from surgeval.detector.losses import LossSettings, box_losses, dfl, teacher_loss

KINDS = ("ciou", "dfl", "bbox", "detection")


def _cases(folder: Path) -> dict[str, list[dict[str, Any]]]:
    cases: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for file in sorted((folder / "detector").glob("*.json.gz")):
        content = json.loads(gzip.decompress(file.read_bytes()))
        if isinstance(content, dict) and set(KINDS) <= content.keys():
            for kind in KINDS:
                cases[kind] += content[kind]
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--golden")
    for kind, cases in _cases(Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden").items():
        if f"{kind}_case" in metafunc.fixturenames:
            metafunc.parametrize(f"{kind}_case", cases, ids=[case["case"] for case in cases])


def _double(values: Any) -> Any:
    return torch.tensor(values, dtype=torch.float32).double()


def test_complete_iou_and_its_gradient(ciou_case: dict[str, Any]) -> None:
    a, b = _double(ciou_case["a"]).requires_grad_(), _double(ciou_case["b"])
    value = ciou(a, b)
    assert float(iou(a.detach(), b)) == pytest.approx(ciou_case["iou"], abs=1e-6)
    assert float(value.detach()) == pytest.approx(ciou_case["ciou"], abs=1e-6)
    assert float(ciou(a.detach().float(), b.float())) == pytest.approx(ciou_case["ciou_float32"], abs=1e-5)
    if not ciou_case["degenerate"]:
        value.backward()
        torch.testing.assert_close(a.grad, torch.tensor(ciou_case["grad_a"], dtype=torch.float64), atol=1e-6, rtol=1e-6)


def test_distribution_focal_loss(dfl_case: dict[str, Any]) -> None:
    loss = dfl(_double(dfl_case["logits"]), _double(dfl_case["targets"]))
    torch.testing.assert_close(loss, torch.tensor(dfl_case["loss"], dtype=torch.float64), atol=1e-6, rtol=1e-6)
    loss = dfl(_double(dfl_case["logits"]).float(), _double(dfl_case["targets"]).float())
    torch.testing.assert_close(loss, torch.tensor(dfl_case["loss_float32"]), atol=1e-5, rtol=1e-5)


def test_box_losses_of_one_image_in_cell_units(bbox_case: dict[str, Any]) -> None:
    points, fg = _double(bbox_case["points"]), torch.tensor(bbox_case["fg"])
    weights = torch.zeros(len(points), dtype=torch.float64)
    for point, _, value in bbox_case["target_scores"]:
        weights[int(point)] += value
    head = SimpleNamespace(
        box=_double(bbox_case["pred_logits"])[None], logits={}, points=points, strides=torch.ones(len(points))
    )
    truth = BatchTruth(_double(bbox_case["target_boxes"])[None], {}, torch.ones(1, len(points), dtype=torch.bool))
    # Every positive has its own target box: point and row are the same number.
    found = Assignment(fg[None], fg[None], fg[None], torch.ones_like(fg).bool()[None], weights[fg][None], fg)
    sums = box_losses(head, truth, found, found.weight)
    assert float(sums["box"]) / bbox_case["target_scores_sum"] == pytest.approx(bbox_case["loss_box"], rel=1e-5)
    assert float(sums["dfl"]) / bbox_case["target_scores_sum"] == pytest.approx(bbox_case["loss_dfl"], rel=1e-5)


def _head(case: dict[str, Any], dtype: Any) -> tuple[Any, list[Any]]:
    """The three levels of the file as one head output, and the leaves that get gradients."""
    levels = [_double(level).to(dtype).requires_grad_() for level in case["feats"]]
    flat = torch.cat([level.flatten(2) for level in levels], 2).transpose(1, 2)
    points, strides = [], []
    for level, stride in zip(levels, case["strides"], strict=True):
        rows, columns = torch.meshgrid(torch.arange(level.shape[2]), torch.arange(level.shape[3]), indexing="ij")
        points.append((torch.stack((columns.flatten(), rows.flatten()), -1) + 0.5) * stride)
        strides.append(torch.full((rows.numel(),), float(stride)))
    head = SimpleNamespace(
        box=flat[..., :64], logits={"ivt": flat[..., 64:]}, points=torch.cat(points), strides=torch.cat(strides)
    )
    return head, levels


def _truth(case: dict[str, Any]) -> BatchTruth:
    height, width = case["image_size_hw"]
    rows = _double(case["boxes"]).reshape(-1, 6)
    centre, size = rows[:, 2:4], rows[:, 4:6]
    corners = torch.cat((centre - size / 2, centre + size / 2), 1) * torch.tensor([width, height, width, height])
    marks = torch.nn.functional.one_hot(rows[:, 1].long(), case["num_classes"]).bool()
    images = [rows[:, 0] == image for image in range(case["expected"]["batch_size"])]
    return BatchTruth.of([corners[image] for image in images], [{"ivt": marks[image]} for image in images])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-5), ("float32", 1e-4)])
def test_the_whole_loss_of_a_head_output_and_its_gradient(
    detection_case: dict[str, Any], dtype: str, tolerance: float
) -> None:
    head, levels = _head(detection_case, getattr(torch, dtype))
    expected = detection_case["expected"]
    loss = teacher_loss(head, _truth(detection_case), "ivt", LossSettings(rule=ASSIGNMENT_RULES["ultralytics"]))
    for part, name in (("box", "box"), ("dfl", "dfl"), ("ivt", "cls")):
        assert float(loss.parts[part].detach()) == pytest.approx(expected[name], rel=tolerance, abs=1e-9)
    assert float(loss.total.detach()) == pytest.approx(expected["total"], rel=tolerance)
    assert int(loss.positives) == expected["n_positives"]
    loss.total.backward()
    norms = [float(level.grad.norm()) for level in levels]
    assert norms == pytest.approx(expected["grad_norm_per_level"], rel=10 * tolerance)
    sums = [float(level.grad.sum()) for level in levels]
    assert sums == pytest.approx(expected["grad_sum_per_level"], rel=10 * tolerance, abs=1e-6)
