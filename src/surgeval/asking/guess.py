"""Guessing without looking: a random answer of a question's format, and the options that a question offers.

A guess must be readable by the format, or chance would be measured too low. Only the request's side of a question is
used (text, window, format and its options), never its reference.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from surgeval.asking.choices import say_choice
from surgeval.asking.pattern import text_matching
from surgeval.datasets import clock
from surgeval.records import IntentQuestion, Question, VqaQuestion
from surgeval.vocab import foreign_objects

__all__ = ["Option", "object_classes", "options_of", "random_answer"]

_OPTION = re.compile(r"(?:(?<=\s)|^)([A-Z])([).:])\s+")
_MOST = 5  # counts in surgical questions are small; a wider range would only lower chance


class Option(NamedTuple):
    """One offered option: its letter, its text, and both as the question writes them."""

    letter: str
    text: str
    whole: str


def options_of(text: str) -> tuple[Option, ...]:
    """The lettered options in a question's text, () where there are none.

    >>> [option.whole for option in options_of("Where is it? A) upper left B) lower right")]
    ['A) upper left', 'B) lower right']
    """
    letters = list(_OPTION.finditer(text))
    run: list[re.Match[str]] = []
    for start in reversed([n for n, match in enumerate(letters) if match[1] == "A"]):  # an "A." may stand before them
        run = []
        for match in letters[start:]:
            if ord(match[1]) == ord("A") + len(run) and match[2] == letters[start][2]:
                run.append(match)
        if len(run) > 1:
            break
    else:
        return ()
    ends = [match.start() for match in run[1:]] + [len(text)]
    return tuple(
        Option(match[1], text[match.end() : end].strip(), text[match.start() : end].strip())
        for match, end in zip(run, ends, strict=True)
    )


def object_classes(question: VqaQuestion) -> tuple[str, ...]:
    """The classes that an answer of format `fo_class` may name.

    >>> options = {"valid_names": ["clip", "mesh"]}
    >>> object_classes(VqaQuestion("q", "v", 0, 1, "", "What?", "1a", "fo_class", "clip", format_options=options))
    ('clip', 'mesh')
    """
    stated = question.format_options.get("valid_names")
    if isinstance(stated, list | tuple) and stated and all(isinstance(name, str) for name in stated):
        return tuple(stated)
    return tuple(foreign.name for foreign in foreign_objects())


def random_answer(question: Question, dice: random.Random) -> str:
    """A random answer of the question's format, or a random option of an item.

    >>> question = VqaQuestion("q", "v", 10, 20, "", "When?", "temporal_localization", "time", "00:00:12")
    >>> random_answer(question, random.Random(1))
    '00:00:11'
    """
    if isinstance(question, IntentQuestion):
        return say_choice(dice.randrange(len(question.options)))
    if question.format == "binary":
        return dice.choice(("yes", "no"))
    if question.format == "number":
        return str(dice.randint(0, _MOST))
    if question.format == "percentage":
        return f"{dice.randint(0, 100)}%"
    if question.format == "time":
        return clock(dice.uniform(question.start, question.end))
    if question.format == "matching":
        return text_matching(str(question.format_options.get("pattern", "")), dice)
    offered = options_of(question.text)
    if question.format == "multiple_choice" and offered:
        return dice.choice(offered).whole
    return dice.choice(object_classes(question))
