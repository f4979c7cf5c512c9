"""The rows of a CSV or JSON table as dictionaries, with their numbers; what is broken is told and left out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surgeval.datasets.formats.mapping import BoxMap
from surgeval.datasets.io.json import UNREAD, read_json, read_text
from surgeval.files import Location, format_value

MAX_BYTES = 1 << 28  # of a CSV file, which is held whole


def table_rows(path: Path, boxes: BoxMap, place: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows that have all columns of the map; CSV rows are numbered by line, JSON rows from 0."""
    return _json_rows(path, boxes, place) if path.suffix.lower() == ".json" else _csv_rows(path, boxes, place)


def _csv_rows(path: Path, boxes: BoxMap, place: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    text = read_text(path, place.on_problem, MAX_BYTES)
    if text is None:
        return
    first = text[: text.find("\n")] if "\n" in text else text
    separator = boxes.separator or max(";\t,", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header: list[str] | None = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                if not _has_columns(header, boxes, place):
                    return
            elif len(cells) != len(header):
                place.at(f"row {reader.line_num}").error(
                    "wrong-shape", f"found {len(cells)} cells, expected {len(header)} cells"
                )
            else:
                yield reader.line_num, dict(zip(header, (cell.strip() for cell in cells), strict=True))
    except csv.Error as error:
        place.at(f"row {reader.line_num}").error("file-broken", f"found {error}, expected separated values")


def _has_columns(header: list[str], boxes: BoxMap, place: Location) -> bool:
    missing = sorted(boxes.columns - set(header))
    if missing:
        columns = ", ".join(header)[:200]
        place.error("key-missing", f"found the columns {columns}, expected a column {missing[0]!r:.80}")
    if len(set(header)) != len(header):
        columns = ", ".join(header)[:200]
        place.error("column-duplicate", f"found the columns {columns}, expected each column once")
    return not missing and len(set(header)) == len(header)


def _json_rows(path: Path, boxes: BoxMap, place: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    data = read_json(path, place.on_problem)
    if data is UNREAD:
        return
    if boxes.rows:
        data = (place.mapping(data) or {}).get(boxes.rows)
    for number, row in enumerate(place.items(data, boxes.rows or None) or ()):
        here = place.at(f"row {number}")
        record = here.mapping(row)
        if record is None:
            continue
        missing = sorted((boxes.columns - record.keys()) - {boxes.verb, boxes.target, boxes.track, boxes.score})
        if missing:
            here.error("key-missing", f"found {format_value(sorted(record))}, expected {f'a key {missing[0]!r}'[:80]}")
            continue
        yield number, record
