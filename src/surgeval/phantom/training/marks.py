"""How the embedded LLaVAs do on held-out lessons: quick marks while they are taught, no substitute for the protocols.

A reply is the likeliest of one for each option; `surgeval run intent` lets the model write its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch

from surgeval.phantom.training.classroom import Classroom, Gazing, Shelf
from surgeval.phantom.training.tutor import Pupil

__all__ = ["marks", "picked"]

SKILLS = ("absolute", "relative", "prospective", "retrospective", "discrete", "continuous")
_BATCH = 128


def picked(pupil: Pupil, room: Classroom, shelf: Shelf, gazing: Gazing) -> dict[str, int]:
    """The option whose reply is the likeliest, by item."""
    picks: dict[str, int] = {}
    for first in range(0, len(shelf), _BATCH):
        rows = torch.arange(first, min(first + _BATCH, len(shelf)), device=room.device)
        lessons = [shelf.lessons[row] for row in rows.tolist()]
        drawn = room.batch(shelf, rows, gazing)
        asked = [lesson.text if gazing == "none" else lesson.pointed for lesson in lessons]
        likely = []
        with (
            torch.inference_mode(),
            torch.autocast(room.device.type, torch.bfloat16, enabled=room.device.type == "cuda"),
        ):
            patches = pupil.seen(drawn.pixels) if drawn.pixels is not None else None
            for option in range(max(len(lesson.replies) for lesson in lessons)):
                replies = [lesson.replies[min(option, len(lesson.replies) - 1)] for lesson in lessons]
                texts = room.texts(asked, replies)
                longest = int((texts.ends - texts.begins).max())
                texts = texts[torch.arange(len(rows), device=room.device)]
                logits, tokens, counts = pupil.reply_logits(texts, patches, longest)
                each = logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]
                # Options that begin alike part at the first word that differs: the mean would favour long ones.
                likely.append((each * counts).sum(1))
        best = torch.stack(likely, 1).argmax(1).tolist()
        names = (f"{lesson.video}/{lesson.item}" for lesson in lessons)
        picks.update(zip(names, best, strict=True))
    return picks


def marks(model: Any, room: Classroom) -> dict[str, float]:
    """Shares of right replies: by kind and way of gazing, trap and twin together, and how often the gaze matters."""
    shelves = [shelf for (group, _), shelf in room.shelves.items() if group == "intent"]
    ways: tuple[Gazing, ...] = ("none", "gaze", "elsewhere")
    pupil = Pupil(model, room.tokenizer, 0).to(room.device).eval()
    answers = {way: {k: v for shelf in shelves for k, v in picked(pupil, room, shelf, way).items()} for way in ways}
    lessons = {f"{lesson.video}/{lesson.item}": lesson for shelf in shelves for lesson in shelf.lessons}
    right = {
        way: {name: lessons[name].replies[choice] == lessons[name].reply for name, choice in answers[way].items()}
        for way in ways
    }
    shares: dict[str, float] = {}
    for way in ways:
        by_kind: dict[str, list[bool]] = defaultdict(list)
        for name, ok in right[way].items():
            by_kind[lessons[name].kind].append(ok)
        shares |= {f"{kind} {way}": _mean(by_kind[kind]) for kind in sorted(by_kind)}
        shares[f"competency {way}"] = _mean(shares.get(f"{skill} {way}", 0.0) for skill in SKILLS)
        for trap in ("cognitive", "perceptual"):
            pairs = [
                ok and right[way][f"{lessons[name].video}/{lessons[name].partner}"]
                for name, ok in right[way].items()
                if lessons[name].kind == trap
            ]
            shares[f"{trap} paired {way}"] = _mean(pairs)
    for way in ways[1:]:
        shares[f"changed {way}"] = _mean(answers[way][name] != choice for name, choice in answers["none"].items())
    return {name: round(value, 4) for name, value in shares.items()}


def _mean(values: Iterable[float]) -> float:
    table = list(values)
    return sum(table) / max(len(table), 1)
