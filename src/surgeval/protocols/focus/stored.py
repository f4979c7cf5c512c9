"""`scores.json`: a scored submission in one file, written in one step, and read back as if a stranger had written it.

It holds the numbers (`focus_json`) and what they rest on: the results row by row, what was asked and answered, every
vote, the verdicts of people and the prices. What a judge replied in full is not in it; `answers/` keeps that.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import polars as pl

from surgeval.datasets import Problem
from surgeval.errors import DataError, printable
from surgeval.files import read_json_object, write_atomically
from surgeval.protocols.focus.scoring.admission import Admission
from surgeval.protocols.focus.scoring.pooled import PooledTime
from surgeval.protocols.focus.scoring.rules import STATUSES
from surgeval.protocols.focus.scoring.summary import RESULTS, SAID, SUMMARY, BucketScore
from surgeval.protocols.focus.tables import focus_json
from surgeval.qa import PanelVerdict, Price
from surgeval.stats import Interval

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores

__all__ = ["COUNTS", "SCORES", "read_scores", "restored", "write_scores"]

SCORES = "scores.json"
COUNTS = ("questions", "scored", *STATUSES, "flags", "judged", "orphan", "unreferenced", "duplicate")
_MAX_BYTES = 1 << 28
_EXPECTED = "the scores that `score_focus` saved"
_NULL_RESULTS = ("video", "latency", "correctness")
_KINDS: dict[object, type | tuple[type, ...]] = {
    pl.String: str, pl.Boolean: bool, pl.Int64: int, pl.Float64: (int, float),
}  # fmt: skip
_PARTS: dict[str, tuple[str, Any]] = {  # of FocusScores: its key in the file, and its type
    "name": ("name", str),
    "track": ("track", str | None),
    "limit": ("max_latency", float | None),
    "compat": ("compat", str | None),
    "settings": ("settings", Mapping[str, str | int | float | None]),
    "questions": ("questions", str),
    "pictured": ("pictured", bool | None),
    "asked_model": ("asked_model", str | None),
    "answered_by": ("answered_by", Mapping[str, int] | None),
    "buckets": ("buckets", tuple[BucketScore, ...]),
    "counts": ("counts", Mapping[str, int]),
    "unrankable": ("unrankable", str),
    "admission": ("admission", Admission | None),
    "notes": ("notes", tuple[str, ...]),
    "problems": ("problems", tuple[Problem, ...]),
    "verdicts": ("verdicts", tuple[PanelVerdict, ...]),
    "human": ("human", Mapping[str, bool | None] | None),
    "prices": ("prices", Mapping[str, Price]),
    "floor": ("floor", Mapping[str, bool] | None),
    "time": ("time", PooledTime | None),
}


class _Odd(Exception):
    """A value that does not fit: where it is, what it is, what it should be."""


_LARGEST = 10**15  # of a count: sums of them fit every column


def write_scores(scores: FocusScores, folder: Path) -> Path:
    """Write `scores.json` in one step, each row on a line of its own; returns its path."""
    verdicts = [asdict(verdict) for verdict in scores.verdicts]
    for verdict in verdicts:
        verdict["votes"] = [{**vote, "text": None} for vote in verdict["votes"]]
    content = {
        **focus_json(scores),
        "results": scores.results.to_dicts(),
        "said": None if scores.said is None else scores.said.to_dicts(),
        "verdicts": verdicts,
        "human": None if scores.human is None else dict(scores.human),
        "prices": {name: asdict(price) for name, price in scores.prices.items()},
        "floor": None if scores.floor is None else dict(scores.floor),
    }
    lines = ",\n".join(f"{json.dumps(key)}: {_lines(value)}" for key, value in content.items())
    # A lone surrogate becomes its escape, which inside a JSON text is what it was.
    write_atomically(folder / SCORES, printable(f"{{\n{lines}\n}}\n").encode())
    return folder / SCORES


def _lines(value: object) -> str:
    if not isinstance(value, list) or not value:
        return _dump(value)
    return "[\n " + ",\n ".join(map(_dump, value)) + "\n]"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_scores(path: Path) -> dict[str, Any]:
    """What `scores.json` says, as plain values of a bounded file."""
    return read_json_object(path, limit=_MAX_BYTES)


def restored(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The fields of `FocusScores` out of what `scores.json` says; anything odd is named by its key."""
    if content.get("protocol") != "focus":
        raise DataError(path, f"found {content.get('protocol')!r}, expected focus", field="protocol")
    key = ""
    try:
        fields: dict[str, Any] = {}
        for name, (key, hint) in _PARTS.items():
            fields[name] = _typed(hint, content.get(key), key)
        key = "counts"
        for count in COUNTS:
            if count not in fields["counts"]:
                _refuse(f"counts.{count}", None, "a whole number")
        key = "intervals"
        intervals = _typed(Mapping[str, Interval | None], content.get(key), key)
        for name, number in (
            ("flat", "flat_accuracy"),
            ("video_mean", "accuracy_mean_of_video_means"),
            ("pre_evaluation", "pre_evaluation_score"),
        ):
            fields[name] = intervals.get(number)
        key = "results"
        fields["results"] = _frame(content.get(key), RESULTS, set(RESULTS) - set(_NULL_RESULTS), key)
        known = set(fields["results"]["qID"])
        for row, verdict in enumerate(fields["verdicts"]):
            if verdict.qid not in known:
                _refuse(f"verdicts[{row}].qid", verdict.qid, "a question of the results")
        key = "said"
        texts = None if content.get(key) is None else _frame(content[key], SAID, set(SAID), key)
        if texts is not None and texts["qID"].to_list() != fields["results"]["qID"].to_list():
            _refuse(key, f"{texts.height} other questions", "those of the results, in their order")
        fields["said"] = texts
        key = "summary"
        fields["summary"] = _frame(content.get(key), SUMMARY, {"level", "name", "count"}, key)
    except _Odd as odd:
        where, found, expected = odd.args
        raise DataError(path, f"found {found}, expected {expected}", field=where) from None
    except (ValueError, TypeError, OverflowError, RecursionError, pl.exceptions.PolarsError) as error:
        raise DataError(path, f"found damaged values ({error}), expected {_EXPECTED}", field=key) from None
    return fields


