r"""TDnet and RT-DETR on the phantom and on real laparoscopic frames: the experiments behind docs/detector-results.md.

Separate steps, because the machine with the GPU often has neither the data nor all of surgeval's dependencies:

    python studies/detectors.py prepare phantom   --data PHANTOM --out packed       here: one file of frames and labels
    python studies/detectors.py prepare m2cai16   --data DATA/m2cai16-tool-locations --out packed
    python studies/detectors.py prepare cholect50 --data DATA/cholect50-val --out packed
    python studies/detectors.py train compare   --packed packed/phantom.safetensors --out results/compare \
        --device cuda --budget-seconds 540                                          torch, cv2, PIL, numpy, numba
    python studies/detectors.py score compare   --data PHANTOM --out results/compare                here: polars

`compare`: TDnet and RT-DETR with the same minutes, beside an untrained network and the majority triplet of TDnet's own
boxes. `ablation`: Tables 9 and 11 over seeds; the students of a seed share one teacher. `videos`: leave videos out in
`--folds` groups (one each by default). `halves`: m2cai16 as its authors divide it, by frame. `one`: a single TDnet.
A training that is finished is not done again, so a budget that was too short is followed by another call, and `--only`
lets several processes share a GPU. Weights trained on real frames stay where they were made: the licences forbid
passing them on.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.detector import Network
    from surgeval.detector.data import TrainingSet
    from surgeval.detector.training import TrainSettings
    from surgeval.protocols.triplets import TripletScores

MOST_MEGABYTES = 60
BOTH = {"student": "", "teacher": "best.safetensors"}
WEIGHTS = (0.0, 0.2, 0.5, 0.8, 1.0)  # of the teacher, Table 11
DONE = "done.json"
STUDENT_SHARE = 0.2  # of a training's minutes
OVERHEAD = 1.15  # a training's minutes do not hold its start and the detection after it


# ── prepare ─────────────────────────────────────────────────────────────────────────────────────────────────────


def prepare(name: str, data: Path, out: Path, size: int, quality: int) -> None:
    """Frames as the detector sees them, JPEG-coded, with labels; and which videos are for what."""
    from surgeval.detector import Classes
    from surgeval.detector.data import TrainingSet, save_packed

    halves = _open(name, data)
    classes = Classes.of(halves[0].space)
    frames = chain.from_iterable(half.frames(video.name, _ignore) for half in halves for video in half.videos(_ignore))
    packed = TrainingSet.of(frames, classes, image_size=size)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.safetensors"
    save_packed(path, packed, quality=quality)
    splits = {video.name: video.split or "" for video in halves[0].videos(_ignore)}
    present = list(dict.fromkeys(packed.videos))
    folds = {part: [video for video in present if splits[video] == part] for part in ("train", "val", "test")}
    plan: dict[str, Any] = {"videos": present, "split": folds}
    if len(halves) > 1:
        plan["halves"] = [[f"{video.name}/{frame.name}" for video in half.videos(_ignore)
                           for frame in half.frames(video.name, _ignore)] for half in halves]  # fmt: skip
    (out / f"{name}.json").write_text(json.dumps(plan, indent=1))
    megabytes = path.stat().st_size / 1e6
    print(f"{path}: {len(packed)} frames of {len(present)} videos, {len(packed.boxes)} boxes, {megabytes:.1f} MB")
    for line in packed.problems.lines():
        print(f"  {line}")
    if megabytes > MOST_MEGABYTES:
        sys.exit(
            f"{path}: found {megabytes:.0f} MB, expected at most {MOST_MEGABYTES}: use a lower --quality or --size"
        )


def _open(name: str, data: Path) -> list[Dataset]:
    """The dataset; m2cai16 comes in two halves by frame, each with frames of all ten operations."""
    from surgeval.datasets import open_dataset

    if name == "m2cai16":
        return [open_dataset(data / "images" / half, format="voc") for half in ("train", "val")]
    return [open_dataset(data)]


def _ignore(_problem: object) -> None:
    """Problems are counted by the training set."""


# ── train ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Task:
    """One training and the boxes it leaves: `boxes` maps a name of results to a detector below the folder.

    Its parts name videos, or single frames as `video/frame`.
    """

    name: str
    kind: str  # tdnet, rtdetr, untrained or student (of another task's teacher)
    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    settings: TrainSettings
    boxes: Mapping[str, str]
    teacher: str = ""


def train(experiment: str, packed: Path, out: Path, options: argparse.Namespace) -> None:
    """Every training of an experiment that fits into the budget, and the boxes of its test videos."""
    from surgeval.detector.data import load_packed

    began = time.monotonic()
    data = load_packed(packed)
    plan = json.loads(packed.with_suffix(".json").read_text())
    tasks = PLANS[experiment](plan, data.image_size, options)
    tasks = [task for task in tasks if fnmatchcase(task.name, options.only)]
    todo = [task for task in tasks if not (out / task.name / DONE).exists()]
    print(f"{len(tasks)} trainings, {len(tasks) - len(todo)} finished before; {len(data)} frames in memory", flush=True)
    for number, task in enumerate(todo):
        share = STUDENT_SHARE if task.kind == "student" else 1.0
        needed = OVERHEAD * 60 * (task.settings.minutes or 0) * share
        if time.monotonic() - began + needed > options.budget_seconds:
            print(f"no time for {', '.join(one.name for one in todo[number:])}: call again", flush=True)
            break
        _do(task, data, out, options.device)


def _do(task: Task, data: TrainingSet, out: Path, device: str) -> None:
    from surgeval.detector import build_tdnet, save_detector
    from surgeval.detector.rtdetr import train_rtdetr
    from surgeval.detector.training import TrainRecord, train_tdnet

    home, began = out / task.name, time.monotonic()
    folder = home / "training"
    learned, validation = _part(data, task.train), _part(data, task.val) if task.val else None
    if task.kind == "untrained":
        folder.mkdir(parents=True, exist_ok=True)
        blank = build_tdnet(task.settings.size, data.classes, seed=task.settings.seed)
        path = folder / "detector.safetensors"
        save_detector(path, blank, data.classes, size=task.settings.size, image_size=data.image_size)
    else:
        if task.kind == "student":
            _branch(out / task.teacher / "training", folder, task.settings)
        method = train_rtdetr if task.kind == "rtdetr" else train_tdnet
        method(learned, validation, data.classes, folder, task.settings, progress=lambda line: print(line, flush=True))
    test = _part(data, task.test)
    speeds = {}
    for name, place in task.boxes.items():
        network = _opened(folder / place if place else folder, device)
        speeds[name] = _detect(network, test, home / f"{name}.npz")
    told = None if task.kind == "untrained" else TrainRecord.load(folder).result
    facts = {"settings": asdict(task.settings), "train": task.train, "val": task.val, "test": task.test,
             "frames_per_second": speeds, "seconds": time.monotonic() - began, "device": _device(device),
             "result": told}  # fmt: skip
    (home / DONE).write_text(json.dumps(facts, indent=1))


def _part(data: TrainingSet, names: Sequence[str]) -> TrainingSet:
    """The frames of these videos, or these frames."""
    wanted = set(names)
    return data.subset([k for k, video in enumerate(data.videos) if video in wanted or data.name(k) in wanted])


def _branch(teacher: Path, folder: Path, settings: TrainSettings) -> None:
    """A training whose teacher is finished already: the same files, other settings of the student."""
    from surgeval.detector.training import TrainRecord

    if folder.exists():
        return
    half = folder.with_name("copying")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    for name in ("best.safetensors", "last.safetensors", "curves.jsonl"):
        shutil.copy(teacher / name, half / name)
    changed = {"settings": settings.to_json(), "status": "interrupted", "result": None}
    TrainRecord.load(teacher).model_copy(update=changed).save(half)
    half.rename(folder)


def _opened(path: Path, device: str) -> Network:
    from surgeval.detector.inference import open_detector

    return open_detector(path, device=device)


def _detect(network: Network, data: TrainingSet, path: Path, batch: int = 32) -> float:
    """The boxes of all frames, in their pixels, as arrays; frames per second from memory to boxes."""
    import torch

    from surgeval.detector.inference import Looker

    looker = Looker(network)
    rows: list[Any] = []
    spent = 0.0
    for start in range(0, len(data), batch):
        chosen = range(start, min(start + batch, len(data)))
        squares = torch.from_numpy(np.stack([data.sample(k).image for k in chosen]))
        began = time.perf_counter()
        rows += looker.look_at(squares.to(network.device), [data.fits[k] for k in chosen])
        spent += time.perf_counter() - began
    counts = [len(found.scores) for found in rows]
    np.savez_compressed(
        path,
        names=np.array([f"{v}/{n}" for v, n in zip(data.videos, data.names, strict=True)]),
        frame=np.repeat(np.arange(len(rows), dtype=np.int32), counts),
        boxes=torch.cat([found.boxes for found in rows]).numpy().astype(np.float32),
        score=torch.cat([found.scores for found in rows]).numpy().astype(np.float32),
        kind=torch.cat([found.classes for found in rows]).numpy().astype(np.int16),
    )
    return len(rows) / max(spent, 1e-9)


def _device(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU"


# ── plans ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _settings(options: argparse.Namespace, size: int, trainings: int, **changes: Any) -> TrainSettings:
    from surgeval.detector.training import TrainSettings

    minutes = options.minutes or options.budget_seconds / 60 / trainings / OVERHEAD
    usual = {"size": options.size, "batch": options.batch, "image_size": size, "device": options.device,
             "minutes": minutes, "student_epochs": options.student_epochs, "evaluate_every": options.evaluate_every,
             "nominal": options.batch, "workers": options.workers}  # fmt: skip
    return TrainSettings(**{**usual, **changes})


def compare_plan(plan: Mapping[str, Any], size: int, options: argparse.Namespace) -> list[Task]:
    """The same minutes for both detectors, and a network that learned nothing."""
    from surgeval.detector.rtdetr import rtdetr_settings

    split = {part: tuple(videos) for part, videos in plan["split"].items()}
    parts = (split["train"], split["val"], split["test"])
    own = _settings(options, size, 2)
    other = rtdetr_settings(size=options.rtdetr_size, image_size=size, batch=options.batch, device=options.device,
                            workers=options.workers,
                            minutes=own.minutes, evaluate_every=options.evaluate_every)  # fmt: skip
    return [
        Task("untrained", "untrained", *parts, replace(own, minutes=None), {"untrained": ""}),
        Task("tdnet", "tdnet", *parts, own, BOTH),
        Task("rtdetr", "rtdetr", *parts, other, {"rtdetr": ""}),
    ]


def ablation_plan(plan: Mapping[str, Any], size: int, options: argparse.Namespace) -> list[Task]:
    """Two teachers a seed, with and without part heads; six students."""
    split = {part: tuple(videos) for part, videos in plan["split"].items()}
    parts = (split["train"], split["val"], split["test"])
    tasks = []
    for seed in range(options.seeds):
        # Students have a seventh of their teacher's time; counted in trainings of a teacher there are three a seed.
        whole = _settings(options, size, 3 * options.seeds, seed=seed)
        first = f"seed-{seed}-fusion-{WEIGHTS[3]:g}"
        tasks.append(Task(first, "tdnet", *parts, replace(whole, fusion=WEIGHTS[3]), BOTH))
        tasks += [Task(f"seed-{seed}-fusion-{weight:g}", "student", *parts, replace(whole, fusion=weight),
                       {"student": ""}, first) for weight in WEIGHTS if weight != WEIGHTS[3]]  # fmt: skip
        tasks.append(Task(f"seed-{seed}-no-mtl", "tdnet", *parts, replace(whole, aux=False), {"student": ""}))
    return tasks


def videos_plan(plan: Mapping[str, Any], size: int, options: argparse.Namespace) -> list[Task]:
    """Every video is tested once; nothing is validated on, the last epoch counts."""
    videos = tuple(plan["videos"])
    count = options.folds or len(videos)
    shared = _settings(options, size, count)
    made = []
    for fold in (videos[k::count] for k in range(count)):
        rest = tuple(video for video in videos if video not in fold)
        made.append(Task("-".join(fold), "tdnet", rest, (), fold, shared, BOTH))
    return made


def halves_plan(plan: Mapping[str, Any], size: int, options: argparse.Namespace) -> list[Task]:
    """The authors' division: frames of every operation on both sides. The tested half chooses nothing."""
    learned, tested = (tuple(half) for half in plan["halves"])
    return [Task("halves", "tdnet", learned, (), tested, _settings(options, size, 1), BOTH)]


