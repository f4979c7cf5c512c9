"""Train and examine the embedded models: `python -m studies.embedded_models train all --out weights --device cuda`.

Run it from the root of the repository. `train` renders the training videos, trains and saves fp16 weights; it never
renders a test video. `examine` measures embedded models, or folders that `train` wrote, on test videos.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.embedded_models.clip import BatchSampler, save_clip, train_clip
from studies.embedded_models.llava_train import train_named_llavas
from studies.embedded_models.recipes import CLIPS, LLAVAS, NAMES, Recipe, recipe_for, write_training_log
from studies.embedded_models.render import (
    Frames,
    first_videos,
    load_frames,
    log_progress,
    plan_training,
    render_videos,
    save_frames,
)

from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.models import usable_device

Log = Callable[[str], None]
_SETTINGS = ("videos", "steps", "batch", "rate", "seed")
_WRITTEN = ("config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json",
            "training.json", "processor_config.json", "generation_config.json", "chat_template.jinja")  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run `train` or `examine`; progress goes to standard error."""
    options = _parser().parse_args(arguments)
    start = time.perf_counter()

    def log(line: str) -> None:
        sys.stderr.write(f"[{time.perf_counter() - start:6.1f} s] {line}\n")
        sys.stderr.flush()

    try:
        (_train if options.command == "train" else _examine)(options, log)
    except SurgevalError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130
    return 0


def train_embedded(
    recipes: Mapping[str, Recipe],
    out: str | Path,
    *,
    device: str = "cpu",
    workers: int | None = None,
    frames: str | Path | None = None,
    log: Log = lambda line: None,
) -> dict[str, Any]:
    """Train each named model by its recipe into OUT/NAME and return the contents of the `training.json` files.

    The CLIPs share one set of rendered videos, as many as the largest recipe needs; a smaller recipe uses the first of
    them, which are the videos it would have rendered alone. `frames` names a file that keeps the rendered frames for
    the next call.
    """
    out, workers = Path(out), os.cpu_count() or 1 if workers is None else workers
    frames_file = Path(frames) if frames else None
    _check_settings(recipes, out, device, workers)
    _check_writable([out / name for name in recipes], frames_file)
    llavas = {name: recipe for name, recipe in recipes.items() if name in LLAVAS}
    clips = {name: recipe for name, recipe in recipes.items() if name not in LLAVAS}
    report: dict[str, Any] = {}
    if llavas:
        progress = log_progress("video with its lessons", log)
        report |= train_named_llavas(llavas, out, device=device, workers=workers, log=log, progress=progress)
    if not clips:
        return report
    start = time.perf_counter()
    rendered = _training_frames(max(recipe.videos for recipe in clips.values()), workers, frames_file, log)
    rendering = time.perf_counter() - start
    log(f"{len(rendered)} training frames and {len(rendered.plates)} plates ready after {rendering:.0f} s")
    for name, recipe in clips.items():
        start = time.perf_counter()
        own = first_videos(rendered, recipe.videos)
        sampler = BatchSampler(own, device, shortcut=name == "phantom-shortcut", seed=recipe.seed)
        trained = train_clip(name, sampler, recipe, log)
        seconds = time.perf_counter() - start
        del sampler
        save_clip(trained.model, out / name)
        report[name] = write_training_log(
            out / name, recipe, trained.model, trained.losses, counts={"frames": len(own)}, device=device,
            rendering=rendering, training=seconds,
        )  # fmt: skip
    return report


def _training_frames(videos: int, workers: int, frames_file: Path | None, log: Log) -> Frames:
    if frames_file is not None and frames_file.exists():
        frames = load_frames(frames_file)
        count = int(frames.video.max(initial=-1)) + 1
        if count < videos:
            raise DataError(frames_file, f"holds frames of {count} videos, and the recipe needs {videos}")
        return frames
    frames = render_videos(plan_training(videos), workers, log_progress("training video", log))
    if frames_file is not None:
        save_frames(frames_file, frames)
    return frames


# ── checks before hours of work ─────────────────────────────────────────────────────────────────────────────────


