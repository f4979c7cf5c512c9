r"""Statements that say which option is meant: "Answer: C", "the answer is (C)", "I choose C", "C is correct",
`\boxed{C}`, `<answer>C</answer>`, `{"answer": "C"}`.

The last one counts, since models correct themselves. One that is only considered ("if the answer were A", "some may
think the answer is A") counts only where nothing is said outright; one that is denied never does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from surgeval.qa.choices._expression import AMBIGUOUS, OUT_OF_RANGE, Expression, Options
from surgeval.qa.choices._wording import (
    ANSWER,
    CONDITIONAL,
    CONSIDERED,
    DENIED,
    NONE_OF_THEM,
    NOT_BUT,
    PREDICATE,
    SUBJECT,
    TAG,
    VERB,
)

__all__ = ["Statement", "decide", "statements"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A choice that is stated outright, from where to where, and whether it is only considered."""

    index: int
    start: int
    end: int
    considered: bool
    kind: str = ""  # by what it is known


_BOX_END = re.compile(r"(?:^|[^\w])([A-Z])[ )}\]]{0,6}$")
_DOUBTED = re.compile(r" ?\?")


def statements(text: str, options: Options) -> list[Statement]:
    """Every stated choice of a text in one spelling, by where it ends."""
    every = [*_tagged(text, options), *_answers(text, options), *_verbs(text, options), *_subjects(text, options)]
    return sorted(every, key=lambda statement: (statement.end, statement.start))


def decide(said: list[Statement], text: str) -> int | None:
    """The choice that a reply ends with; AMBIGUOUS where two different ones stand side by side at its end."""
    outright = [statement for statement in said if not statement.considered] or said
    if not outright:
        return None
    last = outright[-1]
    for earlier in reversed(outright[:-1]):
        if earlier.kind != last.kind or not _adjacent(text, earlier, last):
            break
        if earlier.index not in (last.index, OUT_OF_RANGE):
            return AMBIGUOUS
    return last.index


def _adjacent(text: str, earlier: Statement, last: Statement) -> bool:
    """Whether nothing but marks stands between two statements: then neither corrects the other."""
    between = text[earlier.end : last.start]
    return len(between) < 12 and not any(character.isalnum() for character in between)


def _answers(text: str, options: Options) -> Iterator[Statement]:
    for marker in ANSWER.finditer(text):
        if _denied(text, marker.start()):
            continue
        position = marker.end()
        if replaced := NOT_BUT.match(text, position):
            position = replaced.end()
        if NONE_OF_THEM.match(text, position) and options.text_at(text, position) is None:
            yield Statement(OUT_OF_RANGE, marker.start(), position + 4, _considered(text, marker.start()))
            continue
        choice = options.at(text, position)
        if choice is None or (marker[0].endswith("\n") and not choice.marked):
            continue
        doubted = bool(_DOUBTED.match(text, choice.end)) or _considered(text, marker.start())
        yield Statement(choice.index, marker.start(), choice.end, doubted)


def _verbs(text: str, options: Options) -> Iterator[Statement]:
    """Choices after a verb or "so": only letters that can be no word, or an option's text that ends the phrase."""
    for marker in VERB.finditer(text):
        choice = options.at(text, marker.end())
        if choice is None or not choice.symbol or choice.number or not choice.marked or _denied(text, marker.start()):
            continue
        if choice.index == OUT_OF_RANGE or text[choice.end - 1 : choice.end] in ("I", "i"):
            continue
        doubted = bool(_DOUBTED.match(text, choice.end)) or _considered(text, marker.start())
        yield Statement(choice.index, marker.start(), choice.end, doubted)


def _subjects(text: str, options: Options) -> Iterator[Statement]:
    """Choices with a verdict after them: "C is correct", "Option C (forceps) is the best", "Forceps is right"."""
    reached = 0
    for mention in SUBJECT.finditer(text):
        choice = options.at(text, mention.start()) if mention.start() >= reached else None
        if choice is None or choice.index == OUT_OF_RANGE:
            continue
        reached = choice.end  # of "both A and B are correct" B is no subject of its own
        if verdict := PREDICATE.match(text, choice.end):
            yield Statement(
                choice.index, mention.start(), choice.end, _conditional(text, mention.start(), verdict.end())
            )
    for named in options.anywhere.finditer(text):
        verdict = PREDICATE.match(text, named.end())
        if verdict and not _denied(text, named.start()):
            doubted = _conditional(text, named.start(), verdict.end())
            yield Statement(options.named(named), named.start(), named.end(), doubted)


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


def _denied(text: str, start: int) -> bool:
    return bool(DENIED.search(text[max(0, start - 40) : start]))


def _conditional(text: str, start: int, end: int) -> bool:
    """Whether a verdict is considered or holds under a condition: "B is correct only for hooks"."""
    return bool(CONDITIONAL.match(text, end)) or _considered(text, start)


def _considered(text: str, start: int) -> bool:
    return bool(CONSIDERED.search(text[max(0, start - 70) : start]))
