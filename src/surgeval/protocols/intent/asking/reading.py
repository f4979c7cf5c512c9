"""The worker of a run: a block of posed items in, cases out, each reply read as a choice of the item's own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surgeval.asking import QuestionWorker
from surgeval.protocols.intent.asking.conditions import own_option
from surgeval.protocols.intent.asking.look import Eyes
from surgeval.protocols.intent.asking.reader import READ_BY_MODEL, ModelReader
from surgeval.protocols.intent.asking.scene import distractor_option
from surgeval.protocols.intent.cases import split_id
from surgeval.qa import read_choice
from surgeval.records import Case, IntentQuestion

__all__ = ["ReadingWorker"]


class ReadingWorker:
    """Asks by `asking`, and adds what was chosen and what was shown to each of its cases."""

    def __init__(
        self,
        asking: QuestionWorker[IntentQuestion],
        posed: Mapping[str, IntentQuestion],
        items: Mapping[str, IntentQuestion],
        eyes: Eyes | None,
        reader: ModelReader | None = None,
    ) -> None:
        self._asking, self._posed, self._items, self._eyes, self._reader = asking, posed, items, eyes, reader

    def setup(self) -> None:
        """Open the store of answers."""
        self._asking.setup()

    def __call__(self, payload: Any, /) -> list[Case]:
        """The cases of one block, in its order."""
        return [self._read(case) for case in self._asking(payload)]

    def _read(self, case: Case) -> Case:
        question = self._posed[case.id]
        item, condition = split_id(case.id)
        values: dict[str, Any] = {"item": item, "condition": condition}
        if case.status == "ok":
            values |= case.values
            values |= self._choice(question, str(case.values["content"]))
            values.setdefault("shown", "[]")  # one who does not look
            values["distractor"] = self._distractor(question) if condition == "wrong-gaze" else None
        return replace(case, values=values)

    def _choice(self, question: IntentQuestion, reply: str) -> dict[str, Any]:
        choice = read_choice(reply, question.options)
        index, reading = choice.index, str(choice.reading)
        if index is None and self._reader is not None and reading not in ("empty", "refused"):
            index = self._reader.read(question, reply)
            reading = READ_BY_MODEL if index is not None else reading
        return {
            "choice": own_option(question, index), "strict": own_option(question, choice.strict), "reading": reading,
        }  # fmt: skip

    def _distractor(self, question: IntentQuestion) -> int | None:
        """The option that the wrong gaze speaks for, in the picture nearest to the question."""
        if self._eyes is None:
            return None
        moved = [spot for spot in self._eyes.gaze(question) if spot is not None]
        item = self._items[split_id(question.id)[0]]
        return distractor_option(item, moved[-1], self._eyes.scene.space) if moved else None
