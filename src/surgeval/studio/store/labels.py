"""Combinations of values, each stored once.

`own` is what was said of a row itself: attribute → [value, operation that said it]. `label` is what holds: the latest
of that and of the spans that cover the row. Both are numbers of texts in the table `labels`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, select

from surgeval.studio.store.tables import LABELS

__all__ = ["Labels", "Own", "Values", "canonical"]

Own = dict[str, tuple[str | None, int]]
Values = dict[str, str]


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values are equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


class Labels:
    """The table `labels` within one transaction, with what was already looked up."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = {}
        self._texts: dict[int, str] = {}

    def number(self, value: Any) -> int:
        """The number of a value's text, which is stored where it is new."""
        text = canonical(value)
        if text in self._numbers:
            return self._numbers[text]
        digest = hashlib.sha256(text.encode()).hexdigest()
        number = self._connection.execute(select(LABELS.c.id).where(LABELS.c.digest == digest)).scalar()
        if number is None:
            number = int(self._connection.execute(select(func.coalesce(func.max(LABELS.c.id), 0))).scalar_one()) + 1
            self._connection.execute(insert(LABELS).values(id=number, digest=digest, text=text))
        self._keep(int(number), text)
        return int(number)

    def text(self, number: int) -> str:
        """The text of a number."""
        if number not in self._texts:
            self.load([number])
        return self._texts[number]

    def load(self, numbers: Iterable[int]) -> None:
        """Look up many numbers at once."""
        missing = sorted(set(numbers) - self._texts.keys())
        for start in range(0, len(missing), 500):
            query = select(LABELS.c.id, LABELS.c.text).where(LABELS.c.id.in_(missing[start : start + 500]))
            for number, text in self._connection.execute(query):
                self._keep(number, text)

    def values(self, number: int) -> Values:
        """What holds, by attribute."""
        values: Values = json.loads(self.text(number))
        return values

    def own(self, number: int) -> Own:
        """What was said of a row itself, and when."""
        return {key: (value, int(stamp)) for key, (value, stamp) in json.loads(self.text(number)).items()}

    def own_number(self, own: Own) -> int:
        """The number of what was said of a row itself."""
        return self.number({key: [value, stamp] for key, (value, stamp) in own.items()})

    def said(self, own: Own, values: Mapping[str, str | None], stamp: int) -> Own:
        """`own` with more said at a later moment; None takes a value away."""
        return own | {key: (value, stamp) for key, value in values.items()}

    def _keep(self, number: int, text: str) -> None:
        self._numbers[text] = number
        self._texts[number] = text


def overlaid(values: Mapping[str, str], more: Mapping[str, str | None]) -> Values:
    """`values` with more on top; None takes a value away."""
    merged = {**values, **more}
    return {key: value for key, value in merged.items() if value is not None}
