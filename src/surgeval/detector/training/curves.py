"""curves.jsonl: one JSON line per epoch, appended as soon as it is known, so that anybody can look while it trains."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surgeval.errors import DataError
from surgeval.files import BrokenJson, append_line, parse_json, read_bounded, write_atomically

__all__ = ["CURVES", "append_curve", "read_curves", "trim_curves"]

CURVES = "curves.jsonl"
_LIMIT = 256 << 20


def append_curve(path: Path, row: Mapping[str, Any]) -> None:
    """Add the line of one epoch; numbers that are none (no ground truth for a mean) become null.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     append_curve(Path(folder) / CURVES, {"epoch": 1, "loss": 2.5, "mAP50": float("nan")})
    ...     read_curves(folder)
    [{'epoch': 1, 'loss': 2.5, 'mAP50': None}]
    """
    if path.is_symlink():
        raise DataError(path, "found a link, expected a regular file")
    append_line(path, _line(row))


def read_curves(folder: Path | str) -> list[dict[str, Any]]:
    r"""The epochs so far, of a training folder or a stage's folder; a line that is still being written is left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, CURVES).write_text('{"epoch": 1, "loss": 2.5}\n{"epoch": 2, "lo')
    ...     read_curves(folder)
    [{'epoch': 1, 'loss': 2.5}]
    >>> read_curves("nowhere")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere/curves.jsonl: no such file
    """
    path = Path(folder) / CURVES
    data = read_bounded(path, _LIMIT)
    whole = data[: data.rfind(b"\n") + 1].decode(errors="replace")
    rows = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = parse_json(line, finite=True)
        except BrokenJson as error:
            raise DataError(path, f"found {error}, expected a JSON object", record=f"line {number}") from None
        if not isinstance(row, dict) or type(row.get("epoch")) is not int:
            raise DataError(path, f"found {line[:60]}, expected an object with an epoch", record=f"line {number}")
        rows.append(row)
    return rows


def trim_curves(path: Path, epochs: int) -> list[dict[str, Any]]:
    """Drop the lines behind so many epochs: those were written by a process that died before it kept its weights."""
    if not path.exists():
        return []
    rows = [row for row in read_curves(path.parent) if row["epoch"] <= epochs]
    for row in rows:
        if type(row.get("seconds")) not in (int, float) or not 0 <= row["seconds"] < math.inf:
            found = json.dumps(row.get("seconds"))[:60]
            raise DataError(path, f"found {found}, expected a number", record=f"epoch {row['epoch']}", field="seconds")
    write_atomically(path, b"".join(_line(row) + b"\n" for row in rows))
    return rows


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps({name: _plain(value) for name, value in row.items()}, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
