"""JSON from strangers: one place that opens, bounds and parses it.

`read_json` tells a cut-off or broken file with line and column. NaN and Infinity literals pass here (other tools
write them) and are refused where a number is needed. `Members` walks the top-level lists of a file too large to hold.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

from surgeval.datasets.io.files import bounded_size, tell_unreadable
from surgeval.files import BrokenJson, Location, OnProblem, format_value, open_regular, parse_json

MAX_BYTES = 1 << 30  # of a file that is held whole; COCO files are walked and may be larger
UNREAD = object()  # returned instead of a value after a problem was told (null is a value)
MAX_ELEMENT = 1 << 27  # of one element of a file that is walked
_CHUNK = 1 << 18


def read_bytes(path: str | Path, on_problem: OnProblem, limit: int = MAX_BYTES) -> bytes | None:
    """The bytes of a regular file of bounded size, or None after telling why not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.txt"
    ...     _ = path.write_bytes(b"0 0.5")
    ...     read_bytes(path, print)
    b'0 0.5'
    """
    place = Location(str(path), on_problem)
    try:
        with open_regular(path) as stream:
            size = bounded_size(stream, place, limit)
            return None if size is None else stream.read(size)
    except OSError as error:
        tell_unreadable(place, error)
        return None


def read_text(path: str | Path, on_problem: OnProblem, limit: int = MAX_BYTES) -> str | None:
    r"""The UTF-8 text of a file, or None after telling why not.

    >>> import tempfile
    >>> problems = []
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.txt"
    ...     _ = path.write_bytes(b"\xff\xfe")
    ...     read_text(path, problems.append), problems[0].kind
    (None, 'file-broken')
    """
    data = read_bytes(path, on_problem, limit)
    if data is None:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = f"byte {data[error.start]:#04x} at offset {error.start}"
        Location(str(path), on_problem).error("file-broken", f"found {byte}, expected UTF-8 text")
        return None


def read_json(path: str | Path, on_problem: OnProblem) -> Any:
    """The parsed file, or `UNREAD` after telling what is wrong with it.

    >>> import tempfile
    >>> problems = []
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.json"
    ...     _ = path.write_text('{"frames": [1, 2]}')
    ...     read_json(path, problems.append)
    ...     _ = path.write_text('{"frames": [1, ')
    ...     read_json(path, problems.append) is UNREAD, problems[0].kind
    {'frames': [1, 2]}
    (True, 'file-broken')
    """
    text = read_text(path, on_problem)
    return UNREAD if text is None else told_json(text, Location(str(path), on_problem))


def told_json(text: str, place: Location) -> Any:
    """The parsed text, or `UNREAD` after telling what is wrong with it.

    >>> told_json('{"id": 1}', Location("items.jsonl", print))
    {'id': 1}
    """
    pairs = _ObjectMaker()
    try:
        value = parse_json(text, make_object=pairs)
    except BrokenJson as error:
        place.error("file-broken", f"found {error}, expected complete JSON")
        return UNREAD
    pairs.tell(place)
    return value


class _ObjectMaker:
    """Makes the objects of a JSON text and notes the keys that one of them has twice: the last value counts."""

    def __init__(self) -> None:
        self.twice: dict[str, None] = {}

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.twice.update(dict.fromkeys(key for key, count in counts.items() if count > 1))
        return result

    def tell(self, place: Location) -> None:
        for key in self.twice:
            _repeated(key, place)


def _repeated(key: str, place: Location) -> None:
    place.warn("key-duplicate", f"found the key {format_value(key)} twice in one object, expected each key once")


def read_mapping(path: str | Path, on_problem: OnProblem) -> dict[str, Any] | None:
    """The JSON object in a file, or None after telling what is wrong with it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.json"
    ...     _ = path.write_text("[1, 2]")
    ...     read_mapping(path, lambda problem: print(problem.kind, problem.sentence))
    wrong-shape found [1, 2], expected a JSON object
    """
    data = read_json(path, on_problem)
    return None if data is UNREAD else Location(str(path), on_problem).mapping(data)


def read_lines(path: str | Path, on_problem: OnProblem) -> Iterator[tuple[int, str]]:
    r"""The non-empty lines of a text file with their numbers from 1, one at a time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "items.jsonl"
    ...     _ = path.write_text('{"id": 1}\n\n{"id": 2}\n')
    ...     list(read_lines(path, print))
    [(1, '{"id": 1}'), (3, '{"id": 2}')]
    """
    place = Location(str(path), on_problem)
    try:
        with open_regular(path) as stream:
            for number, raw in enumerate(iter(lambda: stream.readline(1 << 24), b""), start=1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError:
                    place.at(f"line {number}").error("file-broken", "found bytes that are no text, expected UTF-8 text")
                    continue
                if line:
                    yield number, line
    except OSError as error:
        tell_unreadable(place, error)


class Members:
    """The values of a JSON file that is one object, met in file order without holding the file.

    Iterating yields `(key, number, value, start, length)`: for a list one entry per element with its position in the
    list and its place in the file (so that it can be read again later), for any other value one entry with number −1.
    """

    def __init__(self, path: Path, place: Location) -> None:
        self._path, self._place = path, place
        self._text, self._at = "", 0  # a window of the file, and where we are in it
        self._byte = 0  # where that is in the file
        self._line, self._column = 1, 0  # of the window's first character (from 1; from 0)
        self._raw = b""  # the first bytes of a character that was cut in two
        self._stream: BufferedReader
        self._pairs, self._told = _ObjectMaker(), set[str]()
        self._decoder = json.JSONDecoder(object_pairs_hook=self._pairs)
        self.empty: set[str] = set()  # the keys of the empty lists met: they yield no entry

    def __iter__(self) -> Iterator[tuple[str, int, Any, int, int]]:
        try:
            with open_regular(self._path) as self._stream:
                if self._stream.read(3) != b"\xef\xbb\xbf":
                    self._stream.seek(0)
                self._byte = self._stream.tell()
                yield from self._walk()
        except OSError as error:
            tell_unreadable(self._place, error)
        except UnicodeDecodeError:
            self._place.error(
                "file-broken", f"found bytes that are no text after line {self._line}, expected UTF-8 text"
            )
        except _BrokenError as error:
            where = f"line {error.line} column {error.column}"
            fault = f"cut off at {where}" if error.cut else f"not JSON at {where} ({error.reason})"
            self._place.error("file-broken", f"found {fault}, expected complete JSON")

    def _walk(self) -> Iterator[tuple[str, int, Any, int, int]]:
        if self._peek() != "{":
            self._place.error("wrong-shape", f"found JSON that starts with {self._peek()!r}, expected a JSON object")
            return
        self._step()
        if self._peek() == "}":
            return
        keys: set[str] = set()
        while True:
            key, _, _ = self._value()
            if not isinstance(key, str):
                raise self._broken("expected a key")
            self._expect(":")
            if key in keys:
                _repeated(key, self._place)
            keys.add(key)
            if self._peek() == "[":
                yield from self._elements(key)
            else:
                value, start, length = self._value()
                yield key, -1, value, start, length
            if self._peek() == "}":
                return
            self._expect(",")

    def _elements(self, key: str) -> Iterator[tuple[str, int, Any, int, int]]:
        self._step()
        if self._peek() == "]":
            self._step()
            self.empty.add(key)
            return
        number = 0
        while True:
            value, start, length = self._value()
            yield key, number, value, start, length
            number += 1
            if self._peek() == "]":
                self._step()
                return
            self._expect(",")

    def _value(self) -> tuple[Any, int, int]:
        self._peek()
        grow = _CHUNK
        while True:
            try:
                self._pairs.twice.clear()  # of an attempt that did not see the whole value
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # Broken here, or only not read far enough? An error at the very end may be the latter.
                inside = error.pos < len(self._text) - 32 and not error.msg.startswith("Unterminated string")
                if inside or grow > MAX_ELEMENT or not self._more(grow):
                    raise self._broken(error.msg, error.pos) from None
            except (ValueError, RecursionError):
                raise self._broken("too deep or too long") from None
            else:
                # A number near the end of what was read may go on in the next chunk: `0.` parses as 0 so far.
                rest = self._text[end : end + 3]
                number = isinstance(value, int | float) and len(rest) < 3 and not rest.strip("0123456789.eE+-")
                if (rest and not number) or not self._more(grow):
                    break
            grow *= 2
        start = self._byte
        length = end - self._at if self._text.isascii() else len(self._text[self._at : end].encode())
        self._at, self._byte = end, start + length
        for key in self._pairs.twice.keys() - self._told:
            self._told.add(key)
            _repeated(key, self._place)
        return value, start, length

    def _peek(self) -> str:
        """The next character that is not white space; '' at the end of the file."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n":
                    return self._text[self._at]
                self._step()
            if not self._more(_CHUNK):
                return ""

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._broken(f"expected '{character}'")
        self._step()

    def _step(self) -> None:
        """Past one character of JSON's own, which is one byte."""
        self._at += 1
        self._byte += 1

    def _more(self, count: int) -> bool:
        data = self._stream.read(count)
        if not data:
            if self._raw:
                self._raw.decode()
            return False
        data, self._raw = self._raw + data, b""
        for tail in range(1, min(4, len(data)) + 1):  # keep back a character that is cut in two
            if data[-tail] >= 0xC0:
                width = 2 if data[-tail] < 0xE0 else 3 if data[-tail] < 0xF0 else 4
                if tail < width:
                    data, self._raw = data[:-tail], data[-tail:]
                break
            if data[-tail] < 0x80:
                break
        used = self._text[: self._at]
        self._line += used.count("\n")
        self._column = len(used) - used.rfind("\n") - 1 + (0 if "\n" in used else self._column)
        self._text, self._at = self._text[self._at :] + data.decode(), 0
        return True

    def _broken(self, reason: str, position: int | None = None) -> _BrokenError:
        position = self._at if position is None else position
        before = self._text[:position]
        column = len(before) - before.rfind("\n") + (0 if "\n" in before else self._column)
        cut = not self._text[position:].strip() or reason.startswith("Unterminated string")
        return _BrokenError(self._line + before.count("\n"), column, reason, cut)


class _BrokenError(Exception):
    def __init__(self, line: int, column: int, reason: str, cut: bool) -> None:
        super().__init__(reason)
        self.line, self.column, self.reason, self.cut = line, column, reason, cut
