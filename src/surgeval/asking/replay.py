"""Answers that were made elsewhere: a file of responses stands for a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from surgeval.asking.answerers import Answered, ShownFrame, Unanswered
from surgeval.asking.eval_log import is_eval_log, read_eval_log
from surgeval.asking.question import Asked
from surgeval.datasets import raise_errors
from surgeval.datasets.io import read_json
from surgeval.errors import DataError
from surgeval.files import Location, as_float, format_value

__all__ = ["Replay"]


class Replay:
    """Answers from a responses file (`qID`, `content`, optional `latency`) or from a log of Inspect AI (`.eval`).

    >>> import tempfile
    >>> from surgeval.records import VqaQuestion
    >>> question = VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "r.json").write_text('[{"qID": "q", "content": "no"}]')
    ...     Replay(Path(folder) / "r.json").answer(question).content
    'no'
    """

    looks = costly = False

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._answers = dict(_responses(self._path))
        digest = hashlib.sha256(repr(sorted(self._answers.items())).encode(errors="backslashreplace"))
        self.identity = f"replay {digest.hexdigest()[:16]}"

    def answer(self, question: Asked, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """What the file says."""
        if question.id not in self._answers:
            raise Unanswered(f"{self._path.name} has no response to it", "missing")
        return self._answers[question.id]


def _responses(path: Path) -> Iterable[tuple[str, Answered]]:
    if is_eval_log(path):
        yield from read_eval_log(path).answers.items()
        return
    place = Location(str(path), raise_errors)
    seen = set[str]()
    for number, row in enumerate(place.items(read_json(path, raise_errors)) or ()):
        record: dict[str, Any] = place.at(f"record {number}").mapping(row) or {}
        name, content = record.get("qID"), record.get("content")
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)
        if not isinstance(name, str) or not name:
            raise DataError(
                path, f"found {format_value(name)}, expected a question's id", record=f"record {number}", field="qID"
            )
        where = f"question {name[:60]!r}"
        if name in seen:
            raise DataError(path, "found a second response, expected one for each question", record=where, field="qID")
        if not isinstance(content, str):
            raise DataError(path, f"found {format_value(content)}, expected text", record=where, field="content")
        latency = as_float(record["latency"]) if "latency" in record else None
        if "latency" in record and (latency is None or not 0 <= latency < float("inf")):
            found = format_value(record["latency"])
            raise DataError(path, f"found {found}, expected seconds, at least 0", record=where, field="latency")
        seen.add(name)
        yield name, Answered(content, latency)
