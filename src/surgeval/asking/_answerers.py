"""Whoever answers questions: one small interface, and the reference rows that need no model.

`oracle` repeats the reference, `prior` knows only how questions are worded, `random` guesses, `replay` reads a file. An
answerer either answers or raises `Unanswered`; it never gives an empty text in place of a failure.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Protocol

from surgeval.asking._guess import random_answer
from surgeval.asking._prior import Prior
from surgeval.asking._question import Asked, Question
from surgeval.datasets import raise_errors
from surgeval.datasets.io import Place, as_float, read_json, shown
from surgeval.errors import DataError, SurgevalError
from surgeval.records import VqaQuestion

__all__ = ["Answered", "Answerer", "Oracle", "PriorAnswerer", "RandomAnswerer", "Replay", "ShownFrame", "Unanswered"]


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """A frame as a model is shown it: when in the video (seconds), and its JPEG.

    >>> ShownFrame(2.5, b"JPEG").time
    2.5
    """

    time: float
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer. `latency` is that of the request that succeeded; tokens and requests are 0 where nothing is spent.

    >>> Answered("a clip", latency=0.5, requests=1).content
    'a clip'
    """

    content: str
    latency: float | None = None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Unanswered(SurgevalError):
    """No answer: `model_error` (a model that failed, to be asked again) or `missing` (a file without one).

    >>> Unanswered("the reply has no text").status
    'model_error'
    """

    def __init__(self, reason: str, status: str = "model_error") -> None:
        super().__init__(reason)
        self.status = status

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.status)


class Answerer(Protocol[Question]):
    """Answers one question at a time, from several threads; only `Oracle` may read the question's reference."""

    @property
    def identity(self) -> str:
        """Everything that determines the answers: a run under another identity is another run."""

    @property
    def looks(self) -> bool:
        """Whether it is shown frames."""

    @property
    def costly(self) -> bool:
        """Whether an answer costs time or money, so that each is stored at once and never asked for twice."""

    def answer(self, question: Question, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """The answer, or `Unanswered`."""


class Oracle:
    """The reference itself: what a perfect model scores, and a check of the references.

    >>> Oracle().answer(VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")).content
    'Yes'
    """

    identity = "oracle"
    looks = costly = False

    def answer(self, question: VqaQuestion, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """The reference."""
        return Answered(question.answer, 0.0)


class RandomAnswerer:
    """A random valid answer, the same for a question whatever else is asked.

    >>> question = VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")
    >>> RandomAnswerer(3).answer(question) == RandomAnswerer(3).answer(question)
    True
    """

    looks = costly = False

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @property
    def identity(self) -> str:
        """The seed."""
        return f"random seed={self._seed}"

    def answer(self, question: VqaQuestion, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """A guess."""
        return Answered(random_answer(question, random.Random(f"{self._seed}\0{question.id}")), 0.0)


class PriorAnswerer:
    """The most frequent answer of other videos to questions of the same wording.

    >>> known = [VqaQuestion(v, v, 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes") for v in ("v1", "v2")]
    >>> PriorAnswerer(known).answer(known[0]).content
    'Yes'
    """

    looks = costly = False

    def __init__(self, train: Iterable[VqaQuestion]) -> None:
        known = tuple(train)
        self._prior = Prior(known)
        digest = hashlib.sha256()
        for question in known:
            digest.update(repr(astuple(question)).encode(errors="backslashreplace"))
        self.identity = f"prior of {len(known)} questions, {digest.hexdigest()[:16]}"

    def answer(self, question: VqaQuestion, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """What its wording suggests."""
        return Answered(self._prior.answer(question), 0.0)


class Replay:
    """Answers from a responses file: `qID`, `content`, optional `latency`.

    >>> import tempfile
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
    place = Place(str(path), raise_errors)
    seen = set[str]()
    for number, row in enumerate(place.items(read_json(path, raise_errors)) or ()):
        record: dict[str, Any] = place.at(f"record {number}").mapping(row) or {}
        name, content = record.get("qID"), record.get("content")
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)
        if not isinstance(name, str) or not name:
            raise DataError(path, record=f"record {number}", field="qID", found=shown(name), expected="a question's id")
        where = f"question {name[:60]!r}"
        if name in seen:
            raise DataError(
                path, record=where, field="qID", found="a second response", expected="one for each question"
            )
        if not isinstance(content, str):
            raise DataError(path, record=where, field="content", found=shown(content), expected="text")
        latency = as_float(record["latency"]) if "latency" in record else None
        if "latency" in record and (latency is None or not 0 <= latency < float("inf")):
            found = shown(record["latency"])
            raise DataError(path, record=where, field="latency", found=found, expected="seconds, at least 0")
        seen.add(name)
        yield name, Answered(content, latency)
