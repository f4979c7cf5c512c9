"""Task `triplets`: how well do the top prompts name each labelled triplet, and where does the model look for it?

Profile `surgxbench` gives one case per labelled triplet (match level, RAS, occlusion); profile `early` one case per
frame (the single best prompt, and the map of its verb: ARS).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from surgeval.explain.heatmaps import heatmaps
from surgeval.metrics.grounding import EXCLUDED, Grounding, Match, match_ras, triplet_match
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame, by_size
from surgeval.protocols.surgxbench.measuring.hide import hidden_scores
from surgeval.protocols.surgxbench.measuring.instruments import to_device
from surgeval.protocols.surgxbench.measuring.measure import LabelledScene
from surgeval.protocols.surgxbench.settings import SurgXSettings
from surgeval.protocols.surgxbench.tables import CONTROLS
from surgeval.records import UNKNOWN, Case, Triplet
from surgeval.vocab import LabelSpace, TripletPrompts

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank

__all__ = ["ars_cases", "complete_matches", "labelled_triplets", "matched_cases", "triplet_cases", "triplet_name"]


def triplet_cases(
    model: Contrastive, bank: TextBank, prompts: TripletPrompts, space: LabelSpace, seen: Sequence[PreparedFrame],
    settings: SurgXSettings,
) -> Iterator[Case]:  # fmt: skip
    """The cases of one batch, profile `surgxbench`."""
    pixels = to_device(seen, model)
    scores = model.scores(pixels, bank)
    top = scores.topk(min(settings.top_k, len(bank)), dim=1)
    which, best = top.indices.cpu(), top.values.double().cpu().numpy()
    prompted = [[Triplet(*prompts.ids[p]) for p in row] for row in which.tolist()]
    maps = heatmaps(model, pixels, bank, which, settings.method).values
    matches = [triplet_match(row, best[b].tolist(), labelled_triplets(seen[b])) for b, row in enumerate(prompted)]
    effects = _occluded(model, bank, prompts, seen, pixels, maps, matches, best, settings)
    yield from matched_cases(seen, prompted, best.tolist(), maps, matches, effects, space, settings)


def matched_cases(
    seen: Sequence[PreparedFrame], named: Sequence[Sequence[Triplet]], scores: Sequence[Sequence[float]],
    maps: torch.Tensor, matches: Sequence[Sequence[Match]], effects: Mapping[tuple[int, int], dict[str, Any]],
    space: LabelSpace, settings: SurgXSettings,
) -> Iterator[Case]:  # fmt: skip
    """A case for each labelled triplet: how what was said matches it, and where the model looked for that.

    `maps` (frames, most, rows, columns) are those of the said triplets.
    """
    values: list[list[Grounding]] = [[] for _ in seen]
    for group in by_size(seen):
        scene = LabelledScene.of(
            [seen[b] for b in group], (maps.shape[2], maps.shape[3]), len(space.instruments), settings, maps.device
        )
        grounded = scene.ground(maps[group], [[triplet.instrument for triplet in named[b]] for b in group])
        for b, row in zip(group, grounded, strict=True):
            values[b] = row
    for b, found_matches in enumerate(matches):
        prepared = seen[b]
        for number, match in enumerate(found_matches):
            case = {
                "task": "triplets", "frame": prepared.frame.name, "triplet": triplet_name(match.truth, space),
                "class": space.instruments[match.truth.instrument], "level": match.level,
                "prompt": None if match.prompt is None else triplet_name(named[b][match.prompt], space),
                "score": None if match.prompt is None else float(scores[b][match.prompt]),
                "top": [triplet_name(triplet, space) for triplet in named[b]],
            }  # fmt: skip
            case |= _ras(match, values[b], prepared) | effects.get((b, number), {})
            if prepared.motion_note:
                case["note"] = prepared.motion_note
            yield Case(
                f"{prepared.frame.video}/{prepared.frame.name}/triplet/{number}", prepared.frame.video, values=case
            )


def labelled_triplets(prepared: PreparedFrame) -> list[Triplet]:
    """The complete triplets of a frame, each once."""
    triplets = [item.triplet for item in prepared.frame.instances if UNKNOWN not in
             (item.triplet.instrument, item.triplet.verb, item.triplet.target)]  # fmt: skip
    return list(dict.fromkeys(triplets))


def _ras(match: Match, values: Sequence[Grounding], prepared: PreparedFrame) -> dict[str, Any]:
    """RAS of the matched prompt (local), or the mean over all prompts (global) for a missed triplet."""
    if not values:  # a reply that names nothing has no map
        return {"ras": None, "chance": None, "area": None, "flags": prepared.motion_flag, "excluded": "no_map"}
    used = list(values) if match.prompt is None else [values[match.prompt]]
    flags = frozenset().union(*(v.flags for v in used)) | (
        {prepared.motion_flag} if prepared.motion_flag else frozenset()
    )

    def counted(name: str) -> list[float | None]:
        return [None if value.flags & EXCLUDED else getattr(value, name) for value in values]

    _, ras = match_ras(match, counted("RAS_local"), counted("RAS_global"))
    _, chance = match_ras(match, counted("chance_local"), counted("chance_global"))
    usable = [v for v in used if not v.flags & EXCLUDED] or used
    excluded = (
        ""
        if ras is not None
        else prepared.motion_flag
        if prepared.motion is None
        else " ".join(sorted(flags & EXCLUDED))
    )
    return {
        "ras": ras, "chance": chance, "area": float(np.mean([v.fraction for v in usable])),
        "flags": " ".join(sorted(flags)), "excluded": excluded,
    }  # fmt: skip


def _occluded(
    model: Contrastive, bank: TextBank, prompts: TripletPrompts, seen: Sequence[PreparedFrame], pixels: torch.Tensor,
    maps: torch.Tensor, matches: Sequence[Sequence[Match]],
    best: np.ndarray[Any, np.dtype[np.float64]], settings: SurgXSettings,
) -> dict[tuple[int, int], dict[str, Any]]:  # fmt: skip
    """Complete matches again with regions hidden.

    `kept`: is the triplet still among the top prompts? `matched`: is any labelled triplet of the frame?
    """
    pairs = complete_matches(matches)
    if not settings.occlusion or not pairs:
        return {}
    images = [b for b, *_ in pairs]
    picked = torch.stack([maps[b, prompt] for b, _, prompt, _ in pairs])
    after = hidden_scores(
        model,
        bank,
        [seen[b] for b in images],
        pixels[images],
        picked,
        [truth.instrument for *_, truth in pairs],
        settings,
    )
    numbers = {Triplet(*ids): number for number, ids in enumerate(prompts.ids)}
    labelled = {b: {numbers.get(triplet) for triplet in labelled_triplets(seen[b])} for b in images}
    answers: dict[tuple[int, int], dict[str, Any]] = {(b, number): {} for b, number, _, _ in pairs}
    for name in CONTROLS:
        again = after[name].scores
        top = again.topk(min(settings.top_k, again.shape[1]), dim=1).indices.tolist()
        for row, (b, number, prompt, truth) in enumerate(pairs):
            if after[name].hides[row]:
                index = numbers[truth]
                answers[b, number][f"kept_{name}"] = index in top[row]
                answers[b, number][f"matched_{name}"] = not labelled[b].isdisjoint(top[row])
                answers[b, number][f"change_{name}"] = float(again[row, index]) - float(best[b][prompt])
    return answers


def complete_matches(matches: Sequence[Sequence[Match]]) -> list[tuple[int, int, int, Triplet]]:
    """Frame, number of the label, of the prompt, and the triplet itself, for every triplet that was named in full."""
    return [(b, number, match.prompt, match.truth) for b, row in enumerate(matches) for number, match in enumerate(row)
            if match.level == "IVT" and match.prompt is not None]  # fmt: skip


def ars_cases(
    model: Contrastive, bank: TextBank, prompts: TripletPrompts, verbs: TextBank, space: LabelSpace,
    seen: Sequence[PreparedFrame], settings: SurgXSettings,
) -> Iterator[Case]:  # fmt: skip
    """The cases of one batch, profile `early`: one predicted triplet per frame, the verb's map where it is valid."""
    pixels = to_device(seen, model)
    prompted = [Triplet(*prompts.ids[p]) for p in model.scores(pixels, bank).argmax(dim=1).tolist()]
    truths = [labelled_triplets(prepared) for prepared in seen]
    valid = [
        any((t.instrument, t.verb) == (p.instrument, p.verb) for t in row)
        for p, row in zip(prompted, truths, strict=True)
    ]
    which = torch.tensor([[p.verb if right else -1] for p, right in zip(prompted, valid, strict=True)])
    maps = heatmaps(model, pixels, verbs, which, settings.method)
    for group in by_size(seen):
        scene = LabelledScene.of(
            [seen[b] for b in group], tuple(maps.values.shape[2:]), len(space.instruments), settings, model.device
        )
        # The early text prints > for ARS where it prints >= for the other two.
        grounded = scene.ground(
            maps.values[group], [[prompted[b].instrument] for b in group], strict=True, matched=True
        )
        for b, (value,) in zip(group, grounded, strict=True):
            row = truths[b]  # a frame without a triplet counts in V/T: the paper divides by all frames
            # An instrument without a visible box cannot be looked at: undefined, not 0.
            blind = {"class_empty"} if "gt_empty" not in value.flags else set()
            out = value.flags & (EXCLUDED | blind) if valid[b] else frozenset()
            case = {
                "task": "ars", "frame": seen[b].frame.name, "prompt": triplet_name(prompted[b], space),
                "valid": valid[b], "ars": value.ARS if valid[b] and not out else None,
                "area": value.fraction if valid[b] else None,
                "flags": " ".join(sorted(value.flags)) if valid[b] else "",
                "excluded": " ".join(sorted(out)),
                "match_instrument": any(t.instrument == prompted[b].instrument for t in row),
                "match_verb": any(t.verb == prompted[b].verb for t in row),
                "match_target": any(t.target == prompted[b].target for t in row),
                "match_triplet": prompted[b] in row,
            }  # fmt: skip
            yield Case(f"{seen[b].frame.video}/{seen[b].frame.name}/ars", seen[b].frame.video, values=case)


def triplet_name(triplet: Triplet, space: LabelSpace) -> str:
    """`instrument,verb,target`, also where the combination is no class of the space; `?` for what is not known."""
    parts = ((space.instruments, triplet.instrument), (space.verbs, triplet.verb), (space.targets, triplet.target))
    return ",".join("?" if number == UNKNOWN else names[number] for names, number in parts)
