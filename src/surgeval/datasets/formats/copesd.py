"""CoPESD: instruments of endoscopic submucosal dissection, with boxes inside the sentences that describe a motion.

`smllm_train.json` and `smllm_test.json` are lists of `{"conversations": […], "image": ".../023521/0001.jpg"}`; an
answer reads "Direct the Forceps[0.14, 0.21, 0.47, 0.77] towards …": corners as parts of the image. Only the last two
parts of a path are used (video and frame): the files name folders of the authors' machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.formats.coco.format import split_of
from surgeval.datasets.formats.labels import space_beside, space_of_names
from surgeval.datasets.io.files import ends
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.json import UNREAD, read_json
from surgeval.datasets.io.layout import inside, names, natural, number_of
from surgeval.datasets.io.values import check_box, find_class
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, Problem, format_value, raise_errors
from surgeval.records import Box, Frame, ImageRef, Instance, Question, Triplet, Video
from surgeval.vocab import LabelSpace

NOMINAL = (1000, 1000)  # frame size assumed where no image is at hand; boxes are parts of it
INSTRUMENTS = ("Forceps", "Knife")
_LABELS = ("", "annotations", "annotations/smllm", "smllm", "data/annotations/smllm")
_IMAGES = ("pad_images", "data/pad_images", "high_light_images", "images", "data/images", "")
_BOXED = re.compile(r"([A-Za-z][A-Za-z_-]{0,60}) ?\[([^\[\]]{1,200})\]")


@dataclass(slots=True)
class _ImageEntry:
    name: str
    tail: str  # VIDEO/FILE
    splits: set[str] = field(default_factory=set)
    texts: list[tuple[int, str, str]] = field(default_factory=list)  # record, instruction, answer


class Copesd:
    """The files of CoPESD. Kept are the sentences, by video and frame (about 500 bytes each)."""

    format: ClassVar[str] = "copesd"

    def __init__(self, root: Path, files: list[Path], labels: LabelSpace | None = None) -> None:
        self.root = root
        self._folder = root if root.is_dir() else root.parent
        self._early: list[Problem] = []
        self._files = files
        self._videos: dict[str, dict[str, _ImageEntry]] = {}
        for file in files:
            self._read(file)
        self._images: dict[str, Path | None] = {}
        self.space = labels or space_beside(self._folder, self._early.append) or self._space()

    def _read(self, file: Path) -> None:
        place = Location(str(file), self._early.append)
        data = read_json(file, self._early.append)
        for number, value in enumerate(place.items(data) or () if data is not UNREAD else ()):
            here = place.at(f"record {number}")
            record = here.mapping(value)
            path = here.text(record.get("image"), "image") if record is not None else None
            talk = here.items(record.get("conversations"), "conversations") if record is not None and path else None
            if record is None or path is None or talk is None:
                continue
            parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")][-2:]
            if len(parts) < 2 or ".." in parts:
                here.error(
                    "frame-name", f"found {format_value(path)}, expected a path that ends with VIDEO/FRAME", "image"
                )
                continue
            video, name = parts[0], parts[1].rpartition(".")[0] or parts[1]
            entry = self._videos.setdefault(video, {}).setdefault(name, _ImageEntry(name, "/".join(parts)))
            entry.splits.add(split_of(file))
            entry.texts.append((number, _said(talk, "human"), _said(talk, "gpt")))

    def _space(self) -> LabelSpace:
        texts = (text for group in self._videos.values() for entry in group.values() for text in entry.texts)
        named = {match[1] for _, _, answer in texts for match in _BOXED.finditer(answer)}
        return space_of_names("copesd", [*INSTRUMENTS, *sorted(named - set(INSTRUMENTS))[:10_000]])

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per folder of the image paths."""
        for problem in self._early:
            on_problem(problem)
        result = []
        for name in sorted(self._videos, key=natural):
            group = self._videos[name]
            place = Location(str(self._folder), on_problem, f"video {name}"[:120])
            splits = sorted(set().union(*(entry.splits for entry in group.values())))
            if len(splits) > 1:
                place.warn("split-leak", f"found frames in {' and '.join(splits)}, expected each video in one split")
            if self._home(name) is None:
                place.warn("images-absent", "found no image, expected pad_images/VIDEO/FRAME.jpg")
            result.append(Video(name, split=",".join(splits), frames=len(group)))
        return tuple(result)

    def _home(self, video: str) -> Path | None:
        """The folder in which the folder of a video's images is."""
        if video not in self._images:
            roots = (self._folder / name for name in _IMAGES)
            self._images[video] = next((root for root in roots if (root / video).is_dir()), None)
        return self._images[video]

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """The frames that the sentences speak of, by name."""
        if video not in self._videos:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._videos)}")
        home = self._home(video)
        entries = sorted(self._videos[video].values(), key=lambda entry: natural(entry.name))
        for ordinal, entry in enumerate(entries):
            place = Location(str(self._files[0] if len(self._files) == 1 else self.root), on_problem)
            image = inside(self._folder, home, entry.tail, place.at(entry.tail[:120]), "image") if home else None
            size = (image_size(image) if image else None) or NOMINAL
            yield Frame(video, entry.name, number_of(entry.name, ordinal), None, ImageRef(image) if image else None,
                        *size, self._instances(entry, place, size), size_assumed=size is NOMINAL)  # fmt: skip

    def _instances(self, entry: _ImageEntry, place: Location, size: tuple[int, int]) -> tuple[Instance, ...]:
        """Each instrument with its box once, although several sentences speak of the same image."""
        instances: dict[tuple[str, str], Instance] = {}
        for record, instruction, answer in entry.texts:
            here = place.at(f"{entry.tail[:120]}, record {record}")
            for match in _BOXED.finditer(answer):
                key = (match[1].casefold(), "".join(match[2].split()))
                if key in instances:
                    continue
                instrument = find_class(here, self.space, "instrument", match[1])
                box = _box(match[2], here, size)
                if instrument is not None and box is not None:
                    more: dict[str, object] = {"instruction": instruction, "motion": _BOXED.sub(r"\1", answer)}
                    instances[key] = Instance(Triplet(instrument), box, attributes=more)
        return tuple(instances.values())

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


