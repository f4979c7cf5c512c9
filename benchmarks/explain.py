"""Batched rollout against one image at a time with one backward per block, and against plain forward + backward.

A random CLIP image tower of ViT-B/32 size (`--model` picks others); no weights are needed, because speed does not
depend on them. Plain forward + backward of the same batch is the floor: no map that needs gradients is cheaper. With
`--device cuda` it also prints images per second and what upsampling, quantiles and region counts add to the maps.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from surgeval.explain.heatmaps import Method, heatmaps
from surgeval.explain.paste import Paste
from surgeval.explain.regions import box_masks, overlap, top_regions
from surgeval.models.contrastive import TextBank

SIZES = {  # width, blocks, heads, patch
    "vit-b-32": (768, 12, 12, 32),
    "vit-b-16": (768, 12, 12, 16),
    "vit-l-14": (1024, 24, 16, 14),
}
FRAMES = {"224 × 224": ((224, 224), (0.0, 0.0, 224.0, 224.0)), "480 × 854": ((480, 854), (187.0, 0.0, 667.0, 480.0))}
FLOOR, PER_IMAGE, REGIONS = 1.2, 4.0, 0.10


@dataclass
class RandomClip:
    """An image tower with random weights, as a model that can be explained."""

    tower: Any
    grid: tuple[int, int]
    name: str = "random"
    logit_scale: float = 100.0

    @classmethod
    def of(cls, size: str, device: str, dtype: torch.dtype) -> RandomClip:
        """A tower of a named size, frozen."""
        from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

        width, blocks, heads, patch = SIZES[size]
        config = CLIPVisionConfig(
            hidden_size=width,
            intermediate_size=4 * width,
            num_hidden_layers=blocks,
            num_attention_heads=heads,
            patch_size=patch,
            image_size=224,
            projection_dim=512,
            attn_implementation="eager",
        )
        with torch.random.fork_rng():
            torch.manual_seed(0)
            tower = CLIPVisionModelWithProjection(config).eval().requires_grad_(False).to(device=device, dtype=dtype)
        return cls(tower, (224 // patch, 224 // patch))

    @property
    def device(self) -> torch.device:
        """Where the tower is."""
        place: torch.device = self.tower.device
        return place

    def attend(self, pixels: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Unit vectors and every block's attention, inside the graph."""
        # Weights are frozen, so the pixels are what makes torch record the graph.
        found = self.tower(pixels.detach().requires_grad_(), output_attentions=True)
        return torch.nn.functional.normalize(found.image_embeds, dim=-1), found.attentions


