"""Losses and suppression on a GPU: the CPU's numbers, no wait for the host, and a step that can be recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.unit.detector.scenes import scene

from surgeval.detector import (
    ASSIGNMENT_RULES,
    BatchTruth,
    HeadOutput,
    LossSettings,
    Selecting,
    select,
    student_loss,
    teacher_loss,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")

SETTINGS = [
    LossSettings(),
    LossSettings(rule=ASSIGNMENT_RULES["ultralytics"]),
    LossSettings(hard=True, aux_background=True, rule=replace(ASSIGNMENT_RULES["paper"], inside=False)),
]


def _there(output: Any, dtype: torch.dtype | None = None) -> HeadOutput:
    def moved(values: torch.Tensor) -> torch.Tensor:
        return values.detach().to("cuda", dtype).requires_grad_()

    logits = {head: moved(values) for head, values in output.logits.items()}
    return HeadOutput(moved(output.box), logits, output.points.cuda(), output.strides.cuda())


@contextmanager
def _without_waiting() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_losses_are_those_of_the_cpu_and_nobody_waits(settings: LossSettings) -> None:
    output, truth = scene(41)
    other, _ = scene(42)
    there, other_there, truth_there = _there(output), _there(other), truth.to("cuda")
    with _without_waiting():
        taught = teacher_loss(there, truth_there, "ivt", settings)
        learned = student_loss(other_there, there, truth_there, "ivt", settings)
        (taught.total + learned.total).backward()
    here = teacher_loss(output, truth, "ivt", settings)
    also = student_loss(other, output, truth, "ivt", settings)
    (here.total + also.total).backward()
    for found, expected in ((taught, here), (learned, also)):
        assert int(found.positives) == int(expected.positives)
        for name, value in expected.parts.items():
            torch.testing.assert_close(found.parts[name].cpu(), value, atol=1e-9, rtol=1e-7)
    torch.testing.assert_close(there.box.grad.cpu(), output.box.grad)
    for head, logits in output.logits.items():
        torch.testing.assert_close(there.logits[head].grad.cpu(), logits.grad)
        torch.testing.assert_close(other_there.logits[head].grad.cpu(), other.logits[head].grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_outputs_have_the_losses_of_the_same_numbers_in_single(dtype: torch.dtype) -> None:
    output, truth = scene(43, dtype=dtype)
    truth.boxes = truth.boxes.float()
    with torch.autocast("cuda", dtype):
        narrow = teacher_loss(_there(output), truth.to("cuda"), "ivt")
        broad = teacher_loss(_there(output, torch.float32), truth.to("cuda"), "ivt")
    assert narrow.total.dtype == torch.float32
    torch.testing.assert_close(narrow.total, broad.total)


def test_a_recorded_step_replays_on_other_boxes() -> None:
    outputs, truths = zip(*(scene(seed, dtype=torch.float32) for seed in (44, 45)), strict=True)
    most = max(truth.labels_per_box or 0 for truth in truths)
    cases = [
        (_there(output), BatchTruth(truth.boxes, truth.labels, truth.mask, most).to("cuda"))
        for output, truth in zip(outputs, truths, strict=True)
    ]
    place, truth = _there(outputs[0]), cases[0][1].to("cuda")
    truth = BatchTruth(truth.boxes.clone(), {head: marks.clone() for head, marks in truth.labels.items()},
                  truth.mask.clone(), most)  # fmt: skip
    leaves = [place.box, *place.logits.values()]

    def step() -> tuple[torch.Tensor, list[torch.Tensor]]:
        total = teacher_loss(place, truth, "ivt").total
        return total, list(torch.autograd.grad(total, leaves))

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total, gradients = step()
    for output, labelled in (*cases, cases[0]):
        with torch.no_grad():
            for leaf, values in zip(leaves, (output.box, *output.logits.values()), strict=True):
                leaf.copy_(values)
        truth.boxes.copy_(labelled.boxes)
        truth.mask.copy_(labelled.mask)
        for head, marks in truth.labels.items():
            marks.copy_(labelled.labels[head])
        graph.replay()
        expected = teacher_loss(output, labelled, "ivt").total
        torch.testing.assert_close(total, expected)
        wanted = torch.autograd.grad(expected, [output.box, *output.logits.values()])
        for found, gradient in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(found, gradient)


@pytest.mark.parametrize("mode", ["class", "agnostic"])
def test_the_same_boxes_are_selected_as_on_the_cpu(mode: Any) -> None:
    random = torch.Generator().manual_seed(46)
    corner = torch.randint(0, 600, (4, 4000, 2), generator=random)
    boxes = torch.cat((corner, corner + torch.randint(0, 90, (4, 4000, 2), generator=random)), -1).float()
    scores = torch.randint(0, 1000, (4, 4000, 6), generator=random) / 1000
    settings = Selecting(confidence=0.4, iou=0.3, mode=mode, candidates=5000)
    here = select(boxes, {"ivt": scores}, "ivt", None, settings)
    there = select(boxes.cuda(), {"ivt": scores.cuda()}, "ivt", None, settings)
    for first, second in zip(here, there, strict=True):
        assert torch.equal(first.classes, second.classes.cpu())
        assert torch.equal(first.boxes, second.boxes.cpu())