def one_plan(plan: Mapping[str, Any], size: int, options: argparse.Namespace) -> list[Task]:
    """One TDnet on the split of the dataset."""
    train, val, test = (tuple(plan["split"][part]) for part in ("train", "val", "test"))
    return [Task(f"tdnet-{options.size}", "tdnet", train, val, test, _settings(options, size, 1), BOTH)]


PLANS = {"compare": compare_plan, "ablation": ablation_plan, "videos": videos_plan, "halves": halves_plan,
         "one": one_plan}  # fmt: skip


# ── score ───────────────────────────────────────────────────────────────────────────────────────────────────────


def score(experiment: str, name: str, data: Path, out: Path) -> None:
    """Runs of `triplets` from the stored boxes, and the tables of the docs."""
    dataset = _open(name, data)[1] if experiment == "halves" else _joined(name, data)
    results = {path.parent.name: json.loads(path.read_text()) for path in sorted(out.glob(f"*/{DONE}"))}
    if not results:
        sys.exit(f"{out}: found no finished training, expected some")
    work = {"compare": _score_compare, "ablation": _score_ablation}.get(experiment, _score_students)
    work(dataset, out, results)


def _joined(name: str, data: Path) -> Dataset:
    """One dataset; of m2cai16 both halves, its videos whole again."""
    from surgeval.datasets import MemoryDataset
    from surgeval.records import Video

    halves = _open(name, data)
    if len(halves) == 1:
        return halves[0]
    frames = [frame for half in halves for video in half.videos(_ignore) for frame in half.frames(video.name, _ignore)]
    videos = [Video(video.name) for video in halves[0].videos(_ignore)]
    return MemoryDataset(halves[0].space, frames, videos)


