"""Review: people judge items without seeing other judgements; disagreements go to an adjudicator.

Judgements are files, one per person, that only grow. A judgement counts for the item as it was then (its fingerprint);
the last one of a person counts. A line that a crash cut in two is ignored; any other invalid line is an error. A
`ReviewDesk` knows neither terminal nor page: it lists the items that are left and stores judgements.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from surgeval.errors import BadInput, DataError, printable
from surgeval.files import append_line, describe_error, format_field, path_inside, read_bounded
from surgeval.questions.question_set import QuestionSet, item_fingerprint
from surgeval.records import IntentQuestion

__all__ = ["LEAST", "Adjudication", "ItemDecision", "Judgement", "ReviewDesk", "Verdict", "decide", "read_judgements"]

Verdict: TypeAlias = Literal["correct", "wrong", "unclear"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
REVIEWS, ADJUDICATIONS = "reviews", "adjudications"  # folders of a set
_LARGEST = 1 << 26


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one person on one item; `answer` is the right option in their view if the item's is wrong.

    >>> Judgement("q", "5f", "Ada", "wrong", 2, "C is visible too", "2025-01-01T10:00:00Z").verdict
    'wrong'
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    item: str
    content: str
    reviewer: str
    verdict: Verdict
    answer: int | None
    comment: str
    when: str


def read_judgements(questions: QuestionSet, *, adjudicated: bool = False) -> list[Judgement]:
    """The judgements that count: the last of each person on each item in its current form.

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
            if name in owners:  # a copied file would count as a second person
                raise DataError(
                    path,
                    f"{name[:60]!r} has judgements in {owners[name].name} too; a reviewer must have one file",
                )
            owners[name] = path
        every += own
    return sorted(every, key=lambda judgement: judgement.when) if adjudicated else every


def read_own(path: Path, questions: QuestionSet, reviewer: str | None = None) -> list[Judgement]:
    """The last judgement of one person on each item in its current form."""
    if path.is_symlink():
        raise DataError(path, "a link; judgements must be in a regular file")
    if not path.exists():
        return []
    current = {item.id: item for item in questions.items}
    prints = {name: item_fingerprint(item) for name, item in current.items()}
    latest: dict[str, Judgement] = {}
    for number, line in enumerate(_lines(path), start=1):
        judgement = _parse_judgement(line, path, number)
        reviewer = reviewer or judgement.reviewer
        if judgement.reviewer != reviewer:
            sentence = f"a judgement of {judgement.reviewer[:60]!r} in the file of {reviewer[:60]!r}"
            raise DataError(path, sentence, record=f"line {number}")
        if prints.get(judgement.item) != judgement.content:
            continue  # the item has changed or was removed
        if judgement.answer is not None and not 0 <= judgement.answer < len(current[judgement.item].options):
            raise DataError(path, f"{judgement.answer} is not an option", record=f"line {number}", field="answer")
        latest[judgement.item] = judgement
    return list(latest.values())


def _lines(path: Path) -> list[str]:
    """The complete lines of a file; text after the last line break is an incomplete line."""
    data = read_bounded(path, _LARGEST)
    try:
        return data[: data.rfind(b"\n") + 1].decode().split("\n")[:-1]  # comments may contain other line breaks
    except UnicodeDecodeError:
        raise DataError(path, "not valid UTF-8") from None


def _parse_judgement(line: str, path: Path, number: int) -> Judgement:
    try:
        return _judgements().validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = format_field(first["loc"]) or None
        raise DataError(path, describe_error(first), record=f"line {number}", field=field) from None


@cache
def _judgements() -> TypeAdapter[Judgement]:
    return TypeAdapter(Judgement)


