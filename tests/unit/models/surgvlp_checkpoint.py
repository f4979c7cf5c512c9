"""A random SurgVLP checkpoint, with names and shapes written from their description and not from our network."""

from __future__ import annotations

import math
import zlib
from pathlib import Path

import torch


def surgvlp_names() -> dict[str, tuple[int, ...]]:
    """Every tensor of a checkpoint and its shape."""
    names: dict[str, tuple[int, ...]] = {}

    def norm(prefix: str, width: int) -> None:
        names.update({f"{prefix}.{part}": (width,) for part in ("weight", "bias", "running_mean", "running_var")})
        names[f"{prefix}.num_batches_tracked"] = ()

    img = "backbone_img.model"
    names[f"{img}.conv1.weight"] = (64, 3, 7, 7)
    norm(f"{img}.bn1", 64)
    channels = 64
    for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), start=1):
        for block in range(count):
            at = f"{img}.layer{stage}.{block}"
            names[f"{at}.conv1.weight"] = (width, channels, 1, 1)
            names[f"{at}.conv2.weight"] = (width, width, 3, 3)
            names[f"{at}.conv3.weight"] = (4 * width, width, 1, 1)
            for number, size in ((1, width), (2, width), (3, 4 * width)):
                norm(f"{at}.bn{number}", size)
            if block == 0:
                names[f"{at}.downsample.0.weight"] = (4 * width, channels, 1, 1)
                norm(f"{at}.downsample.1", 4 * width)
            channels = 4 * width
    names["backbone_img.global_embedder.weight"] = (768, 2048)
    names["backbone_img.global_embedder.bias"] = (768,)
    txt = "backbone_text.model"
    for table, rows in (("word", 28996), ("position", 512), ("token_type", 2)):
        names[f"{txt}.embeddings.{table}_embeddings.weight"] = (rows, 768)
    pairs = [("embeddings.LayerNorm", (768,)), ("pooler.dense", (768, 768))]
    for layer in range(12):
        at = f"encoder.layer.{layer}"
        pairs += [(f"{at}.attention.self.{part}", (768, 768)) for part in ("query", "key", "value")]
        pairs += [(f"{at}.attention.output.dense", (768, 768)), (f"{at}.attention.output.LayerNorm", (768,))]
        pairs += [(f"{at}.intermediate.dense", (3072, 768)), (f"{at}.output.dense", (768, 3072))]
        pairs += [(f"{at}.output.LayerNorm", (768,))]
    for name, shape in pairs:
        names[f"{txt}.{name}.weight"], names[f"{txt}.{name}.bias"] = shape, shape[:1]
    return names


def surgvlp_tensors() -> dict[str, torch.Tensor]:
    """A random checkpoint of exactly those names and shapes.

    All tensors are views of one storage as long as the largest of them, so the file has 45 MB instead of 536.
    """
    names = surgvlp_names()
    spare = 1 << 16  # room to begin at another place for every name
    most = max(math.prod(shape) for shape in names.values()) + spare
    noise = torch.randn((1 << 17) - 1, generator=torch.Generator().manual_seed(0)) * 0.05
    pool = noise.half().repeat(most // len(noise) + 1)[:most].clone()

    def tensor(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        if name.endswith("num_batches_tracked"):
            return torch.tensor(1)
        if name.endswith("running_var") or (len(shape) == 1 and name.endswith("weight")):
            return torch.ones(shape)  # variances and scales
        offset = zlib.crc32(name.encode()) % spare
        return pool[offset : offset + math.prod(shape)].view(shape)

    return {name: tensor(name, shape) for name, shape in names.items()}


def write_vocab(path: Path, pieces: int = 28996) -> Path:
    real = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "I", "use", "a", "gra", "##sper", "Grasper", "the"]
    path.write_text("\n".join([*real, *(f"[unused{k}]" for k in range(pieces - len(real)))]) + "\n")
    return path
