"""One reference with its request, and one response, out of untrusted files.

A record keeps its place whatever is wrong with it: `unusable` says why it cannot be scored, and `aborts`, for compat
mode, why the challenge's own package stops at it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from surgeval.datasets import OnProblem, Problem
from surgeval.errors import BadInput, printable
from surgeval.files import as_float, format_value
from surgeval.qa import check_reference
from surgeval.vocab import capabilities, suggest_capabilities

__all__ = ["FocusQuestion", "FocusResponse", "Here", "check_shape", "example", "read_question", "read_response"]

REQUEST = ("qID", "videoID", "start_time", "end_time", "procedure_type", "question")
REFERENCE = ("qID", "primary", "format", "answer")
RESPONSE = ("qID", "content", "latency")
_KEYS: dict[tuple[str, ...], frozenset[str]] = {
    keys: frozenset(keys) for keys in (REQUEST, REFERENCE, RESPONSE, RESPONSE[:2])
}


class Here:
    """A record's place: as light as can be, because nearly all of a hundred thousand records have no problem."""

    __slots__ = ("_file", "_key", "_tell")

    def __init__(self, file: str, tell: OnProblem, key: object) -> None:
        self._file, self._tell, self._key = file, tell, key

    def error(self, kind: str, sentence: str, field: str) -> None:
        """Report a problem of this record."""
        self._tell(Problem(kind, self._file, sentence, f"question {self._key!r:.60}", field))

    def warn(self, kind: str, sentence: str, field: str) -> None:
        """Report something odd but usable."""
        self._tell(Problem(kind, self._file, sentence, f"question {self._key!r:.60}", field, "warning"))


@dataclass(frozen=True, slots=True)
class FocusQuestion:
    """A question with its reference, as far as the files give them."""

    id: str
    video: str | None
    start: float | None
    end: float | None
    procedure: str
    text: str
    primary: str
    group: str
    format: object
    options: object
    answer: object
    ood: bool
    clinical: bool
    unusable: str
    aborts: str


@dataclass(frozen=True, slots=True)
class FocusResponse:
    """What was answered; `latency` is None where the file holds no number, `untimed` says what is wrong with it."""

    content: object
    latency: float | None = None
    stated: bool = False
    untimed: str = ""
    unusable: str = ""
    aborts: str = ""
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class _Request:
    """What the requests file says about a question."""

    video: str | None = None
    start: float | None = None
    end: float | None = None
    procedure: str = ""
    text: str = ""


def read_question(
    name: str, here: Here, record: dict[str, Any], request: tuple[Here, dict[str, Any]] | None, compat: str | None
) -> FocusQuestion:
    """A reference and its request as a question."""
    faults: list[str] = []
    aborts = _absent(record, REFERENCE)

    def fault(field: str, found: object, expected: str) -> None:
        here.error("wrong-value", f"found {format_value(found)}, expected {expected}", field)
        faults.append(f"the reference's {field} is {format_value(found)}, expected {expected}")

    if request is None:
        here.error(
            "reference-missing", "found a reference without request, expected its question in the requests", "qID"
        )
        faults.append("it has a reference but no request")
        aborts.append("a reference without request")
    asked = _read_request(*request, aborts) if request else _Request()
    primary, group = _capability(record.get("primary"))
    if not group:
        fault("primary", record.get("primary"), suggest_capabilities(record.get("primary")))
        aborts.append("unknown primary")
    elif primary == group:
        here.warn(
            "capability-group",
            f"found {format_value(record.get('primary'))}, expected a leaf of the taxonomy",
            "primary",
        )
    ood, clinical = record.get("ood", False), record.get("clinical", False)
    for flag, value in (("ood", ood), ("clinical", clinical)):
        if not isinstance(value, bool) and compat is None:
            fault(flag, value, "true or false")
    secondaries = record.get("secondaries") or []
    for value in secondaries if isinstance(secondaries, list) else [secondaries]:
        if not _capability(value)[1]:
            here.warn(
                "wrong-value", f"found {format_value(value)}, expected {suggest_capabilities(value)}", "secondaries"
            )
    format, options, answer = record.get("format"), record.get("format_kwargs", {}), record.get("answer")
    unreadable = check_reference(format, options, answer, compat)
    if unreadable:
        here.error("wrong-value", f"found {unreadable}, expected a question that can be scored", "format, answer")
        faults.append(unreadable)
    return FocusQuestion(
        name, asked.video, asked.start, asked.end, asked.procedure, asked.text, primary, group, format, options, answer,
        bool(ood), bool(clinical), "; ".join(faults), "; ".join(aborts),
    )  # fmt: skip


