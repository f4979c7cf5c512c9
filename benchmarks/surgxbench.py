"""The whole protocol `surgxbench`, from files to Parquet: frames per second, and what it waits for.

    python benchmarks/surgxbench.py [--device cuda] [--model phantom-clip|vit-b-32] [--frames 480] [--batch 64]

`vit-b-32` is a random CLIP of that size, saved to a temporary folder first. The peer is the same work one frame at a
time (batch 1, one reading thread), in the same run. With a GPU, `nvidia-smi` samples how busy it is while the run
lasts; the reading threads alone show whether decoding or the model sets the pace.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from surgeval.datasets import open_dataset
from surgeval.phantom import write_phantom
from surgeval.phantom.training._prompts import BEGIN, END, LENGTH, PAD, save_tokenizer, vocabulary
from surgeval.protocols._surgxbench.frames import Reader, batches
from surgeval.protocols._surgxbench.worker import Look
from surgeval.protocols.surgxbench import Settings, profile_settings, run_surgxbench


def main(arguments: list[str]) -> int:
    """Make the data and the model, run both ways, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--model", default="phantom-clip")
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=None, help="a dataset instead of a fresh phantom")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = chosen.data or write_phantom(folder / "data", seed=11, videos=max(1, chosen.frames // 60), seconds=60)
        model = str(_vit(folder / "vit")) if chosen.model == "vit-b-32" else chosen.model
        settings = profile_settings(
            "surgxbench", tasks=("instruments",), occlusion=False, curves=0, sanity=0, batch=chosen.batch,
            threads=chosen.threads,
        )  # fmt: skip
        frames = _count(data)
        reading = _reading(data, model, settings, chosen.device)
        print(f"{frames} frames; reading and preparing alone: {frames / reading:.0f} frames/s")
        fast, busy = _timed(data, model, folder / "fast", settings, chosen.device, chosen.dtype)
        print(f"batch {chosen.batch}: {frames / fast:.1f} frames/s" + (f", GPU busy {busy:.0f} %" if busy else ""))
        single = profile_settings(
            "surgxbench", tasks=("instruments",), occlusion=False, curves=0, sanity=0, batch=1, threads=1
        )
        slow, _ = _timed(data, model, folder / "slow", single, chosen.device, chosen.dtype)
        print(f"one at a time: {frames / slow:.1f} frames/s; ratio {slow / fast:.1f}")
        print(f"the pace is set by {'reading' if reading > 0.7 * fast else 'model and metrics'}")
    return 0


def _count(data: Path) -> int:
    dataset = open_dataset(data)
    return sum(frame.labelled for video in dataset.videos() for frame in dataset.frames(video.name))


def _reading(data: Path, model: str, settings: Settings, device: str) -> float:
    look = Look(str(data), None, None, model, device, "float32", settings)
    reader = Reader(look.net.preparation, settings)
    start = time.perf_counter()
    for video in look.dataset.videos():
        for _ in batches(look.dataset, video.name, reader, settings):
            pass
    return time.perf_counter() - start


def _timed(data: Path, model: str, out: Path, settings: Settings, device: str, dtype: str) -> tuple[float, float]:
    with _sampled(device) as samples:
        start = time.perf_counter()
        run_surgxbench(data, model, folder=out, settings=settings, device=device, dtype=dtype, progress=False)
        seconds = time.perf_counter() - start
    return seconds, sum(samples) / len(samples) if samples else 0.0


@contextlib.contextmanager
def _sampled(device: str) -> Iterator[list[float]]:
    """The GPU's utilisation in per cent, ten times a second, once the block is over."""
    samples: list[float] = []
    if not device.startswith("cuda"):
        yield samples
        return
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        try:
            yield samples
        finally:
            watcher.terminate()
            samples += [float(line) for line in (watcher.stdout or []) if line.strip().isdigit()]


def _vit(folder: Path) -> Path:
    """A random CLIP of ViT-B/32's size that reads the phantom's words."""
    import json

    from transformers import CLIPConfig, CLIPModel

    words = vocabulary()
    text = {"vocab_size": len(words), "max_position_embeddings": LENGTH, "hidden_size": 64, "intermediate_size": 256,
            "num_hidden_layers": 2, "num_attention_heads": 4, "pad_token_id": words[PAD],
            "bos_token_id": words[BEGIN], "eos_token_id": words[END]}  # fmt: skip
    torch.manual_seed(0)
    CLIPModel(CLIPConfig(text_config=text, vision_config={"patch_size": 32})).save_pretrained(folder)
    save_tokenizer(folder)
    preparation = {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": 224},
                   "resample": 3, "do_center_crop": True, "crop_size": {"height": 224, "width": 224},
                   "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                   "image_mean": [0.48145466, 0.4578275, 0.40821073],
                   "image_std": [0.26862954, 0.26130258, 0.27577711]}  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(preparation))
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
