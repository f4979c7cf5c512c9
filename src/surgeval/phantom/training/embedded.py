"""From seeds to weights: render, train, save as fp16. No test video is rendered or looked at here."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, DataError
from surgeval.models import usable_device
from surgeval.phantom.training.batches import Stock
from surgeval.phantom.training.clip import save
from surgeval.phantom.training.data import Frames, film_all, first_videos, training_shoots
from surgeval.phantom.training.kept import load_frames, save_frames
from surgeval.phantom.training.log import write_training_log
from surgeval.phantom.training.recipes import LLAVAS, NAMES, Recipe
from surgeval.phantom.training.schooling import school_llavas
from surgeval.phantom.training.train import fit

__all__ = ["train_embedded"]

Log = Callable[[str], None]
_WRITTEN = ("config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json",
            "training.json", "processor_config.json", "generation_config.json", "chat_template.jinja")  # fmt: skip


def train_embedded(
    recipes: Mapping[str, Recipe],
    out: str | Path,
    *,
    device: str = "cpu",
    workers: int | None = None,
    frames: str | Path | None = None,
    log: Log = lambda line: None,
) -> dict[str, Any]:
    """Train each named model by its recipe into OUT/NAME and return what the `training.json` files there say.

    Videos are rendered once, as many as the longest recipe asks for; a shorter one takes the first of them, which are
    those it would have rendered alone. `frames` names a file that keeps them from one call to the next.

    >>> train_embedded({}, "models")
    Traceback (most recent call last):
    surgeval.errors.BadInput: model: found none, expected one of phantom-clip, phantom-clip-resnet, phantom-shortcut,
    phantom-llava, phantom-sycophant
    """
    out, workers = Path(out), os.cpu_count() or 1 if workers is None else workers
    frames_file = Path(frames) if frames else None
    _check(recipes, out, device, workers)
    _check_places([out / name for name in recipes], frames_file)
    spoken = {name: recipe for name, recipe in recipes.items() if name in LLAVAS}
    seen = {name: recipe for name, recipe in recipes.items() if name not in LLAVAS}
    report: dict[str, Any] = {}
    if spoken:
        say = progress("lessons of video", log)
        report |= school_llavas(spoken, out, device=device, workers=workers, log=log, progress=say)
    if not seen:
        return report
    start = time.perf_counter()
    stock = _training_frames(max(r.videos for r in seen.values()), workers, frames_file, log)
    rendered = time.perf_counter() - start
    log(f"{len(stock)} training frames and {len(stock.plates)} plates ready after {rendered:.0f} s")
    for name, recipe in seen.items():
        start = time.perf_counter()
        own = first_videos(stock, recipe.videos)
        supply = Stock(own, device, shortcut=name == "phantom-shortcut", seed=recipe.seed)
        trained = fit(name, supply, recipe, log)
        seconds = time.perf_counter() - start
        del supply
        save(trained.model, out / name)
        report[name] = write_training_log(
            out / name, recipe, trained.model, trained.losses, counts={"frames": len(own)}, device=device,
            rendering=rendered, training=seconds,
        )  # fmt: skip
    return report


def _training_frames(videos: int, workers: int, frames_file: Path | None, log: Log) -> Frames:
    if frames_file is not None and frames_file.exists():
        frames = load_frames(frames_file)
        count = int(frames.video.max(initial=-1)) + 1
        if count < videos:
            raise DataError(frames_file, f"found frames of {count} videos, expected {videos}, as the recipe asks for")
        return frames
    frames = film_all(training_shoots(videos), workers, progress("training video", log))
    if frames_file is not None:
        save_frames(frames_file, frames)
    return frames


def progress(noun: str, log: Log) -> Callable[[int, int], None]:
    """Say five times how many are done."""

    def say(done: int, total: int) -> None:
        if done % max(total // 5, 1) == 0 or done == total:
            log(f"{noun} {done} of {total}")

    return say


def _check(recipes: Mapping[str, Recipe], out: Path, device: str, workers: int) -> None:
    if not recipes:
        raise BadInput(f"model: found none, expected one of {', '.join(NAMES)}")
    for name, recipe in recipes.items():
        if name not in NAMES:
            raise BadInput(f"model: found {name!r}, expected one of {', '.join(NAMES)} or all")
        for setting, value, least in (
            ("steps", recipe.steps, 1), ("batch", recipe.batch, 2), ("videos", recipe.videos, 1),
        ):  # fmt: skip
            if value < least:
                raise BadInput(f"{setting}: found {value}, expected at least {least}")
        for setting, value, most in (("videos", recipe.videos, 490), ("batch", recipe.batch, 1 << 16)):
            if value > most:
                raise BadInput(f"{setting}: found {value}, expected at most {most}")
        if not 0 <= recipe.seed < 1 << 63:
            raise BadInput(f"seed: found {recipe.seed}, expected a whole number from 0 to 2^63 − 1")
        if not 0 < recipe.rate < 1:
            raise BadInput(f"rate: found {recipe.rate}, expected a number between 0 and 1")
    if workers < 1:
        raise BadInput(f"workers: found {workers}, expected at least 1")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to")
    usable_device(device)


def _check_places(folders: Sequence[Path], frames_file: Path | None) -> None:
    """Everything that is written after hours of work can be written."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise BadInput(f"{folder}: found {_reason(error)}, expected a folder to write to") from error
        there = [name for name in _WRITTEN if (folder / name).exists()]
        if there and "training.json" not in there:
            raise BadInput(f"{folder / there[0]}: was not written by a training. Name another folder")
        for target in (folder / name for name in _WRITTEN):
            if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
                raise BadInput(f"{target}: found something that cannot be written over, expected a file or nothing")
    if frames_file is not None:
        try:
            if not frames_file.exists():
                with frames_file.open("ab"):
                    pass
                frames_file.resolve().unlink()
        except OSError as error:
            raise BadInput(f"{frames_file}: found {_reason(error)}, expected a file that can be written") from error


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
