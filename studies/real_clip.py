"""A small CLIP on real laparoscopic frames: does it look at the instrument it names?

Separate steps, because the machine with the GPU often has neither the data nor all of surgeval's dependencies:

    python -m studies.real_clip pack  --real DATA --out packed         here: labels and small JPEGs in two files
    python -m studies.real_clip train --packed packed --out weights --device cuda      torch, transformers, cv2, numpy
    python -m studies.real_clip look  --real DATA --weights weights --out runs         here: protocol surgxbench
    python -m studies.real_clip tables --out runs                                      here: the tables of the docs

DATA holds m2cai16-tool-locations (train and val frames with boxes) and cholect50-val (four videos, leave one out).
The weights are trained on data whose licence forbids passing them on: they stay where they were made.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 224
M2CAI = "m2cai16-tool-locations/images"  # the published split is by frame: every video is in both parts
VIDEOS = ("VID68", "VID70", "VID73", "VID74")
VISION = {"hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 8, "num_attention_heads": 6}
TEXT = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
RESNET = {"widths": [32, 64, 128, 256], "blocks": [2, 2, 2, 2]}


# ── pack ────────────────────────────────────────────────────────────────────────────────────────────────────────


def pack(real: Path, out: Path) -> None:
    """All labelled frames, squashed to 224 × 224 and JPEG-coded, with their classes."""
    import cv2

    from surgeval.datasets import open_dataset, read_image
    from surgeval.vocab import load_labels

    space = load_labels("phantom")  # the words of CholecT50's label space, and the seventh instrument
    rows: list[tuple[str, list[int], list[int]]] = []
    parts: list[bytes] = []
    for split, dataset in _sources(real, open_dataset):
        for video in dataset.videos(lambda _problem: None):
            for frame in dataset.frames(video.name, on_problem=lambda _problem: None):
                if not frame.labelled or frame.image is None:
                    continue
                own = dataset.space
                instruments = sorted(
                    {space.id("instrument", _same(own.instruments[i.triplet.instrument])) for i in frame.instances
                     if i.triplet.instrument >= 0}
                )  # fmt: skip
                triplets = sorted(
                    {number for i in frame.instances if min(i.triplet.instrument, i.triplet.verb, i.triplet.target) >= 0
                     for number in [space.find(i.triplet.instrument, i.triplet.verb, i.triplet.target)] if number >= 0}
                )  # fmt: skip
                small = cv2.resize(read_image(frame.image), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
                parts.append(cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])[1].tobytes())
                rows.append((video.name if split == "cholect50" else split, instruments, triplets))
    out.mkdir(parents=True, exist_ok=True)
    ends = np.cumsum([len(part) for part in parts])
    (out / "frames.bin").write_bytes(b"".join(parts))
    (out / "labels.json").write_text(json.dumps({"ends": ends.tolist(), "rows": rows}))
    print(f"{len(rows)} frames, {ends[-1] / 1e6:.1f} MB")


def _sources(real: Path, open_dataset: Any) -> Iterator[tuple[str, Any]]:
    for split in ("train", "val"):
        yield f"m2cai16-{split}", open_dataset(real / M2CAI / split, format="voc")
    yield "cholect50", open_dataset(real / "cholect50-val")


def _same(name: str) -> str:
    """m2cai16 writes SpecimenBag; every label space agrees on the rest."""
    return "specimen_bag" if name.replace("_", "").casefold() in ("specimenbag", "bag") else name


# ── train ───────────────────────────────────────────────────────────────────────────────────────────────────────


def train(packed: Path, out: Path, device: str, epochs: int, batch: int) -> None:
    """Two models on m2cai16 (a ViT and a ResNet) and one ResNet per left-out CholecT50 video."""
    import cv2
    import torch

    labels = json.loads((packed / "labels.json").read_text())
    blob, ends = (packed / "frames.bin").read_bytes(), [0, *labels["ends"]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        decoded = pool.map(
            lambda k: cv2.cvtColor(
                cv2.imdecode(np.frombuffer(blob[ends[k] : ends[k + 1]], np.uint8), 1), cv2.COLOR_BGR2RGB
            ),
            range(len(labels["rows"])),
        )
        images = torch.from_numpy(np.stack(list(decoded))).to(device).permute(0, 3, 1, 2).contiguous()
    groups = np.array([row[0] for row in labels["rows"]])
    jobs = [
        ("m2cai16-vit", "vit", groups == "m2cai16-train", groups == "m2cai16-val", epochs * 2),
        ("m2cai16-resnet", "resnet", groups == "m2cai16-train", groups == "m2cai16-val", epochs),
        *((f"cholect50-without-{video}", "resnet", np.isin(groups, [v for v in VIDEOS if v != video]), groups == video,
           epochs) for video in VIDEOS),
    ]  # fmt: skip
    for name, kind, fit_on, test_on, rounds in jobs:
        if (out / name / "model.safetensors").exists():  # an earlier, interrupted step made it
            continue
        start = time.perf_counter()
        model = _fit(kind, images, labels["rows"], np.flatnonzero(fit_on), rounds, batch, device)
        score = _f1(model, images, labels["rows"], np.flatnonzero(test_on))
        _save(model, out / name)
        print(f"{name}: {rounds} epochs in {time.perf_counter() - start:.0f} s, held-out top-1 {score:.3f}", flush=True)


def _fit(kind: str, images: Any, rows: Sequence[Any], chosen: Any, epochs: int, batch: int, device: str) -> Any:
    import torch
    from studies.embedded_models.clip import contrastive_loss, image_vectors, text_vectors
    from studies.embedded_models.prompts import draw_sentences, encode, space

    torch.manual_seed(1)
    model = _build(kind).to(device).train()
    label = space()
    instruments = torch.zeros(len(rows), len(label.instruments), device=device)
    triplets = torch.zeros(len(rows), len(label.triplets), device=device)
    for number, (_, ins, trip) in enumerate(rows):
        instruments[number, ins], triplets[number, trip] = 1.0, 1.0
    verb_of = torch.tensor([v for _, v, _ in label.triplets], device=device)
    pool = torch.as_tensor(chosen, device=device)
    pool = pool[instruments[pool].sum(1) > 0]
    share = instruments[pool].mean(0).clamp(min=1e-6)
    weight = (instruments[pool] / share.sqrt()).max(1).values
    steps = max(1, epochs * len(pool) // batch)
    rate = 2e-3 if kind == "resnet" else 7e-4
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.1)
    rng, draws = random.Random(1), torch.Generator(device).manual_seed(1)
    for step in range(steps):
        warm = min(1.0, (step + 1) / max(1, steps // 20))
        for group in optimiser.param_groups:
            group["lr"] = rate * warm * 0.5 * (1 + math.cos(math.pi * step / steps))
        picked = pool[torch.multinomial(weight, batch, replacement=True, generator=draws)]
        pixels = _augmented(images[picked], draws)
        said = draw_sentences(rng, others=32)
        tokens = torch.tensor(encode([*said.instruments, *said.verbs, *said.triplets, *said.others]), device=device)
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=device.startswith("cuda")):
            seen, read = image_vectors(model, pixels).float(), text_vectors(model, tokens).float()
            logits = model.logit_scale.clamp(max=math.log(100)).exp() * seen @ read.T
            first, second = len(said.instruments), len(said.instruments) + len(said.verbs)
            loss = contrastive_loss(logits[:, :first], instruments[picked])
            known = triplets[picked]
            if bool(known.any()):
                verbs = torch.zeros(batch, len(said.verbs), device=device).index_add_(1, verb_of, known).clamp(max=1)
                strange = known.new_zeros(batch, len(said.others))
                loss = loss + 0.5 * contrastive_loss(logits[:, second:], torch.cat([known, strange], 1))
                loss = loss + 0.25 * contrastive_loss(logits[:, first:second], verbs)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model.eval()


def _build(kind: str) -> Any:
    from studies.embedded_models.prompts import BEGIN, END, LENGTH, PAD, vocabulary
    from transformers import CLIPConfig, CLIPModel

    from surgeval.models.clip import PhantomClipResnet

    words = vocabulary()
    text = {**TEXT, "vocab_size": len(words), "max_position_embeddings": LENGTH, "pad_token_id": words[PAD],
            "bos_token_id": words[BEGIN], "eos_token_id": words[END]}  # fmt: skip
    if kind == "resnet":
        return PhantomClipResnet({"vision": RESNET, "text": text, "projection_dim": 64})
    vision = {**VISION, "image_size": SIDE, "patch_size": 16}
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=64))


def _augmented(frames: Any, draws: Any) -> Any:
    """Mirrored both ways, turned, cropped to 70-100 %, recoloured, with one hole."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    count, device = len(frames), frames.device

    def spread(*shape: int) -> Any:
        return 2 * torch.rand(*shape, generator=draws, device=device) - 1

    angle, scale = 0.35 * spread(count), 0.85 + 0.15 * spread(count)
    mirror, flip = torch.sign(spread(count)), torch.sign(spread(count))
    cos, sin = scale * torch.cos(angle), scale * torch.sin(angle)
    shift = 0.15 * spread(count, 2)
    theta = torch.stack([mirror * cos, -flip * sin, shift[:, 0], mirror * sin, flip * cos, shift[:, 1]], 1).view(
        -1, 2, 3
    )
    grid = affine_grid(theta, [count, 3, SIDE, SIDE], align_corners=False)
    pixels = grid_sample(frames.float() / 255, grid, padding_mode="reflection", align_corners=False)
    gain = (1 + 0.25 * spread(count, 1, 1, 1)) * (1 + 0.12 * spread(count, 3, 1, 1))
    mean = pixels.mean((1, 2, 3), keepdim=True)
    pixels = (((pixels - mean) * (1 + 0.25 * spread(count, 1, 1, 1)) + mean) * gain).clamp(0, 1)
    middle, half = 0.5 + 0.5 * spread(count, 2), 0.14 + 0.1 * spread(count, 2)
    at = (torch.arange(SIDE, device=device) + 0.5) / SIDE
    inside = [(at[None] - middle[:, k : k + 1]).abs() < half[:, k : k + 1] for k in (0, 1)]
    hole = (inside[0][:, :, None] & inside[1][:, None, :])[:, None]
    return (torch.where(hole, torch.zeros_like(pixels), pixels) - 0.5) / 0.5


