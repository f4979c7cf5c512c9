"""Replies of models and judges in a run folder: a line of JSON each, in `answers/WORKER.jsonl`.

Every process appends to a file of its own, so processes on several hosts may work in one folder at the same time, also
on a network file system. Readers merge the files. If a key occurs in several files, the line with the latest time
counts, at equal times that of the file whose name sorts last; within a file the last line counts.

A line is on disk before `AnswerLog.put` returns. Threads that wait at the same moment share one fsync. A process that
is killed while it writes leaves a line without an end, which readers ignore; any other invalid line is an error. Only
keys and positions are held in memory, about 150 bytes a line.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from surgeval.errors import DataError, RunError, RunStopped, printable
from surgeval.files.atomic import failure_reason, make_folder, sync_folder
from surgeval.files.names import safe_name
from surgeval.files.stored import EARLIER_VERSION

__all__ = ["FOLDER", "MAX_LINE", "AnswerLine", "AnswerLog"]

FOLDER = "answers"
MAX_LINE = 1 << 24  # bytes of a line; chat clients refuse replies that are far shorter
_OFFSET_BITS = 44  # a position is the number of a file and an offset in it, of at most 16 TiB
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Databases in which earlier versions stored replies and verdicts.
_EARLIER = ("answers.sqlite", "shown.sqlite", "reader.sqlite", "verdicts.sqlite", "replies.sqlite", "probe.sqlite")


class AnswerLine(BaseModel):
    """What every line has: its format, the kind of reply, its key among those of that kind, and when it was written."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    format: Literal[1] = 1
    kind: str
    key: str
    time: AwareDatetime


class _OtherLine(AnswerLine):
    """A line of another kind than the log's; its own fields are not checked."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


Line = TypeVar("Line", bound=AnswerLine)


@dataclass(slots=True)
class _OtherFile:
    """A file of another process, and how far it has been read."""

    number: int
    offset: int = 0
    lines: int = 0


class _LineBatch:
    """Lines that are written together, and the outcome."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.size = self.position = 0
        self.written = threading.Event()
        self.error: BaseException | None = None


