"""Answers made elsewhere: a file of responses, or a log of Inspect AI (`.eval`), stands for a model.

A log may be untrusted. The number of its members and their real sizes are measured before Inspect's own reader opens
it, and any exception of that reader becomes one sentence.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from surgeval.asking.answerer import (
    AnswererSetup,
    AnyQuestion,
    ModelAnswer,
    ModelFrame,
    Unanswered,
    answerer_kind,
    extract_answer,
)
from surgeval.datasets import raise_errors
from surgeval.datasets.io import read_json
from surgeval.errors import DataError, MissingExtra, printable
from surgeval.files import Location, as_float, format_value, open_regular
from surgeval.qa import Reply

__all__ = ["EvalAnswers", "RecordedAnswers", "is_eval_log", "parse_output", "read_eval_log"]

MAX_MEMBERS = 250_000
MAX_MEMBER = 1 << 27  # bytes of one sample with its images
MAX_TOTAL = 1 << 34
_CHUNK = 1 << 18
_LOCATOR, _END = 20, 22  # bytes of the ZIP64 locator and of the end record
_WINDOW = 1 << 27  # bytes of an unpacker's window
_ZSTANDARD = 93  # the method's number in a zip file
# Fields of a sample that are not read: the conversation with its images, and other scorers' results.
_UNREAD_FIELDS = frozenset(
    {"messages", "events", "events_data", "attachments", "store", "scores", "metadata", "timelines"}
)


class RecordedAnswers:
    """Answers from a responses file (`qID`, `content`, optional `latency`) or from a log of Inspect AI (`.eval`).

    >>> import tempfile
    >>> from surgeval.records import VqaQuestion
    >>> question = VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "r.json").write_text('[{"qID": "q", "content": "no"}]')
    ...     RecordedAnswers(Path(folder) / "r.json").answer(question).content
    'no'
    """

    uses_images = cache_answers = False

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._answers = dict(_read_responses(self._path))
        answers = [(name, *astuple(answer)) for name, answer in sorted(self._answers.items())]
        digest = hashlib.sha256(repr(answers).encode(errors="backslashreplace"))
        self.identity = f"replay {digest.hexdigest()[:16]}"

    def answer(self, question: AnyQuestion, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """Return the file's answer, or raise `Unanswered` with the status `missing`."""
        if question.id not in self._answers:
            raise Unanswered(f"{self._path.name} has no response to it", "missing")
        return self._answers[question.id]


@answerer_kind("replay:FILE")
def replay(setup: AnswererSetup) -> RecordedAnswers:
    """Open recorded answers."""
    return RecordedAnswers(setup.argument or "")


def _read_responses(path: Path) -> Iterable[tuple[str, ModelAnswer]]:
    if is_eval_log(path):
        yield from read_eval_log(path).answers.items()
        return
    place = Location(str(path), raise_errors)
    seen = set[str]()
    for number, row in enumerate(place.items(read_json(path, raise_errors)) or ()):
        record: dict[str, Any] = place.at(f"record {number}").mapping(row) or {}
        name, content = record.get("qID"), record.get("content")
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)
        if not isinstance(name, str) or not name:
            sentence = f"expected the id of a question, got {format_value(name)}"
            raise DataError(path, sentence, record=f"record {number}", field="qID")
        where = f"question {name[:60]!r}"
        if name in seen:
            raise DataError(path, "this question has a second response", record=where, field="qID")
        if not isinstance(content, str):
            raise DataError(path, f"expected text, got {format_value(content)}", record=where, field="content")
        latency = as_float(record["latency"]) if "latency" in record else None
        if "latency" in record and (latency is None or not 0 <= latency < float("inf")):
            sentence = f"expected seconds, at least 0, got {format_value(record['latency'])}"
            raise DataError(path, sentence, record=where, field="latency")
        seen.add(name)
        yield name, ModelAnswer(content, latency)


@dataclass(frozen=True)
class EvalAnswers:
    """The samples of a log in order, their answers, and for each sample without one the reason."""

    asked: tuple[str, ...]
    answers: Mapping[str, ModelAnswer]
    failed: Mapping[str, str]


def is_eval_log(path: Path | str) -> bool:
    """Return whether a file has the suffix of Inspect's logs.

    >>> is_eval_log("logs/2026-01-02_focus.eval"), is_eval_log("responses.json")
    (True, False)
    """
    return Path(path).suffix == ".eval"


def read_eval_log(path: Path | str) -> EvalAnswers:
    """Read the answers of a log by the ids of its samples. Needs the extra `inspect`.

    >>> read_eval_log("no/such.eval")
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such.eval: no such file
    """
    file = Path(path)
    _check_archive(file)
    try:
        from inspect_ai.log import read_eval_log as read
    except ImportError:
        raise MissingExtra(str(file), "inspect_ai", "inspect") from None
    try:
        log = read(str(file.absolute()), exclude_fields=set(_UNREAD_FIELDS))
    except Exception as error:  # noqa: BLE001 - the reader raises whatever its many parts do
        raise DataError(file, f"Inspect AI cannot read it ({_first_line(error)})") from None
    answers: dict[str, ModelAnswer] = {}
    failed: dict[str, str] = {}
    for sample in log.samples or ():
        name = str(sample.id)
        if sample.epoch != 1:
            sentence = f"it was asked again in epoch {sample.epoch}; use a log with one epoch"
            raise DataError(file, sentence, record=f"sample {name!r:.60}")
        try:
            if sample.error is not None:
                raise Unanswered(" ".join(str(sample.error.message).replace("\\n", " ").split())[:100])
            answers[name] = parse_output(sample.output)
        except Unanswered as error:
            failed[name] = printable(_first_line(error))
    asked = tuple(dict.fromkeys([*map(str, log.eval.dataset.sample_ids or ()), *answers, *failed]))
    failed |= {name: "it was not asked" for name in asked if name not in answers and name not in failed}
    if not asked:
        raise DataError(file, "the log has no samples")
    return EvalAnswers(asked, answers, failed)


