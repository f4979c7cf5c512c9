"""What every writer shares: the stream of frames, the images, and the account of what the format cannot hold.

A writer says what it `keeps`; whatever else a frame carries is counted and ends as one sentence in the report.
Names of splits, videos and frames come from data: writers take the names of files from `named` and `stem`, never from
the records, so that every file lies in the folder and no two frames share one.
Images are copied byte for byte; they are encoded anew only when their pixels change (or come from a video).
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import PIL.Image

from surgeval.arrays import Image
from surgeval.datasets.base import Dataset, OnProblem
from surgeval.datasets.formats.labels import FILE, without_null_pair
from surgeval.datasets.io.images import decode, image_size, read_image
from surgeval.datasets.io.layout import IMAGES, unlike_copy
from surgeval.datasets.io.letterbox import Letterbox
from surgeval.errors import DataError
from surgeval.files import DistinctNames, path_inside, safe_name
from surgeval.records import UNKNOWN, Frame, Instance, Triplet, Video
from surgeval.vocab import LabelSpace

FRAME_ATTRIBUTE = "frame attribute"  # as a feature that a writer keeps
Pixels = Callable[[Frame], Image]
_LONGEST = 110  # bytes of a video's or a frame's name: both together are the name of one file in flat layouts

# What is said of each thing that a format does not keep.
_WORDS = {
    "box": "boxes of {n} instances", "verb": "verbs of {n} instances", "target": "targets of {n} instances",
    "mask": "masks of {n} instances", "polygon": "outlines of {n} instances", "track": "tracks of {n} instances",
    "score": "scores of {n} instances", "points": "named points of {n} instances",
    "motion": "motions of {n} instances", "target_box": "target boxes of {n} instances",
    "phase": "phases of {n} frames", "successor": "successor images of {n} frames",
    "camera": "camera motions of {n} frames", "gaze": "gaze of {n} frames", "time": "times of {n} frames",
    "region": "interaction regions of {n} frames", "objects": "object states of {n} frames",
    "split": "splits of {n} videos", "source": "sources of {n} videos", "procedure": "procedures of {n} videos",
    "fps": "frame rates of {n} videos", "seconds": "lengths of {n} videos",
    "questions": "{n} questions", "shapes": "{n} shapes that are no boxes or outlines",
}  # fmt: skip
# Attributes that belong to a feature of their own, or only serve writing back (a format's own words for the rest).
SERVING = frozenset({"target_box", "polygons", "original_parts", "labelme", "keyframe"})


@runtime_checkable
class Writer(Protocol):
    """A format that can be written."""

    name: str
    keeps: frozenset[str]

    def write(self, out: Output) -> None:
        """Write the dataset into `out.folder`."""
        ...


@dataclass
class Output:
    """Where a dataset is written to, with its source and the running account."""

    source: Dataset
    folder: Path
    writer: Writer
    videos: tuple[Video, ...]
    on_problem: OnProblem
    images: bool = True
    dry: bool = False  # images are counted, not written
    pixels: Pixels | None = None  # where the pixels change: how they are made
    geometry: Callable[[Frame], Letterbox] | None = None  # of the frame just yielded, where it was padded to a square
    progress: Callable[[Video, Frame], None] | None = None
    counts: Counter[str] = field(default_factory=Counter)  # frames, instances, written, images, questions
    losses: Counter[str] = field(default_factory=Counter)  # sentence with {n} → n
    _stems: DistinctNames = field(default_factory=DistinctNames)  # of the video just being written

    @property
    def space(self) -> LabelSpace:
        """The label space of what is written."""
        return self.source.space

    def named(self, *reserved: str, splits: bool = True) -> list[tuple[Video, tuple[str, ...], str]]:
        """Each video with the folder of its split, () for none or several, and a name that no other video has.

        `reserved` are names that mean something else to readers of the format; `splits`: whether they have folders.
        """
        videos, taken = DistinctNames(*reserved, longest=_LONGEST), DistinctNames(FILE)
        wanted = dict.fromkeys(video.split for video in self.videos if video.split and "," not in video.split)
        folders = {split: taken.claim(split) for split in wanted if splits}
        names = [videos.claim(video.name) for video in self.videos]
        for split, folder in folders.items():
            if folder != split:
                self.lost("names of {n} splits became other file names")
        for video, name in zip(self.videos, names, strict=True):
            if name != video.name:
                self.lost("names of {n} videos became other file names")
        return [(video, (folders[video.split],) if video.split in folders else (), name)
                for video, name in zip(self.videos, names, strict=True)]  # fmt: skip

    def stem(self, frame: Frame, *, flat: bool = False) -> str:
        """A file name without suffix for the frame just yielded, which no other frame of its video has.

        `flat`: it can stand behind `{video}_`, and is read back by cutting at the last underscore.
        """
        wanted = frame.name
        if flat and "_" in wanted:
            self.lost("underscores in the names of {n} frames became dashes")
            wanted = wanted.replace("_", "-")
        stem = self._stems.claim(unlike_copy(safe_name(wanted)))
        if stem != wanted:
            self.lost("names of {n} frames became other file names")
        return stem

    def frames(self, video: Video, *reserved: str) -> Iterator[Frame]:
        """The frames of a video, counted; `reserved` are file names that no frame may take."""
        self._stems = DistinctNames(*reserved, longest=_LONGEST)
        for key in ("split", "source", "procedure", "fps", "seconds"):
            if getattr(video, key):
                self._note(key)
        if "," in video.split and "split" in self.writer.keeps:
            self.lost("splits of {n} videos that lie in several of them are not kept")
        for frame in self.source.frames(video.name, self.on_problem):
            self.counts["frames"] += 1
            self.counts["instances"] += len(frame.instances)
            frame = self._without_null_pairs(frame)
            if not (frame.labelled or "unlabelled" in self.writer.keeps or (self.images and frame.image)):
                self.lost("{n} unlabelled frames, which only an image would tell of, are not kept")
            if frame.size_assumed and "box" in self.writer.keeps and "unsized" not in self.writer.keeps:
                self.lost(f"sizes of {{n}} frames are not known: {frame.width} × {frame.height} was written")
            for feature in _frame_features(frame):
                self._note(feature)
            for instance in frame.instances:
                for feature in _instance_features(instance):
                    self._note(feature)
            if self.progress:
                self.progress(video, frame)
            yield frame

    def _without_null_pairs(self, frame: Frame) -> Frame:
        """Keep only the instrument where verb and target are null and that is no class, which readers refuse."""
        if not self.space.triplets:
            return frame
        triplets = [without_null_pair(self.space, instance.triplet) for instance in frame.instances]
        if all(new is instance.triplet for new, instance in zip(triplets, frame.instances, strict=True)):
            return frame
        instances = (replace(instance, triplet=new) for instance, new in zip(frame.instances, triplets, strict=True))
        return replace(frame, instances=tuple(instances))

    def _note(self, feature: str) -> None:
        kind, named, name = feature.partition(":")
        if feature not in self.writer.keeps and (not named or kind not in self.writer.keeps):
            owners = "frames" if kind == FRAME_ATTRIBUTE else "instances"
            words = _WORDS[kind] if not named else f"attribute {_shown(name)} of {{n}} {owners}"
            self.losses[f"{words} {'is' if named else 'are'} not kept"] += 1

    def said_of(self, frame: Frame) -> dict[str, object]:
        """The facts of a whole frame, those that it has: time, phase, no labels, attributes."""
        facts: dict[str, object] = {}
        if frame.time is not None:
            facts["time"] = frame.time
        if frame.phase is not None:
            facts["phase"] = self.space.phases[frame.phase]
        if not frame.labelled:
            facts["labelled"] = False
        if extra := self.writable(frame.attributes):
            facts["attributes"] = extra
        return facts

    def writable(self, attributes: Mapping[str, object], *own: str) -> dict[str, object]:
        """The attributes that JSON can hold, without those that only serve writing back; the rest is said.

        `own` are names that the format needs for itself: an attribute of that name would take its place.
        """
        result: dict[str, object] = {}
        for name, value in attributes.items():
            if name in SERVING:
                continue
            if name in own:
                self.lost(f"attribute {_shown(name)} of {{n}} records, a name that the format needs, is not kept")
            elif is_json(value):
                result[name] = value
            else:
                self.lost(f"attribute {_shown(name)} of {{n}} records, which JSON cannot hold, is not kept")
        return result

    def lost(self, sentence: str) -> None:
        """Count one thing that was lost; `{n}` in the sentence becomes the number."""
        self.losses[sentence] += 1

    def lost_triplet(self, triplet: Triplet) -> None:
        """Say why an instance has no class number: a part of its triplet is missing, or the whole is no class."""
        ids = (triplet.instrument, triplet.verb, triplet.target)
        if not self.space.triplets:
            self.lost("{n} instances without instrument were left out")
        elif UNKNOWN in ids:
            self.lost("{n} instances without a whole triplet were left out")
        else:
            self.lost("{n} instances whose triplet is no class of the label space were left out")

    def look(self, triplet: Triplet) -> None:
        """Say that a triplet which is written part by part is no class of the label space: its readers refuse it."""
        ids = (triplet.instrument, triplet.verb, triplet.target)
        if UNKNOWN not in ids and self.space.triplets and self.space.find(*ids) == UNKNOWN:
            self.lost("triplets of {n} instances are written but no classes of the label space, and refused on reading")

    def kept(self, count: int = 1) -> None:
        """Count instances written."""
        self.counts["written"] += count

    def image(self, frame: Frame, folder: Path, stem: str) -> str | None:
        """Put a frame's image at `folder/STEM.suffix`; returns its file name, or None where there is none to put."""
        if frame.image is None:
            self.lost("images of {n} frames are not at hand")
            return None
        source = frame.image.path
        suffix = source.suffix.lower() if source.suffix.lower() in IMAGES else ".jpg"
        encoded = self.pixels is not None or frame.image.frame is not None
        path = path_inside(folder, stem + (".jpg" if encoded and suffix != ".png" else suffix))
        if not self.images:
            return path.name
        if self.dry:
            self.counts["images"] += 1
            if frame.image.frame is not None:
                self.lost("{n} video frames were encoded as images")
            return path.name
        if not encoded and image_size(source) is None:
            decode(source)  # says what is wrong
            raise DataError(source, "found a damaged image, expected the image of a frame")
        folder.mkdir(parents=True, exist_ok=True)
        if encoded:
            array = self.pixels(frame) if self.pixels else read_image(frame.image)
            save_image(array, path)
            if frame.image.frame is not None:
                self.lost("{n} video frames were encoded as images")
        else:
            shutil.copyfile(source, path)
        self.counts["images"] += 1
        return path.name

    def sentences(self) -> tuple[str, ...]:
        """What was lost, one sentence each."""
        return tuple(f"{self.writer.name}: {text.replace('{n}', str(n))}" for text, n in sorted(self.losses.items()))