class AnswerLog(Generic[Line]):
    """The lines of one kind in a folder, and a new file for those that this process adds. Threads may share it.

    The file is created with the first line. A pickled log holds its folder; in the other process it writes to a file
    of its own.

    >>> import tempfile
    >>> class Reply(AnswerLine):
    ...     text: str
    >>> with tempfile.TemporaryDirectory() as folder, AnswerLog(folder, "reply", Reply) as log:
    ...     log.put("q1", text="a clip")
    ...     log.put("q1", text="two clips")
    ...     line = AnswerLog(folder, "reply", Reply).find("q1")
    >>> line.text, log.find("q2")
    ('two clips', None)
    """

    def __init__(self, folder: str | Path, kind: str, line: type[Line]) -> None:
        self.folder, self.kind, self._line = Path(folder), kind, line
        self.path = self.folder / FOLDER
        self._start = f'{{"format":1,"kind":"{kind}",'.encode()  # of a line that was written here
        for name in _EARLIER:
            if os.path.lexists(self.folder / name):
                raise RunError(f"{self.folder / name}: {EARLIER_VERSION}")
        self._index: dict[str, int] = {}
        self._names: list[str] = []  # of the files, by their number in positions
        self._sources: dict[str, _OtherFile] = {}
        self._own: set[str] = set()
        self._file: FileIO | None = None
        self._number, self._process, self._closed, self._newest = 0, os.getpid(), False, 0
        self._lock, self._writing, self._reading = threading.Lock(), threading.Lock(), threading.Lock()
        self._batch = _LineBatch()
        self.refresh()

    def find(self, key: str) -> Line | None:
        """The line that counts for this key; None where there is none."""
        position = self._index.get(printable(key))
        return None if position is None else self._read_line(position)

    def put(self, key: str, **values: object) -> None:
        """Add a line with these values; it is on disk when this returns.

        Raises `RunError` for values that a line cannot hold, and `RunStopped` if the file cannot be written.
        """
        key = printable(key)
        data = self._encode(key, values)
        with self._lock:
            batch = self._batch
            leads, start = not batch.lines, batch.size
            batch.lines.append(data)
            batch.size += len(data)
        if leads:
            self._write_batch(batch)
        else:
            batch.written.wait()
        if batch.error is not None:
            reason = failure_reason(batch.error) if isinstance(batch.error, OSError) else str(batch.error)
            raise RunStopped(_not_stored(self.path, key, reason or "interrupted")) from batch.error
        self._index[key] = batch.position + start

    def refresh(self) -> None:
        """Read what other processes have added since the last call."""
        with self._reading:
            try:
                names = sorted(name for name in os.listdir(self.path) if name.endswith(".jsonl"))  # noqa: PTH208
            except FileNotFoundError:
                return
            except OSError as error:
                raise _unreadable(self.path, error) from None
            for name in names:
                if name not in self._own:
                    self._read_file(name)

    def close(self) -> None:
        """Close the file of this process. No more lines can be added."""
        with self._writing:
            self._closed = True
            self._close_file()

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._index))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.folder, self.kind, self._line)

    def _encode(self, key: str, values: dict[str, object]) -> bytes:
        with self._lock:  # later than every line read or written so far, whatever the clocks of hosts say
            self._newest = max(time.time_ns() // 1000, self._newest + 1)
            stamp = _EPOCH + self._newest * _MICROSECOND
        texts = {name: printable(value) if isinstance(value, str) else value for name, value in values.items()}
        fields: dict[str, Any] = {"kind": self.kind, "key": key, "time": stamp, **texts}
        try:
            data = self._line(**fields).model_dump_json().encode() + b"\n"
        except ValidationError as error:
            raise RunError(_not_stored(self.path, key, _first_fault(error))) from None
        if len(data) > MAX_LINE:
            raise RunError(_not_stored(self.path, key, f"{len(data)} bytes, the limit is {MAX_LINE}"))
        return data

    def _write_batch(self, batch: _LineBatch) -> None:
        """Write the batch when its turn comes; until then other threads add to it."""
        try:
            with self._writing:
                with self._lock:
                    self._batch = _LineBatch()
                batch.position = self._append(b"".join(batch.lines))
        except BaseException as error:
            with self._lock:
                if self._batch is batch:  # interrupted before its turn
                    self._batch = _LineBatch()
            batch.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            batch.written.set()

    def _append(self, data: bytes) -> int:
        """Add the bytes to the file of this process; their position, when they are on disk."""
        if self._closed:
            raise RunError("the log is closed")
        if self._file is None or self._process != os.getpid():
            self._file = self._create_file()
        try:
            offset, rest = self._file.tell(), memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except BaseException:
            self._close_file()  # it may end in half a line, so the next line goes to a new file
            raise
        return self._number << _OFFSET_BITS | offset

    def _create_file(self) -> FileIO:
        make_folder(self.path)
        self._process = os.getpid()
        worker = f"{self.kind}-{safe_name(socket.gethostname())}-{self._process}-{secrets.token_hex(4)}"
        name = f"{worker}.jsonl"
        with self._reading:
            file = FileIO(self.path / name, "x")
            self._own.add(name)
            self._number = len(self._names)
            self._names.append(name)
        sync_folder(self.path)
        return file

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _read_file(self, name: str) -> None:
        """Index the lines of another process's file from where the last reading ended."""
        path = self.path / name
        if not path.is_file():
            raise DataError(path, "not a regular file", code="file-not-regular")
        if (source := self._sources.get(name)) is None:
            source = self._sources[name] = _OtherFile(len(self._names))
            self._names.append(name)
        try:
            if path.stat().st_size == source.offset:
                return
            with path.open("rb") as file:
                file.seek(source.offset)
                while (data := file.readline(MAX_LINE + 1)).endswith(b"\n"):
                    line = self._parse(data, path, f"line {source.lines + 1}")
                    if isinstance(line, self._line):
                        self._add(line, source.number << _OFFSET_BITS | source.offset)
                    source.offset += len(data)
                    source.lines += 1
        except OSError as error:
            raise _unreadable(path, error) from None
        if len(data) > MAX_LINE:
            sentence = f"longer than {MAX_LINE} bytes; delete the line to have its question asked again"
            raise DataError(path, sentence, record=f"line {source.lines + 1}", code="file-broken")

    def _add(self, line: Line, position: int) -> None:
        """Index a line of another process, unless the one that counted so far is newer."""
        self._newest = max(self._newest, (line.time - _EPOCH) // _MICROSECOND)
        before = self._index.get(line.key)
        if before is not None:
            name, other = (self._names[each >> _OFFSET_BITS] for each in (position, before))
            if name != other and (self._read_line(before).time, other) > (line.time, name):
                return
        self._index[line.key] = position

    def _read_line(self, position: int) -> Line:
        path, offset = self.path / self._names[position >> _OFFSET_BITS], position & ((1 << _OFFSET_BITS) - 1)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                line = self._parse(file.readline(MAX_LINE), path, f"byte {offset}")
        except OSError as error:
            raise _unreadable(path, error) from None
        if not isinstance(line, self._line):
            raise DataError(path, "changed while it was being read")
        return line

    def _parse(self, data: bytes, path: Path, record: str) -> AnswerLine:
        """A `Line` if it is of this log's kind."""
        try:
            if data.startswith(self._start):
                return self._line.model_validate_json(data)
            line = _OtherLine.model_validate_json(data)
            return line if line.kind != self.kind else self._line.model_validate_json(data)
        except ValidationError as error:
            sentence = f"{_first_fault(error)}; delete the line to have its question asked again"
            raise DataError(path, sentence, record=record, code="file-broken") from None


def _not_stored(path: Path, key: str, reason: str) -> str:
    return f"{path}: the reply to {key[:60]} could not be stored: {reason}"


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}" if field else first["msg"]


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(path, f"cannot be read: {error.strerror or error}", code="file-unreadable")