def _read_request(here: Here, record: dict[str, Any], aborts: list[str]) -> _Request:
    aborts += _absent(record, REQUEST)
    for key in _unknown(record, REQUEST):
        here.warn("key-unknown", f"found {format_value(key)}, expected only the keys {', '.join(REQUEST)}", "keys")
        aborts.append(f"request key {format_value(key)}")
    video = record.get("videoID")
    if isinstance(video, int) and not isinstance(video, bool):
        video = str(video)
    if not isinstance(video, str) or not video.strip():
        here.error(
            "key-missing",
            f"found {format_value(video)}, expected the video's id (the question becomes its own cluster)",
            "videoID",
        )
        video = None
    start, end = _seconds(record.get("start_time")), _seconds(record.get("end_time"))
    procedure, text = record.get("procedure_type"), record.get("question")
    for key, known in (
        ("start_time", start is not None),
        ("end_time", end is not None),
        ("procedure_type", isinstance(procedure, str)),
        ("question", isinstance(text, str)),
    ):
        if not known:
            here.warn("key-missing", f"found {format_value(record.get(key))}, expected what judges are shown", key)
    return _Request(
        None if video is None else printable(video), start, end, procedure if isinstance(procedure, str) else "",
        text if isinstance(text, str) else "",
    )  # fmt: skip


def read_response(here: Here, record: dict[str, Any], timed: bool) -> FocusResponse:
    """A response; with `timed`, one without a usable latency is a problem."""
    content, raw = record.get("content"), record.get("latency")
    unusable = "" if isinstance(content, str) else f"the answer is {format_value(content)}, expected text"
    if unusable:
        here.error("not-text", f"found {format_value(content)}, expected text", "content")
    aborts = _absent(record, RESPONSE[:2])
    for key in _unknown(record, RESPONSE):
        here.warn("key-unknown", f"found {format_value(key)}, expected only the keys {', '.join(RESPONSE)}", "keys")
        aborts.append(f"response key {format_value(key)}")
    latency, stated, untimed = as_float(raw), "latency" in record, ""
    if latency is None or not 0 <= latency < math.inf:
        untimed = f"the latency is {format_value(raw)}, expected seconds, finite and at least 0"
        if raw is not None or timed:
            here.error("wrong-value", f"found {format_value(raw)}, expected seconds, finite and at least 0", "latency")
    return FocusResponse(content, latency, stated, untimed, unusable, "; ".join(aborts))


_EXAMPLES: dict[str, dict[str, Any]] = {
    "requests": {"qID": "q1", "videoID": "VID01", "start_time": 12, "end_time": 12,
                 "procedure_type": "cholecystectomy", "question": "Is a clip visible?"},
    "references": {"qID": "q1", "primary": "1a", "format": "binary", "answer": "yes"},
    "responses": {"qID": "q1", "content": "yes", "latency": 1.5},
}  # fmt: skip
_SHAPES = {"requests": REQUEST, "references": REFERENCE, "responses": RESPONSE[:2]}


def example(file: str, key: object) -> str:
    """A record as one of the three files should hold it, with this qID.

    >>> example("responses", "case 7")
    '{"qID": "case 7", "content": "yes", "latency": 1.5}'
    """
    return json.dumps({**_EXAMPLES[file], "qID": key if isinstance(key, str | int) else str(key)}, ensure_ascii=False)


def check_shape(file: str, records: Sequence[Mapping[str, Any]], label: str) -> None:
    """Refuse a file whose records all lack a field: it has another layout, and every number would be about that."""
    lacking = [key for key in _SHAPES[file] if records and not any(key in record for record in records)]
    if lacking:
        keys = ", ".join(format_value(key) for key in records[0])
        raise BadInput(
            f"{label}: {', '.join(lacking)}: found in none of {len(records)} records, which have {keys:.200}, "
            f"expected records like {example(file, records[0]['qID'])}"
        )


def _absent(record: dict[str, Any], keys: tuple[str, ...]) -> list[str]:
    return [] if record.keys() >= _KEYS[keys] else [f"no {key}" for key in keys if key not in record]


def _unknown(record: dict[str, Any], keys: tuple[str, ...]) -> list[str]:
    return [] if record.keys() <= _KEYS[keys] else [key for key in record if key not in keys]


@cache
def _taxonomy() -> dict[str, tuple[str, str]]:
    """Spelling → (value, group), for leaves and, as the challenge does, groups."""
    spellings = {}
    for leaf in capabilities():
        spellings.update(dict.fromkeys((leaf.group, leaf.group_code), (leaf.group, leaf.group)))
        spellings.update(dict.fromkeys((leaf.value, leaf.code), (leaf.value, leaf.group)))
    return spellings


def _capability(value: object) -> tuple[str, str]:
    """The capability's value and group; two empty texts when the taxonomy has none of this spelling."""
    if not isinstance(value, str):
        return "", ""
    return _taxonomy().get(value.strip().casefold().replace("-", "_").replace(" ", "_"), ("", ""))


def _seconds(value: object) -> float | None:
    if type(value) is int and -1e9 < value < 1e9:  # nearly always
        return float(value)
    number = as_float(value)
    return number if number is not None and math.isfinite(number) else None
