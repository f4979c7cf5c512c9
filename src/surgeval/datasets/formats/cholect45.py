"""CholecT45's layout: `triplet/VID01.txt` with a row of 0 and 1 per frame, `data/VID01/000000.png`; no boxes.

A row is the frame's number (one frame a second, from 0) and 100 flags, one per triplet class. A class is there or not:
two graspers that do the same are one flag. Boxes come from another dataset (`_join_boxes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from surgeval.datasets.formats.cholect50 import NOMINAL, CholecT50, tell_layout
from surgeval.datasets.formats.labels import same_names, space_beside, space_from_json
from surgeval.datasets.io.files import ends
from surgeval.datasets.io.images import image_size
from surgeval.datasets.io.json import read_lines
from surgeval.datasets.io.layout import find_image, is_file, names
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, Problem, format_value, raise_errors
from surgeval.records import Frame, ImageRef, Instance, Triplet, Video
from surgeval.vocab import LabelSpace, load_labels

FPS = 1.0
_PARTS = ("instrument", "verb", "target", "triplet")


class CholecT45(CholecT50):
    """A folder in CholecT45's layout. One video's rows are held at a time, as the ids that are set."""

    format: ClassVar[str] = "cholect45"

    def __init__(self, root: Path, labels: LabelSpace | None = None) -> None:
        self.root = root
        self._early: list[Problem] = []
        files = [root / "triplet" / name for name in names(root / "triplet") if name.endswith(".txt")]
        self._files = {path.stem: path for path in files}
        self._images = next((root / name for name in ("data", "videos") if (root / name).is_dir()), None)
        self.space = labels or space_beside(root, self._early.append) or self._space()

    def _space(self) -> LabelSpace:
        """The packaged classes, unless `dict/` names others."""
        packaged = load_labels("cholect50")
        categories = {part: listed for part in _PARTS if (listed := self._names(part))}
        if len(categories) < len(_PARTS) or same_names(packaged, categories):
            return packaged
        lists = {f"{part}s": list(group) for part, group in categories.items()}
        own = space_from_json({"name": "cholect45", **lists}, str(self.root / "dict"), self._early.append)
        return own or packaged

    def _names(self, part: str) -> tuple[str, ...]:
        """The names of `dict/PART.txt`, one `id:name` a line; none where the ids do not count from 0."""
        path = self.root / "dict" / f"{part}.txt"
        if not is_file(path):
            return ()
        rows = [line.partition(":") for _, line in read_lines(path, self._early.append) if not line.startswith("#")]
        if [head.strip() for head, _, _ in rows] != [str(number) for number in range(len(rows))]:
            Location(str(path), self._early.append).error(
                "file-broken", "found other ids, expected lines `id:name`, ids from 0"
            )
            return ()
        return tuple(name.strip() for _, _, name in rows)

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """One per file in `triplet/`."""
        for problem in self._early:
            on_problem(problem)
        tell_layout(self.root, self._files, self._images, "triplet/*.txt", "data", on_problem)
        return tuple(Video(name, fps=FPS) for name in self._files)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """Labelled frames without boxes, and image files without a row as `labelled=False`, in time order."""
        if video not in self._files:
            raise BadInput(f"{self.root}: found no video {video!r}, expected one of {', '.join(self._files)}")
        path = self._files[video]
        place = Location(str(path), on_problem)
        triplets = _flags(path, len(self.space.triplets), on_problem)
        listed = self.root / "instrument" / path.name
        present = _flags(listed, len(self.space.instruments), on_problem) if is_file(listed) else None
        pictures = self._pictures(video, on_problem)
        size: tuple[int, int] | None = None
        for number in sorted({*triplets, *pictures}):
            name = pictures.get(number, f"{number:06d}")
            image = find_image(self._images / video, name) if self._images else None
            size = (image_size(image) if image else None) or size or self._first_size(video) or NOMINAL
            here = place.at(f"frame {name}")
            instances: tuple[Instance, ...] = ()
            if number in triplets:
                tools = None if present is None else present.get(number, ())
                instances = self._instances(triplets[number], tools, here)
            else:
                here.warn("frame-unlabelled", "found an image without label, expected a label for every image")
            yield Frame(video, name, number, number / FPS, ImageRef(image) if image else None, *size, instances,
                        labelled=number in triplets, size_assumed=size is NOMINAL)  # fmt: skip

    def _instances(self, ids: tuple[int, ...], tools: tuple[int, ...] | None, place: Location) -> tuple[Instance, ...]:
        """One per triplet, and one for an instrument that `instrument/` names and no triplet does."""
        instances = [Instance(Triplet(*self.space.triplets[number])) for number in ids]
        own = {instance.triplet.instrument for instance in instances}
        for tool in sorted(own ^ set(own if tools is None else tools)):
            where = "triplet" if tool in own else "instrument"
            difference = f"{self.space.instruments[tool]} in {where}/ alone"
            place.warn("labels-differ", f"found {difference}, expected the instruments of the triplets in instrument/")
            if tool not in own:
                instances.append(Instance(Triplet(tool)))
        return tuple(instances)


def _flags(path: Path, count: int, on_problem: OnProblem) -> dict[int, tuple[int, ...]]:
    """The ids that are set, by frame number; a row that is broken or met twice is told and left out."""
    result: dict[int, tuple[int, ...]] = {}
    for line, text in read_lines(path, on_problem):
        place = Location(str(path), on_problem, f"line {line}")
        cells = text.replace(",", " ").split()
        if len(cells) != count + 1:
            place.error("wrong-shape", f"found {len(cells)} items, expected a frame number and {count} flags")
        elif not (cells[0].isascii() and cells[0].isdigit() and len(cells[0]) <= 9) or int(cells[0]) in result:
            again = cells[0].isascii() and cells[0].isdigit() and len(cells[0]) <= 9
            place.error(
                "frame-duplicate" if again else "frame-name",
                f"found {format_value(cells[0])}, expected a frame number, once",
            )
        elif strange := set(cells[1:]) - {"0", "1"}:
            place.error("wrong-value", f"found {format_value(min(strange))}, expected 0 or 1")
        else:
            result[int(cells[0])] = tuple(number for number, cell in enumerate(cells[1:]) if cell == "1")
    return result


class CholecT45Format:
    """CholecT45 as released in 2022."""

    name = "cholect45"
    title = "CholecT45 layout: triplet/VIDxx.txt with a row of flags per frame, data/VIDxx/*.png: no boxes"

    def detect(self, path: Path) -> bool:
        """A folder `triplet` with text files that start with digits."""
        files = [name for name in names(path / "triplet") if name.endswith(".txt")] if path.is_dir() else []
        return bool(files) and ends(path / "triplet" / files[0], 1)[0].isdigit()

    def open(self, path: Path, labels: LabelSpace | None = None) -> CholecT45:
        """Open the folder."""
        return CholecT45(path, labels)
