"""From seeds to the two LLaVAs: film and ask, teach, save as fp16. No test video is rendered or looked at here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surgeval.phantom.training.classroom import Classroom
from surgeval.phantom.training.lessons import SETS, lesson_shoots, teach_all
from surgeval.phantom.training.llava import save_llava
from surgeval.phantom.training.log import write_training_log
from surgeval.phantom.training.recipes import Recipe
from surgeval.phantom.training.speech import make_tokenizer
from surgeval.phantom.training.tutor import teach

__all__ = ["school_llavas"]

VOCABULARY = 24  # videos whose lessons the words are taken from: later ones bring no new words worth their time


def school_llavas(
    recipes: Mapping[str, Recipe], out: Path, *, device: str, workers: int, log: Callable[[str], None],
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Teach each named model by its recipe into OUT/NAME; models of one recipe share what they have in common."""
    report: dict[str, Any] = {}
    for recipe in dict.fromkeys(recipes.values()):
        names = tuple(name for name, own in recipes.items() if own == recipe)
        began = time.perf_counter()
        taught = teach_all(lesson_shoots(recipe.videos, SETS), workers, progress)
        words = make_tokenizer(
            text
            for part in taught[:VOCABULARY]
            for lesson in part.lessons
            for text in (lesson.text, lesson.pointed, lesson.reply)
        )
        room = Classroom(taught, words, device, recipe.seed)
        ready = time.perf_counter() - began
        lessons = sum(len(part.lessons) for part in taught)
        log(f"{lessons} lessons of {len(taught)} videos ready after {ready:.0f} s; {words.get_vocab_size()} words")
        for name, pupil in teach(names, room, recipe, log).items():
            save_llava(pupil.model, words, out / name)
            report[name] = write_training_log(
                out / name, recipe, pupil.model, pupil.losses,
                counts={"lessons": lessons, "words": words.get_vocab_size()}, device=device, rendering=ready,
                training=pupil.seconds,
            )  # fmt: skip
    return report
