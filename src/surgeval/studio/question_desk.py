"""The desk at which questions are reviewed in the page: the same files as `surgeval questions review`, and no others.

Every look reads the judgements anew, so that what somebody says on a terminal meanwhile counts here at once, and the
other way round. The pictures of a question are those that a model would be shown, with more of a film.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias

from surgeval.asking import FrameOptions, ItemFiles, SelectedFrame, select_frames
from surgeval.datasets import open_dataset
from surgeval.datasets.gaze import fixation_at
from surgeval.errors import BadInput, DataError
from surgeval.questions import (
    Adjudication,
    QuestionSet,
    ReviewDesk,
    agreement,
    decide,
    describe_gaze,
    item_fingerprint,
    open_set,
)
from surgeval.records import ImageRef, IntentQuestion
from surgeval.studio.pictures import EncodedPicture, Pictures
from surgeval.studio.store import NotStored

__all__ = ["ITEMS", "QuestionDesk", "Role"]

ITEMS = "items.jsonl"  # a folder that holds it is a set of questions
Role: TypeAlias = Literal["review", "adjudicate"]
_OF_A_FILM = FrameOptions(frames=24)
_RECENT = 500  # questions whose pictures are known
_SPOKEN = 5  # fixations told in words
_MAKING = ("record", "template")  # what the context says of how an item was made


class QuestionDesk:
    """The questions of a folder, for whoever reviews them.

    >>> import tempfile
    >>> from surgeval.datasets import intent_record
    >>> import json
    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / ITEMS).write_text(json.dumps(intent_record(item)))
    ...     desk = QuestionDesk(Path(folder))
    ...     seen = desk.item("Ada", "q")["content"]
    ...     _ = desk.judge("Ada", "q", seen, "correct")
    ...     desk.close()
    ...     desk.queue("Ada")["items"]
    [{'id': 'q', 'verdict': 'correct'}]
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder, self._lock = Path(folder), threading.RLock()
        self._refs: OrderedDict[str, tuple[ImageRef, ...]] = OrderedDict()  # of the questions looked at last
        self._pictures = Pictures(self._refs)
        self._stamp: tuple[int, int] | None = None
        self._set = self._opened()

    @property
    def count(self) -> int:
        """How many questions there are."""
        return len(self._set.items)

    def queue(self, reviewer: str, role: Role = "review", each: int | None = None) -> dict[str, Any]:
        """What this person judges, in their own order, each with their own verdict and nobody else's."""
        desk = self._desk(reviewer, role, each)
        own = desk.mine
        items = [{"id": item.id, "verdict": own[item.id].verdict if item.id in own else None}
                 for item in desk.in_order()]  # fmt: skip
        return {"reviewer": desk.reviewer, "role": role, "items": items}

    def item(self, reviewer: str, name: str, role: Role = "review") -> dict[str, Any]:
        """A question as a reviewer may see it; an adjudicator also sees what was said, but not by whom."""
        desk = self._desk(reviewer, role)
        item = self._find(desk, name)
        own = desk.mine.get(item.id)
        judgements = desk.judgements_of(item.id) if isinstance(desk, Adjudication) else []
        return {
            "id": item.id, "content": item_fingerprint(item), "scenario": item.scenario, "skill": item.skill,
            "dimension": item.dimension, "trap": item.trap, "source": item.source,
            "context": {str(key): str(value) for key, value in item.context.items() if key not in _MAKING},
            "question": item.question, "options": list(item.options), "answer": item.answer,
            "labels": [asdict(label) for label in item.labels],
            "gaze": describe_gaze(item.gaze, _SPOKEN) if item.gaze else "",
            "links": {kind: link for kind in ("untrapped", "twin") if (link := getattr(item, kind)) is not None},
            "mine": None if own is None else {"verdict": own.verdict, "answer": own.answer, "comment": own.comment},
            "said": [{"verdict": judgement.verdict, "answer": judgement.answer, "comment": judgement.comment}
                     for judgement in judgements],
            **self._shown(item),
        }  # fmt: skip

    def picture(self, name: str, number: int) -> EncodedPicture:
        """One of the pictures of a question; a file outside the dataset's folder is refused."""
        item = next((question for question in self._current().items if question.id == name), None)
        shown = self._moments(item) if item is not None else ()
        if not 0 <= number < len(shown):
            raise BadInput(f"question {name[:60]!r}: found no picture {number}, expected one of its {len(shown)}")
        refs = tuple(moment.ref for moment in shown)
        key = f"{name} {hash(refs)}"
        with self._lock:
            self._refs[key] = refs
            while len(self._refs) > _RECENT:
                self._refs.popitem(last=False)
        return self._pictures.get(key, number)

    def judge(
        self, reviewer: str, name: str, content: str, verdict: str, *, answer: int | None = None, comment: str = "",
        role: Role = "review",
    ) -> dict[str, Any]:  # fmt: skip
        """Keep a judgement of the question as it was seen; on disk when this returns."""
        with self._lock:
            desk = self._desk(reviewer, role)
            item = self._find(desk, name)
            if item_fingerprint(item) != content:
                raise BadInput(f"question {name[:60]!r}: found changed since it was shown, expected another look")
            try:
                judgement = desk.judge(item.id, verdict, answer=answer, comment=comment)
            except OSError as error:
                raise NotStored(f"{desk.path}: found {error.strerror}, expected room for a judgement") from None
        return {"id": judgement.item, "verdict": judgement.verdict}

    def agreement(self, reviewer: str) -> dict[str, Any]:
        """Kappas and decisions. Who is in the middle of a review waits: they would tell what others said."""
        desk = self._desk(reviewer, "review")
        left = len(desk.pending())
        if desk.done and left:
            return {"left": left, "rows": [], "decisions": {}}
        statuses = [decision.status for decision in decide(desk.questions).values()]
        return {
            "left": 0, "rows": [row.to_json() for row in agreement(desk.questions)],
            "decisions": {status: statuses.count(status) for status in ("accepted", "rejected", "disputed", "pending")},
        }  # fmt: skip

    def close(self) -> None:
        """End the threads that prepare pictures."""
        self._pictures.close()

    def _desk(self, reviewer: str, role: Role, each: int | None = None) -> ReviewDesk:
        questions = self._current()
        return Adjudication(questions, reviewer) if role == "adjudicate" else ReviewDesk(questions, reviewer, each=each)

    def _find(self, desk: ReviewDesk, name: str) -> IntentQuestion:
        """A question of the set; an adjudicator gets only what is theirs to settle, as others' views come with it."""
        items = desk.in_order() if isinstance(desk, Adjudication) else desk.questions.items
        question = next((item for item in items if item.id == name), None)
        if question is None:
            raise BadInput(f"question {name[:60]!r}: found no such question here, expected one of the list")
        return question

    def _shown(self, item: IntentQuestion) -> dict[str, Any]:
        """The pictures with their times and where the clinician looked; or why there are none."""
        try:
            shown = self._moments(item)
        except (BadInput, DataError) as error:
            return {"pictures": [], "trouble": str(error)}
        looks = [fixation_at(item.gaze, moment.time) for moment in shown]
        return {
            "pictures": [
                {"time": moment.time, "look": None if look is None else [look.x, look.y]}
                for moment, look in zip(shown, looks, strict=True)
            ],
            "trouble": "",
        }

    def _moments(self, item: IntentQuestion) -> tuple[SelectedFrame, ...]:
        if not item.media:
            return ()
        return select_frames(ItemFiles(open_dataset(self._folder, "intent"), [item]), item, _OF_A_FILM)

    def _current(self) -> QuestionSet:
        """The set as it is now: it is read again when its file has changed."""
        with self._lock:
            if self._stamp != self._stamped():
                self._set = self._opened()
            return self._set

    def _opened(self) -> QuestionSet:
        self._stamp = self._stamped()
        return open_set(self._folder)

    def _stamped(self) -> tuple[int, int]:
        try:
            told = (self._folder / ITEMS).stat()
        except OSError:
            raise BadInput(f"{self._folder}: found no {ITEMS}, expected a set of questions") from None
        return told.st_mtime_ns, told.st_size
