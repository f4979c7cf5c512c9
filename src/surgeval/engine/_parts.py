"""One finished unit as one Parquet file that can prove it is whole.

The footer carries the unit, its failures, its seconds and a digest of all bytes of the file. The digest is checked
before any byte is parsed: of 2 000 single flipped bits, polars read 41 as other numbers without a word and panicked
on 18.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from surgeval.engine._columns import Schema, case_frame
from surgeval.files import NotRegular, find_parquet_damage, parse_json, read_regular
from surgeval.records import Case

__all__ = ["Damaged", "Failure", "PartInfo", "encode", "inspect", "part_path", "read_frame",
           "read_schema", "stored_part"]  # fmt: skip

# A control character, which JSON never contains: no reason of a failure can imitate the mark. Text of cases could, but
# stands before the footer's key-value section, and the last mark of the file is the one that counts.
_MARK = b"\x01surgeval-digest:"
_BLANK = b"0" * 64
_MOST_REASONS = 200  # distinct ones kept per unit; more are counted under "other reasons"


class Damaged(Exception):
    """A part that is not what was written; the unit has to be done again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """So many cases of one unit that failed for one reason."""

    status: str
    reason: str
    cases: int


@dataclass(frozen=True, slots=True)
class PartInfo:
    """What a part says about itself without its rows being read."""

    name: str
    unit: str
    cases: int
    failures: tuple[Failure, ...]
    seconds: float

    @property
    def failed(self) -> int:
        """The number of cases that are not `ok`."""
        return sum(failure.cases for failure in self.failures)


def part_path(folder: Path, name: str) -> Path:
    """Where the part of the unit with this name lies."""
    return folder / "parts" / f"{name}.parquet"


def encode(name: str, unit: str, cases: Sequence[Case], seconds: float) -> bytes:
    """The unit's cases as the bytes of its part."""
    counts = Counter((case.status, case.reason) for case in cases if case.status != "ok")
    failures: Counter[tuple[str, str]] = Counter()
    for (status, reason), count in counts.items():
        known = len(failures) < _MOST_REASONS
        failures[status, reason if known else "other reasons"] += count
    about = {
        "name": name,
        "unit": unit,
        "cases": len(cases),
        "failures": [[status, reason, count] for (status, reason), count in failures.items()],
        "seconds": round(seconds, 3),
    }
    buffer = io.BytesIO()
    metadata = {"surgeval.part": json.dumps(about), "surgeval.digest": (_MARK + _BLANK).decode()}
    case_frame(unit, cases).write_parquet(buffer, metadata=metadata)
    data = buffer.getvalue()
    start = data.rfind(_MARK) + len(_MARK)
    return data[:start] + _digest(data).encode() + data[start + len(_BLANK) :]


def inspect(data: bytes, name: str) -> PartInfo:
    """Check the bytes of a part against its digest and its name, and say what it holds; raises Damaged.

    For parts of this process: what others stored is read by `stored_part`.
    """
    _check_digest(data)
    return _about(data, name)


def stored_part(path: Path, name: str) -> tuple[bytes, PartInfo]:
    """The bytes of a part in a folder and what it holds; raises Damaged.

    The digest tells accidents, not intent: whoever hands on a run can write one that fits. So what lies in a folder is
    Parquet of strangers, which is tried in another process before it is opened here.
    """
    try:
        data = read_regular(path)
        _check_digest(data)
        damage = find_parquet_damage(path)
    except NotRegular as error:
        raise Damaged(f"it is {error}") from None
    if damage:
        raise Damaged(f"found {damage}")
    return data, _about(data, name)


def _check_digest(data: bytes) -> None:
    start = data.rfind(_MARK) + len(_MARK)
    end = start + len(_BLANK)
    if start < len(_MARK) or end > len(data):
        raise Damaged("it is cut short" if data else "it is empty")
    if data[start:end] != _digest(data[:start] + _BLANK + data[end:]).encode():
        raise Damaged("its bytes are not those that were written")


def _about(data: bytes, name: str) -> PartInfo:
    try:
        about = parse_json(pl.read_parquet_metadata(io.BytesIO(data))["surgeval.part"], finite=True)
        failures = tuple(Failure(str(status), str(reason), int(cases)) for status, reason, cases in about["failures"])
        info = PartInfo(str(about["name"]), str(about["unit"]), int(about["cases"]), failures, float(about["seconds"]))
    except (KeyError, TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        raise Damaged("what it says about itself cannot be read") from None
    if info.name != name:
        raise Damaged("it belongs to another unit")
    return info


def read_frame(data: bytes) -> pl.DataFrame:
    """The rows of a part that `inspect` has found whole."""
    return pl.read_parquet(io.BytesIO(data))


def read_schema(source: Path | bytes) -> Schema:
    """The columns of a part and their types."""
    if isinstance(source, bytes):
        return pl.read_parquet_schema(io.BytesIO(source))
    with source.open("rb") as file:  # polars takes a path as a pattern: `runs/v[1]` would be `runs/v1`
        return pl.read_parquet_schema(file)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()
