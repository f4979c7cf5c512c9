"""The student: it learns to name and keeps every box of its teacher, bit for bit."""

from __future__ import annotations

import torch
from tests.unit.detector.networks import pictures, small

from surgeval.detector import TDNet, student_of


def _step(student: TDNet, x: torch.Tensor) -> None:
    trained = [weight for weight in student.parameters() if weight.requires_grad]
    optimiser = torch.optim.SGD(trained, lr=0.5, momentum=0.9, weight_decay=5e-4)
    for _ in range(2):
        optimiser.zero_grad()
        output = student(x)
        sum((logits - 1).square().mean() for logits in output.logits.values()).backward()
        optimiser.step()


def test_boxes_stay_bit_identical_and_classes_move() -> None:
    teacher, x = small(), pictures(2, 64, 96)
    student = student_of(teacher)
    student.train()
    _step(student, pictures(2, 64, 96, seed=9))
    for mode in (True, False):
        student.train(mode)
        with torch.no_grad():
            old, new = teacher(x), student(x)
        assert torch.equal(old.box, new.box) and torch.equal(old.boxes(), new.boxes())
        assert not any(torch.equal(old.logits[head], new.logits[head]) for head in old.logits)


def test_only_class_stacks_change_and_no_statistics() -> None:
    teacher = small()
    student = student_of(teacher)
    student.train()
    _step(student, pictures(2, 64, 64))
    before, after = teacher.state_dict(), student.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    trainable = {name for name in before if ".stacks." in name and "running" not in name}
    assert changed == trainable
    assert any(name.endswith("norm.weight") for name in changed)  # scales inside the stacks do train


def test_training_mode_never_wakes_a_normalisation() -> None:
    student = student_of(small())
    student.train()
    norms = [module for module in student.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert student.training and norms and not any(norm.training for norm in norms)
    teacher = small().train()
    assert all(m.training for m in teacher.modules() if isinstance(m, torch.nn.BatchNorm2d))
    assert student_of(teacher).training


def test_the_teacher_is_left_as_it_was() -> None:
    teacher = small()
    student = student_of(teacher)
    assert all(weight.requires_grad for weight in teacher.parameters()) and not teacher.student
    assert {id(w) for w in teacher.parameters()}.isdisjoint(id(w) for w in student.parameters())
    stacks = [weight for stack in student.class_stacks() for weight in stack.parameters()]
    assert {id(w) for w in stacks} == {id(w) for w in student.parameters() if w.requires_grad}
