"""FOCUS questions: the challenge's requests + references files, and the published dataset rows.

The two files are joined by `qID`. Capabilities are accepted as value, name or code in any case, as the challenge does,
and become the taxonomy's value.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from surgeval.datasets.base import Holds
from surgeval.datasets.formats.writing import Output
from surgeval.datasets.io.files import ends, is_there
from surgeval.datasets.io.json import UNREAD, read_json, read_lines, told_json
from surgeval.datasets.io.layout import is_printable, names, natural
from surgeval.errors import BadInput, DataError
from surgeval.files import Location, OnProblem, collect_parquet, format_value, raise_errors, scan_parquet_file
from surgeval.qa import load_answer_formats
from surgeval.records import Frame, Question, Video, VqaQuestion
from surgeval.vocab import LabelSpace, capabilities, suggest_capabilities, track_limits

_REQUEST = ("qID", "videoID", "start_time", "end_time", "procedure_type", "question")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-5][0-9]):([0-5][0-9])")
_BATCH = 2048
_ROW_DEPTH = 4  # levels of folders below the one that is named: set/data/frame/test
_MANY_FOLDERS = 8  # with more folders in it, a folder is taken for another dataset, and only known names are searched
_SPLIT_NAMES = {
    "train": "train", "test": "test", **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
}  # fmt: skip


@cache
def _leaves() -> dict[str, str]:
    """Spelling → value, for leaves."""
    return {_spelling(text): leaf.value for leaf in capabilities() for text in (leaf.value, leaf.code)}


@cache
def _groups() -> dict[str, str]:
    return {_spelling(text): leaf.group for leaf in capabilities() for text in (leaf.group, leaf.group_code)}


def _spelling(text: str) -> str:
    return text.strip().casefold().replace("-", "_").replace(" ", "_")


def _primary(value: Any, place: Location, field: str) -> str | None:
    text = place.text(value, field)
    if text is None:
        return None
    leaf = _leaves().get(_spelling(text))
    if leaf is None and _spelling(text) in _groups():
        place.warn("capability-group", f"found {format_value(text)}, expected a leaf of the taxonomy", field)
        return _groups()[_spelling(text)]
    if leaf is None:
        place.error("wrong-value", f"found {format_value(text)}, expected {suggest_capabilities(text)}", field)
    return leaf


def _secondaries(value: Any, place: Location, field: str) -> tuple[str, ...]:
    result = []
    for item in (place.items(value, field) or ()) if value is not None else ():
        leaf = _leaves().get(_spelling(item)) if isinstance(item, str) else None
        if leaf is None:
            place.warn("wrong-value", f"found {format_value(item)}, expected {suggest_capabilities(item)}", field)
        else:
            result.append(leaf)
    return tuple(result)


def _format(value: Any, place: Location, field: str) -> str | None:
    if isinstance(value, str) and value in load_answer_formats():
        return value
    place.error(
        "wrong-value", f"found {format_value(value)}, expected one of {', '.join(load_answer_formats())}", field
    )
    return None


def _id(value: Any, place: Location) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        place.warn("id-type", f"found {format_value(value)}, expected text", "qID")
        return str(value)
    return place.text(value, "qID")


def _by_id(path: Path, on_problem: OnProblem) -> dict[str, dict[str, Any]]:
    """The records of one file by question id; a repeated id is told and the first kept."""
    data = read_json(path, on_problem)
    place = Location(str(path), on_problem)
    result: dict[str, dict[str, Any]] = {}
    for number, item in enumerate((place.items(data) or ()) if data is not UNREAD else ()):
        here = place.at(f"record {number}")
        record = here.mapping(item)
        name = _id(record.get("qID"), here) if record is not None else None
        if record is not None and name is not None:
            if name in result:
                here.error("id-duplicate", f"found {format_value(name)}, expected each question once", "qID")
            else:
                result[name] = record
    return result


def read_focus_pair(requests: str | Path, references: str | Path, on_problem: OnProblem) -> Iterator[VqaQuestion]:
    """The questions of a requests and a references file, in the order of the requests.

    >>> import tempfile
    >>> request = {"qID": "q1", "videoID": "VID01", "start_time": 3, "end_time": 9, "procedure_type": "cholecystectomy"}
    >>> reference = {"qID": "q1", "primary": "object_identification", "format": "binary", "answer": "yes"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     requests, references = Path(folder) / "requests.json", Path(folder) / "references.json"
    ...     _ = requests.write_text(json.dumps([request | {"question": "Is a clip visible?"}]))
    ...     _ = references.write_text(json.dumps([reference]))
    ...     [(question.text, question.answer) for question in read_focus_pair(requests, references, print)]
    [('Is a clip visible?', 'yes')]
    """
    requests, references = Path(requests), Path(references)
    asked, known = _by_id(requests, on_problem), _by_id(references, on_problem)
    for name in known.keys() - asked.keys():
        place = Location(str(references), on_problem, f"question {name}")
        place.error(
            "reference-missing", f"found a reference without request, expected the question in {requests.name}", "qID"
        )
    for name, request in asked.items():
        place = Location(str(requests), on_problem, f"question {name}")
        if name not in known:
            place.error(
                "reference-missing",
                f"found a request without reference, expected its answer in {references.name}",
                "qID",
            )
            continue
        unknown = request.keys() - set(_REQUEST)
        if unknown:
            place.warn(
                "key-unknown", f"found {format_value(min(unknown))}, expected only the keys {', '.join(_REQUEST)}"
            )
        question = _joined(name, request, known[name], place, Location(str(references), on_problem, f"question {name}"))
        if question:
            yield question


def _joined(
    name: str, request: dict[str, Any], reference: dict[str, Any], place: Location, other: Location
) -> VqaQuestion | None:
    video = place.text(request.get("videoID"), "videoID")
    times = [place.number(request.get(key), key) for key in ("start_time", "end_time")]
    procedure = place.text(request.get("procedure_type"), "procedure_type", empty=True)
    text = place.text(request.get("question"), "question")
    primary = _primary(reference.get("primary"), other, "primary")
    style = _format(reference.get("format"), other, "format")
    answer = other.text(reference.get("answer"), "answer", empty=True)
    options = other.mapping(reference.get("format_kwargs", {}), "format_kwargs")
    flags = [reference.get(key, False) for key in ("ood", "clinical")]
    if not all(isinstance(flag, bool) for flag in flags):
        other.error("wrong-value", f"found {format_value(flags)}, expected true or false", "ood, clinical")
        return None
    start, end = times
    if None in (video, start, end, procedure, text, primary, style, answer) or options is None:
        return None
    if start is not None and end is not None and not 0 <= start <= end:
        place.error("time-order", f"found {start:g} to {end:g} s, expected 0 ≤ start_time ≤ end_time", "start_time")
        return None
    return VqaQuestion(
        name, str(video), float(start or 0), float(end or 0), str(procedure), str(text), str(primary), str(style),
        str(answer), options, _secondaries(reference.get("secondaries"), other, "secondaries"), flags[0], flags[1],
    )  # fmt: skip


def focus_rows(path: str | Path, on_problem: OnProblem) -> Iterator[VqaQuestion]:
    """The questions of the published dataset: rows in Parquet, a JSON list, or JSON lines.

    >>> import tempfile
    >>> when = {"video": "VID01", "timestamp_start": "00:00:03", "timestamp_end": "00:00:09"}
    >>> kind = {"procedure_type": "cholecystectomy", "primary_capability": "object_identification"}
    >>> text = {"question": "Is a clip visible?", "answer_format": "binary", "answer": "yes"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "focus.jsonl"
    ...     _ = path.write_text(json.dumps({"id": "q1", **when, **kind, **text}))
    ...     [(question.start, question.text, question.answer) for question in focus_rows(path, print)]
    [(3.0, 'Is a clip visible?', 'yes')]
    """
    path = Path(path)
    seen: set[str] = set()
    for number, row in enumerate(_rows(path, on_problem)):
        place = Location(str(path), on_problem, f"row {number}")
        record = place.mapping(row)
        question = _published(record, place) if record is not None else None
        if question and question.id in seen:
            place.error("id-duplicate", f"found {format_value(question.id)}, expected each question once", "id")
        elif question:
            seen.add(question.id)
            yield question


def _rows(path: Path, on_problem: OnProblem) -> Iterator[Any]:
    place = Location(str(path), on_problem)
    if path.suffix == ".parquet":
        try:
            frame = scan_parquet_file(path)
            total = int(collect_parquet(frame.select(pl.len()), path).item())
            for start in range(0, total, _BATCH):
                yield from collect_parquet(frame.slice(start, _BATCH), path).iter_rows(named=True)
        except DataError as error:
            place.error(error.code, error.sentence)
    elif path.suffix == ".jsonl":
        for number, line in read_lines(path, on_problem):
            value = told_json(line, place.at(f"line {number}"))
            if value is not UNREAD:
                yield value
    else:
        data = read_json(path, on_problem)
        yield from (place.items(data) or ()) if data is not UNREAD else ()


def _published(row: dict[str, Any], place: Location) -> VqaQuestion | None:
    name = row.get("id")
    name = str(name) if type(name) is int else place.text(name, "id")  # the hub's ids are integers
    video = place.text(row.get("video"), "video")
    start, end = (_seconds(row.get(f"timestamp_{key}"), place, f"timestamp_{key}") for key in ("start", "end"))
    procedure = place.text(row.get("procedure_type"), "procedure_type", empty=True)
    text = place.text(row.get("question"), "question")
    primary = _primary(row.get("primary_capability"), place, "primary_capability")
    style = _format(row.get("answer_format"), place, "answer_format")
    answer = place.text(row.get("answer"), "answer", empty=True)
    flags = [row.get(key) or False for key in ("ood", "clinical_relevance")]
    if not all(isinstance(flag, bool) for flag in flags):
        place.error("wrong-value", f"found {format_value(flags)}, expected true or false", "ood, clinical_relevance")
        return None
    if None in (name, video, procedure, text, primary, style, answer) or start is None or end is None:
        return None
    if start > end:
        place.error("time-order", f"found {start:g} to {end:g} s, expected a start before the end", "timestamp_start")
        return None
    # The challenge's loader widens the tolerance with the window: 1 s for a frame, at most 5 s.
    options: dict[str, object] = {}
    if style == "time":
        options["threshold_seconds"] = min(5.0, 1 + (end - start) * 4 / 360)
    extra = _secondaries(row.get("secondary_capabilities"), place, "secondary_capabilities")
    return VqaQuestion(str(name), str(video), start, end, str(procedure), str(text), str(primary), str(style),
                       str(answer), options, extra, flags[0], flags[1])  # fmt: skip


def _seconds(value: Any, place: Location, field: str) -> float | None:
    match = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        place.error("wrong-value", f"found {format_value(value)}, expected hh:mm:ss", field)
        return None
    return float(int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3]))


@dataclass(frozen=True, slots=True)
class RowsFile:
    """A Parquet file of published rows: its configuration (`frame`, below a set's own folder `heico/frame`) and split.

    Each is "" where neither the file nor its folder names one.
    """

    path: Path
    config: str
    split: str


def row_files(folder: str | Path) -> tuple[RowsFile, ...]:
    """The Parquet files of published rows in a folder or below it, in the layouts that the hub has.

    A configuration is a folder (`data/frame/test.parquet`, `frame/test/0.parquet`) or begins the name
    (`frame-test.parquet`).

    >>> row_files("nowhere")
    ()
    """
    root = Path(folder)
    found = []
    for inner, names_there in _find_folders(root):
        parts = [part for part in inner.relative_to(root).parts if part != "data"]
        split = next((_SPLIT_NAMES[part] for part in reversed(parts) if part in _SPLIT_NAMES), "")
        config = "/".join(part for part in parts if part not in _SPLIT_NAMES)
        for name in sorted(names_there, key=natural):
            if has_focus_columns(inner / name):
                words = re.split(r"[-_.]", name)
                own = words[0] if not config and words[0] in track_limits() else config
                own_split = next((_SPLIT_NAMES[word] for word in words if word in _SPLIT_NAMES), split)
                found.append(RowsFile(inner / name, own, own_split))
    return tuple(found)


def _find_folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """The folders with Parquet files, and these files; below the first level only known names are searched."""
    known = {"data", *track_limits(), *_SPLIT_NAMES}
    level = [root]
    for depth in range(_ROW_DEPTH + 1):
        below = []
        for folder in level:
            files, inner = _list_folder(folder)
            if files:
                yield folder, files
            if depth > 0 or len(inner) > _MANY_FOLDERS:
                inner = [name for name in inner if name in known]
            below += [folder / name for name in sorted(inner, key=natural)]
        level = below


def _list_folder(folder: Path) -> tuple[list[str], list[str]]:
    """The Parquet files and the folders in a folder, unsorted: it may hold a hundred thousand images."""
    files, inner = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not is_printable(entry.name):
                    continue
                if entry.name.endswith(".parquet"):
                    files.append(entry.name)
                elif entry.is_dir():
                    inner.append(entry.name)
    except (OSError, ValueError):
        return [], []
    return files, inner


class Focus:
    """Questions only: its videos are those that the questions name, and have no frames here."""

    format: ClassVar[str] = "focus"

    def __init__(self, path: Path, files: QuestionFiles, labels: LabelSpace | None = None) -> None:
        self.root, self._files = path, files
        self.space = labels or LabelSpace("none", ("instrument",))

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """The questions in file order."""
        if self._files.pair is not None:
            yield from read_focus_pair(*self._files.pair, on_problem)
        first: dict[tuple[str, str], Path] = {}
        for file in self._files.rows:
            for question in focus_rows(file.path, on_problem):
                known = first.setdefault((file.config, question.id), file.path)
                if known == file.path:
                    yield question
                    continue
                place = Location(str(file.path), on_problem, f"question {question.id}")
                place.error(
                    "id-duplicate",
                    f"found {format_value(question.id)}, as in {known.name}, expected each question once",
                    "id",
                )

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """The videos that the questions are about (problems are told by `questions`)."""
        procedures = {question.video: question.procedure for question in self.questions(lambda _: None)
                 if isinstance(question, VqaQuestion)}  # fmt: skip
        return tuple(Video(name, procedure=procedure) for name, procedure in procedures.items())

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """None."""
        return iter(())


@dataclass(frozen=True, slots=True)
class QuestionFiles:
    """A requests file with its references, or files of published rows, or neither."""

    pair: tuple[Path, Path] | None = None
    rows: tuple[RowsFile, ...] = ()

    def __bool__(self) -> bool:
        return self.pair is not None or bool(self.rows)


def focus_files(path: Path) -> QuestionFiles:
    """Find the files of FOCUS questions in a folder, or in the folder of a file."""
    folder = path if path.is_dir() else path.parent
    listed = names(folder) if path.is_dir() else [path.name]
    for name in listed:
        if "requests" in name and name.endswith(".json"):
            other = folder / name.replace("requests", "references")
            if is_there(other) or path.is_file():
                return QuestionFiles((folder / name, other))
    rows = [folder / name for name in listed if name.endswith((".json", ".jsonl"))]
    rows += [path] if path.is_file() and path.suffix == ".parquet" else []
    rows = [file for file in rows if has_focus_columns(file)]
    published = row_files(path) if path.is_dir() else ()
    single = (RowsFile(rows[0], "", ""),) if len(rows) == 1 and not published else ()
    return QuestionFiles(rows=published or single)


def has_focus_columns(path: str | Path) -> bool:
    """Whether a file looks like rows of the published FOCUS dataset, judged by its beginning and its end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.jsonl"
    ...     _ = path.write_text('{"text": "nothing of FOCUS"}')
    ...     has_focus_columns(path)
    False
    """
    path = Path(path)
    head, tail = ends(path, 1 << 14, 1 << 16)
    if path.suffix == ".parquet":
        return head.startswith(b"PAR1") and b"timestamp_start" in tail and b"answer_format" in tail
    return b'"timestamp_start"' in head and b'"answer_format"' in head


class FocusFormat:
    """FOCUS challenge files."""

    name = "focus"
    title = "FOCUS questions: *requests.json with *references.json, or published rows (Parquet, JSON)"
    holds: Holds = "questions"
    keeps = frozenset({"questions"})

    def detect(self, path: Path) -> bool:
        """By the files' names, or the columns of a rows file."""
        return bool(focus_files(path))

    def open(self, path: Path, labels: LabelSpace | None = None) -> Focus:
        """Open a folder, the requests file, or a rows file."""
        files = focus_files(path)
        if not files:
            raise BadInput(f"{path}: found no requests.json with references.json and no rows file")
        return Focus(path, files, labels)

    def write(self, out: Output) -> None:
        """`requests.json` and `references.json`."""
        requests, references = [], []
        for question in out.source.questions(out.on_problem):
            if not isinstance(question, VqaQuestion):
                out.lost("{n} questions of another kind were left out")
                continue
            out.counts["questions"] += 1
            requests.append({
                "qID": question.id, "videoID": question.video, "start_time": question.start, "end_time": question.end,
                "procedure_type": question.procedure, "question": question.text,
            })  # fmt: skip
            references.append({
                "qID": question.id, "primary": question.primary, "format": question.format,
                "format_kwargs": dict(question.format_options), "answer": question.answer,
                "secondaries": list(question.secondaries), "ood": question.ood, "clinical": question.clinical,
            })  # fmt: skip
        for name, rows in (("requests", requests), ("references", references)):
            text = json.dumps(rows, indent=1, ensure_ascii=False)
            (out.folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
