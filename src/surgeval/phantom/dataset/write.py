"""Writing a phantom dataset: frames, truth, questions, index; the same bytes every time.

A video is finished when its truth file is there: everything before happens in a hidden folder beside it. So a killed
run is continued by running it again, and finished videos are kept if they were made with the same settings.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import cv2

from surgeval.errors import BadInput, DataError, RunError
from surgeval.files import atomic_folder, path_inside, read_bounded, read_json_object, safe_name, write_atomically
from surgeval.phantom.dataset.edition import HELD_OUT_WORDINGS, VideoPlan, edition, plan_videos
from surgeval.phantom.dataset.film import video_mp4
from surgeval.phantom.dataset.layout import focus_records, frame_json, index_text, intent_json, truth_text
from surgeval.phantom.dataset.truth import label
from surgeval.phantom.processes import work_on_one_thread
from surgeval.phantom.questions.focus.questions import make_focus_questions
from surgeval.phantom.questions.intent_questions import make_intent_questions
from surgeval.phantom.scene.footage import Footage
from surgeval.phantom.scene.texture import one_thread
from surgeval.phantom.scene.tissue import ORGANS
from surgeval.phantom.script.gaze import make_gaze
from surgeval.phantom.script.graph import build_graph, graph_from_json, known_things
from surgeval.phantom.script.procedure import FPS, make_procedure
from surgeval.processes import WorkerDied, WorkerPool
from surgeval.records import Gaze, IntentQuestion, VqaQuestion
from surgeval.vocab import load_labels

JPEG_QUALITY = 92
Progress = Callable[[str, int, int], None]  # video, labelled frames done, of how many


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """All that decides the content of one video's files."""

    video: VideoPlan
    seconds: float
    fps_labels: float
    width: int
    height: int
    tint: str

    def to_json(self) -> dict[str, Any]:
        """One flat level, as it is recorded in the truth file."""
        rest = {key: value for key, value in asdict(self).items() if key != "video"}
        return {**asdict(self.video), **rest}


_FOLDERS = ("frames", "videos", "questions")


class WriteOptions(TypedDict, total=False):
    """Keywords of `write_phantom` that a fixed edition leaves open."""

    tint: str
    split: str | None
    processes: int | None
    progress: Progress | None
    mp4: bool


def write_phantom(
    out: str | Path,
    *,
    seed: int = 7,
    videos: int = 2,
    seconds: float = 60.0,
    fps_labels: float = 1.0,
    width: int = 448,
    height: int = 256,
    tint: str = "none",
    edition: str | None = None,
    split: str | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
    mp4: bool = False,
) -> Path:
    """Write a dataset in the native layout (docs/phantom.md) and return its folder; call again to resume.

    `split` (train, val or test) writes only those of the videos.

    >>> import tempfile
    >>> from surgeval.datasets import open_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = write_phantom(folder, videos=1, seconds=2, fps_labels=0.5, width=96, height=64, processes=1)
    ...     [video.name for video in open_dataset(out).videos()]
    ['A1']
    """
    out = Path(out)
    _check(out, seed, fps_labels, processes)
    plans = [plan for plan in plan_videos(seed, videos) if split in (None, plan.split)]
    if not plans:
        raise BadInput(f"split: found no {split!r} among {videos} videos, expected train, val or test of enough videos")
    jobs = [WriteSettings(plan, float(seconds), float(fps_labels), width, height, tint) for plan in plans]
    Footage(
        make_procedure(jobs[0].video.seed, seconds, plans[0].procedure),
        plans[0].source,
        width=width,
        height=height,
        tint=tint,
    )
    for folder in (("truth",), ("frames",), ("questions", "intent"), *([("videos",)] if mp4 else [])):
        path_inside(out, *folder).mkdir(parents=True, exist_ok=True)
    _refuse_strangers(out, plans)
    todo = [job for job in jobs if not _finished(out, job, mp4)]
    _run(out, todo, mp4, processes or os.cpu_count() or 1, progress)
    _finish(out, plans, jobs[0], seed, edition)
    return out


def write_edition(
    name: str,
    out: str | Path,
    **options: Unpack[WriteOptions],
) -> Path:
    """Write one of the fixed editions, or one split of it.

    >>> write_edition("phantom-v0", "phantom")
    Traceback (most recent call last):
    surgeval.errors.BadInput: edition: found 'phantom-v0', expected one of ...
    """
    fixed = edition(name)
    return write_phantom(
        out, seed=fixed.seed, videos=fixed.videos, seconds=fixed.seconds, fps_labels=fixed.fps_labels,
        width=fixed.width, height=fixed.height, edition=name, **options,
    )  # fmt: skip