def is_json(value: object) -> bool:
    """Whether a value can be written as JSON and read back (tuples become lists).

    >>> is_json({"a": [1, "b", None]}), is_json(float("nan")), is_json({1: 2}), is_json(b"bytes")
    (True, False, False, False)
    """
    if isinstance(value, list | tuple):
        return all(is_json(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _shown(name: str) -> str:
    """A name from data inside a sentence of which `{n}` is replaced."""
    return repr(name if len(name) <= 60 else f"{name[:57]}...").replace("{", "(").replace("}", ")")


def save_image(array: Image, path: Path) -> None:
    """Write RGB pixels: JPEG at quality 95 without chroma subsampling, or PNG by suffix."""
    if path.suffix == ".png":
        PIL.Image.fromarray(array).save(path, "PNG")
    else:
        PIL.Image.fromarray(array).save(path, "JPEG", quality=95, subsampling=0, optimize=True)


def _frame_features(frame: Frame) -> Iterator[str]:
    if frame.phase is not None:
        yield "phase"
    if frame.time is not None:
        yield "time"
    for feature in ("successor", "camera", "gaze", "region", "objects"):
        if getattr(frame, feature):
            yield feature
    words = frame.attributes.get("labelme")
    others = words.get("others") if isinstance(words, Mapping) else None
    for _ in others if isinstance(others, list | tuple) else ():
        yield "shapes"
    for name in frame.attributes.keys() - SERVING:
        yield f"{FRAME_ATTRIBUTE}:{name}"


def _instance_features(instance: Instance) -> Iterator[str]:
    if instance.triplet.verb != UNKNOWN:
        yield "verb"
    if instance.triplet.target != UNKNOWN:
        yield "target"
    for feature in ("box", "points"):
        if getattr(instance, feature):
            yield feature
    for feature in ("track", "score", "motion"):
        if getattr(instance, feature) is not None:
            yield feature
    if instance.polygon or "polygons" in instance.attributes:
        yield "polygon"
    elif instance.mask:
        yield "mask"
    if "target_box" in instance.attributes:
        yield "target_box"
    for name in instance.attributes.keys() - SERVING:
        yield f"attribute:{name}"
