"""Small real datasets on disk: two videos, three frames each, every feature a format can hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import Dataset, MemoryDataset, Problem, convert
from surgeval.records import (
    Box,
    Frame,
    Gaze,
    ImageRef,
    Instance,
    IntentQuestion,
    Mask,
    Triplet,
    Video,
    VqaQuestion,
)
from surgeval.vocab import LabelSpace, load_labels

WIDTH, HEIGHT = 96, 64


def picture(seed: int, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Tissue-like noise."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 60, (height // 4, width // 4, 3)) + np.array([150, 60, 50])
    return np.kron(base, np.ones((4, 4, 1))).astype(np.uint8)


def square_mask(x: int, y: int, w: int, h: int) -> Mask:
    array = np.zeros((HEIGHT, WIDTH), dtype=bool)
    array[y : y + h, x : x + w] = True
    return Mask.from_array(array)


@pytest.fixture
def space() -> LabelSpace:
    return load_labels("cholect50")


@pytest.fixture
def make(tmp_path: Path, space: LabelSpace) -> Callable[[], MemoryDataset]:
    """A dataset with images on disk: boxes, triplets, phases, splits; frame 3 of each video is empty."""

    def build() -> MemoryDataset:
        frames = []
        for v, video in enumerate(("VID01", "VID02")):
            for n in (25, 50, 75):
                path = tmp_path / "source" / video / f"{n:06d}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(picture(v * 100 + n)).save(path, quality=92)
                first = Instance(Triplet(*space.triplets[17]), Box(8.0, 16.0, 24.0, 32.0))
                second = Instance(Triplet(*space.triplets[60]), Box(40.5, 8.25, 20.75, 30.5))
                instances = (first, second) if n < 75 else ()
                frames.append(
                    Frame(video, f"{n:06d}", n, n / 25, ImageRef(path), WIDTH, HEIGHT, instances, phase=v + 1)
                )
        videos = [Video("VID01", "A", "train", "cholecystectomy", 25.0), Video("VID02", "B", "val", "", 25.0)]
        return MemoryDataset(space, frames, videos)

    return build


@pytest.fixture
def exported(tmp_path: Path, make: Callable[[], MemoryDataset]) -> Callable[[str], Path]:
    """The dataset written in a format."""

    def export(format: str) -> Path:
        out = tmp_path / format
        convert(make(), out, format)
        return out

    return export


@pytest.fixture
def phantom(tmp_path: Path) -> Path:
    """A phantom folder in its native form, as small as can be."""
    return write_phantom(tmp_path / "phantom")


def write_phantom(root: Path) -> Path:
    space = load_labels("phantom")
    names = ("PA1", "PB1")
    manifest = {
        "format": "surgeval-phantom", "version": 1, "edition": None, "seed": 7, "size": [WIDTH, HEIGHT], "fps": 25,
        "label_space": space.to_json(),
        "videos": [
            {"name": name, "source": name[1], "split": "train", "procedure": "cholecystectomy", "seconds": 2.0,
             "sha256": "0"} for name in names
        ],
    }  # fmt: skip
    for place in ("truth", "questions/intent"):
        (root / place).mkdir(parents=True)
    (root / "phantom.json").write_text(json.dumps(manifest))
    for v, name in enumerate(names):
        folder = root / "frames" / name
        folder.mkdir(parents=True)
        frames = []
        for n in (25, 50):
            for k in (n, n + 1):
                Image.fromarray(picture(v * 100 + k)).save(folder / f"{k:06d}.jpg", quality=92)
            mask = square_mask(10, 12, 20, 18)
            bag = square_mask(50, 20, 30, 20)
            frames.append({
                "name": f"{n:06d}", "time": n / 25, "phase": "Preparation",
                "camera": {"P": 0.5, "T": -0.25, "Z": 0.0, "R": 0.01}, "region": [12, 14, 10, 10],
                "objects": {"sponge": "hidden"}, "corruption": None,
                "instances": [
                    {"track": 1, "instrument": "grasper", "verb": "retract", "target": "gallbladder", "triplet": 17,
                     "box": [10, 12, 20, 18], "mask": {"size": [HEIGHT, WIDTH], "counts": list(mask.counts)},
                     "tip": [28.5, 20.0], "contact": [27, 21], "motion": [1, 0, 0.5, 0, 1, -0.25]},
                    {"track": 2, "instrument": "specimen_bag", "verb": "null_verb", "target": "null_target",
                     "triplet": -1,
                     "box": [50, 20, 30, 20], "mask": {"size": [HEIGHT, WIDTH], "counts": list(bag.counts)},
                     "tip": [60, 30], "contact": None, "motion": None},
                ],
            })  # fmt: skip
        gaze = [{"t": 0.9, "x": 0.5, "y": 0.5, "duration": 0.3}, {"t": 1.9, "x": 0.2, "y": 0.4, "duration": 0.3}]
        truth = {"video": name, "graph": {}, "gaze": gaze, "frames": frames}
        (root / "truth" / f"{name}.json").write_text(json.dumps(truth))
    requests = [{"qID": "q1", "videoID": "PA1", "start_time": 0.0, "end_time": 2.0, "procedure_type": "c",
                 "question": "Is a sponge visible?"}]  # fmt: skip
    references = [{"qID": "q1", "primary": "1a", "format": "binary", "answer": "no"}]
    (root / "questions" / "focus_requests.json").write_text(json.dumps(requests))
    (root / "questions" / "focus_references.json").write_text(json.dumps(references))
    item = {
        "id": "i1", "scenario": "laparoscopy", "cluster": "PA1", "media": ["../../frames/PA1/000025.jpg"],
        "dimension": "spatial", "skill": "absolute", "question": "Where do I look?", "options": ["here", "there"],
        "answer": 0, "trap": None, "gaze": gaze, "context": {"phase": "Preparation"},
    }  # fmt: skip
    (root / "questions" / "intent" / "items.jsonl").write_text(json.dumps(item) + "\n")
    return root


@pytest.fixture
def vqa() -> VqaQuestion:
    return VqaQuestion("q1", "v1", 0.0, 12.5, "cholecystectomy", "How many clips?", "object_aggregation", "number", "3",
                       {"threshold": 1}, (), True, False)  # fmt: skip


@pytest.fixture
def item(tmp_path: Path) -> IntentQuestion:
    Image.fromarray(picture(1)).save(tmp_path / "frame.jpg")
    return IntentQuestion("i1", "laparoscopy", "v1", ("frame.jpg",), "temporal", "prospective", "What will I do?",
                          ("cut", "clip"), 1, 0.0, 2.0, (Gaze(0.0, 0.5, 0.5, 0.2),), {"phase": "x"}, "cognitive",
                          "i0", "i2")  # fmt: skip


def _same(a: Frame, b: Frame, tolerance: float = 1e-9) -> None:
    assert (a.video, a.name, a.index, a.width, a.height, a.labelled) == (
        b.video, b.name, b.index, b.width, b.height, b.labelled)  # fmt: skip
    assert len(a.instances) == len(b.instances)
    for one, other in zip(a.instances, b.instances, strict=True):
        assert one.triplet == other.triplet
        assert (one.box is None) == (other.box is None)
        if one.box and other.box:
            np.testing.assert_allclose(one.box.corners, other.box.corners, atol=tolerance, rtol=0)


@pytest.fixture
def same() -> Callable[..., None]:
    """Asserts that two frames carry the same labels."""
    return _same


class Heard(list[Problem]):
    """The problems told, as a listener."""

    def __call__(self, problem: Problem) -> None:
        self.append(problem)

    def of(self, kind: str) -> list[str]:
        return [str(problem) for problem in self if problem.kind == kind]


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def read() -> Callable[[Dataset, Callable[[Problem], None]], list[Frame]]:
    """All frames of a dataset, problems told."""

    def frames(dataset: Dataset, tell: Callable[[Problem], None]) -> list[Frame]:
        return [frame for video in dataset.videos(tell) for frame in dataset.frames(video.name, tell)]

    return frames