def _check(out: Path, seed: int, fps_labels: float, processes: int | None) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to")
    if out.is_dir() and not (out / "truth").is_dir():  # our own has it before any file
        places = [
            out / "phantom.json",
            *(path for name in _FOLDERS if not (out / name).is_symlink() for path in (out / name).rglob("*")),
        ]
        there = next((path for path in places if path.is_file() and not path.is_symlink()), None)
        if there is not None:
            raise BadInput(f"{there}: is no file of a phantom. Name a new or empty folder")
    if not 0 < fps_labels <= FPS / 2:
        raise BadInput(f"fps_labels: found {fps_labels}, expected more than 0 and at most {FPS / 2}")
    if not 0 <= seed < 2**63:
        raise BadInput(f"seed: found {seed}, expected an integer from 0 to 2**63 − 1")
    if processes is not None and processes < 1:
        raise BadInput(f"processes: found {processes}, expected at least 1")


def labelled_indices(seconds: float, fps_labels: float) -> list[int]:
    """Numbers of the labelled frames: from the first on, `fps_labels` a second.

    >>> labelled_indices(3, 1)
    [0, 25, 50]
    """
    indices, k = [], 0
    while (index := round(k * FPS / fps_labels)) < round(seconds * FPS):
        indices.append(index)
        k += 1
    return indices


# ── resuming ────────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_strangers(out: Path, plans: Sequence[VideoPlan]) -> None:
    names = {plan.name for plan in plans}
    strange = sorted(path.name for path in (out / "truth").glob("*.json") if path.stem not in names)
    if strange:
        raise BadInput(
            f"{out / 'truth'}: found {strange[0]} of another dataset, expected an empty folder or the same settings"
        )


def _finished(out: Path, job: WriteSettings, mp4: bool) -> bool:
    """Whether a video is there as wanted; other settings are refused."""
    path = out / "truth" / f"{job.video.name}.json"
    if not path.exists():
        return False
    recorded, wanted = _read_truth(path).get("settings"), job.to_json()
    if recorded != wanted:
        keys = [key for key in wanted if not isinstance(recorded, dict) or recorded.get(key) != wanted[key]]
        raise BadInput(
            f"{path}: found a video made with another {', '.join(keys)}, expected the same settings or an empty folder"
        )
    frames = out / "frames" / job.video.name
    complete = sum(1 for _ in frames.glob("*.jpg")) == 2 * len(labelled_indices(job.seconds, job.fps_labels))
    return complete and (not mp4 or (out / "videos" / f"{job.video.name}.mp4").exists())


def _read_truth(path: Path) -> dict[str, Any]:
    return read_json_object(path, limit=1 << 30)


# ── one video ───────────────────────────────────────────────────────────────────────────────────────────────────


def _run(out: Path, jobs: Sequence[WriteSettings], mp4: bool, processes: int, progress: Progress | None) -> None:
    workers = min(processes, len(jobs))
    if workers <= 1:
        with one_thread():
            for job in jobs:
                write_video(out, job, mp4=mp4, progress=progress)
        return
    total = len(labelled_indices(jobs[0].seconds, jobs[0].fps_labels))
    try:
        work = partial(work_on_one_thread, partial(write_video, out, mp4=mp4))
        with WorkerPool(work, jobs, workers, finish_begun=True) as pool:
            for number, _ in pool:
                if progress:
                    progress(jobs[number].video.name, total, total)
    except WorkerDied as error:
        advice = "run the same command again (in a script of yours: under if __name__ == '__main__') to continue"
        raise RunError(f"{out}: a writing process died; {advice}") from error


def write_video(out: Path, job: WriteSettings, *, mp4: bool = False, progress: Progress | None = None) -> None:
    """Render and label one video: frames as a whole folder, truth last."""
    name = job.video.name
    procedure = make_procedure(job.video.seed, job.seconds, job.video.procedure)
    footage = Footage(procedure, job.video.source, width=job.width, height=job.height, tint=job.tint)
    gaze, known = make_gaze(procedure, job.width, job.height), known_things(procedure)
    pixels, labelled = hashlib.sha256(), []
    indices = labelled_indices(job.seconds, job.fps_labels)
    with atomic_folder(path_inside(out, "frames", name), replace=True) as folder:
        for done, index in enumerate(indices, start=1):
            shot, successor = footage.shoot(index), footage.shoot(index + 1, like=index)
            for number, image in ((index, shot.image), (index + 1, successor.image)):
                pixels.update(image.tobytes())
                _write_jpeg(folder / f"{number:06d}.jpg", image)
            labelled.append(label(name, index, procedure, known, shot, footage.renderer, gaze, ORGANS))
            if progress:
                progress(name, done, len(indices))
    graph = build_graph(name, procedure, known, [item.view for item in labelled])
    truth = {
        "video": name,
        "settings": job.to_json(),
        "pixels_sha256": pixels.hexdigest(),
        "graph": graph.to_json(),
        "gaze": [asdict(fixation) for fixation in gaze],
        "frames": [frame_json(item) for item in labelled],
    }
    if mp4:
        video_mp4(footage, path_inside(out, "videos", f"{name}.mp4"))
    write_atomically(path_inside(out, "truth", f"{name}.json"), truth_text(truth).encode())


