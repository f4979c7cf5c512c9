"""Answers in a log of Inspect AI (`.eval`): a model that was asked there is scored here.

The file may come from a stranger. How many members it has and how large each of them becomes is measured before
Inspect's own reader is let near it, and whatever that reader stumbles over is one sentence.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from surgeval.asking.answerers import Answered, Unanswered
from surgeval.asking.chat_answerer import final_text
from surgeval.errors import DataError, MissingExtra, printable
from surgeval.files import open_regular
from surgeval.qa import Reply

__all__ = ["EvalAnswers", "answer_of_output", "is_eval_log", "read_eval_log"]

MAX_MEMBERS = 250_000
MAX_MEMBER = 1 << 27  # bytes of one sample, its pictures included
MAX_TOTAL = 1 << 34
_CHUNK = 1 << 18
_LOCATOR, _END = 20, 22  # bytes: where large archives keep their end record, and the end record
_WINDOW = 1 << 27  # bytes that an unpacker may have to remember
_ZSTANDARD = 93  # the method's number in a zip file
# What a sample holds beside its answer: the conversation, pictures among it, and other scorers' opinions.
_LEFT_OUT = frozenset({"messages", "events", "events_data", "attachments", "store", "scores", "metadata", "timelines"})
_EXPECTED = "a log of Inspect AI"


@dataclass(frozen=True)
class EvalAnswers:
    """The samples that were to be asked, in order; the answers; and why a sample has none."""

    asked: tuple[str, ...]
    answers: Mapping[str, Answered]
    failed: Mapping[str, str]


def is_eval_log(path: Path | str) -> bool:
    """Whether a file is called as Inspect's logs are.

    >>> is_eval_log("logs/2026-01-02_focus.eval"), is_eval_log("responses.json")
    (True, False)
    """
    return Path(path).suffix == ".eval"


def read_eval_log(path: Path | str) -> EvalAnswers:
    """The answers of a log by the ids of its samples; needs the extra `inspect`.

    >>> read_eval_log("no/such.eval")
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such.eval: found no such file, expected a log of Inspect AI
    """
    file = Path(path)
    _check_archive(file)
    try:
        from inspect_ai.log import read_eval_log as read
    except ImportError:
        raise MissingExtra(str(file), "inspect_ai", "inspect") from None
    try:
        log = read(str(file.absolute()), exclude_fields=set(_LEFT_OUT))
    except Exception as error:  # noqa: BLE001 - the reader raises whatever its many parts do
        raise DataError(file, f"found what its reader refuses ({_first_line(error)}), expected {_EXPECTED}") from None
    answers: dict[str, Answered] = {}
    failed: dict[str, str] = {}
    for sample in log.samples or ():
        name = str(sample.id)
        if sample.epoch != 1:
            found = f"it in epoch {sample.epoch}"
            raise DataError(file, f"found {found}, expected each sample once", record=f"sample {name!r:.60}")
        try:
            if sample.error is not None:
                raise Unanswered(" ".join(str(sample.error.message).replace("\\n", " ").split())[:100])
            answers[name] = answer_of_output(sample.output)
        except Unanswered as error:
            failed[name] = printable(_first_line(error))
    asked = tuple(dict.fromkeys([*map(str, log.eval.dataset.sample_ids or ()), *answers, *failed]))
    failed |= {name: "it was not asked" for name in asked if name not in answers and name not in failed}
    if not asked:
        raise DataError(file, "found no sample, expected some")
    return EvalAnswers(asked, answers, failed)


def answer_of_output(output: Any) -> Answered:
    """What an output of Inspect says (its `ModelOutput`), read as a reply of any other model; or `Unanswered`.

    >>> from types import SimpleNamespace
    >>> choices = [SimpleNamespace(stop_reason="stop")]
    >>> answer_of_output(SimpleNamespace(completion="yes", choices=choices, time=0.5, usage=None)).content
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
    text = printable(final_text(Reply(output.completion, finish=finish)))
    tokens = (spent.input_tokens, spent.output_tokens) if spent is not None else (0, 0)
    return Answered(text, output.time, 1, *tokens)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