def parse_output(output: Any) -> ModelAnswer:
    """Read the answer in a `ModelOutput` of Inspect as that of any other model, or raise `Unanswered`.

    >>> from types import SimpleNamespace
    >>> choices = [SimpleNamespace(stop_reason="stop")]
    >>> parse_output(SimpleNamespace(completion="yes", choices=choices, time=0.5, usage=None)).content
    'yes'
    """
    if not output.choices:
        raise Unanswered(f"the reply has no text ({output.error})" if output.error else "the reply has no text")
    finish: Literal["", "length", "content_filter"] = ""
    if output.choices[0].stop_reason in ("max_tokens", "model_length"):
        finish = "length"
    elif output.choices[0].stop_reason == "content_filter":
        finish = "content_filter"
    spent = output.usage
    text = printable(extract_answer(Reply(output.completion, finish=finish)))
    tokens = (spent.input_tokens, spent.output_tokens) if spent is not None else (0, 0)
    return ModelAnswer(text, output.time, 1, *tokens)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


def _check_archive(path: Path) -> None:
    """Refuse a file that is not a ZIP archive or unpacks to too much. Sizes stated in the file are not trusted."""
    try:
        with open_regular(path) as stream:
            whole = os.fstat(stream.fileno()).st_size
            if whole > MAX_TOTAL:
                raise DataError(path, f"the file has {whole} bytes, more than {MAX_TOTAL}")
            with ZipFile(stream) as archive:
                members = archive.infolist()
                if archive.start_dir != _stated_directory(stream, whole):
                    raise BadZipFile("two tables of contents")  # another reader might use the other one
            if len(members) > MAX_MEMBERS:
                raise DataError(path, f"the archive has {len(members)} members, more than {MAX_MEMBERS}")
            total = sum(_measure_member(path, stream, member) for member in members)
    except FileNotFoundError:
        raise DataError(path, "no such file") from None
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror or error}") from None
    except (BadZipFile, ValueError, struct.error, zlib.error, NotImplementedError, UnicodeError) as error:
        raise DataError(path, f"not a log of Inspect AI, or damaged ({_first_line(error)})") from None
    if total > MAX_TOTAL:
        raise DataError(path, f"unpacks to {total} bytes, more than {MAX_TOTAL}")


def _stated_directory(stream: BufferedReader, whole: int) -> int:
    """Return the position of the table of contents that the archive's end record states."""
    stream.seek(max(0, whole - _LOCATOR - _END))
    tail = stream.read(_LOCATOR + _END)
    locator, end = tail[:-_END], tail[-_END:]
    if len(end) != _END or end[:4] != b"PK\5\6":
        raise BadZipFile("something after its end")
    if locator[:4] != b"PK\6\7":
        return int(struct.unpack_from("<I", end, 16)[0])
    stream.seek(struct.unpack_from("<Q", locator, 8)[0])
    return int(struct.unpack_from("<Q", stream.read(56), 48)[0])


def _measure_member(path: Path, stream: BufferedReader, member: ZipInfo) -> int:
    size = 0
    for count in _unpack_sizes(path, stream, member):
        size += count
        if size > MAX_MEMBER:
            where = f"member {member.filename!r:.60}"
            raise DataError(path, f"unpacks to more than {MAX_MEMBER} bytes", record=where)
    return size


def _unpack_sizes(path: Path, stream: BufferedReader, member: ZipInfo) -> Iterator[int]:
    """Unpack a member chunk by chunk and yield the size of each."""
    stream.seek(member.header_offset)
    head = stream.read(30)
    if len(head) != 30 or head[:4] != b"PK\3\4":
        raise BadZipFile(f"no member at byte {member.header_offset}")
    name, extra = struct.unpack("<HH", head[26:])
    stream.seek(name + extra, os.SEEK_CUR)
    if member.compress_type == ZIP_STORED:
        yield member.compress_size
    elif member.compress_type == ZIP_DEFLATED:
        yield from _inflate_sizes(stream, member.compress_size)
    elif member.compress_type == _ZSTANDARD:
        yield from _unzstd_sizes(path, stream, member.compress_size)
    else:
        raise BadZipFile(f"compression {member.compress_type}")


def _inflate_sizes(stream: BufferedReader, left: int) -> Iterator[int]:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    while left > 0 and not unpacker.eof:
        packed = stream.read(min(left, _CHUNK))
        if not packed:
            raise BadZipFile("it ends inside a member")
        left -= len(packed)
        while packed:
            yield len(unpacker.decompress(packed, _CHUNK))
            packed = unpacker.unconsumed_tail


def _unzstd_sizes(path: Path, stream: BufferedReader, size: int) -> Iterator[int]:
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(str(path), "zstandard", "inspect") from None
    packed = stream.read(size)
    if len(packed) != size:
        raise BadZipFile("it ends inside a member")
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
            packed, read_across_frames=True
        ) as reader:
            while chunk := reader.read(_CHUNK):
                yield len(chunk)
    except zstandard.ZstdError as error:
        raise BadZipFile(str(error)) from None
