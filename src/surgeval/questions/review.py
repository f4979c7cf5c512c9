"""Review by people: each judges items without seeing what others said; disagreements go to an adjudicator.

A `ReviewDesk` is one person's desk and knows neither terminal nor page: it hands out what is left and takes judgements.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from surgeval.errors import BadInput, printable
from surgeval.files import path_inside
from surgeval.questions.folder import QuestionSet
from surgeval.questions.judgements import (
    ADJUDICATIONS,
    REVIEWS,
    VERDICTS,
    Judgement,
    Verdict,
    append_judgement,
    item_fingerprint,
    read_judgements,
    read_own,
)
from surgeval.records import IntentQuestion

__all__ = ["Adjudication", "ItemDecision", "ReviewDesk", "decide"]

LEAST = 2  # reviewers that an item needs
_LONGEST_COMMENT, _LONGEST_NAME = 4_000, 100


class ReviewDesk:
    """One reviewer's desk. With `each`, an item that so many others have judged is not handed out any more.

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
            raise BadInput(f"reviewer: found {reviewer[:60]!r}, expected a name with letters, at most {_LONGEST_NAME}")
        self.questions, self.reviewer, self._each = questions, name, each
        self._items = {item.id: item for item in questions.items}
        self.path = path_inside(questions.folder, self.folder_name, f"{name}.jsonl")
        self._own = {judgement.item: judgement for judgement in read_own(self.path, questions, reviewer=name)}

    @property
    def mine(self) -> Mapping[str, Judgement]:
        """What this person has said, by item."""
        return MappingProxyType(self._own)

    @property
    def done(self) -> int:
        """How many items this person has judged."""
        return len(self._own)

    def in_order(self) -> list[IntentQuestion]:
        """What this person judges, in an order of their own: nobody's patience ends at the same items."""
        items = list(self.questions.items)
        if self._each is not None:
            others = self._counts()
            items = [item for item in items if item.id in self._own or others.get(item.id, 0) < self._each]
        return sorted(items, key=lambda item: hashlib.sha256(f"{self.reviewer}\0{item.id}".encode()).digest())

    def pending(self) -> list[IntentQuestion]:
        """What of it is left."""
        return [item for item in self.in_order() if item.id not in self._own]

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
            item, item_fingerprint(question), self.reviewer, known, answer, printable(comment.strip()), when
        )
        append_judgement(self.path, judgement)
        self._own[item] = judgement
        return judgement

    def _counts(self) -> Mapping[str, int]:
        """How many others have judged each item; what they said stays with them."""
        counts: dict[str, int] = defaultdict(int)
        for judgement in read_judgements(self.questions):
            counts[judgement.item] += judgement.reviewer != self.reviewer
        return counts


class Adjudication(ReviewDesk):
    """The adjudicator's desk: items on which reviewers disagree, except those this person has reviewed.

    >>> from pathlib import Path
    >>> Adjudication(QuestionSet(Path("no/such/folder"), (), {}), "Eve").pending()
    []
    """

    folder_name = ADJUDICATIONS

    def in_order(self) -> list[IntentQuestion]:
        """The disputed items that nobody has settled, and those that this person has."""
        decisions = decide(self.questions)
        mine = {j.item for j in read_judgements(self.questions) if j.reviewer == self.reviewer}
        return [
            item
            for item in self.questions.items
            if item.id in self._own or (decisions[item.id].status == "disputed" and item.id not in mine)
        ]

    def said(self, item: str) -> list[Judgement]:
        """What the reviewers said of an item."""
        return [judgement for judgement in read_judgements(self.questions) if judgement.item == item]


@dataclass(frozen=True, slots=True)
class ItemDecision:
    """What became of an item: accepted (perhaps with a corrected answer), rejected, disputed, or still pending.

    >>> ItemDecision("pending", 0, (), None).status
    'pending'
    """

    status: Literal["accepted", "rejected", "disputed", "pending"]
    answer: int
    judgements: tuple[Judgement, ...]
    settled: Judgement | None


def decide(questions: QuestionSet, least: int = LEAST) -> dict[str, ItemDecision]:
    """The fate of every item. Unanimous reviewers decide; where they differ the adjudicator does.

    An item that all call wrong is rejected, unless all name the same other answer: then it is accepted with that one.

    >>> from pathlib import Path
    >>> decide(QuestionSet(Path("no/such/folder"), (), {}))
    {}
    """
    reviews: dict[str, list[Judgement]] = defaultdict(list)
    for judgement in read_judgements(questions):
        reviews[judgement.item].append(judgement)
    settled = {judgement.item: judgement for judgement in read_judgements(questions, adjudicated=True)}
    return {item.id: _decision(item, reviews[item.id], settled.get(item.id), least) for item in questions.items}


def _decision(
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
