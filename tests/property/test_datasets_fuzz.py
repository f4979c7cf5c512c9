"""Damaged datasets of every format: `check` names problems, it never raises; `open_dataset` refuses in one sentence."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from surgeval.datasets import MemoryDataset, check, convert, dataset_fingerprint, open_dataset, writers
from surgeval.errors import SurgevalError
from surgeval.records import (
    Box,
    Frame,
    Gaze,
    ImageRef,
    Instance,
    IntentQuestion,
    Mask,
    Question,
    Triplet,
    Video,
    VqaQuestion,
)
from surgeval.vocab import load_labels

SPACE = load_labels("cholect50")
FORMATS = ["cholect50", "voc", "yolo5", "yolo8", "labelme", "coco", "cvat", "focus", "intent", "mp4", "phantom", "rows"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small valid dataset in every format."""
    root = tmp_path_factory.mktemp("fuzz")
    frames = []
    for number in (1, 2, 3):
        path = root / "source" / f"{number:06d}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.full((32, 48, 3), 40 * number, np.uint8)).save(path)
        outline = ((1.0, 1.0), (20.0, 1.0), (20.0, 20.0))
        instances = (
            Instance(Triplet(*SPACE.triplets[17]), Box(1, 1, 19, 19), polygon=outline),
            Instance(Triplet(*SPACE.triplets[60]), Box(4, 5, 20, 20), Mask(32, 48, (40, 20, 32 * 48 - 60)), track=2),
        )
        frames.append(Frame("V1", f"{number:06d}", number, number / 1.0, ImageRef(path), 48, 32, instances, phase=1))
    questions: list[Question] = [
        VqaQuestion("q1", "V1", 0.0, 1.0, "c", "?", "object_identification", "binary", "yes"),
        IntentQuestion("i1", "s", "V1", ("000001.jpg",), "spatial", "absolute", "?", ("a", "b"), 0,
                       gaze=(Gaze(0, 0.5, 0.5, 1),)),
    ]  # fmt: skip
    source = MemoryDataset(SPACE, frames, [Video("V1", split="train", fps=1.0)], questions, root / "source")
    for format in writers():
        convert(source, root / format, format)
    (root / "phantom" / "truth").mkdir(parents=True)
    (root / "phantom" / "frames" / "P1").mkdir(parents=True)
    space = load_labels("phantom").to_json()
    manifest = {"format": "surgeval-phantom", "version": 1, "size": [48, 32], "fps": 25, "label_space": space,
                "videos": [{"name": "P1", "seconds": 1.0}]}  # fmt: skip
    frame = {"name": "000001", "time": 0.04, "phase": "Preparation", "camera": {"P": 0, "T": 0, "Z": 0, "R": 0},
             "region": [1, 1, 5, 5], "objects": {}, "instances": [
                 {"track": 1, "instrument": "grasper", "verb": "retract", "target": "gallbladder", "triplet": 17,
                  "box": [1, 1, 9, 9], "mask": {"size": [32, 48], "counts": [40, 20, 32 * 48 - 60]}, "tip": [3, 3],
                  "contact": None, "motion": [1, 0, 0, 0, 1, 0]}]}  # fmt: skip
    (root / "phantom" / "phantom.json").write_text(json.dumps(manifest))
    truth = {"video": "P1", "gaze": [{"t": 0, "x": 0.1, "y": 0.1, "duration": 1}], "frames": [frame]}
    (root / "phantom" / "truth" / "P1.json").write_text(json.dumps(truth))
    for name in ("000001", "000002"):
        shutil.copy(root / "source" / "000001.jpg", root / "phantom" / "frames" / "P1" / f"{name}.jpg")
    (root / "rows").mkdir()
    row = {"id": "f1", "video": "v", "timestamp_start": "00:00:01", "timestamp_end": "00:00:09", "procedure_type": "c",
           "question": "?", "primary_capability": "1a", "secondary_capabilities": ["1b"], "answer_format": "binary",
           "answer": "yes", "clinical_relevance": False}  # fmt: skip
    pl.DataFrame([row] * 3).write_parquet(root / "rows" / "rows.parquet")
    for format in FORMATS:
        assert check(open_dataset(root / format)).errors == (2 if format == "rows" else 0), format
    return {format: root / format for format in FORMATS}