def _table(path: Path, dataset: Dataset) -> Any:
    """Stored boxes in the columns that `score_triplets` reads."""
    import polars as pl

    with np.load(path, allow_pickle=False) as file:
        names, frame, boxes, scores, kind = (file[key] for key in ("names", "frame", "boxes", "score", "kind"))
    videos, frames = zip(*(text.split("/", 1) for text in names.tolist()), strict=True)
    triplets = bool(dataset.space.triplets)
    table = {
        "video": np.array(videos, object)[frame], "frame": np.array(frames, object)[frame],
        "triplet" if triplets else "instrument": kind.astype(np.int32), "score": scores.astype(np.float64),
        "x": boxes[:, 0], "y": boxes[:, 1], "w": boxes[:, 2] - boxes[:, 0], "h": boxes[:, 3] - boxes[:, 1],
    }  # fmt: skip
    made = pl.DataFrame(table, schema_overrides={"video": pl.String, "frame": pl.String})
    if triplets:
        parts = np.array(dataset.space.triplets)[kind]
        made = made.with_columns(pl.Series("instrument", parts[:, 0].astype(np.int32)))
    return made


def _scored(dataset: Dataset, table: Any, folds: Any, name: str, out: Path) -> TripletScores:
    from surgeval.protocols.triplets import score_triplets

    scores = score_triplets(table, dataset, task="detection", folds=folds, name=name)
    scores.save(out)
    return scores


