"""Deletion and insertion curves, and the randomisation checks, on a sample of frames.

What is explained is the first labelled instrument of a frame: its prompt, or, for a model that answers in words, its
name in the place of the reply, whatever the model would say itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from surgeval.arrays import Floats
from surgeval.explain.heatmaps import heatmaps
from surgeval.explain.occlusion import OcclusionCurves, fill_colour, occlusion_curves, score_curves
from surgeval.explain.sanity import (
    Cascade,
    map_correlation,
    prompt_randomisation,
    shuffled_weights,
    weight_randomisation,
)
from surgeval.models import Contrastive, Generative
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.protocols.surgxbench.measuring.instruments import to_device
from surgeval.protocols.surgxbench.measuring.measure import classes_present
from surgeval.records import Case
from surgeval.stats import stream

if TYPE_CHECKING:
    from surgeval.models.contrastive import TextBank
    from surgeval.protocols.surgxbench.measuring.asked import AskedModel
    from surgeval.protocols.surgxbench.settings import SurgXSettings
    from surgeval.vocab import LabelSpace

__all__ = ["check_answers", "check_prompts"]


def check_prompts(
    net: Contrastive, bank: TextBank, space: LabelSpace, settings: SurgXSettings, curved: Sequence[PreparedFrame],
    sane: Sequence[PreparedFrame],
) -> Iterator[Case]:  # fmt: skip
    """The checks of a model that scores prompts: curves on some frames, randomisation on some."""
    if curved:
        pixels, which = to_device(curved, net), torch.tensor(_first(curved, space))
        maps = heatmaps(net, pixels, bank, which[:, None], settings.method).values[:, 0]
        yield from _curve_cases(
            curved,
            space,
            maps,
            lambda heat: occlusion_curves(net, pixels, bank, heat, which, seed=settings.seed),
            settings.seed,
        )
    if sane:
        pixels, which = to_device(sane, net), torch.tensor(_first(sane, space))
        asked = (net, pixels, bank, which[:, None], settings.method)
        cascade = weight_randomisation(*asked, seed=settings.seed)
        names = [f"{prepared.frame.video}/{prepared.frame.name}" for prepared in sane]
        other = prompt_randomisation(*asked, seed=settings.seed, names=names) if len(bank) > 1 else None
        yield from _sanity_cases(sane, cascade, other, "another prompt")


def check_answers(asked: AskedModel, curved: Sequence[PreparedFrame], sane: Sequence[PreparedFrame]) -> Iterator[Case]:
    """The checks of a model that answers in words."""
    net, space, seed = asked.net, asked.space, asked.settings.seed
    if curved:
        pixels, numbers = to_device(curved, net), _first(curved, space)
        height, width = pixels.shape[2:]
        inside = torch.zeros(len(curved), height, width, dtype=torch.bool)
        for b, prepared in enumerate(curved):
            inside[b, *prepared.view.pixels(height, width)] = True
        colour = fill_colour(net.preparation)
        yield from _curve_cases(
            curved, space, asked.name_maps(pixels, numbers),
            lambda heat: score_curves(lambda images: asked.name_scores(images, numbers), pixels, heat, colour,
                                      seed=seed, inside=inside), seed,
        )  # fmt: skip
    if sane:
        pixels, numbers = to_device(sane, net), _first(sane, space)

        def maps(model: Generative) -> torch.Tensor:
            return asked.name_maps(pixels, numbers, model)[:, None]

        cascade = shuffled_weights(net, maps, lambda model: asked.name_maps(pixels[:1], numbers[:1], model), seed)
        other = None
        if len(space.instruments) > 1:
            others = [_another(number, len(space.instruments), seed, prepared)
                      for number, prepared in zip(numbers, sane, strict=True)]  # fmt: skip
            both = [asked.name_maps(pixels, row).cpu().numpy() for row in (numbers, others)]
            other = map_correlation(*both)[:, None]
        yield from _sanity_cases(sane, cascade, other, "another name")


def _first(seen: Sequence[PreparedFrame], space: LabelSpace) -> list[int]:
    """The first labelled instrument of each frame."""
    return [classes_present(prepared.frame, len(space.instruments))[0] for prepared in seen]


def _another(number: int, classes: int, seed: int, prepared: PreparedFrame) -> int:
    drawn = float(stream(seed, "prompts", f"{prepared.frame.video}/{prepared.frame.name}").random())
    return (number + 1 + int(drawn * (classes - 1))) % classes


def _curve_cases(
    seen: Sequence[PreparedFrame], space: LabelSpace, maps: torch.Tensor,
    curves_of: Callable[[torch.Tensor], OcclusionCurves], seed: int,
) -> Iterator[Case]:  # fmt: skip
    """The curves of each frame's map, and of a random order of pixels."""
    noise = np.stack(
        [stream(seed, "noise", prepared.frame.video, prepared.frame.name).random(maps.shape[1:]) for prepared in seen]
    )
    own, other = curves_of(maps), curves_of(torch.from_numpy(noise).to(maps))
    for b, (prepared, number) in enumerate(zip(seen, _first(seen, space), strict=True)):
        values: dict[str, Any] = {"task": "curves", "frame": prepared.frame.name, "class": space.instruments[number]}
        for label, measured in (("", own), ("_random", other)):
            for kind in ("deletion", "insertion"):
                values[f"{kind}{label}"] = getattr(measured, kind)[b].tolist()
                values[f"{kind}{label}_area"] = float(getattr(measured, f"{kind}_area")[b])
        yield Case(f"{prepared.frame.video}/{prepared.frame.name}/curves", prepared.frame.video, values=values)


def _sanity_cases(
    seen: Sequence[PreparedFrame], cascade: Cascade, other: Floats | None, changed: str
) -> Iterator[Case]:
    steps = [("weights", f"{n + 1}. {name}", cascade.correlation[n]) for n, name in enumerate(cascade.blocks)]
    if other is not None:
        steps.append(("prompt", changed, other))
    for check, step, correlation in steps:
        for b, prepared in enumerate(seen):
            value = float(correlation[b, 0])
            values = {"task": "sanity", "frame": prepared.frame.name, "check": check, "step": step,
                      "correlation": None if value != value else value}  # fmt: skip
            yield Case(
                f"{prepared.frame.video}/{prepared.frame.name}/sanity/{step}", prepared.frame.video, values=values
            )