def _check_archive(path: Path) -> None:
    """Refuse what is no zip file, or becomes too large; sizes that the file states about itself are not believed."""
    try:
        with open_regular(path) as stream:
            whole = os.fstat(stream.fileno()).st_size
            if whole > MAX_TOTAL:
                raise DataError(path, f"found {whole} bytes, expected at most {MAX_TOTAL}")
            with ZipFile(stream) as archive:
                members = archive.infolist()
                if archive.start_dir != _stated_directory(stream, whole):
                    raise BadZipFile("two tables of contents")  # one for us, another for the reader
            if len(members) > MAX_MEMBERS:
                raise DataError(path, f"found {len(members)} members, expected at most {MAX_MEMBERS}")
            total = sum(_true_size(path, stream, member) for member in members)
    except FileNotFoundError:
        raise DataError(path, f"found no such file, expected {_EXPECTED}") from None
    except OSError as error:
        raise DataError(path, f"found {error.strerror or error}, expected a readable file, {_EXPECTED}") from None
    except (BadZipFile, ValueError, struct.error, zlib.error, NotImplementedError, UnicodeError) as error:
        found = f"a damaged archive ({_first_line(error)})"
        raise DataError(path, f"found {found}, expected {_EXPECTED}") from None
    if total > MAX_TOTAL:
        raise DataError(path, f"found {total} bytes when unpacked, expected at most {MAX_TOTAL}")


def _stated_directory(stream: BufferedReader, whole: int) -> int:
    """Where the archive itself says that its table of contents begins."""
    stream.seek(max(0, whole - _LOCATOR - _END))
    tail = stream.read(_LOCATOR + _END)
    locator, end = tail[:-_END], tail[-_END:]
    if len(end) != _END or end[:4] != b"PK\5\6":
        raise BadZipFile("something after its end")
    if locator[:4] != b"PK\6\7":
        return int(struct.unpack_from("<I", end, 16)[0])
    stream.seek(struct.unpack_from("<Q", locator, 8)[0])
    return int(struct.unpack_from("<Q", stream.read(56), 48)[0])


def _true_size(path: Path, stream: BufferedReader, member: ZipInfo) -> int:
    size = 0
    for count in _unpacked(path, stream, member):
        size += count
        if size > MAX_MEMBER:
            where = f"member {member.filename!r:.60}"
            raise DataError(path, f"found over {MAX_MEMBER} bytes when unpacked, expected fewer", record=where)
    return size


def _unpacked(path: Path, stream: BufferedReader, member: ZipInfo) -> Iterator[int]:
    """How many bytes each chunk of a member has when it is unpacked."""
    stream.seek(member.header_offset)
    head = stream.read(30)
    if len(head) != 30 or head[:4] != b"PK\3\4":
        raise BadZipFile(f"no member at byte {member.header_offset}")
    name, extra = struct.unpack("<HH", head[26:])
    stream.seek(name + extra, os.SEEK_CUR)
    if member.compress_type == ZIP_STORED:
        yield member.compress_size
    elif member.compress_type == ZIP_DEFLATED:
        yield from _inflated(stream, member.compress_size)
    elif member.compress_type == _ZSTANDARD:
        yield from _zstandard_unpacked(path, stream, member.compress_size)
    else:
        raise BadZipFile(f"compression {member.compress_type}")


def _inflated(stream: BufferedReader, left: int) -> Iterator[int]:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    while left > 0 and not unpacker.eof:
        packed = stream.read(min(left, _CHUNK))
        if not packed:
            raise BadZipFile("it ends inside a member")
        left -= len(packed)
        while packed:
            yield len(unpacker.decompress(packed, _CHUNK))
            packed = unpacker.unconsumed_tail


def _zstandard_unpacked(path: Path, stream: BufferedReader, size: int) -> Iterator[int]:
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
