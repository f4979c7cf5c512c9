"""What people said of items, as files: one for each person, which only grows.

A judgement counts for the item as it was then (its fingerprint), the last one wins. A line that a crash cut in two is
dropped; anything else that is wrong in a file is told.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from surgeval.errors import DataError
from surgeval.files import BrokenJson, append_line, parse_json, read_bounded
from surgeval.questions.folder import QuestionSet
from surgeval.records import IntentQuestion

__all__ = ["ADJUDICATIONS", "REVIEWS", "VERDICTS", "Judgement", "Verdict", "append_judgement", "item_fingerprint",
           "read_judgements", "read_own"]  # fmt: skip

Verdict: TypeAlias = Literal["correct", "wrong", "unclear"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
REVIEWS, ADJUDICATIONS = "reviews", "adjudications"  # folders of a set
_LARGEST = 1 << 26


def item_fingerprint(item: IntentQuestion) -> str:
    """What an item says, as a short text: a judgement counts only for what was judged.

    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> item_fingerprint(item)
    '7a7e862e5c476f26'
    """
    content = [item.question, list(item.options), item.answer, item.trap, item.skill, list(item.media)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one person said of one item; `answer` is the option they hold right where the item's own is wrong.

    >>> Judgement("q", "5f", "Ada", "wrong", 2, "C is visible too", "2025-01-01T10:00:00Z").verdict
    'wrong'
    """

    item: str
    content: str
    reviewer: str
    verdict: Verdict
    answer: int | None
    comment: str
    when: str


def read_judgements(questions: QuestionSet, *, adjudicated: bool = False) -> list[Judgement]:
    """The judgements that count: the last of each person for each item as it is now.

    >>> read_judgements(QuestionSet(Path("no/such/folder"), (), {}))
    []
    """
    folder = questions.folder / (ADJUDICATIONS if adjudicated else REVIEWS)
    if not folder.is_dir():
        return []
    files = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl" and not path.name.startswith("."))
    every: list[Judgement] = []
    owners: dict[str, Path] = {}
    for path in files:
        own = read_own(path, questions)
        for name in {judgement.reviewer for judgement in own}:
            if name in owners:  # a copy would count as a second person
                raise DataError(
                    path,
                    f"found {name[:60]!r}, whose judgements are in {owners[name].name} too, "
                    "expected one file for each reviewer",
                )
            owners[name] = path
        every += own
    return sorted(every, key=lambda judgement: judgement.when) if adjudicated else every


def read_own(path: Path, questions: QuestionSet, reviewer: str | None = None) -> list[Judgement]:
    """One person's file: their last judgement of each item as it is now."""
    if path.is_symlink():
        raise DataError(path, "found a link, expected a file of judgements")
    if not path.exists():
        return []
    current = {item.id: item for item in questions.items}
    prints = {name: item_fingerprint(item) for name, item in current.items()}
    latest: dict[str, Judgement] = {}
    for number, line in enumerate(_lines(path), start=1):
        judgement = _judgement(line, path, number)
        reviewer = reviewer or judgement.reviewer
        if judgement.reviewer != reviewer:
            stranger = f"the reviewer {judgement.reviewer[:60]!r}"
            raise DataError(
                path, f"found {stranger}, expected {reviewer[:60]!r} alone in this file", record=f"line {number}"
            )
        if prints.get(judgement.item) != judgement.content:
            continue  # the item has changed since, or is gone
        if judgement.answer is not None and not 0 <= judgement.answer < len(current[judgement.item].options):
            raise DataError(
                path, f"found {judgement.answer}, expected an option", record=f"line {number}", field="answer"
            )
        latest[judgement.item] = judgement
    return list(latest.values())


def _lines(path: Path) -> list[str]:
    """The whole lines of a file: what stands after the last line break is half a line."""
    data = read_bounded(path, _LARGEST)
    try:
        return data[: data.rfind(b"\n") + 1].decode().split("\n")[:-1]  # comments may hold other ends of lines
    except UnicodeDecodeError:
        raise DataError(path, "found bytes that are no text, expected a file of judgements") from None


def _judgement(line: str, path: Path, number: int) -> Judgement:
    try:
        value: Any = parse_json(line)
        judgement = Judgement(**value)
    except (BrokenJson, TypeError) as error:
        raise DataError(path, f"found {error}, expected a judgement", record=f"line {number}") from None
    texts = (judgement.item, judgement.content, judgement.reviewer, judgement.comment, judgement.when)
    whole = judgement.answer is None or type(judgement.answer) is int
    if not all(isinstance(text, str) for text in texts) or not whole or judgement.verdict not in VERDICTS:
        raise DataError(path, "found values of another kind, expected a judgement", record=f"line {number}")
    return judgement


def append_judgement(path: Path, judgement: Judgement) -> None:
    """Add a judgement to a person's file; on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    append_line(path, json.dumps(asdict(judgement), ensure_ascii=False).encode())
