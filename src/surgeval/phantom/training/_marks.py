"""How the embedded LLaVAs do on held-out lessons: quick marks while they are taught, no substitute for the protocols.

A reply is the likeliest of the offered letters, read off the first token; `surgeval run intent` lets the model write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch

from surgeval.phantom.training._classroom import Classroom, Gazing, Shelf
from surgeval.phantom.training._speech import ANSWERS

__all__ = ["marks", "picked"]

SKILLS = ("absolute", "relative", "prospective", "retrospective", "discrete", "continuous")
_BATCH = 128


def picked(model: Any, room: Classroom, shelf: Shelf, gazing: Gazing) -> dict[str, int]:
    """The option that is picked, by item."""
    letters = torch.tensor([room.tokenizer.token_to_id(answer) for answer in ANSWERS], device=room.device)
    options = torch.tensor([lesson.options for lesson in shelf.lessons], device=room.device)
    chosen: dict[str, int] = {}
    for first in range(0, len(shelf), _BATCH):
        rows = torch.arange(first, min(first + _BATCH, len(shelf)), device=room.device)
        drawn = room.batch(shelf, rows, gazing)
        with torch.inference_mode(), torch.autocast(
            room.device.type, torch.bfloat16, enabled=room.device.type == "cuda"
        ):
            hidden = model.model(input_ids=drawn.tokens, pixel_values=drawn.pixels).last_hidden_state
            last = hidden[torch.arange(len(rows), device=room.device), drawn.begins - 1]
            logits = model.lm_head(last).float()[:, letters]
        absent = torch.arange(len(letters), device=room.device)[None] >= options[rows][:, None]
        best = logits.masked_fill(absent, float("-inf")).argmax(1).tolist()
        names = (f"{shelf.lessons[row].video}/{shelf.lessons[row].item}" for row in rows.tolist())
        chosen.update(zip(names, best, strict=True))
    return chosen


def marks(model: Any, room: Classroom) -> dict[str, float]:
    """Shares of right replies: by kind and way of gazing, trap and twin together, and how often the gaze matters."""
    shelves = [shelf for (group, _), shelf in room.shelves.items() if group == "intent"]
    ways: tuple[Gazing, ...] = ("none", "gaze", "elsewhere", "anywhere")
    said = {way: {k: v for shelf in shelves for k, v in picked(model, room, shelf, way).items()} for way in ways}
    lessons = {f"{lesson.video}/{lesson.item}": lesson for shelf in shelves for lesson in shelf.lessons}
    right = {
        way: {name: ANSWERS[choice] == lessons[name].reply for name, choice in said[way].items()} for way in ways
    }
    found: dict[str, float] = {}
    for way in ways:
        by_kind: dict[str, list[bool]] = defaultdict(list)
        for name, ok in right[way].items():
            by_kind[lessons[name].kind].append(ok)
        found |= {f"{kind} {way}": _mean(by_kind[kind]) for kind in sorted(by_kind)}
        found[f"competency {way}"] = _mean(found.get(f"{skill} {way}", 0.0) for skill in SKILLS)
        for trap in ("cognitive", "perceptual"):
            pairs = [
                ok and right[way][f"{lessons[name].video}/{lessons[name].partner}"]
                for name, ok in right[way].items()
                if lessons[name].kind == trap
            ]
            found[f"{trap} paired {way}"] = _mean(pairs)
    for way in ways[1:]:
        found[f"changed {way}"] = _mean(said[way][name] != choice for name, choice in said["none"].items())
    return {name: round(value, 4) for name, value in found.items()}


def _mean(values: Iterable[float]) -> float:
    table = list(values)
    return sum(table) / max(len(table), 1)
