"""From seeds to the two LLaVAs: film and ask, teach, save as fp16. No test video is rendered or looked at here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from surgeval.phantom.training._classroom import Classroom
from surgeval.phantom.training._lessons import SETS, lesson_shoots, teach_all
from surgeval.phantom.training._llava import save_llava
from surgeval.phantom.training._recipes import Recipe
from surgeval.phantom.training._speech import make_tokenizer
from surgeval.phantom.training._tutor import teach

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
            report[name] = {
                "recipe": asdict(recipe),
                "lessons": lessons,
                "words": words.get_vocab_size(),
                "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
                "torch": str(torch.__version__),
                "seconds_rendering": round(ready, 1),
                "seconds_training": round(pupil.seconds, 1),
                "parameters": sum(p.numel() for p in pupil.model.parameters()),
                "bytes": (out / name / "model.safetensors").stat().st_size,
                "losses": [round(loss, 4) for loss in pupil.losses],
            }
            text = json.dumps(report[name], indent=1)
            (out / name / "training.json").write_text(f"{text}\n", encoding="utf-8")
    return report
