"""Task `instruments`: which prompts does the model say, and does it look at the instrument when it says them?

One case per frame and class that is present, predicted or the frame's `best` prompt: present without predicted is a
miss (no map), predicted without present is a false alarm. Every frame has one `best` case, so that top-1 accuracy is
the share of present ones among them; `shown` counts the instruments labelled in the frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from surgeval.arrays import Bools, Floats, Singles
from surgeval.explain.heatmaps import heatmaps
from surgeval.explain.reference_maps import BASELINES, baseline, edges
from surgeval.explain.regions import Regions
from surgeval.metrics.grounding import EXCLUDED, Grounding, grounded, prediction_sets
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame, by_size
from surgeval.protocols.surgxbench.measuring.hide import hidden_scores
from surgeval.protocols.surgxbench.measuring.measure import LabelledScene, classes_present, regions_of
from surgeval.protocols.surgxbench.settings import SurgXSettings
from surgeval.protocols.surgxbench.tables import CONTROLS, NONE_NAMED
from surgeval.records import Case

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank
    from surgeval.models.generative import Generative

__all__ = ["grounding_values", "instrument_cases", "named_cases", "padded", "predicted_classes",
           "reference_cases", "to_device"]  # fmt: skip


def to_device(seen: Sequence[PreparedFrame], model: Contrastive | Generative) -> torch.Tensor:
    """The prepared pixels as one tensor."""
    return torch.from_numpy(np.stack([prepared.pixels for prepared in seen])).to(model.device)


def predicted_classes(scores: Floats, settings: SurgXSettings) -> Bools:
    """(frames, classes): what the model is taken to say. With `over="frames"` that is decided when the run is over."""
    if settings.predict == "argmax":
        return np.asarray(np.eye(scores.shape[1], dtype=bool)[scores.argmax(axis=1)])
    if settings.over == "frames":
        return np.ones(scores.shape, dtype=bool)
    return prediction_sets(scores, settings.delta, settings.over)


def instrument_cases(
    model: Contrastive, bank: TextBank, classes: Sequence[str], seen: Sequence[PreparedFrame], settings: SurgXSettings
) -> Iterator[Case]:
    """The cases of one batch."""
    pixels = to_device(seen, model)
    scores = model.scores(pixels, bank).double().cpu().numpy()
    predicted = predicted_classes(scores, settings)
    named = [np.flatnonzero(row).tolist() for row in predicted]
    which = padded(named)
    maps = heatmaps(model, pixels, bank, which, settings.method).values
    effects = _occluded(model, bank, seen, pixels, maps, named, scores, settings, len(classes))
    sure = {(b, c): float(value) for (b, c), value in np.ndenumerate(scores)}
    best = scores.argmax(axis=1).tolist()
    yield from named_cases(seen, classes, named, maps, sure, best, effects, settings)


def named_cases(
    seen: Sequence[PreparedFrame], classes: Sequence[str], named: Sequence[Sequence[int]], maps: torch.Tensor,
    scores: Mapping[tuple[int, int], float], best: Sequence[int | None],
    effects: Mapping[tuple[int, int], dict[str, Any]], settings: SurgXSettings,
) -> Iterator[Case]:  # fmt: skip
    """A case for each class that a frame shows or that was named, and for the one named first.

    `maps` (frames, most, rows, columns) are those of the named classes; a frame without any has a `best` case of none.
    """
    values: dict[tuple[int, int], Grounding] = {}
    for group in by_size(seen):
        scene = LabelledScene.of(
            [seen[b] for b in group], (maps.shape[2], maps.shape[3]), len(classes), settings, maps.device
        )
        grounded = scene.ground(maps[group], [named[b] for b in group])
        values |= {
            (b, c): grounding
            for b, row in zip(group, grounded, strict=True)
            for c, grounding in zip(named[b], row, strict=True)
        }
    for b, prepared in enumerate(seen):
        present, first = classes_present(prepared.frame, len(classes)), best[b]
        for c in sorted({*named[b], *present, *([] if first is None else [first])}):
            row: dict[str, Any] = {
                "task": "instruments", "frame": prepared.frame.name, "class": classes[c], "score": scores.get((b, c)),
                "best": c == first, "predicted": c in named[b], "present": c in present, "shown": len(present),
            }  # fmt: skip
            row |= grounding_values(values.get((b, c)), settings)
            row |= effects.get((b, c), {})
            yield Case(
                f"{prepared.frame.video}/{prepared.frame.name}/instrument/{classes[c]}",
                prepared.frame.video,
                values=row,
            )
        if first is None:
            none: dict[str, Any] = {
                "task": "instruments", "frame": prepared.frame.name, "class": NONE_NAMED, "score": None, "best": True,
                "predicted": False, "present": False, "shown": len(present),
            }  # fmt: skip
            none |= grounding_values(None, settings)
            yield Case(f"{prepared.frame.video}/{prepared.frame.name}/nothing named", prepared.frame.video, values=none)


def grounding_values(
    grounding: Grounding | None, settings: SurgXSettings, *, reference: bool = False
) -> dict[str, Any]:
    """The columns of one map. `excluded` names the rules that keep it out of means; empty = it counts."""
    if grounding is None:  # a class that was not predicted has no map
        return {
            "ac": None,
            "aa": None,
            "chance": None,
            "chance_class": None,
            "area": None,
            "grounded": None,
            "flags": "",
            "excluded": "no_map",
        }
    out = sorted(grounding.flags & EXCLUDED) if not grounding.counts_in_means(reference=reference) else []
    if reference:
        out = [name for name in out if name != "constant"]
    # No pixel of the class can be looked at (outside the window, or labelled without a box): 0 would be no finding.
    blind = "class_empty" in grounding.flags and "gt_empty" not in grounding.flags
    return {
        "ac": grounding.AC, "aa": None if blind else grounding.AA, "chance": grounding.chance,
        "chance_class": None if blind else grounding.chance_class, "area": grounding.fraction,
        "grounded": grounded(grounding.AC, grounding.chance, settings.grounded_at),
        "flags": " ".join(sorted(grounding.flags)), "excluded": " ".join(out),
    }  # fmt: skip


def reference_cases(
    seen: Sequence[PreparedFrame], classes: Sequence[str], settings: SurgXSettings, device: torch.device
) -> Iterator[Case]:
    """What maps without a model score in the same window: one case per frame, map and class present."""
    values: list[dict[tuple[str, int], Grounding]] = [{} for _ in seen]
    for group in by_size(seen):
        scene = LabelledScene.of([seen[b] for b in group], (1, 1), len(classes), settings, device)
        for name, region, owners, asked in _reference_regions(scene):
            for n, row in enumerate(scene.ground_regions(region, owners, asked)):
                values[group[owners[n]]] |= {(name, c): grounding for c, grounding in zip(asked[n], row, strict=True)}
    for prepared, found_maps in zip(seen, values, strict=True):
        for (name, c), grounding in found_maps.items():
            row_values: dict[str, Any] = {
                "task": "reference", "frame": prepared.frame.name, "class": classes[c], "reference": name,
            }  # fmt: skip
            row_values |= grounding_values(grounding, settings, reference=True)
            row_values |= {"ras": grounding.RAS_local, "ras_chance": grounding.chance_local}
            case = f"{prepared.frame.video}/{prepared.frame.name}/reference/{name}/{classes[c]}"
            yield Case(case, prepared.frame.video, values=row_values)


def _reference_regions(scene: LabelledScene) -> Iterator[tuple[str, Regions, list[int], list[list[int]]]]:
    """Name, regions, the frame of each and the classes it is asked for."""
    rows, columns = scene.paste.visible
    asked = [sorted(classes) for classes in scene.present]
    owners = [b for b, row in enumerate(asked) if row]
    if not owners:
        return
    rest = [asked[b] for b in owners]
    for name in BASELINES:
        if name == "oracle":  # only the oracle knows the class
            for layer, number in enumerate(scene.shown, start=2):
                own = [b for b in owners if number in scene.present[b]]
                yield name, regions_of(scene.masks[own, layer].float(), scene.settings), own, [[number]] * len(own)
            continue
        if name == "edge":  # drawn when the frame was read
            heat = np.stack([_edges(scene.seen[b])[rows, columns] for b in owners])
        else:  # these know only the frame's size: one map for all frames
            heat = baseline(name, scene.seen[0].image)[None, rows, columns]
        regions = regions_of(torch.from_numpy(heat).to(scene.masks.device), scene.settings)
        yield name, regions if len(heat) == len(owners) else regions.repeated(len(owners)), owners, rest


def _edges(prepared: PreparedFrame) -> Singles:
    return edges(prepared.image) if prepared.edges is None else prepared.edges


def _occluded(
    model: Contrastive, bank: TextBank, seen: Sequence[PreparedFrame], pixels: torch.Tensor, maps: torch.Tensor,
    named: list[list[int]], scores: Floats, settings: SurgXSettings, classes: int,
) -> dict[tuple[int, int], dict[str, Any]]:  # fmt: skip
    """Right predictions again with regions hidden: is the class still said, and how does its score move?"""
    if not settings.occlusion or (settings.predict, settings.over) == ("delta", "frames"):
        return {}  # what a hidden frame says would depend on all other frames hidden too
    pairs = [(b, c, k) for b, prepared in enumerate(seen) for k, c in enumerate(named[b])
             if c in classes_present(prepared.frame, classes)]  # fmt: skip
    if not pairs:
        return {}
    images = [b for b, _, _ in pairs]
    picked = torch.stack([maps[b, k] for b, _, k in pairs])
    after = hidden_scores(
        model, bank, [seen[b] for b in images], pixels[images], picked, [c for _, c, _ in pairs], settings
    )
    answers: dict[tuple[int, int], dict[str, Any]] = {(b, c): {} for b, c, _ in pairs}
    for name in CONTROLS:
        again = after[name].scores.double().numpy()
        predicted = predicted_classes(again, settings)
        for row, (b, c, _) in enumerate(pairs):
            if after[name].hides[row]:
                answers[b, c][f"kept_{name}"] = bool(predicted[row, c])
                answers[b, c][f"change_{name}"] = float(again[row, c] - scores[b, c])
    return answers


def padded(numbers: list[list[int]]) -> torch.Tensor:
    """(images, most) prompt numbers, -1 where an image has fewer."""
    most = max((len(row) for row in numbers), default=0) or 1
    table = torch.full((len(numbers), most), -1, dtype=torch.long)
    for b, row in enumerate(numbers):
        table[b, : len(row)] = torch.tensor(row, dtype=torch.long)
    return table
