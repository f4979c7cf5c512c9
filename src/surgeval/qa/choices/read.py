"""Which option a reply chooses. From the surest sign to the weakest, and the first that speaks decides:

1. the whole reply is a choice (that alone is the `strict` reading);
2. a statement such as "Answer: C" (the last of them);
3. a line that starts with a choice, "C. Forceps" or a lone "C" (several different ones are a list, not a choice);
4. a refusal;
5. one option's letter in brackets, or one option's text, mentioned and not denied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from surgeval.qa.choices.expression import AMBIGUOUS, OUT_OF_RANGE, Expression, Options
from surgeval.qa.choices.spelling import spelled
from surgeval.qa.choices.statements import Statement, decide, statements
from surgeval.qa.choices.wording import BRACKETED, NONE_OF_THEM, REFUSAL, RULED_OUT_AFTER
from surgeval.qa.mentions.lexicon import Word
from surgeval.qa.mentions.negation import clauses, denied
from surgeval.qa.reasoning import remove_reasoning

__all__ = ["Choice", "Reading", "read_choice"]

Reading = Literal["ok", "empty", "refused", "ambiguous", "out_of_range", "unreadable"]

_HEAD = re.compile(
    r"(?:final |my |the )?(?:answer|choice|option) ?: ?\n?|<(?:final_)?answer> ?\n?|boxed ?\{"
    r"|\{ ?\n?[\"']?(?:answer|choice|option)[\"']? ?: ?",
    re.I,
)
_TAIL = re.compile(r"[\s.,;:!)\]}>\"'”’_|]{0,12}(?:</(?:final_)?answer> ?)?[\s.]{0,4}$", re.I)
_BULLET = re.compile(r"(?:[^\w\s\"'“‘«(\[{<【「『《〈|_.,:;!?…]{1,2} ?){1,3}(?!\d)")
_AFTER_LINE_CHOICE = re.compile(r"$|\n| ?[.:,;!?)\]}]| ?[-–—] |->|→| (?:because|since|as|due)\b")
_TRAILING = re.compile(r"(?:[.:!?…>=\n]|(?<![A-Z]),)[ \n]?([(\[{\"']{0,3}[A-Z][)\]}\"']{0,3}[.!]?)$")
_LONGEST = 100_000  # characters that are read, from the end of a reply: reading takes some 10 µs for each
_NEXT_QUESTION = re.compile(r"\n(?:Question|Q|User|Human)(?: ?\d+)? ?:")


@dataclass(frozen=True, slots=True)
class Choice:
    """The option a reply chooses (None: none), how that reading ended, and the strict reading beside it."""

    index: int | None
    reading: Reading
    strict: int | None


def read_choice(reply: str, options: Sequence[str]) -> Choice:
    r"""Which of the options a reply chooses.

    >>> options = ["grasper", "hook", "scissors", "clip applier"]
    >>> read_choice("The answer is B. Note that A is a common distractor.", options)
    Choice(index=1, reading='ok', strict=None)
    >>> read_choice("(D) clip applier", options)
    Choice(index=3, reading='ok', strict=3)
    >>> [read_choice(reply, options).reading for reply in ("", "I cannot tell.", "A or C", "14", "A surgeon operates.")]
    ['empty', 'refused', 'ambiguous', 'out_of_range', 'unreadable']
    """
    known = Options(options)
    text = spelled(remove_reasoning(reply) or reply)[-_LONGEST:]
    if not any(character.isalnum() for character in text):
        return Choice(None, "empty", None)
    strict = _whole(text, known)
    if strict is not None and strict >= 0:
        return Choice(strict, "ok", strict)
    code = strict if strict is not None else _in_prose(text, known)
    if code is None:
        return Choice(None, "refused" if REFUSAL.search(text) else "unreadable", None)
    if code < 0:
        return Choice(None, "ambiguous" if code == AMBIGUOUS else "out_of_range", None)
    return Choice(code, "ok", None)


def _whole(text: str, options: Options) -> int | None:
    """The choice that is the whole text, or None."""
    head = _HEAD.match(text)
    for position in (0, head.end()) if head else (0,):
        choice = options.at(text, position)
        if choice is not None and _TAIL.match(text, choice.end):
            return choice.index
    return None


def _in_prose(text: str, options: Options) -> int | None:
    following = _NEXT_QUESTION.search(text)
    if following and following.start() > 0:  # base models go on with a question of their own
        text = text[: following.start()]
    claims = statements(text, options)
    stated = decide([statement for statement in claims if not statement.tentative], text, options.count)
    if stated is not None:
        return stated
    lined = _lines(text, options)
    if lined is not None:
        return lined
    if REFUSAL.search(text):
        return None
    if claims:
        return decide(claims, text, options.count)
    if NONE_OF_THEM.search(text):
        return OUT_OF_RANGE
    return _mentioned(text, options)


def _lines(text: str, options: Options) -> int | None:
    """The choice that starts a line or ends the text."""
    starts: list[tuple[Expression, Statement]] = []
    position = 0
    for line in text.split("\n"):
        bullet = _BULLET.match(text, position)
        choice = options.at(text, bullet.end() if bullet else position)
        if choice and choice.end <= position + len(line) and _AFTER_LINE_CHOICE.match(text, choice.end):
            lone = bool(_TAIL.match(line, choice.end - position))
            # Numbers at the start of lines count steps; option texts may start any sentence.
            letter = choice.symbol and not choice.number
            if letter or lone or (choice.texted and (choice.number or position == 0)):
                starts.append((choice, Statement(choice.index, position, choice.end, not lone or choice.texted)))
        position += len(line) + 1
    if trailing := _TRAILING.search(text[-16:]):
        start = len(text) - len(text[-16:]) + trailing.start(1)
        if (last := options.at(text, start)) is not None and last.index >= 0:
            starts.append((last, Statement(last.index, start, last.end, False)))
    lone_letters = [statement for _, statement in starts if not statement.tentative]
    if lone_letters:
        return decide(lone_letters, text, options.count)
    indexes = {choice.index for choice, _ in starts}
    in_range = {index for index in indexes if index >= 0} or indexes
    return in_range.pop() if len(in_range) == 1 else AMBIGUOUS if in_range else None


def _mentioned(text: str, options: Options) -> int | None:
    """The one option that is mentioned and not ruled out, by letter or else by text."""
    letters = [(ord(match[1].upper()) - ord("A"), match) for match in BRACKETED.finditer(text)]
    by_letter = [Word(index, match.start(), match.end()) for index, match in letters if index < options.count]
    by_text = [Word(options.named(match), *match.span()) for match in options.anywhere.finditer(text)]
    mentioned = _kept(text, by_letter) or _kept(text, by_text)
    if not mentioned:
        return None
    return mentioned.pop() if len(mentioned) == 1 else AMBIGUOUS


def _kept(text: str, words: list[Word]) -> set[int]:
    """The options that are mentioned and neither denied nor called wrong."""
    numbers = set()
    at = 0
    for start, end, asks in clauses(text):
        first = at
        while at < len(words) and words[at].start < end:
            at += 1
        inside = words[first:at]
        for word, off in zip(inside, denied(text, inside, start, end), strict=True):
            if not (off or asks) and not RULED_OUT_AFTER.match(text, word.end):
                numbers.add(word.number)
    return numbers
