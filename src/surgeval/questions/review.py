"""Review by people: each judges items without seeing what others said; disagreements go to an adjudicator.

A `Review` is one person's desk and knows no terminal: it hands out what is left and takes judgements. Each person has a
file of their own, which only grows; a judgement counts for the item as it was then (its fingerprint), the last one
wins. A line that a crash cut in two is dropped; anything else that is wrong in a file is told.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from surgeval.errors import BadInput, DataError, printable
from surgeval.files import BrokenJson, parse_json, path_inside, read_bounded
from surgeval.questions._folder import QuestionSet
from surgeval.records import IntentQuestion

__all__ = ["VERDICTS", "Adjudication", "Decision", "Judgement", "Review", "Verdict", "decide", "fingerprint",
           "read_judgements"]  # fmt: skip

Verdict: TypeAlias = Literal["correct", "wrong", "unclear"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
LEAST = 2  # reviewers that an item needs
_REVIEWS, _ADJUDICATIONS = "reviews", "adjudications"
_LONGEST_COMMENT, _LONGEST_NAME, _LARGEST = 4_000, 100, 1 << 26


def fingerprint(item: IntentQuestion) -> str:
    """What an item says, as a short text: a judgement counts only for what was judged.

    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> fingerprint(item)
    '7a7e862e5c476f26'
    """
    said = [item.question, list(item.options), item.answer, item.trap, item.skill, list(item.media)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


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


class Review:
    """One reviewer's desk. With `each`, an item that so many others have judged is not handed out any more.

    >>> import tempfile
    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     desk = Review(QuestionSet(Path(folder), (item,), {}), "Ada")
    ...     before = [item.id for item in desk.pending()]
    ...     _ = desk.judge("q", "wrong", answer=1)
    ...     before, desk.pending()
    (['q'], [])
    """

    folder_name = _REVIEWS

    def __init__(self, questions: QuestionSet, reviewer: str, *, each: int | None = None) -> None:
        name = " ".join(printable(reviewer).split())
        if not any(map(str.isalnum, name)) or len(name) > _LONGEST_NAME:
            raise BadInput(f"reviewer: found {reviewer[:60]!r}, expected a name with letters, at most {_LONGEST_NAME}")
        self.questions, self.reviewer, self._each = questions, name, each
        self._items = {item.id: item for item in questions.items}
        self.path = path_inside(questions.folder, self.folder_name, f"{name}.jsonl")
        self._own = {judgement.item: judgement for judgement in _read(self.path, questions, reviewer=name)}

    @property
    def done(self) -> int:
        """How many items this person has judged."""
        return len(self._own)

    def pending(self) -> list[IntentQuestion]:
        """What is left to judge, in an order of this person's own: nobody's patience ends at the same items."""
        left = [item for item in self.questions.items if item.id not in self._own]
        if self._each is not None:
            others = self._counts()
            left = [item for item in left if others.get(item.id, 0) < self._each]
        return sorted(left, key=lambda item: hashlib.sha256(f"{self.reviewer}\0{item.id}".encode()).digest())

    def judge(self, item: str, verdict: str, *, answer: int | None = None, comment: str = "") -> Judgement:
        """Keep a judgement; on disk when this returns."""
        question = self._items.get(item)
        if question is None:
            raise BadInput(f"item {item[:60]!r}: found no such item, expected one of the set")
        if verdict not in VERDICTS:
            raise BadInput(f"verdict: found {verdict[:60]!r}, expected {', '.join(VERDICTS)}")
        if answer is not None and (verdict == "correct" or not 0 <= answer < len(question.options)):
            raise BadInput(
                f"answer: found {answer}, expected another of the options, beside the verdict wrong or unclear"
            )
        if answer is not None and answer == question.answer:
            raise BadInput("answer: found the item's own, expected the option that is right in its stead")
        if len(comment) > _LONGEST_COMMENT:
            raise BadInput(f"comment: found {len(comment)} characters, expected at most {_LONGEST_COMMENT}")
        known: Verdict = "correct" if verdict == "correct" else "wrong" if verdict == "wrong" else "unclear"
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        judgement = Judgement(
            item, fingerprint(question), self.reviewer, known, answer, printable(comment.strip()), when
        )
        _append(self.path, judgement)
        self._own[item] = judgement
        return judgement

    def _counts(self) -> Mapping[str, int]:
        """How many others have judged each item; what they said stays with them."""
        counts: dict[str, int] = defaultdict(int)
        for judgement in read_judgements(self.questions):
            counts[judgement.item] += judgement.reviewer != self.reviewer
        return counts


class Adjudication(Review):
    """The adjudicator's desk: items on which reviewers disagree, except those this person has reviewed.

    >>> Adjudication(QuestionSet(Path("no/such/folder"), (), {}), "Eve").pending()
    []
    """

    folder_name = _ADJUDICATIONS

    def pending(self) -> list[IntentQuestion]:
        """The disputed items that nobody has settled."""
        decisions = decide(self.questions)
        mine = {j.item for j in read_judgements(self.questions) if j.reviewer == self.reviewer}
        return [
            item for item in self.questions.items if decisions[item.id].status == "disputed" and item.id not in mine
        ]

    def said(self, item: str) -> list[Judgement]:
        """What the reviewers said of an item."""
        return [judgement for judgement in read_judgements(self.questions) if judgement.item == item]


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an item: accepted (perhaps with a corrected answer), rejected, disputed, or still pending.

    >>> Decision("pending", 0, (), None).status
    'pending'
    """

    status: Literal["accepted", "rejected", "disputed", "pending"]
    answer: int
    judgements: tuple[Judgement, ...]
    settled: Judgement | None