def _score_compare(dataset: Dataset, out: Path, results: Mapping[str, Any]) -> None:
    from surgeval import compare
    from surgeval.protocols.majority import frequent_triplets, majority_triplets

    facts = next(iter(results.values()))
    folds = {"test": facts["test"]}
    stored = {"untrained": "untrained/untrained", "TDnet (teacher)": "tdnet/teacher",
              "TDnet (student)": "tdnet/student",
              "RT-DETR": "rtdetr/rtdetr"}  # fmt: skip
    tables = {name: _table(path, dataset) for name, place in stored.items()
              if (path := out / f"{place}.npz").exists()}  # fmt: skip
    if dataset.space.triplets and "TDnet (student)" in tables:
        usual = frequent_triplets(dataset, facts["train"])
        tables["majority triplet"] = majority_triplets(_one_per_box(tables["TDnet (student)"]), usual, dataset.space)
    scored = {name: _scored(dataset, table, folds, name, out / "scored" / name.replace(" ", "-"))
              for name, table in tables.items()}  # fmt: skip
    _print_scores(scored, results)
    _picture(scored, out / "compare")
    for a, b in (("TDnet (student)", "TDnet (teacher)"), ("TDnet (student)", "RT-DETR"),
                 ("TDnet (student)", "majority triplet")):  # fmt: skip
        if a in scored and b in scored:
            print(f"{a} − {b}: {compare(scored[a], scored[b]).difference()}")


