"""`frames.json` beside CVAT's XML: what the frames of a task are called, and what of them CVAT has no field for.

CVAT numbers the frames of a task from 0 and knows no names, times, phases or unlabelled frames in a file for video. The
file is ours; CVAT does not see it, and a folder without it is read by its images, or by the task's size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surgeval.datasets.formats.cvat.document import MAX_FRAMES, spelled
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.files import is_there
from surgeval.datasets.io.json import read_mapping
from surgeval.datasets.io.layout import IMAGES, files_of, inside, number_of
from surgeval.datasets.io.values import check_size, find_class
from surgeval.files import Location, OnProblem, as_float
from surgeval.records import Frame, Video
from surgeval.vocab import LabelSpace

FRAMES = "frames.json"
_NUMBERED = re.compile(r"frame_(\d{1,9})")  # how CVAT names the frames of a video


@dataclass(frozen=True, slots=True)
class TaskFrame:
    """A frame of a task: its number there, and what is known of it elsewhere."""

    number: int
    name: str
    index: int
    image: Path | None = None
    size: tuple[int, int] | None = None
    time: float | None = None
    phase: int | None = None
    labelled: bool = True
    attributes: dict[str, Any] = field(default_factory=dict)


def record_of(out: Output, frame: Frame, number: int, name: str, picture: str | None) -> dict[str, Any]:
    """What is written of a frame."""
    record: dict[str, Any] = {"id": number, "name": name, "index": frame.index, "width": frame.width,
                              "height": frame.height}  # fmt: skip
    if picture:
        record["image"] = picture
    return record | out.said_of(frame)


def write_frames(path: Path, video: Video, records: list[dict[str, Any]]) -> None:
    """Write the file."""
    facts = {"source": video.source, "procedure": video.procedure, "fps": video.fps, "seconds": video.seconds}
    path.write_text(json.dumps({"video": facts, "frames": records}, indent=1), encoding="utf-8")


def video_facts(folder: Path) -> dict[str, Any]:
    """Source, procedure, frame rate and length of a video, as far as its file tells."""
    data = read_mapping(folder / FRAMES, lambda _: None) if is_there(folder / FRAMES) else None
    facts = data.get("video") if data else None
    if not isinstance(facts, dict):
        return {}
    texts = {key: value for key in ("source", "procedure") if isinstance(value := facts.get(key), str)}
    numbers = {key: value for key in ("fps", "seconds") if (value := as_float(facts.get(key))) and 0 < value < 1e9}
    return {**texts, **numbers}


def moments(
    folder: Path, task: dict[str, str], last: int, space: LabelSpace, on_problem: OnProblem
) -> tuple[Iterable[TaskFrame], int]:
    """The frames of a task, and the number behind the last of them.

    They are those that `frames.json` lists, else its images, else as many as the task says; `last` is the last frame
    that a shape names.
    """
    if is_there(folder / FRAMES):
        data = read_mapping(folder / FRAMES, on_problem)
        rows = Location(str(folder / FRAMES), on_problem).items(data.get("frames"), "frames") if data else None
        listed = sorted(_listed(rows or [], folder, space, on_problem), key=lambda moment: moment.number)
        return listed, listed[-1].number + 1 if listed else 0
    place = Location(str(folder), on_problem)
    start, step, size = _range(task, place)
    pictures = sorted(files_of(folder / "images", IMAGES), key=lambda path: path.name)  # CVAT's own order
    if pictures:
        numbered = [_NUMBERED.fullmatch(path.stem) for path in pictures]
        numbers = [int(match[1]) for match in numbered if match]
        if len(numbers) < len(pictures):
            numbers = [start + step * k for k in range(len(pictures))]
        frames = [TaskFrame(number, path.stem, number_of(path.stem, number), path)
                  for number, path in zip(numbers, pictures, strict=True)]  # fmt: skip
        return frames, numbers[-1] + 1
    place.warn("images-absent", "found no images, expected the frames of the task in images/")
    count = max(size, (last - start) // step + 1)
    every = range(start, start + step * count, step)
    return (TaskFrame(number, f"{number:06d}", number) for number in every), every[-1] + 1 if every else 0


def _range(task: dict[str, str], place: Location) -> tuple[int, int, int]:
    """First frame, step and number of frames of a task."""
    step = re.fullmatch(r"\s*step\s*=\s*(\d{1,6})\s*", task.get("frame_filter", ""))
    numbers = [place.whole(spelled(task[key]), key, 0, MAX_FRAMES) if task.get(key) else None
               for key in ("start_frame", "size")]  # fmt: skip
    return numbers[0] or 0, max(1, int(step[1]) if step else 1), numbers[1] or 0


def _listed(rows: list[Any], folder: Path, space: LabelSpace, on_problem: OnProblem) -> Iterator[TaskFrame]:
    place = Location(str(folder / FRAMES), on_problem)
    seen: set[int] = set()
    for position, row in enumerate(rows[:MAX_FRAMES]):
        here = place.at(f"frame {position}")
        record = here.mapping(row)
        if record is None:
            continue
        number = here.whole(record.get("id"), "id", 0, MAX_FRAMES - 1)
        name = here.text(record.get("name"), "name")
        if number is None or name is None:
            continue
        if number in seen:
            here.error("id-duplicate", f"found {number}, expected an id of its own", "id")
            continue
        seen.add(number)
        size = check_size(here, record.get("width"), record.get("height"))
        stated, index, time = record.get("image"), as_float(record.get("index")), as_float(record.get("time"))
        image = inside(folder, folder / "images", stated, here, "image") if isinstance(stated, str) else None
        phase = find_class(here, space, "phase", record["phase"]) if record.get("phase") is not None else None
        extra = record.get("attributes")
        if size is not None:
            yield TaskFrame(number, name, int(index) if index is not None and 0 <= index < 1e12 else number, image,
                            size, time if time is not None and 0 <= time < 1e9 else None, phase,
                            record.get("labelled") is not False, extra if isinstance(extra, dict) else {})  # fmt: skip
