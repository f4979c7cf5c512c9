"""Answerers that need no model, for every kind of question: they say what a model's number is worth.

`Oracle` repeats the reference, `PriorAnswerer` knows only words, `RandomAnswerer` guesses, `AlwaysReject` and
`AlwaysAccept` decide by the premise alone. Only `Oracle` reads the reference of the question that it answers.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import astuple

from surgeval.asking.answerers import Answered, ShownFrame
from surgeval.asking.choice_prior import ChoicePrior
from surgeval.asking.choices import Rejections, say_choice
from surgeval.asking.prior import Prior
from surgeval.qa import load_answer_formats, object_classes
from surgeval.records import IntentQuestion, Question, VqaQuestion

__all__ = ["AlwaysAccept", "AlwaysReject", "Oracle", "PriorAnswerer", "RandomAnswerer", "random_answer",
           "reference_row"]  # fmt: skip

_ROWS = {
    "oracle": "It repeats the reference answers.",
    "prior": "It answers from the wording of the question alone.",
    "random": "It guesses.",
    "always-reject": "It rejects every premise.",
    "always-accept": "It accepts every premise.",
}


def reference_row(name: str) -> str:
    """What the reference row of this name or identity does, as a sentence; empty for a model.

    >>> reference_row("random:3"), reference_row("random seed=3"), reference_row("openai:oracle@http://localhost/v1")
    ('It guesses.', 'It guesses.', '')
    """
    return _ROWS.get(name.partition(" ")[0].partition(":")[0], "")


class Oracle:
    """The reference itself: what a perfect model scores, and a check of the references.

    >>> Oracle().answer(VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")).content
    'Yes'
    """

    identity = "oracle"
    looks = costly = False

    def answer(self, question: Question, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """The reference."""
        answer = say_choice(question.answer) if isinstance(question, IntentQuestion) else question.answer
        return Answered(answer, 0.0)


def random_answer(question: Question, generator: random.Random) -> str:
    """A random answer that the question's format can read, or a random option of an item.

    Only the request is used (text, window, format and its options), never the reference.

    >>> question = VqaQuestion("q", "v", 10, 20, "", "When?", "temporal_localization", "time", "00:00:12")
    >>> random_answer(question, random.Random(1))
    '00:00:11'
    """
    if isinstance(question, IntentQuestion):
        return say_choice(generator.randrange(len(question.options)))
    format = load_answer_formats().get(question.format)
    return generator.choice(object_classes(question)) if format is None else format.guess(question, generator)


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

    def answer(self, question: Question, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """A guess."""
        return Answered(random_answer(question, random.Random(f"{self._seed}\0{question.id}")), 0.0)


class PriorAnswerer:
    """What the words of a question suggest to who has read the questions and answers of other videos.

    >>> known = [VqaQuestion(v, v, 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes") for v in ("v1", "v2")]
    >>> PriorAnswerer(known).answer(known[0]).content
    'Yes'
    """

    looks = costly = False

    def __init__(self, train: Iterable[Question]) -> None:
        known = tuple(train)
        self._prior = Prior(question for question in known if isinstance(question, VqaQuestion))
        self._choices = ChoicePrior(question for question in known if isinstance(question, IntentQuestion))
        self.identity = f"prior of {len(known)} questions, {_digest(known)}"

    def answer(self, question: Question, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """What its wording suggests."""
        if isinstance(question, IntentQuestion):
            return Answered(say_choice(self._choices.choose(question)), 0.0)
        return Answered(self._prior.answer(question), 0.0)


class AlwaysReject:
    """Rejects every premise: the option that does so, and a random answer where no option is known to.

    `asked` is the set that is asked; it tells which option of a trap and of its twin rejects.

    >>> trap = IntentQuestion("t", "laparoscopy", "v", (), "temporal", "prospective", "I cut. Why?",
    ...                       ("to seal it", "nothing is being cut"), 1, trap="cognitive")
    >>> AlwaysReject([trap]).answer(trap).content
    'Answer: B'
    """

    looks = costly = False
    name = "always-reject"

    def __init__(self, asked: Iterable[Question], seed: int = 0) -> None:
        known = tuple(asked)
        self._rejections, self._seed = Rejections(known), seed
        self.identity = f"{self.name} seed={seed} of {len(known)} questions, {_digest(known)}"

    def answer(self, question: Question, pictures: Sequence[ShownFrame] = ()) -> Answered:
        """The rejecting option."""
        dice = random.Random(f"{self._seed}\0{question.id}")
        rejecting = self._rejections.option(question) if isinstance(question, IntentQuestion) else None
        if rejecting is None or not isinstance(question, IntentQuestion):
            return Answered(random_answer(question, dice), 0.0)
        return Answered(say_choice(self._choose(rejecting, len(question.options), dice)), 0.0)

    def _choose(self, rejecting: int, options: int, dice: random.Random) -> int:
        return rejecting


class AlwaysAccept(AlwaysReject):
    """Accepts every premise: never the option that rejects it, one of the others at random.

    >>> trap = IntentQuestion("t", "laparoscopy", "v", (), "temporal", "prospective", "I cut. Why?",
    ...                       ("to seal it", "nothing is being cut"), 1, trap="cognitive")
    >>> AlwaysAccept([trap]).answer(trap).content
    'Answer: A'
    """

    name = "always-accept"

    def _choose(self, rejecting: int, options: int, dice: random.Random) -> int:
        return dice.choice([index for index in range(options) if index != rejecting])


def _digest(questions: Iterable[Question]) -> str:
    digest = hashlib.sha256()
    for question in questions:
        digest.update(repr(astuple(question)).encode(errors="backslashreplace"))
    return digest.hexdigest()[:16]
