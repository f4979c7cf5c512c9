"""Answerers that need no model, for every kind of question: the baselines that a model's number is compared with.

`Oracle` repeats the reference, `PriorAnswerer` uses the wording alone, `RandomAnswerer` guesses, `AlwaysReject` and
`AlwaysAccept` decide by the premise alone. Only `Oracle` reads the reference of the question that it answers.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from string import ascii_uppercase

from surgeval.asking.answerer import AnswererSetup, ModelAnswer, ModelFrame, answerer_kind, parse_seed
from surgeval.asking.wording_prior import ChoicePrior, WordingPrior
from surgeval.qa import load_answer_formats, object_classes
from surgeval.records import IntentQuestion, Question, VqaQuestion

__all__ = ["AlwaysAccept", "AlwaysReject", "Oracle", "PremiseRejections", "PriorAnswerer", "RandomAnswerer",
           "describe_baseline", "format_choice", "random_answer"]  # fmt: skip

_DESCRIPTIONS = {
    "oracle": "It repeats the reference answers.",
    "prior": "It answers from the wording of the question alone.",
    "random": "It guesses.",
    "always-reject": "It rejects every premise.",
    "always-accept": "It accepts every premise.",
}


def describe_baseline(name: str) -> str:
    """Say in a sentence what the baseline of this name or identity does; empty for a model.

    >>> describe_baseline("random:3"), describe_baseline("random seed=3")
    ('It guesses.', 'It guesses.')
    >>> describe_baseline("openai:oracle@http://localhost/v1")
    ''
    """
    return _DESCRIPTIONS.get(name.partition(" ")[0].partition(":")[0], "")


def format_choice(index: int) -> str:
    """Write a choice in the form that items ask for.

    >>> format_choice(2)
    'Answer: C'
    """
    return f"Answer: {ascii_uppercase[index]}"


class Oracle:
    """Answers with the reference: what a perfect model scores, and a check of the references.

    >>> Oracle().answer(VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")).content
    'Yes'
    """

    identity = "oracle"
    uses_images = cache_answers = False

    def answer(self, question: Question, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """Return the reference."""
        answer = format_choice(question.answer) if isinstance(question, IntentQuestion) else question.answer
        return ModelAnswer(answer, 0.0)


@answerer_kind("oracle")
def oracle(setup: AnswererSetup) -> Oracle:
    """Open the oracle."""
    return Oracle()


def random_answer(question: Question, generator: random.Random) -> str:
    """Draw an answer that the question's format can read, or an option of an item.

    Only the request is used (text, window, format and its options), never the reference.

    >>> question = VqaQuestion("q", "v", 10, 20, "", "When?", "temporal_localization", "time", "00:00:12")
    >>> random_answer(question, random.Random(1))
    '00:00:11'
    """
    if isinstance(question, IntentQuestion):
        return format_choice(generator.randrange(len(question.options)))
    format = load_answer_formats().get(question.format)
    return generator.choice(object_classes(question)) if format is None else format.guess(question, generator)


class RandomAnswerer:
    """Guesses a valid answer. The guess for a question does not depend on the other questions.

    >>> question = VqaQuestion("q", "v", 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes")
    >>> RandomAnswerer(3).answer(question) == RandomAnswerer(3).answer(question)
    True
    """

    uses_images = cache_answers = False

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @property
    def identity(self) -> str:
        """The seed."""
        return f"random seed={self._seed}"

    def answer(self, question: Question, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """Guess."""
        return ModelAnswer(random_answer(question, _generator(self._seed, question)), 0.0)


@answerer_kind("random[:SEED]")
def random_guesses(setup: AnswererSetup) -> RandomAnswerer:
    """Open the baseline that guesses."""
    return RandomAnswerer(parse_seed(setup))


class PriorAnswerer:
    """Answers from the wording of a question, after learning from the questions and answers of other videos.

    >>> known = [VqaQuestion(v, v, 0, 1, "", "Is a clip visible?", "1a", "binary", "Yes") for v in ("v1", "v2")]
    >>> PriorAnswerer(known).answer(known[0]).content
    'Yes'
    """

    uses_images = cache_answers = False

    def __init__(self, train: Iterable[Question]) -> None:
        known = tuple(train)
        self._wording = WordingPrior(question for question in known if isinstance(question, VqaQuestion))
        self._choices = ChoicePrior(question for question in known if isinstance(question, IntentQuestion))
        self.identity = f"prior of {len(known)} questions, {_digest(known)}"

    def answer(self, question: Question, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """Return what the wording suggests."""
        if isinstance(question, IntentQuestion):
            return ModelAnswer(format_choice(self._choices.choose(question)), 0.0)
        return ModelAnswer(self._wording.answer(question), 0.0)


@answerer_kind("prior[:TRAIN]")
def prior(setup: AnswererSetup) -> PriorAnswerer:
    """Open the baseline that knows the wording alone."""
    return PriorAnswerer(setup.train(setup.argument or ""))


class PremiseRejections:
    """Which option of an item rejects what its stem asserts.

    It is known from an item's labels, else from the set: the right option of a cognitive trap rejects its premise, and
    so does the same text in the trap's twin. Items are recognised by their words, in any order of
    options.

    >>> media, options = ("a.jpg",), ("to seal it", "nothing is being cut")
    >>> trap = IntentQuestion("t", "laparoscopy", "v", media, "temporal", "prospective", "I cut. Why?", options, 1,
    ...                       trap="cognitive", twin="u")
    >>> twin = IntentQuestion("u", "laparoscopy", "v", media, "temporal", "prospective", "I cut. Why?", options, 0)
    >>> PremiseRejections([trap, twin]).option(twin), PremiseRejections([]).option(twin)
    (1, None)
    """

    def __init__(self, items: Iterable[Question]) -> None:
        self._texts: dict[tuple[str, frozenset[str]], str] = {}
        intent = {item.id: item for item in items if isinstance(item, IntentQuestion)}
        for trap in intent.values():
            if trap.trap != "cognitive":
                continue
            labelled = _labelled_rejection(trap)
            rejecting = trap.options[trap.answer if labelled is None else labelled]
            self._texts[_stem_and_options(trap)] = rejecting
            twin = intent.get(trap.twin or "")
            if twin is not None and rejecting in twin.options:
                self._texts[_stem_and_options(twin)] = rejecting

    def option(self, item: IntentQuestion) -> int | None:
        """Return the index of the rejecting option in the item's own order, or None if it has none or none is known."""
        labelled = _labelled_rejection(item)
        text = self._texts.get(_stem_and_options(item))
        return labelled if text is None or labelled is not None else item.options.index(text)


def _labelled_rejection(item: IntentQuestion) -> int | None:
    rejecting = [index for index, stated in enumerate(item.labels) if stated.label == "rejects"]
    return rejecting[0] if len(rejecting) == 1 else None


def _stem_and_options(item: IntentQuestion) -> tuple[str, frozenset[str]]:
    return item.question, frozenset(item.options)


class AlwaysReject:
    """Chooses the option that rejects the premise, or guesses if no such option is known.

    `asked` are the questions of the run, from which the rejecting options are learnt.

    >>> trap = IntentQuestion("t", "laparoscopy", "v", (), "temporal", "prospective", "I cut. Why?",
    ...                       ("to seal it", "nothing is being cut"), 1, trap="cognitive")
    >>> AlwaysReject([trap]).answer(trap).content
    'Answer: B'
    """

    uses_images = cache_answers = False
    name = "always-reject"

    def __init__(self, asked: Iterable[Question], seed: int = 0) -> None:
        known = tuple(asked)
        self._rejections, self._seed = PremiseRejections(known), seed
        self.identity = f"{self.name} seed={seed} of {len(known)} questions, {_digest(known)}"

    def answer(self, question: Question, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """Choose by the premise alone."""
        generator = _generator(self._seed, question)
        rejecting = self._rejections.option(question) if isinstance(question, IntentQuestion) else None
        if rejecting is None or not isinstance(question, IntentQuestion):
            return ModelAnswer(random_answer(question, generator), 0.0)
        return ModelAnswer(format_choice(self._choose(rejecting, len(question.options), generator)), 0.0)

    def _choose(self, rejecting: int, options: int, generator: random.Random) -> int:
        return rejecting


class AlwaysAccept(AlwaysReject):
    """Chooses one of the options that accept the premise at random, or guesses if no rejecting option is known.

    >>> trap = IntentQuestion("t", "laparoscopy", "v", (), "temporal", "prospective", "I cut. Why?",
    ...                       ("to seal it", "nothing is being cut"), 1, trap="cognitive")
    >>> AlwaysAccept([trap]).answer(trap).content
    'Answer: A'
    """

    name = "always-accept"

    def _choose(self, rejecting: int, options: int, generator: random.Random) -> int:
        return generator.choice([index for index in range(options) if index != rejecting])


@answerer_kind("always-reject[:SEED]", premises=True)
def always_reject(setup: AnswererSetup) -> AlwaysReject:
    """Open the baseline that rejects every premise."""
    return AlwaysReject(setup.asked, parse_seed(setup))


@answerer_kind("always-accept[:SEED]", premises=True)
def always_accept(setup: AnswererSetup) -> AlwaysAccept:
    """Open the baseline that accepts every premise."""
    return AlwaysAccept(setup.asked, parse_seed(setup))


def _generator(seed: int, question: Question) -> random.Random:
    return random.Random(f"{seed}\0{question.id}")


def _digest(questions: Iterable[Question]) -> str:
    digest = hashlib.sha256()
    for question in questions:
        digest.update(repr(astuple(question)).encode(errors="backslashreplace"))
    return digest.hexdigest()[:16]
