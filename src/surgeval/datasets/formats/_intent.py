"""Clinical-intent questions: `items.jsonl`, one multiple-choice question per line.

`media` are paths relative to the file. They may climb out of its folder only as far as the phantom that holds it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from surgeval.datasets._base import Dataset, OnProblem, raise_errors
from surgeval.datasets.formats._writing import Output
from surgeval.datasets.io._files import ends, is_there
from surgeval.datasets.io._json import NOTHING, read_lines, told_json
from surgeval.datasets.io._layout import inside, is_file
from surgeval.datasets.io._values import Place, shown
from surgeval.errors import DataError
from surgeval.files import DistinctNames, leads_out, path_inside
from surgeval.records import Frame, Gaze, IntentQuestion, Question, Video
from surgeval.vocab import LabelSpace

SKILLS = {"spatial": ("absolute", "relative"), "temporal": ("prospective", "retrospective"),
          "standard": ("discrete", "continuous")}  # fmt: skip
LINK_OUT = "a link that leads out of the dataset"
_FILE = "items.jsonl"


def read_items(path: Path, tell: OnProblem, root: Path | None = None) -> Iterator[IntentQuestion]:
    """The questions of a file, line by line; media must lie inside `root`."""
    place = Place(str(path), tell)
    seen: set[str] = set()
    home = root or media_home(path)
    for number, line in read_lines(path, tell):
        here = place.at(f"line {number}")
        value = told_json(line, here)
        record = here.mapping(value) if value is not NOTHING else None
        item = _item(record, here, path.parent, home) if record is not None else None
        if item and item.id in seen:
            here.report("id-duplicate", shown(item.id), "each question once", "id")
        elif item:
            seen.add(item.id)
            yield item


def media_home(path: Path) -> Path:
    """The folder that media may not leave: the phantom around the file, else the file's own folder."""
    for steps in range(3):
        folder = Path(os.path.normpath(path.parent.joinpath(*[".."] * steps)))
        if (folder / "phantom.json").is_file():
            return folder
    return path.parent


def _item(record: dict[str, Any], place: Place, folder: Path, home: Path) -> IntentQuestion | None:
    name = place.text(record.get("id"), "id")
    if name is None:
        return None
    here = place.at(f"{place.record}, item {name[:60]}")
    texts = [here.text(record.get(key), key) for key in ("scenario", "cluster", "dimension", "skill", "question")]
    media = _media(record.get("media"), here, folder, home)
    options = _options(record.get("options"), here)
    trap = record.get("trap")
    if trap not in (None, "perceptual", "cognitive"):
        here.report("trap-unknown", shown(trap), "null, perceptual or cognitive", "trap")
        return None
    known = [text for text in texts if text is not None]
    if len(known) < 5 or media is None or options is None:
        return None
    scenario, cluster, dimension, skill, question = known
    if skill not in SKILLS.get(dimension, ()):
        here.report("skill-unknown", f"{shown(dimension)} / {shown(skill)}", "one of the six skills", "skill")
        return None
    answer = here.whole(record.get("answer"), "answer", 0, len(options) - 1, "answer-range")
    if answer is None:
        return None
    start, end = (here.number(record[key], key) if record.get(key) is not None else None for key in ("start", "end"))
    links = {key: value for key in ("untrapped", "twin") if isinstance(value := record.get(key), str)}
    style: Literal["perceptual", "cognitive"] | None = trap
    return IntentQuestion(
        name, scenario, cluster, media, dimension, skill, question, options, answer, start, end,
        _gaze(record.get("gaze"), here), _mapping(record.get("context"), here, "context") or {}, style, **links,
        review=_mapping(record.get("review"), here, "review"),
    )  # fmt: skip


def _mapping(value: Any, place: Place, field: str) -> dict[str, Any] | None:
    return place.mapping(value, field) if value is not None else None


def _media(value: Any, place: Place, folder: Path, home: Path) -> tuple[str, ...] | None:
    rows = [value] if isinstance(value, str) else place.items(value, "media")
    texts = [place.text(item, "media") for item in rows or ()]
    paths = [inside(home, folder, text, place, "media") for text in texts if text is not None]
    if rows is None or None in texts or None in paths:
        return None
    return tuple(text for text in texts if text is not None)


def _options(value: Any, place: Place) -> tuple[str, ...] | None:
    rows = place.items(value, "options")
    texts = [place.text(item, "options") for item in rows or ()]
    known = tuple(text for text in texts if text is not None)
    if rows is None or len(known) < len(texts):
        return None
    if not 2 <= len(known) <= 8 or len(set(known)) < len(known):
        place.report(
            "options", f"{len(known)} options, {len(set(known))} different", "2 to 8 different ones", "options"
        )
        return None
    return known


def _gaze(value: Any, place: Place) -> tuple[Gaze, ...]:
    result = []
    for number, item in enumerate((place.items(value, "gaze") or ()) if value is not None else ()):
        record = place.mapping(item, f"gaze[{number}]")
        numbers = [
            place.number((record or {}).get(key), f"gaze[{number}] {key}") for key in ("t", "x", "y", "duration")
        ]
        known = [n for n in numbers if n is not None]
        if len(known) == 4:
            result.append(Gaze(*known))
    return tuple(result)


