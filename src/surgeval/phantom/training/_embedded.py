"""From seeds to weights: render, train, save as fp16, read back, examine what was saved.

The examination is on phantom-v1's own test videos and on further test videos of another seed, each filmed with the
tint that betrays the instrument and with a random one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from surgeval.errors import BadInput
from surgeval.phantom._edition import edition, plan_videos
from surgeval.phantom.training._batches import Stock
from surgeval.phantom.training._clip import NAMES, reopen, save
from surgeval.phantom.training._data import (
    Frames,
    examination_shoots,
    film_all,
    held_out_plans,
    load_frames,
    save_frames,
    training_shoots,
)
from surgeval.phantom.training._evaluate import examine, summary
from surgeval.phantom.training._train import Recipe, fit

__all__ = ["NAMES", "train_embedded"]

TINTS = ("by_instrument", "random")


def train_embedded(
    names: Sequence[str],
    out: str | Path,
    *,
    device: str = "cpu",
    recipe: Recipe | None = None,
    videos: int = 300,
    held_out: int = 18,
    workers: int | None = None,
    frames: str | Path | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Train models into OUT/NAME and return what `training.json` there says.

    `frames` names a file that keeps the rendered training frames from one call to the next.
    """
    recipe, out, workers = recipe or Recipe(), Path(out), workers or os.cpu_count() or 1
    _check(names, out, device, recipe, videos, held_out, workers)
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    stock = _training_frames(videos, workers, Path(frames) if frames else None, log)
    tests = _examination_frames(held_out, workers, log)
    rendered = time.perf_counter() - start
    log(f"{len(stock)} training frames and {len(stock.plates)} plates ready after {rendered:.0f} s")
    report: dict[str, Any] = {
        "recipe": asdict(recipe),
        "videos": videos,
        "frames": len(stock),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "seconds_rendering": round(rendered, 1),
        "models": {},
    }
    for name in names:
        start = time.perf_counter()
        supply = Stock(stock, device, shortcut=name == "phantom-shortcut", seed=recipe.seed)
        trained = fit(name, supply, recipe, log)
        seconds = time.perf_counter() - start
        save(trained.model, out / name)
        saved = reopen(out / name)
        del supply
        report["models"][name] = {
            "seconds_training": round(seconds, 1),
            "parameters": sum(p.numel() for p in saved.parameters()),
            "bytes": (out / name / "model.safetensors").stat().st_size,
            "losses": [round(loss, 4) for loss in trained.losses],
            "examinations": {key: summary(examine(saved, test, device)) for key, test in tests.items()},
        }
        for key, result in report["models"][name]["examinations"].items():
            log(f"{name} on {key}: accuracy {result['accuracy']}, AC lift {result['ac_lift']}")
    (out / "training.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def _training_frames(videos: int, workers: int, kept: Path | None, log: Callable[[str], None]) -> Frames:
    if kept is not None and kept.exists():
        return load_frames(kept)
    frames = film_all(training_shoots(videos), workers, _progress("training video", log))
    if kept is not None:
        save_frames(kept, frames)
    return frames


def _examination_frames(held_out: int, workers: int, log: Callable[[str], None]) -> dict[str, Frames]:
    fixed = edition("phantom-v1")
    sets = {"phantom-v1": [plan for plan in plan_videos(fixed.seed, fixed.videos) if plan.split == "test"]}
    sets["held-out"] = held_out_plans(held_out)
    return {
        f"{name} {tint}": film_all(examination_shoots(plans, tint), workers, _progress(f"{name} {tint} video", log))
        for name, plans in sets.items()
        if plans
        for tint in TINTS
    }


def _progress(what: str, log: Callable[[str], None]) -> Callable[[int, int], None]:
    def say(done: int, total: int) -> None:
        if done % max(total // 5, 1) == 0 or done == total:
            log(f"{what} {done} of {total}")

    return say


def _check(
    names: Sequence[str], out: Path, device: str, recipe: Recipe, videos: int, held_out: int, workers: int
) -> None:
    for name in names:
        if name not in NAMES:
            raise BadInput(f"model: found {name!r}, expected one of {', '.join(NAMES)} or all")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to")
    for what, value, least in (
        ("steps", recipe.steps, 1), ("batch", recipe.batch, 2), ("videos", videos, 1), ("workers", workers, 1),
        ("held-out videos", held_out, 0),
    ):  # fmt: skip
        if value < least:
            raise BadInput(f"{what}: found {value}, expected at least {least}")
    if videos > 490:
        raise BadInput(f"videos: found {videos}, expected at most 490")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise BadInput(f"device: found {device}, expected cpu, because torch sees no GPU here")
