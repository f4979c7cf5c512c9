"""Labels of another dataset into a project: what that would do, said beforehand, and then done.

Frames are met by video and name; what is not met is counted and named, and so is a record that a project cannot hold.
An import is one operation, which one undo takes back; very many instances are several, stored together or not at all.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection

from surgeval.datasets import Dataset, Problem, open_dataset
from surgeval.errors import BadInput, visible
from surgeval.records import Frame
from surgeval.studio.exchange.dataset import main_group
from surgeval.studio.exchange.match import Matcher, ProjectFrame
from surgeval.studio.exchange.taken import Taker
from surgeval.studio.schema import IMAGE, LabelledValues, Mismatch, Schema, mismatches
from surgeval.studio.store import Database, Request, apply_all, check_taken, reading
from surgeval.studio.store.checks import too_deep
from surgeval.vocab import LabelSpace

__all__ = ["ImportReport", "import_dataset", "preview_import"]

# Formats that can hold a triplet which is no class: their readers are given a space in which every triplet is one.
_OPEN = ("labelme", "cvat", "yolo", "cholect50")
_MOST_CLASSES = 10_000
_NAMED = 20  # examples of what was not met or could not be read
_AT_ONCE = 50_000  # instances of one operation
_WEIGHT = 64 << 20  # characters of one operation, about
_RUN = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True)
class ImportReport:
    """What an import does or did."""

    format: str
    frames: int  # in the source
    matched: int
    unmatched: tuple[str, ...]  # the first of them
    instances: int  # new ones, proposals among them
    proposals: int
    present: int  # already in the project as they are
    removed: int  # where frames are replaced
    images: int  # frames with new values of the whole image
    flags: int
    scaled: int  # frames of another size there than here
    lacking: tuple[Mismatch, ...]  # classes and values that the schema lacks
    problems: int  # records that could not be read
    examples: tuple[str, ...]  # the first of these
    losses: tuple[str, ...]
    versions: tuple[int, ...] = ()  # of the operations


def preview_import(database: Database, source: str | Path | Dataset, *, format: str | None = None,
                   replace: bool = False,
                   advance: Callable[[int], None] = lambda _count: None) -> ImportReport:  # fmt: skip
    """What `import_dataset` would do; nothing is stored.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.vocab import load_labels
    >>> there = MemoryDataset(load_labels("prostatd"), [Frame("V1", "a", 0, None, None, 64, 48)])
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     report = preview_import(database, there)
    >>> report.frames, report.matched, report.unmatched
    (1, 0, ('V1 a',))
    """
    work = _Import(database, source, format, replace, advance)
    for _ in work.batches():
        pass
    return work.report(())


def import_dataset(database: Database, source: str | Path | Dataset, *, author: str, session: str = "",
                   format: str | None = None, replace: bool = False, run: str | None = None,
                   advance: Callable[[int], None] = lambda _count: None) -> ImportReport:  # fmt: skip
    """Put the labels of a dataset into a project; with `replace` they take the place of what its frames have.

    An instance that is in the project exactly so already is not put there twice. All is stored or nothing; where
    another import was stored since this one began to read, it is refused. One that was asked for twice under the same
    name (`run`) is made once.

    >>> import tempfile
    >>> from surgeval.studio.store import apply
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("prostatd")
    >>> there = Frame("V1", "a", 0, None, None, 64, 48, (Instance(Triplet(*space.triplets[0]), Box(5, 6, 20, 10)),))
    >>> with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/studio.sqlite") as database:
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
    ...     _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["a"]}))
    ...     twice = [import_dataset(database, MemoryDataset(space, [there]), author="amy") for _ in range(2)]
    >>> [(report.instances, report.present, report.versions) for report in twice]
    [(1, 0, (3,)), (0, 1, ())]
    """
    if run is not None and not _RUN.fullmatch(run):
        raise BadInput(f"import: id: found {visible(run[:60])!r}, expected 1 to 60 letters, digits and _ . -")
    name = f"import.{run or uuid.uuid4().hex[:16]}"
    with database.reading() as connection:
        since, done = reading.version(connection), _done(connection, name)
    if done:
        return changed(preview_import(database, source, format=format, advance=advance), versions=done)
    work = _Import(database, source, format, replace, advance)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
        for batch in work.batches(f"i.{name.removeprefix('import.')}"):
            spool.write(json.dumps(batch.payload()) + "\n")
        outcomes = apply_all(database, _requests(spool, name, author, session), since=since)
    return work.report(tuple(outcome.version for outcome in outcomes))


def _done(connection: Connection, name: str) -> tuple[int, ...]:
    """The versions of an import that was made under this name."""
    operations = (reading.operation(connection, f"{name}.{number}") for number in itertools.count())
    return tuple(row.version for row in itertools.takewhile(lambda row: row is not None, operations) if row is not None)


def _requests(spool: IO[str], name: str, author: str, session: str) -> Iterator[Request]:
    spool.seek(0)
    for number, line in enumerate(spool):
        yield Request(f"{name}.{number}", author, "project.import", json.loads(line), None, session)


@dataclass
class _Batch:
    """What goes into one operation."""

    instances: list[dict[str, Any]] = field(default_factory=list)
    images: list[dict[str, Any]] = field(default_factory=list)
    flags: list[dict[str, Any]] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)
    replaced: dict[str, list[int]] = field(default_factory=dict)
    weight: int = 0

    @property
    def full(self) -> bool:
        return max(len(self.instances), len(self.images), len(self.words)) >= _AT_ONCE or self.weight > _WEIGHT

    def payload(self) -> dict[str, Any]:
        replaced = [{"video": video, "frames": frames} for video, frames in self.replaced.items()]
        every = {"instances": self.instances, "images": self.images, "flags": self.flags, "words": self.words,
                 "replace": replaced}  # fmt: skip
        return {name: rows for name, rows in every.items() if rows}


class _Import:
    """One pass over a source."""

    def __init__(
        self, database: Database, source: str | Path | Dataset, format: str | None, replace: bool,
        advance: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._database, self._replace, self._advance = database, replace, advance
        with database.reading() as connection:
            self._schema: Schema = reading.schema(connection)
            self._flagged = {(flag.video, flag.frame, flag.reason) for flag in reading.flags(connection)}
        self._dataset = _opened(source, format)
        self._taker = Taker(self._schema, self._dataset.space, main_group(self._schema))
        self.counts: Counter[str] = Counter()
        self._labels: Counter[tuple[str, str, tuple[tuple[str, str], ...]]] = Counter()
        self._unmatched: list[str] = []
        self._examples: list[str] = []

    def batches(self, ids: str = "i") -> Iterator[_Batch]:
        """What is to be stored, in parts that fit one operation each."""
        batch, number = _Batch(), itertools.count()
        with self._database.reading() as connection:
            videos = self._dataset.videos(self._tell)
            matcher = Matcher(connection, [video.name for video in videos])
            for video in videos:
                for frame in self._frames(video.name, matcher):
                    self._advance(1)
                    self.counts["frames"] += 1
                    match = matcher.find(frame)
                    if match is None:
                        self._miss(frame)
                        continue
                    self.counts["matched"] += 1
                    self._take(batch, frame, match, connection, ids, number)
                    if batch.full:
                        yield batch
                        batch = _Batch()
        if batch.payload():
            yield batch

    def _frames(self, video: str, matcher: Matcher) -> Iterator[Frame]:
        """The frames of a video; those of a padded export in the geometry that the project has."""
        frames = self._dataset.frames(video, self._tell)
        first = next(frames, None)
        if first is None:
            return iter(())
        restored = getattr(self._dataset, "restored", None)
        match = matcher.find(first)
        if restored is not None and match is not None and _padded(first, match):
            return iter(restored().frames(video, self._tell))
        return itertools.chain([first], frames)

    def _take(
        self, batch: _Batch, frame: Frame, match: ProjectFrame, connection: Connection, ids: str, number: Iterator[int]
    ) -> None:
        at = {"video": match.video.id, "frame": match.frame}
        stored = reading.instances(connection, match.video.id, match.frame)
        if self._replace and frame.labelled and stored:
            batch.replaced.setdefault(match.video.id, []).append(match.frame)
            self.counts["removed"] += len(stored)
            stored = ()
        known = Counter(
            _key(annotation.group, annotation.name,
                 (annotation.box.x, annotation.box.y, annotation.box.w, annotation.box.h),
                 annotation.polygons, annotation.values)
            for annotation in stored
        )  # fmt: skip
        if (frame.width, frame.height) != (match.video.width, match.video.height):
            self.counts["scaled"] += 1
        for instance in frame.instances:
            row = self._taker.instance(instance, frame, match)
            if row is None or not self._fits("instances", row | {"id": f"{ids}.0"}, frame):
                continue
            key = _key(row["group"], row["name"], row.get("box"), row.get("polygons", ()), row["values"])
            if known[key]:
                known[key] -= 1
                self.counts["present"] += 1
                continue
            batch.instances.append({**row, "id": f"{ids}.{next(number)}"})
            batch.weight += len(str(row))
            self.counts["instances"] += 1
            self.counts["proposals"] += row.get("proposal", False)
            self._labels[row["group"], row["name"], tuple(sorted(row["values"].items()))] += 1
        values, flags, words = self._taker.frame(frame)
        (now,) = reading.frames(connection, match.video.id, match.frame, match.frame)
        differs = any(now.values.get(key) != value for key, value in values.items())
        if differs and self._fits("images", {**at, "values": values}, frame):
            batch.images.append({**at, "values": values})
            self.counts["images"] += 1
            self._labels[IMAGE, IMAGE, tuple(sorted(values.items()))] += 1
        new = {reason: note for reason, note in flags.items() if (*at.values(), reason) not in self._flagged}
        rows = [{**at, "reason": reason, "note": note} for reason, note in new.items()]
        flagged = [row for row in rows if self._fits("flags", row, frame)]
        batch.flags += flagged
        self.counts["flags"] += len(flagged)
        known_words = reading.words(connection, match.video.id, match.frame, match.frame).get(match.frame)
        if words and words != known_words and self._fits("words", {**at, "words": words}, frame):
            batch.words.append({**at, "words": words})
            batch.weight += len(str(words))

    def _fits(self, name: str, row: dict[str, Any], frame: Frame) -> bool:
        """Whether a project can hold the row; one that it cannot is told like a record that cannot be read."""
        try:
            check_taken(name, row)
            text = json.dumps({name: [row]}, ensure_ascii=False, allow_nan=False)
            text.encode()
            if not too_deep(text):
                return True
            why = f"{name}: found deep nesting, expected less of it"
        except BadInput as error:
            why = str(error)
        except (TypeError, ValueError, RecursionError):
            why = f"{name}: found what JSON cannot hold, expected text and numbers"
        self._problem(visible(f"{frame.video} {frame.name}: {why}"))
        return False

    def _miss(self, frame: Frame) -> None:
        if len(self._unmatched) < _NAMED:
            self._unmatched.append(f"{frame.video} {frame.name}")

    def _tell(self, problem: Problem) -> None:
        if problem.level == "error":
            self._problem(str(problem))

    def _problem(self, sentence: str) -> None:
        self.counts["problems"] += 1
        if len(self._examples) < _NAMED:
            self._examples.append(sentence)

    def report(self, versions: tuple[int, ...]) -> ImportReport:
        """What was met."""
        counts = self.counts
        labelled = [LabelledValues(group, name, dict(values), count)
                    for (group, name, values), count in self._labels.items()]  # fmt: skip
        losses = tuple(text.replace("{n}", str(count)) for text, count in sorted(self._taker.losses.items()))
        return ImportReport(
            self._dataset.format, counts["frames"], counts["matched"], tuple(self._unmatched), counts["instances"],
            counts["proposals"], counts["present"], counts["removed"], counts["images"], counts["flags"],
            counts["scaled"], mismatches(self._schema, labelled), counts["problems"], tuple(self._examples), losses,
            versions,
        )  # fmt: skip


def _opened(source: str | Path | Dataset, format: str | None) -> Dataset:
    if not isinstance(source, str | Path):
        return source
    dataset = open_dataset(source, format)
    if dataset.format == "studio" and format is None:
        raise BadInput(f"{source}: found a project of the studio, expected labels of another tool")
    if dataset.format not in _OPEN or not dataset.space.triplets:
        return dataset
    return open_dataset(source, format, labels=_every_triplet(dataset.space))


def _every_triplet(space: LabelSpace) -> LabelSpace:
    """The space in which every combination is a class; ids stay, those that are none so far come behind."""
    parts = (space.instruments, space.verbs, space.targets)
    if len(parts[0]) * len(parts[1]) * len(parts[2]) > _MOST_CLASSES:
        return space
    every = itertools.product(*(range(len(part)) for part in parts))
    triplets = tuple(dict.fromkeys([*space.triplets, *((i, v, t) for i, v, t in every)]))
    return LabelSpace(space.name, *parts, triplets, space.phases)


def _padded(frame: Frame, match: ProjectFrame) -> bool:
    """Whether a labelme file says that it shows a frame of the project's size, padded and resized."""
    words = frame.attributes.get("labelme")
    file = words.get("file") if isinstance(words, dict) else None
    info = file.get("transformInfo") if isinstance(file, dict) else None
    own = (match.video.width, match.video.height)
    return (isinstance(info, dict) and own != (frame.width, frame.height)
            and own == (info.get("originalWidth"), info.get("originalHeight")))  # fmt: skip


def _key(group: str, name: str, box: Any, polygons: Any, values: Any) -> tuple[Any, ...]:
    """What makes two instances of a frame the same; coordinates to a thousandth of a pixel."""
    outline = tuple(tuple((round(x, 3), round(y, 3)) for x, y in part) for part in polygons)
    corners = () if outline else tuple(round(number, 3) for number in box)
    return group, name, outline, corners, tuple(sorted(values.items()))
