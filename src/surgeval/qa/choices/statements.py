r"""Statements that say which option is meant: "Answer: C", "the answer is (C)", "I choose C", "C is correct",
`\boxed{C}`, `<answer>C</answer>`, `{"answer": "C"}`.

The last one counts, since models correct themselves. A tentative one ("it may be A", "at first I thought the answer is
A") counts only where nothing else is said; one that is denied or only imagined ("if the answer were A") never does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from surgeval.qa.choices.expression import AMBIGUOUS, OUT_OF_RANGE, Expression, Options
from surgeval.qa.choices.wording import (
    ANSWER,
    CONDITIONAL,
    DENIED,
    HYPOTHETICAL,
    NONE_OF_THEM,
    NOT_BUT,
    PREDICATE,
    SUBJECT,
    TAG,
    TENTATIVE,
    UNSAID,
    VERB,
)

__all__ = ["Statement", "decide", "statements"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A choice that is stated outright, from where to where, and whether it is tentative."""

    index: int
    start: int
    end: int
    tentative: bool
    kind: str = ""  # by what it is known: "answer" where it names the answer, the start of a tag, "" otherwise


_ANSWER = "answer"
_BOX_END = re.compile(r"(?:^|[^\w])([A-Z])[ )}\]]{0,6}$")
_DOUBTED = re.compile(r" ?\?")
_JOINT = re.compile(r"\b(?:and|or|und|oder)(?: (?:also|the|my|final|maybe|perhaps|possibly)){0,3}[ \n:]?$", re.I)
_REFUTED = re.compile(r" ?\?[ \n]?(?:no|not|nope|wrong|incorrect|hardly)\b", re.I)


def statements(text: str, options: Options) -> list[Statement]:
    """Every stated choice of a text in one spelling, by where it ends."""
    every = [*_tagged(text, options), *_answers(text, options), *_verbs(text, options), *_subjects(text, options)]
    standing = (statement for statement in every if not _REFUTED.match(text, statement.end))  # "Is it A? No."
    return sorted(standing, key=lambda statement: (statement.end, statement.start))


def decide(stated: list[Statement], text: str, count: int) -> int | None:
    """The choice that a reply ends with; AMBIGUOUS where two different ones stand side by side at its end.

    "Answer: C" at the end corrects what stands before it, unless "or" joins it to another answer or it ends a list of
    `count` answers, one for each option.
    """
    if not stated:
        return None
    last = stated[-1]
    answers = [statement for statement in stated if statement.kind == _ANSWER]
    if answers and answers[-1].end == last.end:  # of "the answer is C", "is C" is no statement of its own
        return AMBIGUOUS if _is_joined(text, answers) or _is_list(text, answers, count) else answers[-1].index
    for earlier in reversed(stated[:-1]):
        if earlier.kind != last.kind or not _adjacent(text, earlier, last):
            break
        if earlier.index not in (last.index, OUT_OF_RANGE):
            return AMBIGUOUS
    return last.index


def _adjacent(text: str, earlier: Statement, last: Statement) -> bool:
    """Whether nothing but marks stands between two statements: then neither corrects the other."""
    between = text[earlier.end : last.start]
    return len(between) < 12 and not any(character.isalnum() for character in between)


def _is_joined(text: str, answers: list[Statement]) -> bool:
    """Whether "and" or "or" joins the last answer to a different one: "answer: A or answer: C"."""
    if len(answers) < 2:
        return False
    earlier, last = answers[-2:]
    joint = _JOINT.search(text, earlier.start, last.start)
    if joint is None or earlier.index == last.index:
        return False
    return not any(character.isalnum() for character in text[earlier.end : joint.start()])


def _is_list(text: str, answers: list[Statement], count: int) -> bool:
    """Whether the reply ends with an answer for every option, side by side; two of two are a correction."""
    listed = {answers[-1].index}
    for earlier, later in zip(answers[-2::-1], answers[:0:-1], strict=True):
        if not _adjacent(text, earlier, later):
            break
        listed.add(earlier.index)
    return count > 2 and listed >= set(range(count))


def _answers(text: str, options: Options) -> Iterator[Statement]:
    for marker in ANSWER.finditer(text):
        if _unsaid(text, marker.start()) or (
            "would" in marker[0] and HYPOTHETICAL.search(_before(text, marker.start()))
        ):
            continue
        position = marker.end()
        if replaced := NOT_BUT.match(text, position):
            position = replaced.end()
        choice = options.at(text, position)
        if choice is None and NONE_OF_THEM.match(text, position):
            choice = Expression(OUT_OF_RANGE, position + 4, symbol=False, marked=True)
        if choice is not None and (choice.marked or not marker[0].endswith("\n")):
            yield _statement(text, marker.start(), choice, kind=_ANSWER)


def _verbs(text: str, options: Options) -> Iterator[Statement]:
    """Choices after a verb or "so": only letters that can be no word."""
    for marker in VERB.finditer(text):
        choice = options.at(text, marker.end())
        if choice is None or not choice.symbol or choice.number or not choice.marked or choice.index == OUT_OF_RANGE:
            continue
        if text[choice.end - 1] not in "Ii" and not _unsaid(text, marker.start()):
            yield _statement(text, marker.start(), choice, tentative=bool(marker["tentative"]))


def _subjects(text: str, options: Options) -> Iterator[Statement]:
    """Choices with a verdict after them: "C is correct", "Option C (forceps) is the best", "Forceps is right"."""
    reached = 0
    for mention in SUBJECT.finditer(text):
        choice = options.at(text, mention.start()) if mention.start() >= reached else None
        if choice is None or choice.index == OUT_OF_RANGE:
            continue
        reached = choice.end  # of "both A and B are correct" B is no subject of its own
        yield from _judged(text, mention.start(), choice)
    for named in options.anywhere.finditer(text):
        yield from _judged(
            text, named.start(), Expression(options.named(named), named.end(), symbol=False, marked=True)
        )


def _judged(text: str, start: int, choice: Expression) -> Iterator[Statement]:
    """The statement that a choice with a verdict after it is; "B is correct only for hooks" is a tentative one."""
    verdict = PREDICATE.match(text, choice.end)
    if verdict and not _unsaid(text, start):
        condition = verdict["tentative"] or CONDITIONAL.match(text, verdict.end())
        yield _statement(text, start, choice, tentative=bool(condition))


def _tagged(text: str, options: Options) -> Iterator[Statement]:
    for tag in TAG.finditer(text):
        choice: Expression | None = options.at(text, tag.end())
        if choice is None and tag[0].startswith("boxed"):
            choice = _box_end(text, tag.end(), options)
        if choice is not None:
            yield Statement(choice.index, tag.start(), choice.end, False, tag[0][:5])


def _box_end(text: str, position: int, options: Options) -> Expression | None:
    """A letter at the end of what is boxed."""
    close = text.find("}", position, position + 200)
    match = _BOX_END.search(text[position:close]) if close >= 0 else None
    if match is None:
        return None
    return options.at(text, position + match.start(1))


def _statement(text: str, start: int, choice: Expression, *, tentative: bool = False, kind: str = "") -> Statement:
    tentative = tentative or bool(_DOUBTED.match(text, choice.end) or TENTATIVE.search(_before(text, start)))
    return Statement(choice.index, start, choice.end, tentative, kind)


def _unsaid(text: str, start: int) -> bool:
    """Whether the words before a statement deny it or make it something that is only imagined."""
    before = _before(text, start)
    return bool(DENIED.search(before[-40:]) or UNSAID.search(before))


def _before(text: str, start: int) -> str:
    return text[max(0, start - 80) : start]