def survive(folder: Path, format: str) -> None:
    """Whatever the files hold: problems or one sentence, nothing else."""
    reading = {"yolo5": "yolo", "yolo8": "yolo", "mp4": "video", "rows": "focus"}.get(format, format)
    for name in (None, reading):
        try:
            dataset = open_dataset(folder, name)
            report = check(dataset)
            for problem in report.problems:
                text = str(problem)
                text.encode()  # can be printed
                assert "\n" not in text
                assert len(text) < 2000
            dataset_fingerprint(dataset)
        except SurgevalError as error:
            assert "\n" not in str(error)  # noqa: PT017


STRANGE: list[Any] = [
    *(None, True, -1, 0, 1, 3, 10**30, 10**400, -0.5, 1e300, float("nan"), float("inf"), "", "x", "17", "../../x"),
    *("\ud800", "a\0b", [], [1, 2], {}, {"a": 1}, [[]], [None] * 15, [[1, 2], [3, 4]], "/etc/passwd", "é" * 300),
    [float("nan")] * 4,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(document: Any, chooser: random.Random) -> Any:
    """The document with one value replaced, removed or repeated."""
    spots = list(places(document))
    # Prefer the records to the long lists of class names.
    spots = [spot for spot in spots if not {"categories", "label_space", "triplets"} & set(spot)] or spots
    *way, last = chooser.choice(spots)
    holder = document
    for key in way:
        holder = holder[key]
    action = chooser.randrange(6)
    if action == 0:
        del holder[last]
    elif action == 1 and isinstance(holder, list):
        holder.append(holder[last])
    else:
        holder[last] = chooser.choice(STRANGE)
    return document


def label_files(folder: Path) -> list[Path]:
    kinds = (".json", ".jsonl", ".xml", ".txt", ".yaml")
    return sorted(path for path in folder.rglob("*") if path.suffix in kinds)


@settings(max_examples=settings.default.max_examples // 2 if settings.default else 20)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("format", [name for name in FORMATS if name not in ("voc", "yolo5", "yolo8", "mp4", "rows")])
def test_strange_json_values(originals: dict[str, Path], format: str, seed: int) -> None:
    chooser = random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "data"
        shutil.copytree(originals[format], folder)
        for _ in range(chooser.randint(1, 3)):
            path = chooser.choice([path for path in label_files(folder) if path.suffix in (".json", ".jsonl")])
            try:
                document = changed(json.loads(path.read_text()), chooser)
                path.write_text(json.dumps(document) + "\n")
            except (ValueError, IndexError, TypeError, KeyError):
                continue
        survive(folder, format)


@settings(max_examples=settings.default.max_examples // 2 if settings.default else 20)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("format", FORMATS)
def test_damaged_bytes(originals: dict[str, Path], format: str, seed: int) -> None:
    chooser = random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "data"
        shutil.copytree(originals[format], folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        for _ in range(chooser.randint(1, 4)):
            path = chooser.choice(files)
            if not path.is_file():
                continue
            data = bytearray(path.read_bytes())
            action = chooser.randrange(7)
            if action == 0:
                path.unlink()
                continue
            if action == 1:
                path.unlink()
                path.mkdir()
                continue
            if action == 2:
                path.rename(path.with_name(chooser.choice(["x (1)", "..x", "é_1", "a_b_c"]) + path.suffix))
                continue
            if action == 3:
                data = data[: chooser.randrange(len(data) + 1)]
            elif action == 4 and data:
                start = chooser.randrange(len(data))
                data[start:start] = data[start : start + chooser.randrange(1, 80)]
            else:
                for _ in range(chooser.randint(1, 6)):
                    if data:
                        data[chooser.randrange(len(data))] = chooser.choice([0, 10, 34, 45, 48, 57, 91, 93, 123, 255])
            path.write_bytes(data)
        survive(folder, format)