def floor(model: RandomClip, pixels: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """Forward and one backward to the pixels: no attention kept, no map."""
    watched = pixels.detach().requires_grad_()
    vectors = torch.nn.functional.normalize(model.tower(watched).image_embeds, dim=-1)
    (gradient,) = torch.autograd.grad((vectors @ texts[0]).sum(), [watched])
    return gradient


def per_image(model: RandomClip, pixels: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """The published way: each image alone, one backward per block, R as a full matrix."""
    maps = []
    for image in pixels:
        vectors, attentions = model.attend(image[None])
        score = (vectors @ texts[0]).sum()
        tokens = attentions[0].shape[-1]
        R = torch.eye(tokens, device=image.device)
        for attention in attentions:
            (gradient,) = torch.autograd.grad(score, [attention], retain_graph=True)
            C = (gradient[0] * attention[0].detach()).clamp(min=0).mean(dim=0).float()
            R = R + C @ R
        maps.append(R[0, 1:])
    return torch.stack(maps)


def seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """Best of several runs: CPU time of one thread, which other work on the machine hardly touches, or device time."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    times = []
    for _ in range(repeats):
        _finish(device)
        start = clock()
        work()
        _finish(device)
        times.append(clock() - start)
    return min(times)


def _finish(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def ratio(first: Callable[[], object], second: Callable[[], object], device: str, repeats: int) -> float:
    """Median of the ratios of runs made in turn, so that both meet the same machine."""
    found = [seconds(first, device, 1) / seconds(second, device, 1) for _ in range(repeats)]
    return statistics.median(found)


def region_work(maps: torch.Tensor, paste: Paste, boxes: torch.Tensor) -> torch.Tensor:
    """What the protocol does with a batch of maps: to frame pixels, top 20 %, overlap with two sets of boxes."""
    truths = box_masks(boxes, paste.pixels)
    return overlap(top_regions(paste.upsample_torch(maps)).masks, truths)


def main() -> None:
    """Print the ratios; exit 1 when one misses its goal."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    ask.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    ask.add_argument("--model", choices=tuple(SIZES), default="vit-b-32")
    ask.add_argument("--batch", type=int, default=None, help="images at once (default 16, on cuda 512)")
    ask.add_argument("--tf32", action="store_true", help="float32 products rounded to TF32 on cuda")
    ask.add_argument("--repeats", type=int, default=None, help="default 3, on cuda 20")
    options = ask.parse_args()
    device = options.device
    repeats = options.repeats or (20 if device == "cuda" else 3)
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high" if options.tf32 else "highest")
    batch = options.batch or (512 if device == "cuda" else 16)
    dtype = getattr(torch, options.dtype)
    model = RandomClip.of(options.model, device, dtype)
    noise = torch.Generator().manual_seed(1)
    pixels = torch.randn(batch, 3, 224, 224, generator=noise).to(device=device, dtype=dtype)
    texts = torch.nn.functional.normalize(torch.randn(8, 512, generator=noise), dim=-1).to(device=device, dtype=dtype)
    bank = TextBank(tuple(f"prompt {number}" for number in range(8)), vectors=texts)
    which = torch.zeros(batch, 1, dtype=torch.long)

    def maps() -> torch.Tensor:
        return heatmaps(model, pixels, bank, which, Method("rollout")).values  # type: ignore[arg-type]  # no preparation: not needed here

    few = pixels[: min(batch, 4 if device == "cpu" else 16)]  # the slow way: enough to time it
    alone, together = per_image(model, few, texts), maps()[: len(few), 0].flatten(1)
    worst = float((alone - together).abs().max() / alone.abs().max())
    print(f"{options.model}, {device}, {'tf32' if options.tf32 else options.dtype}, batch {batch}")
    print(f"same maps as one image at a time: largest difference {worst:.1e} of the largest value")
    floor(model, pixels, texts)
    over_floor = ratio(maps, lambda: floor(model, pixels, texts), device, repeats)
    gain = ratio(lambda: per_image(model, few, texts), maps, device, min(repeats, 5)) * batch / len(few)
    verdict = {
        f"batched rollout / plain forward + backward: {over_floor:.2f} (goal ≤ {FLOOR})": over_floor <= FLOOR,
        f"one image at a time / batched rollout: {gain:.1f} (goal ≥ {PER_IMAGE:.0f})": gain >= PER_IMAGE,
    }
    took = seconds(maps, device, repeats)
    base = seconds(lambda: floor(model, pixels, texts), device, repeats)
    print(f"plain forward + backward {batch / base:,.0f} images/s, batched rollout {batch / took:,.0f} images/s")
    made = maps()[:, 0]
    boxes = torch.tensor([[20.0, 30.0, 120.0, 150.0], [200.0, 40.0, 400.0, 220.0], [90.0, 100.0, 180.0, 200.0]])
    boxes = boxes.repeat(batch, 2, 1, 1).to(device)
    boxes[:, 1, 1:] = torch.nan  # all instruments, and the predicted one alone
    for label, (frame, window) in FRAMES.items():
        paste = Paste(frame, window, model.grid)
        region_work(made, paste, boxes)
        both = partial(lambda paste: region_work(maps()[:, 0], paste, boxes), paste)
        # A device works on while the next commands are sent, so there only the sum says what regions cost.
        extra = (
            ratio(both, maps, device, repeats) - 1
            if device == "cuda"
            else seconds(partial(region_work, made, paste, boxes), device, repeats) / took
        )
        text = f"upsampling, quantiles and regions in frames of {label}: {extra:.1%} on top of the maps"
        verdict[f"{text} (goal < {REGIONS:.0%})"] = extra < REGIONS
    for text, good in verdict.items():
        print(("ok    " if good else "MISSED"), text)
    raise SystemExit(0 if all(verdict.values()) else 1)


if __name__ == "__main__":
    main()
