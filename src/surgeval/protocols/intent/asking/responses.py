"""Replies that were made elsewhere: a file with a line per reply stands for a model.

A line has `id` (of the item), `content`, and optionally `condition` (default `plain`) and `latency`. Letters in a reply
mean the options in the order in which that condition shows them. A log of Inspect AI (`.eval`) is such a file too: its
samples are called `ITEM@CONDITION`, or as the item is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from surgeval.asking import EvalAnswers, ModelAnswer, ModelFrame, Unanswered, is_eval_log, read_eval_log
from surgeval.datasets import raise_errors
from surgeval.datasets.io import UNREAD, read_json, read_lines, told_json
from surgeval.errors import DataError
from surgeval.files import Location, as_float, format_value
from surgeval.protocols.intent.asking.conditions import posed
from surgeval.protocols.intent.cases import CONDITIONS, case_id, is_condition, split_id
from surgeval.protocols.intent.items import ItemSet, OpenedItems
from surgeval.records import IntentQuestion

__all__ = ["Responses", "Source"]

Source: TypeAlias = str | Path | Sequence[Mapping[str, Any]]


class Responses:
    """An answerer that reads: it has answers under the conditions that its file names.

    >>> from surgeval.protocols.intent.items import ItemSet
    >>> item = IntentQuestion("i1", "s", "v", (), "spatial", "absolute", "Where?", ("left", "right"), answer=0)
    >>> said = Responses([{"id": "i1", "content": "A"}, {"id": "i1", "condition": "text-only", "content": "B"}])
    >>> [question.id for question in said.asked(ItemSet((item,)))]
    ['i1@plain', 'i1@text-only']
    """

    uses_images = cache_answers = False

    def __init__(self, source: Source) -> None:
        self._name = Path(source).name if isinstance(source, str | Path) else "the responses"
        self._log = read_eval_log(source) if isinstance(source, str | Path) and is_eval_log(source) else None
        checked = list(_checked(_logged(self._log, self._name) if self._log is not None else source, self._name))
        self._answers = {case: answer for case, _, answer in checked}
        self._records = {case: record for case, record, _ in checked}
        digest = hashlib.sha256(repr(sorted(self._answers.items())).encode(errors="backslashreplace"))
        self.identity = f"responses {digest.hexdigest()[:16]}"

    def asked(self, item_set: ItemSet) -> tuple[IntentQuestion, ...]:
        """Every item as it is, and under each further condition that the file has a reply for."""
        more: dict[str, list[str]] = {}
        for name in self._answers:
            item, condition = split_id(name)
            if condition != "plain":
                more.setdefault(item, []).append(condition)
        order = {condition: number for number, condition in enumerate(CONDITIONS)}
        return tuple(
            posed(item, condition)
            for item in item_set.items
            for condition in ("plain", *sorted(more.get(item.id, ()), key=lambda name: (order.get(name, 9), name)))
        )

    def part(self, item_set: OpenedItems) -> tuple[OpenedItems, str]:
        """The items that were asked, and a label where these are not all: a log says so, a file of replies does not."""
        if self._log is None:
            return item_set, ""
        asked = {_item_and_condition(name)[0] for name in self._log.asked}
        items = tuple(item for item in item_set.items if item.id in asked)
        if not items:
            raise DataError(
                self._name,
                "found no such item in the data, "
                f"expected samples called like {case_id(item_set.items[0].id, 'plain')!r:.60}",
                record=f"sample {self._log.asked[0]!r:.60}",
            )
        if len(items) == len(item_set.items):
            return item_set, ""
        return replace(item_set, items=items), f"{len(items)} of {len(item_set.items)} items, those in {self._name}"

    def check_ids(self, item_set: ItemSet) -> None:
        """Refuse replies to unknown items, and files without a reply under condition `plain`."""
        unknown = [name for name in self._answers if split_id(name)[0] not in item_set.by_id]
        if unknown:
            first, more = unknown[0], f" (and {len(unknown) - 1} more such replies)" if len(unknown) > 1 else ""
            raise DataError(
                self._name,
                f"found {format_value(split_id(first)[0])}{more}, "
                f"expected the id of an item in the data, such as {format_value(item_set.items[0].id)}",
                record=self._records[first],
                field="id",
            )
        if not any(split_id(name)[1] == "plain" for name in self._answers):
            raise DataError(
                self._name,
                "found no reply under plain, "
                "expected replies to the unchanged items, from which the scores are computed",
                field="condition",
            )

    def answer(self, question: IntentQuestion, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """What the file says."""
        if question.id not in self._answers:
            raise Unanswered(f"{self._name} has no response to it", "missing")
        return self._answers[question.id]


def _item_and_condition(sample: str) -> tuple[str, str]:
    item, condition = split_id(sample)
    return (item, condition) if item and is_condition(condition) else (sample, "plain")


def _logged(log: EvalAnswers, name: str) -> list[dict[str, Any]]:
    """The answers of a log as the lines of a file; a log with failed samples is refused: they would count as wrong."""
    if log.failed:
        sample, reason = next(iter(log.failed.items()))
        found = f"{len(log.failed)} samples without an answer (first {sample!r:.60}: {reason})"
        raise DataError(name, f"found {found}, expected all answered; `inspect eval-retry` asks those again")
    rows = []
    for name, answer in log.answers.items():
        item, condition = _item_and_condition(name)
        rows.append({"id": item, "condition": condition, "content": answer.content, "latency": answer.latency})
    return rows


def _checked(source: Source, name: str) -> Iterator[tuple[str, str | None, ModelAnswer]]:
    """The id of the case, the record of the file, and the reply."""
    seen = set[str]()
    for place, record in _records(source, name):
        item = place.text(record.get("id"), "id")
        condition = record.get("condition", "plain")
        if not isinstance(condition, str) or not is_condition(condition):
            expected = f"{', '.join(CONDITIONS)} or rotated-1 to rotated-7"
            raise DataError(
                name, f"found {format_value(condition)}, expected {expected}", record=place.record, field="condition"
            )
        case = case_id(item or "", condition)
        if case in seen:
            raise DataError(
                name,
                f"found {format_value(item)} a second time under {condition}, expected one response for each",
                record=place.record,
                field="id",
            )
        seen.add(case)
        content = place.text(record.get("content"), "content", empty=True)
        latency = as_float(record["latency"]) if record.get("latency") is not None else None
        if record.get("latency") is not None and (latency is None or not 0 <= latency < float("inf")):
            found = format_value(record["latency"])
            raise DataError(name, f"found {found}, expected seconds, at least 0", record=place.record, field="latency")
        yield case, place.record, ModelAnswer(content or "", latency)


def _records(source: Source, name: str) -> Iterable[tuple[Location, dict[str, Any]]]:
    """JSON lines, or a JSON list of the same objects."""
    if not isinstance(source, str | Path):
        place = Location(name, raise_errors)
        for number, row in enumerate(source):
            here = place.at(f"record {number}")
            yield here, here.mapping(dict(row)) or {}
        return
    path = Path(source)
    place = Location(str(path), raise_errors)
    if path.suffix == ".json":
        for number, row in enumerate(place.items(read_json(path, raise_errors)) or ()):
            here = place.at(f"record {number}")
            yield here, here.mapping(row) or {}
        return
    for number, line in read_lines(path, raise_errors):
        here = place.at(f"line {number}")
        value = told_json(line, here)
        if value is not UNREAD:
            yield here, here.mapping(value) or {}
