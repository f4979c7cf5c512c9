"""`check`: read everything, believe nothing, name every problem.

The readers tell what is wrong with the labels; this adds what only a look at the whole can tell: images that are
missing, damaged or of another size, frames met twice, boxes too small to be meant, media of questions that are not
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import polars as pl

from surgeval.datasets.base import Dataset
from surgeval.datasets.formats.intent import LINK_OUT, check_media
from surgeval.datasets.io.files import is_there, sweep
from surgeval.datasets.io.images import decode, image_size
from surgeval.datasets.io.layout import is_file
from surgeval.datasets.memory import MemoryDataset
from surgeval.errors import DataError
from surgeval.files import NOT_REGULAR, Location, OnProblem, Problem, format_value, leads_out, safe_name
from surgeval.records import Frame, ImageRef, IntentQuestion, Video
from surgeval.results import Result, counted

__all__ = ["CheckReport", "check"]

_COLUMNS = ("level", "kind", "file", "record", "field", "found", "expected")
_READ = ("videos", "frames", "unlabelled", "instances", "boxes", "masks", "images", "questions", "intent")

TINY_PIXELS, TINY_SHARE = 4, 0.005  # a box with a side below either is too small to show an instrument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckReport(Result):
    """What was read and what was wrong.

    `problems` holds the first `keep` of them (all are handed to `on_problem`); `counts` counts them all by kind.
    """

    format: str
    root: Path
    videos: int
    frames: int
    unlabelled: int
    instances: int
    boxes: int
    masks: int
    images: int
    questions: int
    intent: int  # of the questions: those of clinical intent, which `surgeval run focus` does not ask
    errors: int
    warnings: int
    counts: Mapping[str, int]  # kind of problem → how many
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; oddities that leave the data usable (warnings) do not count."""
        return self.errors == 0

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`problems`, a row each; `kinds`, how many of each; `counts`, what was read."""
        rows = [tuple(getattr(problem, column) for column in _COLUMNS) for problem in self.problems]
        kinds = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return {
            "problems": pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row"),
            "kinds": pl.DataFrame(kinds, schema={"kind": pl.String, "problems": pl.Int64}, orient="row"),
            "counts": pl.DataFrame([(name, getattr(self, name)) for name in _READ],
                                   schema={"what": pl.String, "count": pl.Int64}, orient="row"),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"CheckReport of {self.root}: {self.summary()}"

    def summary(self) -> str:
        """The counts in one line."""
        kinds = ("video", "frame", "instance", "question", "error", "warning")
        counts = {kind: counted(getattr(self, f"{kind}s"), kind) for kind in kinds}
        if 0 < self.intent < self.questions:
            counts["question"] += f" ({self.questions - self.intent} for focus, {self.intent} for intent)"
        return f"{self.format}: " + ", ".join(counts.values())


class _Listener:
    """Counts problems, keeps the first ones and passes all on."""

    def __init__(self, keep: int, on_problem: OnProblem | None) -> None:
        self.kinds: Counter[str] = Counter()
        self.levels: Counter[str] = Counter()
        self.problems: list[Problem] = []
        self._keep, self._next = keep, on_problem
        self._closed: set[str] = set()

    def __call__(self, problem: Problem) -> None:
        if problem.kind in ("file-not-regular", "file-unreadable"):  # met by the sweep and again by the reader
            if problem.path in self._closed:
                return
            self._closed.add(problem.path)
        self.kinds[problem.kind] += 1
        self.levels[problem.level] += 1
        if len(self.problems) < self._keep:
            self.problems.append(problem)
        if self._next:
            self._next(problem)


def check(
    dataset: Dataset,
    *,
    images: bool = True,
    on_problem: OnProblem | None = None,
    keep: int = 1000,
    progress: Callable[[Video, int], None] | None = None,
) -> CheckReport:
    """Read a whole dataset and report every problem in it.

    Image files must exist and have the stated size (read from their headers); `images=True` also decodes each of
    them, which finds files that are cut off.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame
    >>> from surgeval.vocab import load_labels
    >>> twice = Frame("VID01", "000001", 0, None, None, 640, 480)
    >>> report = check(MemoryDataset(load_labels("cholec80"), [twice, twice]))
    >>> report.frames, [problem.kind for problem in report.problems]
    (2, ['frame-duplicate'])
    """
    tell = _Listener(keep, on_problem)
    counts: Counter[str] = Counter()
    if not isinstance(dataset, MemoryDataset):
        sweep(dataset.root, tell)
    videos = dataset.videos(tell)
    _check_names(dataset, videos, tell)
    for video in videos:
        seen: set[str] = set()
        tiny = _TinyBoxes()
        for frame in dataset.frames(video.name, tell):
            counts["frames"] += 1
            counts["unlabelled"] += not frame.labelled
            counts["instances"] += len(frame.instances)
            counts["boxes"] += sum(instance.box is not None for instance in frame.instances)
            counts["masks"] += sum(instance.mask is not None or bool(instance.polygon) for instance in frame.instances)
            tiny.look(frame)
            if frame.name in seen:
                place = Location(str(dataset.root), tell, f"{video.name} frame {frame.name}")
                place.error("frame-duplicate", "found a frame met before, expected each frame once")
            seen.add(frame.name)
            counts["images"] += _check_images(frame, dataset.root, tell, images)
            if progress:
                progress(video, counts["frames"])
        tiny.tell(Location(str(dataset.root), tell, f"video {video.name}"))
    for question in dataset.questions(tell):
        counts["questions"] += 1
        if isinstance(question, IntentQuestion):
            counts["intent"] += 1
            check_media(dataset, question, tell)
    if not (counts["frames"] or counts["questions"] or tell.levels["error"]):
        Location(str(dataset.root), tell).error("empty", "found no frame and no question, expected a dataset with some")
    return CheckReport(
        format=dataset.format, root=dataset.root, videos=len(videos), errors=tell.levels["error"],
        warnings=tell.levels["warning"], counts=MappingProxyType(dict(tell.kinds)), problems=tuple(tell.problems),
        **{name: counts[name] for name in _READ if name != "videos"},
    )  # fmt: skip


class _TinyBoxes:
    """Boxes of a few pixels, counted per video: slips of the mouse, or sizes in the wrong unit."""

    def __init__(self) -> None:
        self._boxes, self._tiny, self._first = 0, 0, ""

    def look(self, frame: Frame) -> None:
        """Count the boxes of a frame."""
        for instance in frame.instances:
            if instance.box is None:
                continue
            self._boxes += 1
            w, h = instance.box.w, instance.box.h
            if min(w, h) < TINY_PIXELS or w < TINY_SHARE * frame.width or h < TINY_SHARE * frame.height:
                self._first = self._first or f"{w:.3g} × {h:.3g} pixels in frame {frame.name}"
                self._tiny += 1

    def tell(self, place: Location) -> None:
        """One sentence, where there are any."""
        if self._tiny:
            expected = f"sides of at least {TINY_PIXELS} pixels and {TINY_SHARE:.1%} of the frame's"
            place.warn(
                "box-tiny",
                f"found {self._tiny} tiny of {self._boxes} boxes, the first {self._first}, expected {expected}",
                "box",
            )


def _check_names(dataset: Dataset, videos: tuple[Video, ...], on_problem: OnProblem) -> None:
    """Splits and videos become folders and files wherever the dataset is written."""
    splits = dict.fromkeys(split for video in videos for split in video.split.split(",") if split)
    for name, kind in (*((video.name, "video") for video in videos), *((split, "split") for split in splits)):
        fit = safe_name(name)
        if fit != name:
            place = Location(str(dataset.root), on_problem, f"{kind} {format_value(name)}")
            place.error(
                "name-unsafe",
                f"found a name that leaves its folder or fits no file, expected a name like {format_value(fit)}",
            )


def _check_images(frame: Frame, root: Path, on_problem: OnProblem, decoding: bool) -> int:
    """Look at the image of a frame and at its successor; returns how many are there."""
    refs = [(ref, role) for ref, role in ((frame.image, "image"), (frame.successor, "successor")) if ref]
    return sum(_check_image(ref, role, frame, root, on_problem, decoding) for ref, role in refs)


def _check_image(ref: ImageRef, role: str, frame: Frame, root: Path, on_problem: OnProblem, decoding: bool) -> bool:
    if ref.frame is not None:
        return True  # the video's index was built from the file itself
    place = Location(str(ref.path), on_problem, f"{frame.video} frame {frame.name}")
    if is_there(ref.path) and not is_file(ref.path):
        place.error("file-not-regular", f"found {NOT_REGULAR}, expected a regular file")
        return False
    if not is_file(ref.path):
        place.error("image-missing", f"found no such file, expected the {role} of a frame")
        return False
    if leads_out(ref.path, root):
        place.warn("path-escape", f"found {LINK_OUT}, expected the {role} of a frame")
    size = image_size(ref.path)
    if decoding or size is None:  # decoding tells why there is no size
        try:
            size = decode(ref.path).shape[1::-1]
        except DataError as error:
            place.error("image-broken", error.sentence)
            return False
    if size != (frame.width, frame.height):
        pixels, expected = f"{size[0]} × {size[1]} pixels", f"{frame.width} × {frame.height} as the labels say"
        place.error("image-size", f"found {pixels}, expected {expected}")
    return True