def _picture(scored: Mapping[str, TripletScores], stem: Path) -> None:
    """mAP50 of every component and detector with its interval."""
    from surgeval.figures import Series, estimates

    components = next(iter(scored.values())).settings["components"]
    groups = []
    for name, one in scored.items():
        numbers = [one.number(component, "mAP50") for component in components]
        groups.append(Series(name, [(n.estimate, n.low, n.high) for n in numbers]))
    labels = tuple(component.upper() for component in components)
    figure = estimates("Detectors on held-out phantom videos", labels, groups, "mAP50")
    for kind in ("svg", "png"):
        figure.save(stem.with_name(f"{stem.name}.{kind}"))


def _one_per_box(table: Any) -> Any:
    """The best label of every box and instrument: the baseline says one triplet for it."""
    place = ["video", "frame", "instrument", "x", "y", "w", "h"]
    return table.sort("score", descending=True).unique(place, keep="first", maintain_order=True)


def _score_ablation(dataset: Dataset, out: Path, results: Mapping[str, Any]) -> None:
    """Folders as `run_ablation` leaves them, so that `surgeval report` makes their pages."""
    from surgeval.engine import Manifest, save_scored
    from surgeval.protocols.training.ablation.result import ABLATIONS, ablation_home, load_ablation
    from surgeval.protocols.training.page import write_page_of
    from surgeval.protocols.training.stored import AblationFile, AblationName, save_plan

    seeds = sorted({int(name.split("-")[1]) for name in results if f"{name[:6]}-no-mtl" in results})
    rows: dict[AblationName, dict[str, str]] = {
        "components": {"TDnet w/o self-distill": "fusion-0.8/teacher", "TDnet w/o MTL": "no-mtl/student",
                       "TDnet": "fusion-0.8/student"},
        "fusion": {one.name: f"fusion-{one.changes['fusion']:g}/student" for one in ABLATIONS["fusion"].configurations},
    }  # fmt: skip
    folds = {"test": next(iter(results.values()))["test"]}
    for table, places in rows.items():
        home = out / "scored" / table
        for name, place in places.items():
            for seed in seeds:
                boxes = _table(out / f"seed-{seed}-{place}.npz", dataset)
                scores = _scored(dataset, boxes, folds, name, ablation_home(home, name, seed) / "scores")
        save_plan(AblationFile(table=table, configurations=tuple(places), seeds=tuple(seeds)), home)
        manifest = Manifest("training", config={"kind": "ablation"}, dataset=scores.settings["data"], model="TDnet")
        save_scored(home, manifest, cases=scores.settings["frames"])
        made = load_ablation(home)
        print(f"\n{made.finding}\n\n{_markdown(made.paper().readable())}\nopen {write_page_of([made], home)}")


