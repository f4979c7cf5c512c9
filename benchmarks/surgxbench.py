"""The whole protocol `surgxbench`, from files to Parquet: frames per second, and what it waits for.

    python benchmarks/surgxbench.py [--device cuda] [--model phantom-clip|vit-b-32] [--frames 480] [--batch 64]
    python benchmarks/surgxbench.py --device cuda --model vit-b-32 --frames 24000 --batch 128 --processes 14

`vit-b-32` is a random CLIP of that size, saved to a temporary folder first. The peer is the same work one frame at a
time (batch 1, one reading thread, one process) on a part of the videos, in the same run. With a GPU, `nvidia-smi`
samples how busy it is while the run lasts. Starting (imports, the model, the first kernels) is told apart from the
pace between the first and the last finished video; reading alone shows whether decoding or the model sets the pace.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from surgeval.datasets import open_dataset
from surgeval.models import EMBEDDED
from surgeval.phantom import write_phantom
from surgeval.protocols.surgxbench import SurgXSettings, profile_settings, run_surgxbench
from surgeval.protocols.surgxbench.measuring.frames import Reader, batches
from surgeval.protocols.surgxbench.measuring.worker import VideoWorker


def main(arguments: list[str]) -> int:
    """Make the data and the model, run both ways, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--model", default="phantom-clip")
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tasks", default="instruments", help="instruments,triplets for all of it")
    parser.add_argument("--data", type=Path, default=None, help="a dataset instead of a fresh phantom")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        seconds = min(300, max(60, chosen.frames // 24))
        videos = max(1, chosen.frames // seconds)
        data = chosen.data or write_phantom(folder / "data", seed=11, videos=videos, seconds=seconds)
        model = str(_vit(folder / "vit")) if chosen.model == "vit-b-32" else chosen.model
        fast = profile_settings(
            "surgxbench", tasks=tuple(chosen.tasks.split(",")), occlusion=False, curves=0, sanity=0, batch=chosen.batch,
            threads=chosen.threads,
        )  # fmt: skip
        frames = _count(data)
        reading = sum(frames.values()) / _reading(data, model, fast, chosen.device)
        print(f"{sum(frames.values())} frames; one process that only reads and prepares: {reading:.0f} frames/s")
        paces: list[float] = []
        for label, settings, processes, share in (
            (f"batch {chosen.batch}, {chosen.processes} processes", fast, chosen.processes, frames),
            ("one at a time", replace(fast, batch=1, threads=1), 1, dict(list(frames.items())[: max(2, videos // 24)])),
        ):
            with _sampled(chosen.device) as samples:
                start = time.time()
                run_surgxbench(
                    data, model, out=folder / f"run{len(paces)}", settings=settings, device=chosen.device,
                    dtype=chosen.dtype, processes=processes, videos=tuple(share), gallery=0, progress=False,
                )  # fmt: skip
                took = time.time() - start
            pace, first, last = _steady(folder / f"run{len(paces)}", share)
            paces.append(pace)
            inside = [busy for at, busy in samples if first <= at <= last]
            text = f", GPU busy {sum(inside) / len(inside):.0f} %" if inside else ""
            print(f"{label}: {pace:.1f} frames/s{text}; all of it {sum(share.values()) / took:.1f} frames/s")
        print(f"ratio {paces[0] / paces[1]:.1f}")
    return 0


def _steady(folder: Path, frames: dict[str, int]) -> tuple[float, float, float]:
    """Frames per second between the first and the last finished video, and those two times."""
    done = sorted(part.stat().st_mtime for part in (folder / "parts").iterdir())
    each = sum(frames.values()) / len(frames)
    return each * (len(done) - 1) / max(done[-1] - done[0], 1e-9), done[0], done[-1]


def _count(data: Path) -> dict[str, int]:
    dataset = open_dataset(data)
    return {video.name: sum(frame.labelled for frame in dataset.frames(video.name)) for video in dataset.videos()}


def _reading(data: Path, model: str, settings: SurgXSettings, device: str) -> float:
    look = VideoWorker(str(data), None, None, model, device, "float32", settings)
    reader = Reader(look.net.preparation, settings)
    start = time.perf_counter()
    for video in look.dataset.videos():
        for _ in batches(look.dataset, video.name, reader, settings):
            pass
    return time.perf_counter() - start


@contextlib.contextmanager
def _sampled(device: str) -> Iterator[list[tuple[float, float]]]:
    """Time and the GPU's utilisation in per cent, ten times a second, once the block is over."""
    samples: list[tuple[float, float]] = []
    if not device.startswith("cuda"):
        yield samples
        return
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        listener = threading.Thread(target=_listen, args=(watcher.stdout, samples), daemon=True)
        listener.start()
        try:
            yield samples
        finally:
            watcher.terminate()
            listener.join()


def _listen(lines: Any, samples: list[tuple[float, float]]) -> None:
    samples.extend((time.time(), float(line)) for line in lines if line.strip().isdigit())


def _vit(folder: Path) -> Path:
    """A random CLIP of ViT-B/32's size that reads the phantom's words."""
    import json

    from transformers import CLIPConfig, CLIPModel

    embedded = EMBEDDED["phantom-clip"].path  # its tokenizer, and the text tower that fits it
    text = json.loads((embedded / "config.json").read_text())["text_config"]
    torch.manual_seed(0)
    CLIPModel(CLIPConfig(text_config=text, vision_config={"patch_size": 32})).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(embedded / name, folder / name)
    preparation = {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": 224},
                   "resample": 3, "do_center_crop": True, "crop_size": {"height": 224, "width": 224},
                   "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                   "image_mean": [0.48145466, 0.4578275, 0.40821073],
                   "image_std": [0.26862954, 0.26130258, 0.27577711]}  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(preparation))
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