def decide(questions: QuestionSet, least: int = LEAST) -> dict[str, Decision]:
    """The fate of every item. Unanimous reviewers decide; where they differ the adjudicator does.

    An item that all call wrong is rejected, unless all name the same other answer: then it is accepted with that one.

    >>> decide(QuestionSet(Path("no/such/folder"), (), {}))
    {}
    """
    said: dict[str, list[Judgement]] = defaultdict(list)
    for judgement in read_judgements(questions):
        said[judgement.item].append(judgement)
    settled = {judgement.item: judgement for judgement in read_judgements(questions, adjudicated=True)}
    return {item.id: _decision(item, said[item.id], settled.get(item.id), least) for item in questions.items}


def _decision(item: IntentQuestion, said: Sequence[Judgement], settled: Judgement | None, least: int) -> Decision:
    trail = tuple(said)
    if len(said) < least:
        return Decision("pending", item.answer, trail, None)
    views = {(judgement.verdict, judgement.answer) for judgement in said}
    last = said[0] if len(views) == 1 else settled
    if last is None:
        return Decision("disputed", item.answer, trail, None)
    answer = item.answer if last.verdict == "correct" else last.answer if last.verdict == "wrong" else None
    by = settled if len(views) > 1 else None
    if answer is None:
        return Decision("rejected", item.answer, trail, by)
    return Decision("accepted", answer, trail, by)


def read_judgements(questions: QuestionSet, *, adjudicated: bool = False) -> list[Judgement]:
    """The judgements that count: the last of each person for each item as it is now.

    >>> read_judgements(QuestionSet(Path("no/such/folder"), (), {}))
    []
    """
    folder = questions.folder / (_ADJUDICATIONS if adjudicated else _REVIEWS)
    if not folder.is_dir():
        return []
    files = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl" and not path.name.startswith("."))
    every: list[Judgement] = []
    owners: dict[str, Path] = {}
    for path in files:
        own = _read(path, questions)
        for name in {judgement.reviewer for judgement in own}:
            if name in owners:  # a copy would count as a second person
                raise DataError(path, found=f"{name[:60]!r}, whose judgements are in {owners[name].name} too",
                                expected="one file for each reviewer")  # fmt: skip
            owners[name] = path
        every += own
    return sorted(every, key=lambda judgement: judgement.when) if adjudicated else every


def _read(path: Path, questions: QuestionSet, reviewer: str | None = None) -> list[Judgement]:
    if path.is_symlink():
        raise DataError(path, found="a link", expected="a file of judgements")
    if not path.exists():
        return []
    current = {item.id: item for item in questions.items}
    prints = {name: fingerprint(item) for name, item in current.items()}
    latest: dict[str, Judgement] = {}
    for number, line in enumerate(_lines(path), start=1):
        judgement = _judgement(line, path, number)
        reviewer = reviewer or judgement.reviewer
        if judgement.reviewer != reviewer:
            found = f"the reviewer {judgement.reviewer[:60]!r}"
            raise DataError(
                path, record=f"line {number}", found=found, expected=f"{reviewer[:60]!r} alone in this file"
            )
        if prints.get(judgement.item) != judgement.content:
            continue  # the item has changed since, or is gone
        if judgement.answer is not None and not 0 <= judgement.answer < len(current[judgement.item].options):
            raise DataError(path, record=f"line {number}", field="answer", found=judgement.answer, expected="an option")
        latest[judgement.item] = judgement
    return list(latest.values())


def _lines(path: Path) -> list[str]:
    """The whole lines of a file: what stands after the last line break is half a line."""
    data = read_bounded(path, _LARGEST, "a file of judgements")
    try:
        return data[: data.rfind(b"\n") + 1].decode().split("\n")[:-1]  # comments may hold other ends of lines
    except UnicodeDecodeError:
        raise DataError(path, found="bytes that are no text", expected="a file of judgements") from None


def _judgement(line: str, path: Path, number: int) -> Judgement:
    try:
        value: Any = parse_json(line)
        judgement = Judgement(**value)
    except (BrokenJson, TypeError) as error:
        raise DataError(path, record=f"line {number}", found=error, expected="a judgement") from None
    texts = (judgement.item, judgement.content, judgement.reviewer, judgement.comment, judgement.when)
    whole = judgement.answer is None or type(judgement.answer) is int
    if not all(isinstance(text, str) for text in texts) or not whole or judgement.verdict not in VERDICTS:
        raise DataError(path, record=f"line {number}", found="values of another kind", expected="a judgement")
    return judgement


def _append(path: Path, judgement: Judgement) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(judgement), ensure_ascii=False).encode() + b"\n"
    with path.open("ab+") as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        if whole < file.tell():
            file.truncate(whole)  # half a line, left by a crash
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
