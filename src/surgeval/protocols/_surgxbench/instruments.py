"""Task `instruments`: which prompts does the model say, and does it look at the instrument when it says them?

One case per frame and class that is present, predicted or the frame's `best` prompt: present without predicted is a
miss (no map), predicted without present is a false alarm. Every frame has one `best` case, so that top-1 accuracy is
the share of present ones among them; `shown` counts the instruments labelled in the frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from surgeval.explain.baselines import BASELINES, baseline
from surgeval.explain.heatmaps import heatmaps
from surgeval.metrics.grounding import EXCLUDED, Grounding, grounded, prediction_sets
from surgeval.protocols._surgxbench.frames import Seen, by_size
from surgeval.protocols._surgxbench.hide import hidden_scores
from surgeval.protocols._surgxbench.measure import Scene, classes_present
from surgeval.protocols._surgxbench.settings import Settings
from surgeval.protocols._surgxbench.tables import CONTROLS
from surgeval.records import Case

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["grounding_values", "instrument_cases", "predicted_classes", "reference_cases", "to_device"]

Bools = npt.NDArray[np.bool_]


def to_device(seen: Sequence[Seen], model: Contrastive) -> torch.Tensor:
    """The prepared pixels as one tensor."""
    return torch.from_numpy(np.stack([one.pixels for one in seen])).to(model.device)


def predicted_classes(scores: npt.NDArray[np.float64], settings: Settings) -> Bools:
    """(frames, classes): what the model is taken to say. With `over="frames"` that is decided when the run is over."""
    if settings.predict == "argmax":
        return np.asarray(np.eye(scores.shape[1], dtype=bool)[scores.argmax(axis=1)])
    if settings.over == "frames":
        return np.ones(scores.shape, dtype=bool)
    return prediction_sets(scores, settings.delta, settings.over)


def instrument_cases(
    model: Contrastive, bank: TextBank, classes: Sequence[str], seen: Sequence[Seen], settings: Settings
) -> Iterator[Case]:
    """The cases of one batch."""
    pixels = to_device(seen, model)
    scores = model.scores(pixels, bank).double().cpu().numpy()
    said = predicted_classes(scores, settings)
    chosen = [np.flatnonzero(row).tolist() for row in said]
    which = _padded(chosen)
    maps = heatmaps(model, pixels, bank, which, settings.method)
    values: dict[tuple[int, int], Grounding] = {}
    for group in by_size(seen):
        scene = Scene.of([seen[b] for b in group], tuple(maps.values.shape[2:]), len(classes), settings, model.device)
        found = scene.ground(maps.values[group], [chosen[b] for b in group])
        values |= {
            (b, c): one for b, row in zip(group, found, strict=True) for c, one in zip(chosen[b], row, strict=True)
        }
    effects = _occluded(model, bank, seen, pixels, maps.values, chosen, scores, settings, len(classes))
    for b, one in enumerate(seen):
        present, best = classes_present(one.frame, len(classes)), int(scores[b].argmax())
        for c in sorted({*chosen[b], *present, best}):
            row: dict[str, Any] = {
                "task": "instruments", "frame": one.frame.name, "class": classes[c], "score": float(scores[b, c]),
                "best": c == best, "predicted": bool(said[b, c]), "present": c in present, "shown": len(present),
            }  # fmt: skip
            row |= grounding_values(values.get((b, c)), settings)
            row |= effects.get((b, c), {})
            yield Case(f"{one.frame.video}/{one.frame.name}/instrument/{classes[c]}", one.frame.video, values=row)


def grounding_values(found: Grounding | None, settings: Settings, *, reference: bool = False) -> dict[str, Any]:
    """The columns of one map. `excluded` names the rules that keep it out of means; empty = it counts."""
    if found is None:  # a class that was not predicted has no map
        return {
            "ac": None,
            "aa": None,
            "chance": None,
            "area": None,
            "grounded": None,
            "flags": "",
            "excluded": "no_map",
        }
    out = sorted(found.flags & EXCLUDED) if not found.counts_in_means(reference=reference) else []
    if reference:
        out = [name for name in out if name != "constant"]
    # No pixel of the class can be looked at (outside the window, or labelled without a box): 0 would be no finding.
    blind = "class_empty" in found.flags and "gt_empty" not in found.flags
    return {
        "ac": found.AC, "aa": None if blind else found.AA, "chance": found.chance, "area": found.fraction,
        "grounded": grounded(found.AC, found.chance, settings.grounded_at), "flags": " ".join(sorted(found.flags)),
        "excluded": " ".join(out),
    }  # fmt: skip


def reference_cases(
    seen: Sequence[Seen], grid: tuple[int, int], classes: Sequence[str], settings: Settings
) -> Iterator[Case]:
    """What maps without a model score in the same window: one case per frame, map and class present."""
    cpu = torch.device("cpu")
    for one in seen:
        present = classes_present(one.frame, len(classes))
        scene = Scene.of([one], grid, len(classes), settings, cpu)
        rows, columns = scene.paste.visible
        for name in BASELINES:
            # Only the oracle knows the class; the other maps are one for all.
            for group in [[c] for c in present] if name == "oracle" else [present] if present else []:
                boxes = [i.box.corners for i in one.frame.instances
                         if i.box is not None and i.triplet.instrument in group]  # fmt: skip
                heat = torch.from_numpy(np.ascontiguousarray(baseline(name, one.image, boxes)[rows, columns]))
                for c, found in zip(group, scene.ground_full(heat, 0, group), strict=True):
                    row = {"task": "reference", "frame": one.frame.name, "class": classes[c], "reference": name}
                    row |= grounding_values(found, settings, reference=True)
                    case = f"{one.frame.video}/{one.frame.name}/reference/{name}/{classes[c]}"
                    yield Case(case, one.frame.video, values=row)


def _occluded(
    model: Contrastive, bank: TextBank, seen: Sequence[Seen], pixels: torch.Tensor, maps: torch.Tensor,
    chosen: list[list[int]], scores: npt.NDArray[np.float64], settings: Settings, classes: int,
) -> dict[tuple[int, int], dict[str, Any]]:  # fmt: skip
    """Right predictions again with regions hidden: is the class still said, and how does its score move?"""
    if not settings.occlusion or (settings.predict, settings.over) == ("delta", "frames"):
        return {}  # what a hidden frame says would depend on all other frames hidden too
    pairs = [(b, c, k) for b, one in enumerate(seen) for k, c in enumerate(chosen[b])
             if c in classes_present(one.frame, classes)]  # fmt: skip
    if not pairs:
        return {}
    images = [b for b, _, _ in pairs]
    picked = torch.stack([maps[b, k] for b, _, k in pairs])
    after = hidden_scores(
        model, bank, [seen[b] for b in images], pixels[images], picked, [c for _, c, _ in pairs], settings
    )
    found: dict[tuple[int, int], dict[str, Any]] = {(b, c): {} for b, c, _ in pairs}
    for name in CONTROLS:
        again = after[name].scores.double().numpy()
        said = predicted_classes(again, settings)
        for row, (b, c, _) in enumerate(pairs):
            if after[name].hides[row]:
                found[b, c][f"kept_{name}"] = bool(said[row, c])
                found[b, c][f"change_{name}"] = float(again[row, c] - scores[b, c])
    return found


def _padded(chosen: list[list[int]]) -> torch.Tensor:
    """(images, most) prompt numbers, -1 where an image has fewer."""
    most = max((len(row) for row in chosen), default=0) or 1
    table = torch.full((len(chosen), most), -1, dtype=torch.long)
    for b, row in enumerate(chosen):
        table[b, : len(row)] = torch.tensor(row, dtype=torch.long)
    return table
