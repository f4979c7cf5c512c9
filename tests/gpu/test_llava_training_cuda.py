"""Lessons on a GPU: steps that were recorded and are replayed teach what steps taken one by one teach."""

from __future__ import annotations

import pytest
import torch
from studies.embedded_models import llava_train
from studies.embedded_models.llava_batches import LessonBatches
from studies.embedded_models.llava_lessons import make_lessons, plan_lessons
from studies.embedded_models.llava_train import train_llavas
from studies.embedded_models.prompts import make_tokenizer
from studies.embedded_models.recipes import Recipe

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")


def test_recorded_steps_lower_the_loss_as_steps_taken_one_by_one_do(monkeypatch: pytest.MonkeyPatch) -> None:
    (shoot,) = plan_lessons(1, 2)
    trained = make_lessons(shoot)
    words = make_tokenizer(text for lesson in trained.lessons for text in (lesson.text, lesson.pointed, lesson.reply))
    losses = []
    for warm in (2, 10**9):  # steps before a kind of step is recorded; the second never is
        monkeypatch.setattr(llava_train, "_EAGER_STEPS", warm)
        batches = LessonBatches([trained], words, "cuda", 1)
        losses.append(train_llavas(("phantom-llava",), batches, Recipe(steps=200, batch=32), lambda line: None))
    recorded, plain = (one["phantom-llava"].losses for one in losses)
    assert recorded[-1] < 0.5 * recorded[3], "the loss of the lessons falls"
    assert recorded == pytest.approx(plain, rel=0.15), "sums on a GPU vary in their last digits, and steps add them up"