def append_judgement(path: Path, judgement: Judgement) -> None:
    """Append a judgement to a person's file; it is on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    append_line(path, json.dumps(asdict(judgement), ensure_ascii=False).encode())


LEAST = 2  # reviewers that an item needs
_LONGEST_COMMENT, _LONGEST_NAME = 4_000, 100


class ReviewDesk:
    """The items of one reviewer. With `each`, items that this many others have judged are left out.

    >>> import tempfile
    >>> from pathlib import Path
    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     desk = ReviewDesk(QuestionSet(Path(folder), (item,), {}), "Ada")
    ...     before = [item.id for item in desk.pending()]
    ...     _ = desk.judge("q", "wrong", answer=1)
    ...     before, desk.pending()
    (['q'], [])
    """

    folder_name = REVIEWS

    def __init__(self, questions: QuestionSet, reviewer: str, *, each: int | None = None) -> None:
        name = " ".join(printable(reviewer).split())
        if not any(map(str.isalnum, name)) or len(name) > _LONGEST_NAME:
            raise BadInput(f"Reviewer {reviewer[:60]!r}: a name has letters and at most {_LONGEST_NAME} characters.")
        self.questions, self.reviewer, self._each = questions, name, each
        self._items = {item.id: item for item in questions.items}
        self.path = path_inside(questions.folder, self.folder_name, f"{name}.jsonl")
        self._own = {judgement.item: judgement for judgement in read_own(self.path, questions, reviewer=name)}

    @property
    def mine(self) -> Mapping[str, Judgement]:
        """The judgements of this person, by item."""
        return MappingProxyType(self._own)

    @property
    def done(self) -> int:
        """The number of items that this person has judged."""
        return len(self._own)

    def in_order(self) -> list[IntentQuestion]:
        """The items for this person, shuffled per reviewer, so unfinished reviews do not all miss the same items."""
        items = list(self.questions.items)
        if self._each is not None:
            others = self._counts()
            items = [item for item in items if item.id in self._own or others.get(item.id, 0) < self._each]
        return sorted(items, key=lambda item: hashlib.sha256(f"{self.reviewer}\0{item.id}".encode()).digest())

    def pending(self) -> list[IntentQuestion]:
        """The items that this person has not judged yet."""
        return [item for item in self.in_order() if item.id not in self._own]

    def judge(self, item: str, verdict: str, *, answer: int | None = None, comment: str = "") -> Judgement:
        """Store a judgement; it is on disk when this returns."""
        question = self._items.get(item)
        if question is None:
            raise BadInput(f"The set has no item {item[:60]!r}.")
        if verdict not in VERDICTS:
            raise BadInput(f"Unknown verdict {verdict[:60]!r}. Use one of {', '.join(VERDICTS)}.")
        if answer is not None and (verdict == "correct" or not 0 <= answer < len(question.options)):
            raise BadInput(f"The answer {answer} must be another option of the item, and the verdict wrong or unclear.")
        if answer is not None and answer == question.answer:
            raise BadInput("The answer is the item's own. Name the option that is right instead.")
        if len(comment) > _LONGEST_COMMENT:
            raise BadInput(f"The comment has {len(comment)} characters; at most {_LONGEST_COMMENT} are allowed.")
        known: Verdict = "correct" if verdict == "correct" else "wrong" if verdict == "wrong" else "unclear"
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        judgement = Judgement(
            item, item_fingerprint(question), self.reviewer, known, answer, printable(comment.strip()), when
        )
        append_judgement(self.path, judgement)
        self._own[item] = judgement
        return judgement

    def _counts(self) -> Mapping[str, int]:
        """The number of others who have judged each item, without their judgements."""
        counts: dict[str, int] = defaultdict(int)
        for judgement in read_judgements(self.questions):
            counts[judgement.item] += judgement.reviewer != self.reviewer
        return counts


class Adjudication(ReviewDesk):
    """The items of an adjudicator: those on which reviewers disagree, except those this person has reviewed.

    >>> from pathlib import Path
    >>> Adjudication(QuestionSet(Path("no/such/folder"), (), {}), "Eve").pending()
    []
    """

    folder_name = ADJUDICATIONS

    def in_order(self) -> list[IntentQuestion]:
        """The disputed items without an adjudication, and those that this person has adjudicated."""
        decisions = decide(self.questions)
        mine = {j.item for j in read_judgements(self.questions) if j.reviewer == self.reviewer}
        return [
            item
            for item in self.questions.items
            if item.id in self._own or (decisions[item.id].status == "disputed" and item.id not in mine)
        ]

    def judgements_of(self, item: str) -> list[Judgement]:
        """The judgements of the reviewers on an item."""
        return [judgement for judgement in read_judgements(self.questions) if judgement.item == item]


@dataclass(frozen=True, slots=True)
class ItemDecision:
    """The decision on an item: accepted, possibly with a corrected answer; rejected; disputed; or pending.

    >>> ItemDecision("pending", 0, (), None).status
    'pending'
    """

    status: Literal["accepted", "rejected", "disputed", "pending"]
    answer: int
    judgements: tuple[Judgement, ...]
    settled: Judgement | None


def decide(questions: QuestionSet, least: int = LEAST) -> dict[str, ItemDecision]:
    """The decision on every item. Unanimous reviewers decide; if they differ, the adjudicator does.

    An item that all call wrong is rejected, unless all name the same other answer; then it is accepted with that one.

    >>> from pathlib import Path
    >>> decide(QuestionSet(Path("no/such/folder"), (), {}))
    {}
    """
    reviews: dict[str, list[Judgement]] = defaultdict(list)
    for judgement in read_judgements(questions):
        reviews[judgement.item].append(judgement)
    settled = {judgement.item: judgement for judgement in read_judgements(questions, adjudicated=True)}
    return {item.id: _decide_item(item, reviews[item.id], settled.get(item.id), least) for item in questions.items}


def _decide_item(
    item: IntentQuestion, reviews: Sequence[Judgement], settled: Judgement | None, least: int
) -> ItemDecision:
    trail = tuple(reviews)
    if len(reviews) < least:
        return ItemDecision("pending", item.answer, trail, None)
    views = {(judgement.verdict, judgement.answer) for judgement in reviews}
    last = reviews[0] if len(views) == 1 else settled
    if last is None:
        return ItemDecision("disputed", item.answer, trail, None)
    answer = item.answer if last.verdict == "correct" else last.answer if last.verdict == "wrong" else None
    by = settled if len(views) > 1 else None
    if answer is None:
        return ItemDecision("rejected", item.answer, trail, by)
    return ItemDecision("accepted", answer, trail, by)
