"""Make docs/images/explain-*.png: `python docs/images/make_explain.py`.

Order and scale are shown on the tiny CLIP of the golden files (random weights: the arithmetic is the subject, not the
model); threshold and crop on a phantom frame whose boxes are known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.patches import Rectangle

from surgeval.explain import Method, Paste, map_correlation
from surgeval.explain.heatmaps import heatmaps
from surgeval.metrics.grounding import fixed_region, top_region
from surgeval.models import Preparation, TextBank, open_contrastive
from surgeval.phantom import Footage, edition, make_procedure, plan_videos

HERE = Path(__file__).parent
TINY = HERE.parents[1] / "tests" / "data" / "golden" / "xai" / "tiny_clip"
SEEN = {
    "BLIP: all of it, squashed": Preparation(resize=(384, 384)),
    "CLIP: shorter edge, centre": Preparation(resize=224, crop=(224, 224)),
    "SurgVLP: 640×360, centre": Preparation(resize=(360, 640), crop=(224, 224), resample="bilinear"),
}


def order_and_scale() -> None:
    """The same score of the same image: two orders, three scales."""
    model = open_contrastive(str(TINY))
    with np.load(TINY / "expected.npz") as stored:
        pixels, vectors = torch.from_numpy(stored["pixel_values"]), torch.from_numpy(stored["text_embeds"])
    texts = TextBank(tuple(map(str, range(len(vectors)))), torch.nn.functional.normalize(vectors, dim=-1))
    figure, axes = plt.subplots(2, 4, figsize=(9, 5), layout="constrained")
    scales = (1.0, 100.0, 1000.0)
    maps: dict[Any, Any] = {}
    for row, order in enumerate(("chefer", "seed")):
        asked = [Method("rollout", order=order, score_scale=scale) for scale in scales]  # type: ignore[arg-type]
        asked.append(Method("rollout", order=order, start_layer=-1))  # type: ignore[arg-type]
        for column, method in enumerate(asked):
            heat = heatmaps(model, pixels, texts, [[3]], method).values[0, 0].numpy()
            maps[row, column] = heat
            axes[row, column].imshow(heat, cmap="magma")
            name = f"cosine × {method.score_scale:g}" if column < 3 else "last block only"
            agree = "" if row == 0 else f"\nrank correlation {float(map_correlation(maps[0, column], heat)):.2f}"
            axes[row, column].set_title(f"{order}, {name}{agree}", fontsize=9)
    _save(figure, axes, "explain-order-scale.png")


def threshold(image: Any, heat: Any, sparse: Any) -> None:
    """One map, four readings of "the attended region"; and a sparse map, with and without `positive`."""
    regions = {
        "keep_top=0.2 (default)": top_region(heat),
        "Eq. 1 read literally": top_region(heat, 0.8),
        "min-max ≥ 0.3 (early profile)": fixed_region(heat),
        "sparse map, keep_top=0.2": top_region(sparse),
        "sparse map, positive=False": top_region(sparse, positive=False),
    }
    figure, axes = plt.subplots(2, 3, figsize=(9, 4.6), layout="constrained")
    axes.flat[0].imshow(image)
    axes.flat[0].imshow(heat, cmap="magma", alpha=0.55)
    axes.flat[0].set_title("the map", fontsize=9)
    for axis, (name, region) in zip(axes.flat[1:], regions.items(), strict=True):
        shown = image.astype(float) / 255
        shown[~region.mask] *= 0.3
        axis.imshow(shown)
        axis.set_title(f"{name}\n{region.fraction:.0%} of the frame", fontsize=9)
    _save(figure, axes, "explain-threshold.png")


def crop(image: Any) -> None:
    """What each family sees, and one patch of its map in the window and stretched over the frame."""
    height, width = image.shape[:2]
    grid = np.zeros((7, 7), np.float32)
    grid[1, 1] = 1
    figure, axes = plt.subplots(2, 3, figsize=(9, 4), layout="constrained")
    for column, (name, preparation) in enumerate(SEEN.items()):
        view = preparation.view(height, width)
        x1, y1, x2, y2 = view.window
        for row, mode in enumerate(("window", "stretch")):
            paste = Paste.of(view, (7, 7), mode)  # type: ignore[arg-type]
            heat = np.nan_to_num(paste.full(paste.upsample(grid)))
            axis = axes[row, column]
            axis.imshow(image)
            axis.imshow(np.ma.masked_less(heat, 0.05), cmap="magma", alpha=0.8, vmin=0, vmax=1)
            axis.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, color="cyan", lw=1.5))
            title = f"{name}, {view.fraction:.0%}" if mode == "window" else "the same patch, stretched"
            axis.set_title(title, fontsize=9)
    _save(figure, axes, "explain-crop.png")


def _save(figure: Any, axes: Any, name: str) -> None:
    for axis in axes.flat:
        axis.set_axis_off()
    figure.savefig(HERE / name, dpi=100)
    plt.close(figure)


def main() -> None:
    """All pictures."""
    fixed = edition("phantom-v1")
    plan = {plan.name: plan for plan in plan_videos(fixed.seed, fixed.videos)}["A1"]
    footage = Footage(make_procedure(plan.seed, fixed.seconds, plan.procedure), plan.source)
    image = footage.shoot(14 * 25).image
    height, width = image.shape[:2]
    down, across = np.mgrid[0:height, 0:width] / [[[height]], [[width]]]
    heat = np.exp(-((down - 0.55) ** 2 + (across - 0.4) ** 2) / 0.02) + 0.35 * np.exp(-((across - 0.85) ** 2) / 0.01)
    order_and_scale()
    threshold(image, heat + 0.05, np.maximum(heat - 0.8, 0))
    crop(image)


if __name__ == "__main__":
    main()