def _f1(model: Any, images: Any, rows: Sequence[Any], chosen: Any) -> float:
    """The share of held-out frames whose best instrument prompt names an instrument that is there."""
    import torch
    from studies.embedded_models.clip import image_vectors, text_vectors
    from studies.embedded_models.prompts import benchmark_sentences, encode

    right = total = 0
    with torch.no_grad():
        texts = text_vectors(model, torch.tensor(encode(benchmark_sentences().instruments), device=images.device))
        for first in range(0, len(chosen), 128):
            part = chosen[first : first + 128]
            best = (image_vectors(model, (images[part].float() / 255 - 0.5) / 0.5) @ texts.T).argmax(1).tolist()
            for number, row in zip(best, part, strict=True):
                if rows[row][1]:
                    right, total = right + (number in rows[row][1]), total + 1
    return right / max(total, 1)


def _save(model: Any, folder: Path) -> None:
    from studies.embedded_models.clip import save_clip

    save_clip(model, folder)
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text()) | {"size": {"height": SIDE, "width": SIDE}}
    path.write_text(json.dumps(settings, indent=2) + "\n")


# ── look ────────────────────────────────────────────────────────────────────────────────────────────────────────


def look(real: Path, weights: Path, out: Path) -> None:
    """Protocol surgxbench on frames that the models did not see; intervals by source video."""
    from surgeval.protocols.surgxbench import join_runs, profile_settings, run_surgxbench
    from surgeval.protocols.surgxbench.page import write_page_of

    made = []
    for name in ("m2cai16-vit", "m2cai16-resnet"):
        settings = profile_settings("surgxbench", tasks=("instruments",))
        run = run_surgxbench(real / M2CAI / "val", str(weights / name), out=out / name, format="voc", settings=settings)
        scores = run.loaded
        page = write_page_of([scores], out / name)
        print(f"\n{scores}\n{page}")
        made.append(scores)
    write_page_of(made, out / "m2cai16")
    folds: list[Path] = []
    missing = [video for video in VIDEOS if not (weights / f"cholect50-without-{video}").is_dir()]
    if missing:
        print(f"no weights for the folds without {', '.join(missing)}: these videos are left out")
    for video in (name for name in VIDEOS if name not in missing):
        folder = out / f"cholect50-{video}"
        run_surgxbench(real / "cholect50-val", str(weights / f"cholect50-without-{video}"), out=folder,
                             videos=(video,), settings=profile_settings("surgxbench"), gallery=12)  # fmt: skip
        folds.append(folder)
    scores = join_runs(folds, name="cholect50, video left out")
    page = write_page_of([scores], out / "cholect50")
    print(f"\n{scores}\n{page}")


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────