def _said(talk: list[Any], who: str) -> str:
    """What one side says; the boxes are in the answers (`gpt`)."""
    lines = [turn.get("value") for turn in talk if isinstance(turn, dict) and turn.get("from") == who]
    return " ".join(line for line in lines if isinstance(line, str))[:20_000]


def _box(text: str, place: Location, size: tuple[int, int]) -> Box | None:
    words = text.split(",")
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != 4:
        place.error(
            "not-a-number", f"found {format_value(text)}, expected four parts of the image [x1, y1, x2, y2]", "box"
        )
        return None
    x1, y1, x2, y2 = (number * side for number, side in zip(numbers, (*size, *size), strict=True))
    return check_box(place, [x1, y1, x2 - x1, y2 - y1], *size)


class CopesdFormat:
    """CoPESD's conversations with boxes."""

    name = "copesd"
    title = "CoPESD: smllm_*.json (sentences with boxes), pad_images/VIDEO/*.jpg: instruments only"

    def detect(self, path: Path) -> bool:
        """A JSON list of conversations about images in which a box stands, or a folder with such files."""
        return bool(copesd_files(path))

    def open(self, path: Path, labels: LabelSpace | None = None) -> Copesd:
        """Open a file, or all of a folder."""
        files = copesd_files(path) or ([path] if path.is_file() else [])
        if not files:
            raise BadInput(f"{path}: found no list of conversations, expected smllm_train.json or smllm_test.json")
        return Copesd(path, files, labels)


def copesd_files(path: Path) -> list[Path]:
    """The conversation files that a path stands for: the file itself, or those of a folder."""
    if path.is_file():
        return [path] if path.suffix.lower() == ".json" and _looks_like_copesd(path) else []
    for inner in _LABELS:
        folder = path / inner
        files = [folder / name for name in names(folder) if name.endswith(".json")]
        matching = [file for file in files if _looks_like_copesd(file)]
        if matching:
            return matching
    return []


def _looks_like_copesd(path: Path) -> bool:
    text = ends(path, 1 << 16)[0].decode("utf-8-sig", "replace").lstrip()
    return text.startswith("[") and '"conversations"' in text and '"image"' in text and bool(_BOXED.search(text))