def _score_students(dataset: Dataset, out: Path, results: Mapping[str, Any]) -> None:
    """Teacher and student, each video (or half) as its fold."""
    import polars as pl

    from surgeval import compare

    named = {name: [one for one in facts["test"] if "/" not in one] for name, facts in results.items()}
    folds = named if all(named.values()) else None  # halves by frame: every frame of the dataset is tested
    scored = {}
    for stage in ("teacher", "student"):
        table = pl.concat([_table(out / name / f"{stage}.npz", dataset) for name in results])
        scored[f"TDnet ({stage})"] = _scored(dataset, table, folds, f"TDnet ({stage})", out / "scored" / stage)
    _print_scores(scored, results)
    teacher, student = scored.values()
    print(f"student − teacher: {compare(student, teacher).difference()}")
    if folds is None or len(folds) == 1:
        return
    rows = (
        student.sheets["folds"].filter(pl.col("component") == student.main).select("group", "mAP50", "mAP50:95", "F1")
    )
    print(_markdown(rows.with_columns(pl.selectors.float().round(3))))


def _print_scores(scored: Mapping[str, TripletScores], results: Mapping[str, Any]) -> None:
    import polars as pl

    rows = []
    for name, one in scored.items():
        row = {"detector": name}
        for component in one.settings["components"]:
            for metric in ("mAP50", "mAP50:95"):
                row[f"{component.upper()} {metric}"] = one.number(component, metric).cell()
        rows.append(row)
    print(_markdown(pl.DataFrame(rows)))
    for name, facts in results.items():
        speeds = ", ".join(f"{key} {value:.0f}" for key, value in facts["frames_per_second"].items())
        print(f"{name}: {facts['seconds']:.0f} s on {facts['device']}; frames/s: {speeds}")


def _markdown(frame: Any) -> str:
    lines = [frame.columns, ["---"] * frame.width, *frame.iter_rows()]
    return "\n".join(f"| {' | '.join('–' if cell is None else str(cell) for cell in line)} |" for line in lines)


# ── command line ────────────────────────────────────────────────────────────────────────────────────────────────


def parser() -> argparse.ArgumentParser:
    """The three steps and their options."""
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = whole.add_subparsers(dest="step", required=True)
    one = steps.add_parser("prepare")
    one.add_argument("name", choices=("phantom", "m2cai16", "cholect50"))
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--size", type=int, default=416)
    one.add_argument("--quality", type=int, default=85)
    two = steps.add_parser("train")
    two.add_argument("experiment", choices=tuple(PLANS))
    two.add_argument("--packed", type=Path, required=True)
    two.add_argument("--out", type=Path, required=True)
    two.add_argument("--budget-seconds", type=float, required=True)
    two.add_argument("--minutes", type=float, help="of each training; default: the budget, shared evenly")
    two.add_argument("--device", default="cuda")
    two.add_argument("--size", default="n")
    two.add_argument("--rtdetr-size", default="r18")
    two.add_argument("--batch", type=int, default=16)
    two.add_argument("--workers", type=int, help="threads that prepare pictures; default: one a core")
    two.add_argument("--student-epochs", type=int, default=30)
    two.add_argument("--evaluate-every", type=int, default=2)
    two.add_argument("--folds", type=int, default=0, help="of `videos`; default: one a video")
    two.add_argument("--only", default="*", help="trainings of this name (* for any part of it)")
    two.add_argument("--seeds", type=int, default=3)
    three = steps.add_parser("score")
    three.add_argument("experiment", choices=tuple(PLANS))
    three.add_argument("--name", choices=("phantom", "m2cai16", "cholect50"), default="phantom")
    three.add_argument("--data", type=Path, required=True)
    three.add_argument("--out", type=Path, required=True)
    return whole


def main() -> None:
    """Parse and do."""
    given = parser().parse_args()
    if given.step == "prepare":
        prepare(given.name, given.data, given.out, given.size, given.quality)
    elif given.step == "train":
        train(given.experiment, given.packed, given.out, given)
    else:
        score(given.experiment, given.name, given.data, given.out)


if __name__ == "__main__":
    main()