def _typed(hint: Any, value: object, where: str) -> Any:
    """The value as the type says: records become dataclasses, lists tuples, and null where a number should be, NaN."""
    kind, options = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        return _typed(_fitting([option for option in options if option is not type(None)], value), value, where)
    if kind is Literal:
        return value if value in options else _refuse(where, value, f"one of {', '.join(map(str, options))}")
    if kind is tuple:
        items = value if isinstance(value, list) else _refuse(where, value, "a list")
        return tuple(_typed(options[0], item, f"{where}[{number}]") for number, item in enumerate(items))
    if kind is not None:  # a mapping
        entries = value if isinstance(value, dict) else _refuse(where, value, "an object")
        return {printable(name): _typed(options[1], entry, f"{where}.{name:.40}") for name, entry in entries.items()}
    if is_dataclass(hint):
        return _record(hint, value, where)
    if hint is float:
        number = math.nan if value is None else value
        if not isinstance(number, int | float) or isinstance(number, bool) or abs(number) == math.inf:
            _refuse(where, value, "a number")
        return float(number)
    if hint is str:
        return printable(value) if isinstance(value, str) else _refuse(where, value, "text")
    if hint is int:
        fits = type(value) is int and abs(value) < _LARGEST
        return value if fits else _refuse(where, value, "a whole number of at most fifteen digits")
    return value if type(value) is hint else _refuse(where, value, "true or false")


def _fitting(options: Sequence[Any], value: object) -> Any:
    """Which of several types a value has; the first where it has none, to be refused by it."""
    return next((option for option in options if type(value) is option), options[0])


@cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record)


def _record(hint: Any, value: object, where: str) -> Any:
    entries = value if isinstance(value, dict) else _refuse(where, value, "an object")
    hints = _hints(hint)
    odd = sorted(set(entries) ^ set(hints))
    if odd:
        _refuse(f"{where}.{odd[0]:.40}", entries.get(odd[0]), f"exactly the keys {', '.join(hints)}")
    return hint(**{name: _typed(kind, entries[name], f"{where}.{name}") for name, kind in hints.items()})


def _frame(rows: object, schema: Mapping[str, Any], needed: set[str], where: str) -> pl.DataFrame:
    """A table out of its rows; every cell has its column's type, or is null where the column may be."""
    if not isinstance(rows, list):
        _refuse(where, rows, "a list of rows")
    columns: dict[str, list[object]] = {name: [] for name in schema}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != schema.keys():
            _refuse(f"{where}[{number}]", row, f"an object with the keys {', '.join(schema)}")
        for name, kind in schema.items():
            cell = row[name]
            fits = isinstance(cell, _KINDS[kind]) and (kind == pl.Boolean or not isinstance(cell, bool))
            if not (fits or (cell is None and name not in needed)) or cell in (math.inf, -math.inf):
                _refuse(f"{where}[{number}].{name}", cell, f"a cell of {kind}")
            columns[name].append(printable(cell) if isinstance(cell, str) else cell)
    return pl.DataFrame(columns, schema=schema)


def _refuse(where: str, value: object, expected: str) -> NoReturn:
    raise _Odd(where, "nothing" if value is None else repr(value)[:120], expected)
