"""Clinical-intent questions: `items.jsonl`, one multiple-choice question per line.

`media` are paths relative to the file. They may climb out of its folder only as far as the phantom that holds it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.base import Dataset
from surgeval.datasets.formats.intent_items import media_home, read_intent_items
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.files import ends, is_there
from surgeval.datasets.io.layout import is_file
from surgeval.errors import DataError
from surgeval.files import DistinctNames, Location, OnProblem, copy_atomically, leads_out, path_inside, raise_errors
from surgeval.records import Frame, IntentQuestion, Question, Video
from surgeval.vocab import LabelSpace

LINK_OUT = "a link that leads out of the dataset"
_FILE = "items.jsonl"


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
        return read_intent_items(self._file, on_problem)

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """The clusters that the questions are about (problems are told by `questions`)."""
        clusters = dict.fromkeys(item.cluster for item in read_intent_items(self._file, lambda _: None))
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


def check_media(dataset: Dataset, question: IntentQuestion, on_problem: OnProblem = raise_errors) -> None:
    """Tell of media that are not there, or that a link takes out of the dataset.

    >>> from types import SimpleNamespace
    >>> here = Path(__file__)
    >>> dataset = SimpleNamespace(media_root=here.parent, root=here.parent)
    >>> asked = ("spatial", "absolute", "Where?", ("left", "right"))
    >>> check_media(dataset, IntentQuestion("1", "chest", "P1", (here.name,), *asked, answer=0))  # it is there
    >>> check_media(dataset, IntentQuestion("2", "chest", "P1", ("none.png",), *asked, answer=0))
    Traceback (most recent call last):
    surgeval.errors.DataError: .../none.png: item 2: media: found no such file, expected the media of a question
    """
    for path in media_paths(dataset, question):
        place = Location(str(path), on_problem, f"item {question.id}")
        if not is_file(path):
            place.error("media-missing", "found no such file, expected the media of a question", "media")
        elif _leaves(dataset, path):
            place.error("path-escape", f"found {LINK_OUT}, expected the media of a question", "media")


def _leaves(dataset: Dataset, path: Path) -> bool:
    """Whether one of the media is a link, or lies behind one, that leads out of the dataset's folder."""
    root = getattr(dataset, "media_root", None)
    if not isinstance(root, Path):
        return False
    home = media_home(root / _FILE)
    return leads_out(path, dataset.root if home == root and root.is_relative_to(dataset.root) else home)


class IntentFormat:
    """`items.jsonl`."""

    name, title, holds = "intent", "clinical-intent questions: items.jsonl", "questions"
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
            for question in out.source.questions(out.on_problem):
                if not isinstance(question, IntentQuestion):
                    out.lost("{n} questions of another kind were left out")
                    continue
                out.counts["questions"] += 1
                media = [copies.name(path) for path in media_paths(out.source, question)]
                stream.write(json.dumps(intent_record(question, media), ensure_ascii=False) + "\n")


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
        if _leaves(self._out.source, source):
            raise DataError(source, f"found {LINK_OUT}, expected the media of a question")
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_atomically(source, target)


def intent_record(question: IntentQuestion, media: list[str] | None = None) -> dict[str, Any]:
    """One line of `items.jsonl`; `media` takes the place of the question's own paths.

    >>> question = IntentQuestion("1", "chest", "P1", ("a.png",), "spatial", "absolute", "?", ("a", "b"), answer=0)
    >>> intent_record(question, ["media/a.png"])["media"]
    ['media/a.png']
    """
    gaze = [{"t": g.t, "x": g.x, "y": g.y, "duration": g.duration} for g in question.gaze]
    record: dict[str, Any] = {
        "id": question.id, "scenario": question.scenario, "cluster": question.cluster,
        "media": list(question.media) if media is None else media, "dimension": question.dimension,
        "skill": question.skill, "question": question.question, "options": list(question.options),
        "answer": question.answer, "trap": question.trap, "gaze": gaze, "context": dict(question.context),
    }  # fmt: skip
    for key in ("start", "end", "untrapped", "twin", "review", "source", "gaze_dependent", "observable"):
        if getattr(question, key) is not None:
            record[key] = getattr(question, key)
    if question.labels:
        record["labels"] = [{"label": label.label, "reason": label.reason} for label in question.labels]
    return record
