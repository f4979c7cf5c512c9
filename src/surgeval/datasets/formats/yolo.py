"""YOLO text labels: one line per box, normalised centre and size.

Five fields are `class cx cy w h` (the class is a triplet where the label space has triplets, else an instrument);
eight are ProstaTD's `triplet instrument verb target cx cy w h`, −1 where unknown. Six fields are predictions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import yaml

from surgeval.datasets.formats.class_names import read_class_names
from surgeval.datasets.formats.flat import FlatReader
from surgeval.datasets.formats.labels import FILE, space_beside, space_of_names, space_of_triplet_names
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.json import read_text
from surgeval.datasets.io.layout import Flat, Folder, find_image, flat_folders, names, number_of
from surgeval.datasets.io.values import check_box, check_triplet
from surgeval.files import Location, OnProblem, path_inside, raise_errors
from surgeval.records import UNKNOWN, Frame, ImageRef, Instance, Question, Triplet
from surgeval.vocab import LabelSpace, load_labels

NOMINAL = (640, 640)  # frame size assumed where no image is at hand; boxes are normalised, so IoU does not depend on it
MAX_BYTES = 1 << 22
_NAME_LISTS = frozenset({"classes.txt", "obj.names", "names.txt", "train.txt", "val.txt", "test.txt", "README.txt"})


class Yolo(FlatReader):
    """A folder of YOLO labels. Names are listed once; each file is read when its frame is reached."""

    format: ClassVar[str] = "yolo"
    label_files = "YOLO label files"
    images = "an image for each label file"

    def __init__(self, root: Path, labels: LabelSpace | None = None) -> None:
        super().__init__(root, Flat(_folders(root), ".txt", _NAME_LISTS, root.resolve().name or "video"))
        self.space = labels or self._space()

    def _space(self) -> LabelSpace:
        beside = space_beside(self.root, self._early.append)
        if beside:
            return beside
        named = read_class_names(self.root, self._early.append)
        if named and named.names:
            names = list(named.names)
            return space_of_triplet_names(names) or space_of_names(self.root.name or "yolo", names)
        largest, fields = self._scan()
        if fields == 8:
            return load_labels("prostatd")
        count = (named.count if named else None) or largest + 1
        if not self._early:
            place = Location(str(named.file if named else self.root), self._early.append)
            place.warn(
                "class-names",
                f"found no class names: classes are called {_span(count)}, "
                "expected names in data.yaml, or one per line in classes.txt",
            )
        return LabelSpace("classes", tuple(f"class {number}" for number in range(count)))

    def _scan(self) -> tuple[int, int]:
        """The largest class id and the number of fields, where no file names the classes."""
        largest, fields = 0, 5
        for entries in self._flat.videos.values():
            for stem, number, labelled in entries:
                path = self._flat.folders[number].labels / f"{stem}.txt"
                text = read_text(path, lambda _: None, MAX_BYTES) if labelled else None
                for line in (text or "").splitlines():
                    words = line.split()
                    if len(words) == 8:
                        return 0, 8
                    if words and words[0].isascii() and words[0].isdigit() and len(words[0]) < 5:
                        largest = max(largest, int(words[0]))
        return largest, fields

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """Frames with a label file, and images without one as `labelled=False`."""
        size: tuple[int, int] | None = None
        for ordinal, (stem, number, labelled) in enumerate(self._entries(video)):
            folder = self._flat.folders[number]
            image = find_image(folder.images, stem) if self._flat.images else None
            size = (image_size(image) if image else None) or size or NOMINAL
            path = folder.labels / f"{stem}.txt"
            instances: tuple[Instance, ...] = ()
            if labelled:
                text = read_text(path, on_problem, MAX_BYTES)
                if text is None:
                    continue
                instances = tuple(self._instances(text, Location(str(path), on_problem), size))
            else:
                place = Location(str(image), on_problem)
                place.warn("frame-unlabelled", "found an image without label file, expected labels for every image")
            name = self._flat.parts(stem)[1]
            yield Frame(video, name, number_of(name, ordinal), None, ImageRef(image) if image else None, *size,
                        instances, labelled=labelled, size_assumed=size is NOMINAL)  # fmt: skip

    def _instances(self, text: str, place: Location, size: tuple[int, int]) -> Iterator[Instance]:
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            here = place.at(f"line {number}")
            if len(words) == 6:
                expected = "5 or 8 fields of a label (6 fields are a prediction with its score)"
                here.error("wrong-shape", f"found 6 fields, expected {expected}")
            elif len(words) not in (0, 5, 8):
                here.error("wrong-shape", f"found {len(words)} fields, expected 5 or 8 fields")
            elif words:
                instance = self._instance(words, here, size)
                if instance:
                    yield instance

    def _instance(self, words: list[str], place: Location, size: tuple[int, int]) -> Instance | None:
        space = self.space
        values = [_number(word) for word in words]
        if len(words) == 8:
            limits = (("triplet", len(space.triplets)), ("instrument", len(space.instruments)),
                      ("verb", len(space.verbs)), ("target", len(space.targets)))  # fmt: skip
            ids = [place.whole(value, part, UNKNOWN, count - 1, "class-unknown")
                   for value, (part, count) in zip(values, limits, strict=False)]  # fmt: skip
            known = [number for number in ids if number is not None]
            triplet = check_triplet(place, space, known[0], known[1:]) if len(known) == 4 else None
            if triplet and triplet.instrument == UNKNOWN:
                place.error("class-unknown", f"found -1, expected an instrument of {space.name}", "instrument")
                triplet = None
        elif space.triplets:
            number = place.whole(values[0], "triplet", 0, len(space.triplets) - 1, "class-unknown")
            triplet = Triplet(*space.triplets[number]) if number is not None else None
        else:
            number = place.whole(values[0], "class", 0, len(space.instruments) - 1, "class-unknown")
            triplet = Triplet(number) if number is not None else None
        numbers = [place.number(value, name) for value, name in zip(values[-4:], ("cx", "cy", "w", "h"), strict=True)]
        finite = [value for value in numbers if value is not None]
        if triplet is None or len(finite) < 4:
            return None
        cx, cy, w, h = finite
        box = check_box(place, [(cx - w / 2) * size[0], (cy - h / 2) * size[1], w * size[0], h * size[1]], *size)
        return Instance(triplet, box) if box else None

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """None."""
        return iter(())


def _span(count: int) -> str:
    return "class 0" if count == 1 else f"class 0 to class {count - 1}"


def _number(word: str) -> object:
    try:
        return float(word)
    except ValueError:
        return word[:40]


def _folders(root: Path) -> list[Folder]:
    folders = flat_folders(root, "labels", "images", ".txt")
    return [folder for folder in folders
            if any(name.endswith(".txt") and name not in _NAME_LISTS for name in names(folder.labels))]  # fmt: skip


class YoloFormat:
    """YOLO labels; written with five or with eight fields."""

    title = "YOLO labels: labels/SPLIT/*.txt with 5 fields, or ProstaTD's 8"

    def __init__(self, fields: int = 8, name: str = "yolo") -> None:
        self.fields, self.name = fields, name
        self.keeps = frozenset({"box", "split", "verb", "target", "unsized"})

    def detect(self, path: Path) -> bool:
        """A folder with text files in one of the usual places, the first of which holds numbers."""
        if not path.is_dir():
            return False
        for folder in _folders(path):
            for name in names(folder.labels)[:50]:
                if name.endswith(".txt") and name not in _NAME_LISTS:
                    text = read_text(folder.labels / name, lambda _: None, MAX_BYTES)
                    words = next((line.split() for line in (text or "").splitlines() if line.strip()), [])
                    if words and folder.labels.name != "labels" and folder.labels.parent.name != "labels":
                        return len(words) in (5, 6, 8) and all(isinstance(_number(word), float) for word in words)
                    if words:
                        return True
        return bool(_folders(path)) and (path / "labels").is_dir()

    def open(self, path: Path, labels: LabelSpace | None = None) -> Yolo:
        """Open the folder."""
        return Yolo(path, labels)

    def write(self, out: Output) -> None:
        """`labels[/SPLIT]/{video}_{frame}.txt`, `images[/SPLIT]/…`, with `labels.json` and `data.yaml` beside."""
        space = out.space
        classes = space.triplet_names if space.triplets else space.instruments
        spelled = [name.replace(",", "_") for name in classes]
        named = out.named()
        splits = dict.fromkeys("".join(split) for _, split, _ in named)
        described: dict[str, object] = {split or "train": f"images/{split}".rstrip("/") for split in splits}
        described |= {"nc": len(spelled), "names": dict(enumerate(spelled))}
        text = yaml.safe_dump(described, sort_keys=False, allow_unicode=True, width=1 << 20)
        (out.folder / "data.yaml").write_text(text, encoding="utf-8")
        (out.folder / FILE).write_text(json.dumps(space.to_json(), indent=1), encoding="utf-8")
        for video, split, name in named:
            labels, images = (path_inside(out.folder, kind, *split) for kind in ("labels", "images"))
            labels.mkdir(parents=True, exist_ok=True)
            images.mkdir(parents=True, exist_ok=True)
            for frame in out.frames(video):
                stem = f"{name}_{out.stem(frame, flat=True)}"
                if frame.image:
                    out.image(frame, images, stem)
                if frame.labelled:
                    rows = [row for instance in frame.instances if (row := self._line(space, frame, instance, out))]
                    path_inside(labels, f"{stem}.txt").write_text("".join(rows), encoding="utf-8")

    def _line(self, space: LabelSpace, frame: Frame, instance: Instance, out: Output) -> str | None:
        triplet, box = instance.triplet, instance.box
        if box is None or triplet.instrument == UNKNOWN:
            out.lost("{n} instances without box or instrument were left out")
            return None
        number = space.find(triplet.instrument, triplet.verb, triplet.target)
        if self.fields == 8:
            out.look(triplet)
            ids = f"{number} {triplet.instrument} {triplet.verb} {triplet.target}"
        elif not space.triplets:
            ids = f"{triplet.instrument}"
        elif number == UNKNOWN:
            out.lost_triplet(triplet)
            return None
        else:
            ids = f"{number}"
        cx, cy = (box.x + box.w / 2) / frame.width, (box.y + box.h / 2) / frame.height
        out.kept()
        return f"{ids} {cx:.6f} {cy:.6f} {box.w / frame.width:.6f} {box.h / frame.height:.6f}\n"