def _check_settings(recipes: Mapping[str, Recipe], out: Path, device: str, workers: int) -> None:
    if not recipes:
        raise BadInput(f"No model is named. Choose from {', '.join(NAMES)}, or all.")
    for name, recipe in recipes.items():
        recipe_for(name)
        for setting, value, least, most in (
            ("steps", recipe.steps, 1, None),
            ("batch", recipe.batch, 2, 1 << 16),
            ("videos", recipe.videos, 1, 490),
        ):
            if value < least:
                raise BadInput(f"{setting} must be at least {least}, got {value}.")
            if most is not None and value > most:
                raise BadInput(f"{setting} must be at most {most}, got {value}.")
        if not 0 <= recipe.seed < 1 << 63:
            raise BadInput(f"seed must be a whole number from 0 to 2^63 − 1, got {recipe.seed}.")
        if not 0 < recipe.rate < 1:
            raise BadInput(f"rate must be a number between 0 and 1, got {recipe.rate}.")
    if workers < 1:
        raise BadInput(f"workers must be at least 1, got {workers}.")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file. --out names a folder to write to.")
    usable_device(device)


def _check_writable(folders: Sequence[Path], frames_file: Path | None) -> None:
    """Check that every file written at the end of the training can be written."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise BadInput(f"Cannot write to the folder {folder}: {_reason(error)}.") from error
        existing = [name for name in _WRITTEN if (folder / name).exists()]
        if existing and "training.json" not in existing:
            raise BadInput(f"{folder / existing[0]} was not written by a training. Name another folder.")
        for target in (folder / name for name in _WRITTEN):
            if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
                raise BadInput(f"Cannot replace {target}: not a writable file.")
    if frames_file is not None:
        try:
            if not frames_file.exists():
                with frames_file.open("ab"):
                    pass
                frames_file.resolve().unlink()
        except OSError as error:
            raise BadInput(f"Cannot write the file {frames_file}: {_reason(error)}.") from error


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


# ── command line ────────────────────────────────────────────────────────────────────────────────────────────────


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="studies.embedded_models", description="Train and examine embedded models.")
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="render, train and save fp16 weights; defaults come from the recipes")
    train.add_argument("name", help=f"{', '.join(NAMES)}, several separated by commas, or all")
    train.add_argument("--out", required=True, help="folder; each model is written to OUT/NAME")
    train.add_argument("--steps", type=int, help="optimiser steps")
    train.add_argument("--batch", type=int, help="frames or lessons in a step")
    train.add_argument("--rate", type=float, help="highest learning rate")
    train.add_argument("--seed", type=int, help="seed of first weights and batches")
    train.add_argument("--videos", type=int, help="training videos")
    train.add_argument("--frames", help="file that keeps the rendered frames of the CLIPs")
    examine = commands.add_parser("examine", help="accuracy, heatmaps and effects of hiding regions, on test videos")
    examine.add_argument("models", nargs="*", help="embedded names or folders that train wrote (default: the CLIPs)")
    examine.add_argument("--held-out", type=int, default=0, help="test videos beside those of phantom-v1")
    for command in (train, examine):
        command.add_argument("--device", default="cpu", help="cpu or cuda")
        command.add_argument("--workers", type=int, help="rendering processes (default: one per core)")
        command.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _train(options: argparse.Namespace, log: Log) -> None:
    names = NAMES if options.name == "all" else options.name.split(",")
    changes = {key: getattr(options, key) for key in _SETTINGS}
    report = train_embedded(
        {name: recipe_for(name, **changes) for name in names},
        options.out,
        device=options.device,
        workers=options.workers,
        frames=options.frames,
        log=log,
    )
    if options.json:
        sys.stdout.write(json.dumps(report, indent=1) + "\n")
        return
    for name, row in report.items():
        recipe = row["recipe"]
        sys.stdout.write(
            f"{name}: {recipe['videos']} videos, {recipe['steps']} steps, {row['seconds_training']} s, "
            f"last loss {row['losses'][-1]}, written to {Path(options.out) / name}\n"
        )


def _examine(options: argparse.Namespace, log: Log) -> None:
    # Not imported above: a machine that only trains needs none of the packages for tables and statistics.
    from studies.embedded_models.examine import comparison_as_json, examine_models, print_comparison

    if options.workers is not None and options.workers < 1:
        raise BadInput(f"workers must be at least 1, got {options.workers}.")
    results = examine_models(
        options.models or CLIPS,
        held_out=options.held_out,
        device=options.device,
        workers=options.workers or os.cpu_count() or 1,
        log=log,
    )
    if options.json:
        sys.stdout.write(json.dumps([comparison_as_json(result) for result in results], indent=1) + "\n")
        return
    for result in results:
        print_comparison(result)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