def tables(out: Path) -> None:
    """The tables of docs/real-images.md, from what `look` wrote."""
    for name in ("m2cai16-vit", "m2cai16-resnet", "cholect50"):
        print(f"\n## {name}\n")
        _markdown(out / name, "headline", ("number",), ("estimate",))
        _markdown(out / name, "classes", ("class", "frames", "predicted"),
                  ("f1", "tp_aa", "tp_ac", "fp_ac", "tp_chance", "tp_lift"))  # fmt: skip
        _markdown(out / name, "references", ("map",), ("ac", "aa", "chance"))
        _markdown(out / name, "four_way", ("class", "predictions"),
                  ("right_grounded", "right_ungrounded", "wrong_grounded", "wrong_ungrounded"), last=1)  # fmt: skip
        _markdown(out / name, "occlusion", ("hidden", "predictions"), ("lost",))
    _markdown(out / "cholect50", "matches", ("match", "triplets"), ("share", "ras", "chance", "lift"))


def _markdown(folder: Path, name: str, plain: tuple[str, ...], numbers: tuple[str, ...], last: int = 0) -> None:
    import polars as pl

    table = (
        pl.read_csv(folder / "tables" / f"{name}.csv").tail(last)
        if last
        else pl.read_csv(folder / "tables" / f"{name}.csv")
    )
    print("| " + " | ".join((*plain, *numbers)) + " |\n|" + " --- |" * (len(plain) + len(numbers)))
    for row in table.iter_rows(named=True):
        cells = [str(row[key]) for key in plain]
        for key in numbers:
            low, high = (row["low"], row["high"]) if key == "estimate" else (row[f"{key}_low"], row[f"{key}_high"])
            value = row[key]
            cells.append(
                "–" if value is None else f"{value:.2f}" if low is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"
            )
        print("| " + " | ".join(cells) + " |")
    print()


def main(arguments: list[str]) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for name in ("pack", "train", "look", "tables"):
        step = steps.add_parser(name)
        step.add_argument("--out", type=Path, required=True)
        if name in ("pack", "look"):
            step.add_argument("--real", type=Path, required=True)
        if name == "look":
            step.add_argument("--weights", type=Path, required=True)
        if name == "train":
            step.add_argument("--packed", type=Path, required=True)
            step.add_argument("--device", default="cpu")
            step.add_argument("--epochs", type=int, default=150)
            step.add_argument("--batch", type=int, default=256)
    chosen = parser.parse_args(arguments)
    if chosen.step == "pack":
        pack(chosen.real, chosen.out)
    elif chosen.step == "train":
        train(chosen.packed, chosen.out, chosen.device, chosen.epochs, chosen.batch)
    elif chosen.step == "look":
        look(chosen.real, chosen.weights, chosen.out)
    else:
        tables(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
