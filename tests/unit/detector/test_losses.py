"""What teacher and student minimise, against plain dense arithmetic and numbers worked out by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.unit.detector.networks import pictures, small
from tests.unit.detector.scenes import HEADS, scene
from torch.nn import functional

from surgeval.detector.assign import ASSIGNMENT_RULES, BatchTruth, assign_output
from surgeval.detector.geometry import ciou, decode
from surgeval.detector.losses import LossSettings, dfl, student_loss, teacher_loss
from surgeval.errors import BadInput

AUX = ("i", "v", "t")


def _dense(output: Any, truth: BatchTruth, settings: LossSettings) -> dict[str, torch.Tensor]:
    """The parts by the words of the specification, over dense arrays and one image at a time."""
    found = assign_output(output, truth, "ivt", settings.rule)
    boxes = decode(output.box, output.points, output.strides)
    parts = {name: torch.zeros((), dtype=output.box.dtype) for name in ("box", "dfl", *HEADS)}
    soft = found.target.amax(-1)
    total = soft.sum().clamp(min=1)
    if settings.hard:
        total = (found.owner >= 0).sum().clamp(min=1)
    if settings.literal:
        total = torch.tensor(1)
    for image in range(len(boxes)):
        for point in range(boxes.shape[1]):
            row = int(found.owner[image, point])
            t = (1.0 if settings.hard else float(soft[image, point])) if row >= 0 else 0.0
            logits = output.logits["ivt"][image, point]
            target = t * truth.labels["ivt"][image, row] if row >= 0 else torch.zeros_like(logits)
            parts["ivt"] = parts["ivt"] + settings.cls * _bce(logits, target)
            for head in AUX:
                logits = output.logits[head][image, point]
                labels = truth.labels[head][image, row] if row >= 0 else torch.zeros_like(logits).bool()
                if (row >= 0 and labels.any()) or (row < 0 and settings.aux_background):
                    parts[head] = parts[head] + settings.aux * _bce(logits, labels)
            if row < 0:
                continue
            weight = 1.0 if settings.literal else t
            wanted, centre, stride = truth.boxes[image, row], output.points[point], output.strides[point]
            parts["box"] = parts["box"] + settings.box * weight * (1 - ciou(boxes[image, point], wanted))
            sides = torch.cat((centre - wanted[:2], wanted[2:] - centre)) / stride
            parts["dfl"] = parts["dfl"] + settings.dfl * weight * dfl(
                output.box[image, point].unflatten(0, (4, 16)), sides
            )
    return {name: value / total for name, value in parts.items()}


def _bce(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="sum")


@pytest.mark.parametrize("preset", ["paper", "ultralytics"])
@pytest.mark.parametrize("options", [{}, {"hard": True}, {"literal": True}, {"aux_background": True}], ids=str)
def test_the_teachers_loss_is_that_of_the_words(preset: str, options: dict[str, bool]) -> None:
    output, truth = scene(11, images=2)
    settings = LossSettings(rule=ASSIGNMENT_RULES[preset], **options)
    leaves = [output.box, *output.logits.values()]
    loss = teacher_loss(output, truth, "ivt", settings)
    expected = _dense(output, truth, settings)
    assert loss.parts.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(loss.parts[name], value, atol=1e-9, rtol=1e-9)
    batch = 1 if settings.literal else 2
    torch.testing.assert_close(loss.total, batch * sum(expected.values()))
    ours = torch.autograd.grad(loss.total, leaves)
    for mine, plain in zip(ours, torch.autograd.grad(batch * sum(expected.values()), leaves), strict=True):
        torch.testing.assert_close(mine, plain, atol=1e-9, rtol=1e-9)


def test_auxiliary_heads_learn_from_the_shared_positives_only() -> None:
    output, truth = scene(12)
    owner = assign_output(output, truth, "ivt").owner
    assert (owner >= 0).any()
    gradients = torch.autograd.grad(teacher_loss(output, truth, "ivt").total, [output.logits[head] for head in AUX])
    for gradient in gradients:
        assert not gradient[owner < 0].any()
        assert gradient[owner >= 0].any()


def test_with_aux_background_they_learn_from_all_points() -> None:
    output, truth = scene(12)
    owner = assign_output(output, truth, "ivt").owner
    total = teacher_loss(output, truth, "ivt", LossSettings(aux_background=True)).total
    for gradient in torch.autograd.grad(total, [output.logits[head] for head in AUX]):
        assert (gradient[owner < 0] > 0).all()


def test_a_box_whose_verb_is_not_known_does_not_train_the_verbs() -> None:
    output, truth = scene(13, images=1)
    truth.labels["v"][:] = False
    for settings in (LossSettings(), LossSettings(aux_background=True)):
        owner = assign_output(output, truth, "ivt").owner
        gradient = torch.autograd.grad(teacher_loss(output, truth, "ivt", settings).total, output.logits["v"])[0]
        assert not gradient[owner >= 0].any()


@pytest.mark.parametrize("rows", [0, 3])
def test_images_without_boxes_teach_the_main_head_that_nothing_is_there(rows: int) -> None:
    output, _ = scene(14, images=2)
    empty = {head: torch.zeros(2, rows, classes, dtype=torch.bool) for head, classes in HEADS.items()}
    nothing = BatchTruth(torch.zeros(2, rows, 4), empty, torch.zeros(2, rows, dtype=torch.bool))
    loss = teacher_loss(output, nothing, "ivt")
    assert int(loss.positives) == 0
    assert {name for name, value in loss.parts.items() if value} == {"ivt"}
    loss.total.backward()
    assert (output.logits["ivt"].grad > 0).all()
    student = student_loss(output, output, nothing, "ivt")
    assert float(student.total.detach()) == 0
    student.total.backward()


def test_a_network_without_auxiliary_heads_has_the_same_other_losses() -> None:
    output, truth = scene(15)
    whole = teacher_loss(output, truth, "ivt").parts
    output.logits = {"ivt": output.logits["ivt"]}
    alone = teacher_loss(output, truth, "ivt").parts
    assert alone.keys() == {"box", "dfl", "ivt"}
    assert all(torch.equal(alone[name], whole[name]) for name in alone)


def _one_positive(student: list[float], teacher: list[float]) -> tuple[Any, Any, BatchTruth]:
    """One point inside one box whose classes are 0 and 2 of three."""
    place = {"box": torch.zeros(1, 1, 64), "points": torch.tensor([[64.0, 64.0]]), "strides": torch.tensor([8.0])}
    first, second = (SimpleNamespace(logits={"i": torch.tensor([[values]])}, **place) for values in (student, teacher))
    return first, second, BatchTruth.of([torch.tensor([[4.0, 4, 124, 124]])], [{"i": torch.tensor([[1, 0, 1]])}])


@pytest.mark.parametrize("fusion", [0.0, 0.2, 0.8, 1.0])
def test_the_students_target_mixes_teacher_and_label(fusion: float) -> None:
    student, teacher = [0.4, -1.2, 2.0], [1.5, -0.5, 0.3]
    by_hand = 0.0
    for z, taught, label in zip(student, teacher, (1, 0, 1), strict=True):
        t = fusion / (1 + math.exp(-taught)) + (1 - fusion) * label
        p = 1 / (1 + math.exp(-z))
        by_hand -= t * math.log(p) + (1 - t) * math.log(1 - p)
    loss = student_loss(*_one_positive(student, teacher), "i", fusion=fusion)
    assert float(loss.total) == pytest.approx(by_hand / 3, rel=1e-6)
    plain_sum = student_loss(*_one_positive(student, teacher), "i", LossSettings(literal=True), fusion=fusion)
    assert float(plain_sum.total) == pytest.approx(by_hand, rel=1e-6)


def test_the_default_trusts_the_teacher_with_four_fifths() -> None:
    student, teacher, truth = _one_positive([0.0, 0.0, 0.0], [0.7, -0.7, 0.0])
    student.logits["i"].requires_grad_()
    student_loss(student, teacher, truth, "i").total.backward()
    p = [1 / (1 + math.exp(-z)) for z in (0.7, -0.7, 0.0)]
    by_hand = [(0.5 - (0.8 * q + 0.2 * label)) / 3 for q, label in zip(p, (1, 0, 1), strict=True)]
    assert student.logits["i"].grad.flatten().tolist() == pytest.approx(by_hand, rel=1e-5)


def test_the_student_learns_at_the_teachers_positives_and_nothing_flows_to_the_teacher() -> None:
    teacher, truth = scene(31)
    other, _ = scene(17)
    logits = {head: (9 * values).detach().requires_grad_() for head, values in other.logits.items()}
    student = SimpleNamespace(box=teacher.box, logits=logits, points=teacher.points, strides=teacher.strides)
    owner = assign_output(teacher, truth, "ivt").owner
    assert not torch.equal(owner, assign_output(student, truth, "ivt").owner)
    student_loss(student, teacher, truth, "ivt").total.backward()
    for head, values in logits.items():
        assert not values.grad[owner < 0].any()
        known = truth.labels[head].any(-1).gather(1, owner.clamp(min=0)) & (owner >= 0)
        assert values.grad[known].any(-1).all()
    assert teacher.box.grad is None
    assert all(values.grad is None for values in teacher.logits.values())


def test_heads_are_means_over_positives_and_classes_and_summed() -> None:
    teacher, truth = scene(18)
    student, _ = scene(19)
    owner = assign_output(teacher, truth, "ivt").owner
    loss = student_loss(student, teacher, truth, "ivt", fusion=0.3)
    for head in HEADS:
        marks = truth.labels[head].gather(1, owner.clamp(min=0)[..., None].expand(-1, -1, HEADS[head]))
        where = (owner >= 0) & marks.any(-1)
        target = 0.3 * teacher.logits[head].detach().sigmoid() + 0.7 * marks
        mean = functional.binary_cross_entropy_with_logits(student.logits[head][where], target[where])
        torch.testing.assert_close(loss.parts[head], mean)
    torch.testing.assert_close(loss.total, sum(loss.parts.values()))


def test_a_fusion_beyond_one_is_refused() -> None:
    with pytest.raises(BadInput, match=r"fusion: found 1\.2, expected 0 to 1"):
        student_loss(*_one_positive([0.0] * 3, [0.0] * 3), "i", fusion=1.2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_losses_of_half_precision_outputs_are_those_of_the_same_numbers_in_single(dtype: torch.dtype) -> None:
    narrow, truth = scene(20, dtype=dtype)
    broad = SimpleNamespace(
        box=narrow.box.detach().float().requires_grad_(),
        logits={head: values.detach().float().requires_grad_() for head, values in narrow.logits.items()},
        points=narrow.points, strides=narrow.strides,
    )  # fmt: skip
    truth.boxes = truth.boxes.float()
    with torch.autocast("cpu", torch.bfloat16):
        losses = [teacher_loss(output, truth, "ivt") for output in (narrow, broad)]
        taught = [student_loss(output, output, truth, "ivt") for output in (narrow, broad)]
    for first, second in (losses, taught):
        assert first.total.dtype == torch.float32
        torch.testing.assert_close(first.total, second.total)
    losses[0].total.backward()
    losses[1].total.backward()
    for head, logits in narrow.logits.items():
        assert logits.grad.dtype == dtype
        torch.testing.assert_close(logits.grad.float(), broad.logits[head].grad, atol=1e-2, rtol=1e-2)


def test_the_surest_half_precision_logits_give_finite_losses() -> None:
    output, truth = scene(21, dtype=torch.float16)
    output.logits = {head: (values.detach() * 20_000).requires_grad_() for head, values in output.logits.items()}
    loss = teacher_loss(output, truth, "ivt")
    assert loss.total.isfinite()
    loss.total.backward()
    assert all(values.grad.isfinite().all() for values in output.logits.values())


def test_a_training_step_asks_a_device_for_no_content() -> None:
    """On torch's meta device there is none: a step that needed some could not be captured in a CUDA graph."""
    output, truth = scene(22, dtype=torch.float32)
    meta = SimpleNamespace(
        box=output.box.detach().to("meta").requires_grad_(),
        logits={head: values.detach().to("meta").requires_grad_() for head, values in output.logits.items()},
        points=output.points.to("meta"), strides=output.strides.to("meta"),
    )  # fmt: skip
    for settings in (
        LossSettings(),
        LossSettings(hard=True, aux_background=True, rule=ASSIGNMENT_RULES["ultralytics"]),
    ):
        for loss in (
            teacher_loss(meta, truth.to("meta"), "ivt", settings),
            student_loss(meta, meta, truth.to("meta"), "ivt", settings),
        ):
            loss.total.backward()
            assert loss.total.shape == ()


def test_a_networks_output_teaches_every_part_of_it() -> None:
    network = small().train()
    output = network(pictures(2, 64, 64))
    marks = {head: torch.ones(1, logits.shape[-1]) for head, logits in output.logits.items()}
    truth = BatchTruth.of([torch.tensor([[4.0, 4, 50, 60]])] * 2, [marks] * 2)
    loss = teacher_loss(output, truth, "ivt")
    assert int(loss.positives) > 0
    loss.total.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in network.parameters())
    for branch in (network.head.box, *network.head.stacks.values()):
        assert any(weight.grad.any() for weight in branch.parameters())
