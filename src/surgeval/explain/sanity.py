"""Sanity checks: a map must change with the model's weights and with the prompt.

Weights are shuffled inside each tensor, block by block from the output to the input, on a copy (Adebayo et al. 2018);
the map's rank correlation with the original must fall. A map that does not change shows the image, not the model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from surgeval.arrays import Floats
from surgeval.errors import BadInput
from surgeval.explain.heatmaps import HEATMAP_METHODS, Method, choose_method, heatmaps
from surgeval.stats import stream

if TYPE_CHECKING:
    from surgeval.models.contrastive import Contrastive, TextBank
    from surgeval.models.generative import Generative

__all__ = ["Cascade", "map_correlation", "prompt_randomisation", "shuffled_weights", "weight_randomisation"]


@dataclass(frozen=True)
class Cascade:
    """Rank correlation with the original map after each block was shuffled in addition to those before it."""

    blocks: tuple[str, ...]  # from the output to the input
    correlation: Floats  # (blocks, images, chosen); NaN where a map is flat


def map_correlation(first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
    """Spearman's correlation of pairs of maps (…, rows, columns); NaN if one of a pair is flat.

    >>> map_correlation([[[0, 1], [2, 3]]], [[[0, 10], [200, 3000]]]).tolist()
    [1.0]
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim < 2:
        raise BadInput(f"Maps of shapes {a.shape} and {b.shape} cannot be correlated: the shapes must be equal.")
    shape = (*a.shape[:-2], a.shape[-2] * a.shape[-1])
    ranks = [np.apply_along_axis(_ranks, -1, heat.reshape(shape)) for heat in (a, b)]
    left, right = (rank - rank.mean(axis=-1, keepdims=True) for rank in ranks)
    spread = np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
    correlation = np.full(spread.shape, np.nan)
    np.divide((left * right).sum(axis=-1), spread, out=correlation, where=spread > 0)
    return correlation


def _ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values with their mean rank; all NaN if one is (scipy.stats takes a second to import)."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[group]
    return np.full_like(ranks, np.nan) if np.isnan(values).any() else ranks


def prompt_randomisation(
    model: Contrastive,
    pixels: torch.Tensor,
    texts: TextBank,
    which: object,
    method: Method | None = None,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> Floats:
    """Correlation (images, chosen) of each map with the map of another prompt, drawn at random from the bank.

    The draw depends only on the seed and the image's name; without names, on its number in the batch. If the
    correlation is near 1 for all images, the map does not depend on the prompt and says nothing about the answer.

    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip-resnet")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> prompt_randomisation(clip, image, clip.texts(["a hook", "a grasper"]), [[0]]).shape
    (1, 1)
    """
    if len(texts) < 2:
        raise BadInput(f"Prompt randomisation needs at least two prompts, not {len(texts)}.")
    own = torch.as_tensor(which)
    names = [str(number) for number in range(len(own))] if names is None else names
    if len(names) != len(own):
        raise BadInput(f"{len(names)} names for {len(own)} images. Give one name for each image.")
    drawn = np.reshape([stream(seed, "prompts", name).random(tuple(own.shape[1:])) for name in names], tuple(own.shape))
    step = torch.from_numpy(1 + (drawn * (len(texts) - 1)).astype(np.int64))
    other = torch.where(own.cpu() < 0, -1, (own.cpu() + step) % len(texts))
    both = [heatmaps(model, pixels, texts, prompts, method).values.cpu().numpy() for prompts in (own, other)]
    return map_correlation(*both)


def weight_randomisation(
    model: Contrastive, pixels: torch.Tensor, texts: TextBank, which: object, method: Method | None = None,
    seed: int = 0,
) -> Cascade:  # fmt: skip
    """The cascade over all blocks of the image tower; the given model is not changed.

    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip-resnet")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> cascade = weight_randomisation(clip, image, clip.texts(["a hook", "a grasper"]), [[0]])
    >>> cascade.blocks[-1], cascade.correlation.shape
    ('network.vision_model.conv1', (7, 1, 1))
    """
    method = choose_method(model, method)

    def maps(net: Contrastive) -> torch.Tensor:
        return heatmaps(net, pixels, texts, which, method).values

    run = HEATMAP_METHODS[method.name].run or (lambda *_: None)
    return shuffled_weights(model, maps, lambda net: run(net, pixels[:1], texts), seed)


Model = TypeVar("Model", bound="Contrastive | Generative")


def shuffled_weights(
    model: Model, maps: Callable[[Model], torch.Tensor], once: Callable[[Model], object], seed: int = 0
) -> Cascade:
    """The cascade of any `maps` (images, chosen, rows, columns) of a model; `once` runs all blocks to be shuffled.

    The given model is not changed: a copy is shuffled.

    >>> from surgeval.models import open_contrastive
    >>> clip = open_contrastive("phantom-clip-resnet")
    >>> image = torch.rand(1, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    >>> texts = clip.texts(["a hook", "a grasper"])
    >>> cascade = shuffled_weights(
    ...     clip, lambda net: heatmaps(net, image, texts, [[0]]).values, lambda net: net.head(net.trunk(image))
    ... )
    >>> len(cascade.blocks), bool(cascade.correlation[-1] < 0.9)
    (7, True)
    """
    original = maps(model).cpu().numpy()
    ruined = copy.deepcopy(model)
    blocks = _blocks(ruined, once)
    steps = []
    for name, modules in blocks.items():
        with torch.no_grad():
            for module in modules:
                for label, weight in module.named_parameters(recurse=False):
                    order = stream(seed, name, label, weight.numel()).random(weight.numel()).argsort()
                    weight.copy_(weight.flatten()[torch.from_numpy(order).to(weight.device)].reshape(weight.shape))
        steps.append(map_correlation(original, maps(ruined).cpu().numpy()))
    return Cascade(tuple(blocks), np.stack(steps))


def _blocks(model: Model, once: Callable[[Model], object]) -> dict[str, list[torch.nn.Module]]:
    """The modules with weights that one image passes through, by block, from the output to the input.

    The order is that of their calls, so no model needs to declare its layers. A text tower is not called, because its
    vectors are computed already, and so not shuffled (it could not change the map).
    """
    called: dict[str, list[torch.nn.Module]] = {}
    handles = []

    def note(name: str) -> Any:
        def hook(module: torch.nn.Module, *_: object) -> None:
            group = called.setdefault(name, [])
            if module not in group:
                group.append(module)

        return hook

    for path, module in _modules(model):
        if any(True for _ in module.parameters(recurse=False)):
            handles.append(module.register_forward_hook(note(_block_name(path))))
    try:
        once(model)
    finally:
        for handle in handles:
            handle.remove()
    if not called:
        raise BadInput(f"{model.name} has no torch modules to shuffle.")
    return dict(reversed(called.items()))


def _modules(model: object) -> Iterator[tuple[str, torch.nn.Module]]:
    roots = {"": model} if isinstance(model, torch.nn.Module) else vars(model)
    for name, root in roots.items():
        if isinstance(root, torch.nn.Module):
            for path, module in root.named_modules():
                yield f"{name}.{path}".strip("."), module


def _block_name(path: str) -> str:
    """The block of a module: parts of one numbered block are shuffled together.

    >>> _block_name("vision.layers.3.mlp.fc1"), _block_name("layer4.0.downsample.1"), _block_name("visual_projection")
    ('vision.layers.3', 'layer4.0', 'visual_projection')
    """
    parts = path.split(".")
    numbered = [at for at, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbered[0] + 1]) if numbered else path
