"""Lessons on a GPU: steps that were recorded and are replayed teach what steps taken one by one teach."""

from __future__ import annotations

import pytest
import torch

from surgeval.phantom.training import drill
from surgeval.phantom.training.classroom import Classroom
from surgeval.phantom.training.lessons import lesson_shoots, lessons_of
from surgeval.phantom.training.recipes import Recipe
from surgeval.phantom.training.speech import make_tokenizer
from surgeval.phantom.training.tutor import teach

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")


def test_recorded_steps_lower_the_loss_as_steps_taken_one_by_one_do(monkeypatch: pytest.MonkeyPatch) -> None:
    (shoot,) = lesson_shoots(1, 2)
    taught = lessons_of(shoot)
    words = make_tokenizer(text for lesson in taught.lessons for text in (lesson.text, lesson.pointed, lesson.reply))
    losses = []
    for warm in (2, 10**9):  # steps before a kind of step is recorded; the second never is
        monkeypatch.setattr(drill, "_WARM", warm)
        room = Classroom([taught], words, "cuda", 1)
        losses.append(teach(("phantom-llava",), room, Recipe(steps=200, batch=32), lambda line: None))
    recorded, plain = (one["phantom-llava"].losses for one in losses)
    assert recorded[-1] < 0.5 * recorded[3], "the loss of the lessons falls"
    assert recorded == pytest.approx(plain, rel=0.15), "sums on a GPU vary in their last digits, and steps add them up"
