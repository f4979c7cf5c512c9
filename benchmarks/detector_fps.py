"""Frames per second of TDnet: the network alone, with decoding and NMS, and end to end.

    python benchmarks/detector_fps.py              # TDnet-n with ProstaTD's 89/7/10/10 classes, random weights
    python benchmarks/detector_fps.py --model run/ --json fps.json

Protocol: input 640, batch 1 and 16 (CPU: 1), float32 and float16 (GPU), evaluation mode, normalisations folded or not
(told per row), 50 warm-up and 300 timed batches, the device synchronised before and after each (3 and 10 on a CPU);
median and 95th percentile. Stages: `network` from bytes on the device to boxes and probabilities of all points; `+ nms`
to chosen boxes on the host; `frames` from decoded frames in memory to boxes on those frames; `jpeg` from JPEG bytes;
`overlapped` is `frames` for a stream of batches, the next one submitted before the boxes of this one are taken: mean of
all batches instead of the median, and the 95th percentile of the time from one batch's boxes to the next one's.
"one head" is `--no-aux`: TDnet without its auxiliary heads. "graph" replays recorded CUDA kernels.

Random weights would choose no box at all, so their scores are shifted until on average `--candidates` of a picture pass
the cut, as with a trained network. Needs torch, numpy, numba and OpenCV only.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from surgeval.arrays import Image
from surgeval.detector import Classes, Loaded, build_tdnet, load_detector
from surgeval.detector.geometry import Fit
from surgeval.detector.inference import Looker, Precision, TDNetDetector, detector_files
from surgeval.detector.nms import Selecting
from surgeval.vocab import load_labels

CUT = 0.001
_LIVENING = 8  # pictures by which the scores of random weights are shifted


@dataclass(frozen=True)
class Row:
    """One measurement: milliseconds per batch, frames per second at the median (`overlapped`: at the mean)."""

    stage: str
    batch: int
    precision: str
    fused: bool
    heads: str
    graph: bool
    median_ms: float
    p95_ms: float
    fps: float


def main() -> None:
    asked = _arguments()
    torch.manual_seed(0)
    device = torch.device(asked.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    warm, timed = (
        (asked.warm_up or 50, asked.timed or 300) if device.type == "cuda" else (asked.warm_up or 3, asked.timed or 10)
    )
    loaded = _loaded(asked)
    about = _about(device, loaded, asked, warm, timed)
    print(f"{about['device']}; torch {about['torch']}; TDnet-{loaded.size}, input {loaded.image_size}; "
          f"frames {asked.frame}; {warm} warm-up, {timed} timed")  # fmt: skip
    print(f"{'stage':<11}{'batch':>6} {'precision':<10}{'fused':<7}{'heads':<9}{'graph':<7}"
          f"{'median ms':>10}{'p95 ms':>9}{'frames/s':>10}")  # fmt: skip
    rows = []
    for row in _measure(loaded, device, asked, warm, timed):
        rows.append(row)
        print(f"{row.stage:<11}{row.batch:>6} {row.precision:<10}{_yes(row.fused):<7}{row.heads:<9}{_yes(row.graph):<7}"
              f"{row.median_ms:>10.2f}{row.p95_ms:>9.2f}{row.fps:>10.1f}", flush=True)  # fmt: skip
    result = {"about": about, "rows": [asdict(row) for row in rows]}
    if asked.json:
        Path(asked.json).write_text(json.dumps(result, indent=1))
    else:
        print(json.dumps(result))


def _measure(loaded: Loaded, device: torch.device, asked: argparse.Namespace, warm: int, timed: int) -> Iterator[Row]:
    on_gpu = device.type == "cuda"
    batches = [int(text) for text in (asked.batches or ("1,16" if on_gpu else "1")).split(",")]
    precisions: tuple[Precision, ...] = ("float32", "float16") if on_gpu else ("float32",)
    # fused, all heads, graph; and what is timed of it: variants that nobody would choose only where they differ
    whole, network_only = ("network", "+ nms", "frames", "overlapped", "jpeg"), ("network",)
    variants = [(True, True, False, whole), (True, False, False, whole), (False, True, False, network_only)]
    if on_gpu:
        variants = [(True, True, True, whole), (True, False, True, ("network", "frames", "overlapped")),
                    *((fused, aux, graph, network_only) for fused, aux, graph, _ in variants)]  # fmt: skip
    for batch in batches:
        frames, files = _pictures(asked.frame, batch)
        for precision in precisions:
            for fused, aux, graph, chosen in variants:
                network = TDNetDetector(loaded, device=device, precision=precision, aux=aux, fuse=fused, graph=graph)
                looker = Looker(network, Selecting(confidence=CUT))
                stages = _stages(network, looker, frames, files)
                for stage in chosen:
                    if stage == "overlapped":
                        times = _stream_times(looker, frames, warm, timed)
                        typical = statistics.fmean(times)
                    else:
                        times = _times(stages[stage], device, warm, timed)
                        typical = statistics.median(times)
                    p95 = float(np.percentile(times, 95))
                    heads = "all" if aux else "one"
                    yield Row(stage, batch, precision, fused, heads, graph, 1e3 * typical, 1e3 * p95, batch / typical)


def _stages(
    network: TDNetDetector, looker: Looker, frames: list[Image], files: list[bytes]
) -> dict[str, Callable[[], Any]]:
    side = network.image_size
    squares = torch.from_numpy(np.stack([cv2.resize(frame, (side, side)) for frame in frames])).to(network.device)
    images, fits = squares.permute(0, 3, 1, 2), [Fit.of(side, side, side)] * len(frames)
    pool = ThreadPoolExecutor(8)

    def decoded() -> list[Image]:
        return list(pool.map(_decode, files)) if len(files) > 1 else [_decode(files[0])]

    return {
        "network": lambda: network.raw(images),
        "+ nms": lambda: looker.look_at(squares, fits),
        "frames": lambda: looker.look(frames),
        "jpeg": lambda: looker.look(decoded()),
    }


def _times(work: Callable[[], Any], device: torch.device, warm: int, timed: int) -> list[float]:
    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    for _ in range(warm):
        work()
    times = []
    for _ in range(timed):
        wait()
        began = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - began)
    return times


def _stream_times(looker: Looker, frames: list[Image], warm: int, timed: int) -> list[float]:
    """Seconds from the boxes of each batch to those of the next, with one batch always on its way."""
    ends = []
    going = looker.submit(frames)
    for _ in range(warm + timed):
        following = looker.submit(frames)
        looker.finish(going)
        going = following
        ends.append(time.perf_counter())
    looker.finish(going)
    return np.diff(ends[warm - 1 :]).tolist()


def _decode(data: bytes) -> Image:
    pixels: Image = cv2.cvtColor(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    return pixels


def _pictures(size: str, count: int) -> tuple[list[Image], list[bytes]]:
    """Smooth noise that a camera could have seen: JPEG is slow on white noise."""
    width, height = (int(side) for side in size.split("x"))
    small = np.random.default_rng(0).integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
    first = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    # Moved sideways, pictures have about the same number of candidates; others would differ a hundredfold.
    frames = [np.roll(first, 32 * number, axis=1) for number in range(count)]
    return frames, [cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes() for frame in frames]


def _loaded(asked: argparse.Namespace) -> Loaded:
    if asked.model:
        return load_detector(detector_files(asked.model)[0])
    classes = Classes.of(load_labels(asked.labels))
    model = build_tdnet(asked.size, classes).eval()
    loaded = Loaded(model, classes, asked.size, asked.image, {})
    _liven(model, asked.image, TDNetDetector(loaded).fill, asked.candidates, asked.frame)
    return loaded


def _liven(model: Any, side: int, fill: int, candidates: int, frame: str) -> None:
    """Make random weights behave like trained ones: about that many candidates of a picture pass the cut.

    Without statistics of their own the normalisations let nothing of the picture through: all points would say the
    same, and all or none of them pass.
    """
    frames = _pictures(frame, _LIVENING)[0]
    squares = np.stack([Fit.of(one.shape[0], one.shape[1], side).image(one, fill) for one in frames])
    pictures = torch.from_numpy(squares).permute(0, 3, 1, 2).float() / 255
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    usual = [norm.momentum for norm in norms]
    stack = model.head.stacks[model.main]
    with torch.no_grad():
        for norm in norms:
            norm.momentum = 1.0
        model.train()(pictures)
        model.eval()
        for norm, momentum in zip(norms, usual, strict=True):
            norm.momentum = momentum
        for branch in stack:
            torch.nn.init.normal_(branch[-1].weight, std=1.0)
        logits = model(pictures, heads=[model.main]).logits[model.main].flatten()
        shift = math.log(CUT / (1 - CUT)) - float(logits.topk(min(len(frames) * candidates, logits.numel())).values[-1])
        for branch in stack:
            branch[-1].bias += shift


def _about(device: torch.device, loaded: Loaded, asked: argparse.Namespace, warm: int, timed: int) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    return {
        "device": name, "torch": torch.__version__, "cuda": torch.version.cuda, "machine": platform.machine(),
        "size": loaded.size, "classes": {head: len(names) for head, names in loaded.classes.heads.items()},
        "image_size": loaded.image_size, "frame": asked.frame, "weights": asked.model or "random",
        "candidates": None if asked.model else asked.candidates, "warm_up": warm, "timed": timed,
    }  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="a TDnet file or training folder; default: random weights")
    parser.add_argument("--size", default="n")
    parser.add_argument("--labels", default="prostatd")
    parser.add_argument("--image", type=int, default=640)
    parser.add_argument("--frame", default="854x480", help="width x height of the decoded frames")
    parser.add_argument("--batches", default="", help="default: 1,16 on a GPU and 1 on a CPU")
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--device", default="")
    parser.add_argument("--warm-up", type=int, default=0)
    parser.add_argument("--timed", type=int, default=0)
    parser.add_argument("--json", default="", help="write the numbers to this file")
    return parser.parse_args()


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    main()