class Intent:
    """Questions only: its videos are the clusters that the questions name, and have no frames here."""

    format: ClassVar[str] = "intent"

    def __init__(self, path: Path, labels: LabelSpace | None = None) -> None:
        self.root = path
        self._file = path / _FILE if path.is_dir() else path
        self.media_root = self._file.parent
        self.space = labels or LabelSpace("none", ("instrument",))

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """The questions in file order."""
        return read_items(self._file, on_problem)

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """The clusters that the questions are about (problems are told by `questions`)."""
        clusters = dict.fromkeys(item.cluster for item in read_items(self._file, lambda _: None))
        return tuple(Video(name) for name in clusters)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """None."""
        return iter(())


def media_paths(dataset: Dataset, question: IntentQuestion) -> tuple[Path, ...]:
    """Where a question's images or video are; () for a dataset without such questions.

    >>> from types import SimpleNamespace
    >>> media, options = ("a/frame.jpg",), ("to cut", "to see")
    >>> question = IntentQuestion("1", "clipping", "VID01", media, "action", "why", "Why?", options, answer=0)
    >>> [path.as_posix() for path in media_paths(SimpleNamespace(media_root=Path("data")), question)]
    ['data/a/frame.jpg']
    """
    root = getattr(dataset, "media_root", None)
    return tuple(Path(os.path.normpath(root / text)) for text in question.media) if isinstance(root, Path) else ()


def media_leaves(dataset: Dataset, path: Path) -> bool:
    """Whether one of the media is a link, or lies behind one, that leads out of the dataset's folder."""
    root = getattr(dataset, "media_root", None)
    if not isinstance(root, Path):
        return False
    home = media_home(root / _FILE)
    return leads_out(path, dataset.root if home == root and root.is_relative_to(dataset.root) else home)


class IntentFormat:
    """`items.jsonl`."""

    name = "intent"
    title = "clinical-intent questions: items.jsonl"
    keeps = frozenset({"questions"})

    def detect(self, path: Path) -> bool:
        """A file of that name, a folder with it, or JSON lines with `options` and `answer`."""
        if path.is_dir():
            return is_there(path / _FILE)
        if path.suffix != ".jsonl":
            return False
        head, _ = ends(path, 1 << 14)
        return path.name == _FILE or (b'"options"' in head and b'"skill"' in head)

    def open(self, path: Path, labels: LabelSpace | None = None) -> Intent:
        """Open the file or its folder."""
        return Intent(path, labels)

    def write(self, out: Output) -> None:
        """`items.jsonl`; media are copied to `media/` and referred to there."""
        copies = _Copies(out)
        with (out.folder / _FILE).open("w", encoding="utf-8") as stream:
            for question in out.source.questions(out.tell):
                if not isinstance(question, IntentQuestion):
                    out.lost("{n} questions of another kind were left out")
                    continue
                out.counts["questions"] += 1
                media = [copies.name(path) for path in media_paths(out.source, question)]
                stream.write(json.dumps(to_json(question, media), ensure_ascii=False) + "\n")


class _Copies:
    """The media of the questions written, each file copied once to a name of its own."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._names: dict[Path, str] = {}
        self._folders: dict[Path, tuple[str, DistinctNames]] = {}  # source folder → its name here, the names in it
        self._taken = DistinctNames()

    def name(self, path: Path) -> str:
        """Copy a file, unless that is done, and say where it is now."""
        if path not in self._names:
            if path.parent not in self._folders:
                self._folders[path.parent] = self._taken.claim(path.parent.name), DistinctNames()
            folder, files = self._folders[path.parent]
            name = files.claim(path.stem, path.suffix)
            self._copy(path, path_inside(self._out.folder, "media", folder, name))
            self._names[path] = f"media/{folder}/{name}"
        return self._names[path]

    def _copy(self, source: Path, target: Path) -> None:
        if not self._out.images or not is_file(source):
            return
        if media_leaves(self._out.source, source):
            raise DataError(source, found=LINK_OUT, expected="the media of a question")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def to_json(question: IntentQuestion, media: list[str] | None = None) -> dict[str, Any]:
    """One line of `items.jsonl`."""
    gaze = [{"t": g.t, "x": g.x, "y": g.y, "duration": g.duration} for g in question.gaze]
    record: dict[str, Any] = {
        "id": question.id, "scenario": question.scenario, "cluster": question.cluster,
        "media": list(question.media) if media is None else media, "dimension": question.dimension,
        "skill": question.skill, "question": question.question, "options": list(question.options),
        "answer": question.answer, "trap": question.trap, "gaze": gaze, "context": dict(question.context),
    }  # fmt: skip
    for key in ("start", "end", "untrapped", "twin", "review"):
        if getattr(question, key) is not None:
            record[key] = getattr(question, key)
    return record