def _write_jpeg(path: Path, image: Any) -> None:
    ok, data = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not ok:
        raise RunError(f"{path}: the JPEG encoder failed")
    path.write_bytes(data.tobytes())


# ── the whole dataset ───────────────────────────────────────────────────────────────────────────────────────────


def _finish(out: Path, plans: Sequence[VideoPlan], job: WriteSettings, seed: int, name: str | None) -> None:
    """Questions and index, from the truth files."""
    prefix = edition(name).prefix if name else f"s{seed}"
    focus: list[VqaQuestion] = []
    intent: list[IntentQuestion] = []
    rows = []
    for plan in plans:
        path = out / "truth" / f"{plan.name}.json"
        truth = _read_truth(path)
        graph = graph_from_json(truth.get("graph"), path)
        gaze = _gaze(truth, path)
        focus += make_focus_questions(graph, prefix=prefix, held_out=HELD_OUT_WORDINGS[plan.split], ood=plan.ood)
        intent += make_intent_questions(graph, gaze, prefix=prefix)
        row = asdict(plan)
        del row["seed"]
        rows.append({**row, "seconds": job.seconds, "sha256": truth_hash(truth)})
    requests, references = focus_records(focus)
    texts = {
        "questions/focus_requests.json": requests,
        "questions/focus_references.json": references,
        "questions/intent/items.jsonl": intent_json(intent),
    }
    for relative, text in texts.items():
        write_atomically(path_inside(out, *relative.split("/")), text.encode())
    index = {
        "format": "surgeval-phantom",
        "version": 1,
        "edition": name,
        "seed": seed,
        "size": [job.width, job.height],
        "fps": FPS,
        "fps_labels": job.fps_labels,
        "tint": job.tint,
        "label_space": load_labels("phantom").to_json(),
        "videos": rows,
        "questions": {"focus": len(focus), "intent": len(intent)},
        "sha256": _combined([row["sha256"] for row in rows], list(texts.values())),
    }
    write_atomically(path_inside(out, "phantom.json"), index_text(index).encode())


def _gaze(truth: dict[str, Any], path: Path) -> tuple[Gaze, ...]:
    try:
        return tuple(Gaze(**row) for row in truth["gaze"])
    except (KeyError, TypeError) as error:
        raise DataError(path, f"found {error}, expected a list of {{t, x, y, duration}}", field="gaze") from error


def truth_hash(truth: dict[str, Any]) -> str:
    """Of a video: its truth in canonical form, which holds the hash of its pixels before JPEG."""
    canonical = json.dumps(truth, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _combined(videos: Sequence[str], texts: Sequence[str]) -> str:
    total = hashlib.sha256()
    for part in (*videos, *(hashlib.sha256(text.encode()).hexdigest() for text in texts)):
        total.update(part.encode())
    return total.hexdigest()


def edition_hash(path: str | Path) -> str:
    """The hash of a written dataset, computed anew from its truth and question files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = write_phantom(folder, videos=1, seconds=2, fps_labels=0.5, width=96, height=64, processes=1)
    ...     edition_hash(out) == json.loads((out / "phantom.json").read_text())["sha256"]
    True
    """
    path = Path(path)
    index = read_json_object(path / "phantom.json")
    try:
        names = [row["name"] for row in index["videos"]]
        strange = [name for name in names if safe_name(str(name)) != name]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(path / "phantom.json", f"found {error}, expected the index of a phantom dataset") from error
    if strange:
        raise DataError(
            path / "phantom.json", f"found {strange[0]!r}, expected the name of a video's file", field="name"
        )
    texts = [
        read_bounded(path / "questions" / name, 1 << 30).decode()
        for name in ("focus_requests.json", "focus_references.json", "intent/items.jsonl")
    ]
    return _combined([truth_hash(_read_truth(path / "truth" / f"{name}.json")) for name in names], texts)
