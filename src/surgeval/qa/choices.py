"""Multiple choice: how options are shown to a model, and which option a reply in free words chooses.

`read_choice` looks for these signs, in this order; the first that is present decides:

1. the whole reply is a choice (only this counts for the `strict` reading);
2. a statement such as "Answer: C" (the last of them);
3. a line that starts with a choice, "C. Forceps" or "C" alone (several different ones are a list, not a choice);
4. a refusal;
5. one option's letter in brackets, or one option's text, mentioned and not denied.

It never raises because of what a model wrote. The patterns are in `choice_patterns`.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from surgeval.errors import BadInput
from surgeval.qa.choice_patterns import (
    ANSWER,
    BRACKETED,
    CLOSE,
    CONDITIONAL,
    DENIED,
    HYPOTHETICAL,
    NONE_OF_THEM,
    NOT_BUT,
    NOUN,
    OPEN,
    OPENING,
    PREDICATE,
    REFUSAL,
    RULED_OUT_AFTER,
    SUBJECT,
    TAG,
    TENTATIVE,
    UNSAID,
    VERB,
    normalise_reply,
)
from surgeval.qa.mentions import Word, find_denied, split_clauses
from surgeval.qa.reasoning import remove_reasoning

__all__ = ["Choice", "Reading", "choice_prompt", "option_letters", "read_choice"]

_AMBIGUOUS: Final = -1
_OUT_OF_RANGE: Final = -2


def option_letters(n: int) -> tuple[str, ...]:
    """The letters of n options.

    >>> option_letters(4)
    ('A', 'B', 'C', 'D')
    """
    if not 0 <= n <= len(string.ascii_uppercase):
        raise BadInput(f"{n} options; at most {len(string.ascii_uppercase)} are allowed, one per letter")
    return tuple(string.ascii_uppercase[:n])


def choice_prompt(question: str, options: Sequence[str]) -> str:
    """The question, its options under letters, and a request for the form that `read_choice` reads best.

    >>> print(choice_prompt("Which instrument is circled?", ["grasper", "hook"]))
    Which instrument is circled?
    A. grasper
    B. hook
    Choose exactly one option. End your reply with "Answer: X", where X is its letter.
    """
    lines = [
        f"{letter}. {' '.join(option.split())}"
        for letter, option in zip(option_letters(len(options)), options, strict=True)
    ]
    request = 'Choose exactly one option. End your reply with "Answer: X", where X is its letter.'
    return "\n".join([question.strip(), *lines, request])


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
_LONGEST = 100_000  # characters read, from the end of a reply: reading takes about 10 µs per character
_NEXT_QUESTION = re.compile(r"\n(?:Question|Q|User|Human)(?: ?\d+)? ?:")


@dataclass(frozen=True, slots=True)
class Choice:
    """The option that a reply chooses (None: none), the outcome of reading it, and the option by strict reading.

    `reading` says why there is no option: the reply is empty, refuses, names several options (ambiguous) or one that
    does not exist (out_of_range), or has no choice that can be found (unreadable).
    """

    index: int | None
    reading: Reading
    strict: int | None


def read_choice(reply: str, options: Sequence[str]) -> Choice:
    r"""Read which of the options a reply chooses.

    >>> options = ["grasper", "hook", "scissors", "clip applier"]
    >>> read_choice("The answer is B. Note that A is a common distractor.", options)
    Choice(index=1, reading='ok', strict=None)
    >>> read_choice("(D) clip applier", options)
    Choice(index=3, reading='ok', strict=3)
    >>> [read_choice(reply, options).reading for reply in ("", "I cannot tell.", "A or C", "14", "A surgeon operates.")]
    ['empty', 'refused', 'ambiguous', 'out_of_range', 'unreadable']
    """
    known = _OptionTexts(options)
    text = normalise_reply(remove_reasoning(reply) or reply)[-_LONGEST:]
    if not any(character.isalnum() for character in text):
        return Choice(None, "empty", None)
    strict = _read_whole_reply(text, known)
    if strict is not None and strict >= 0:
        return Choice(strict, "ok", strict)
    code = strict if strict is not None else _read_prose(text, known)
    if code is None:
        return Choice(None, "refused" if REFUSAL.search(text) else "unreadable", None)
    if code < 0:
        return Choice(None, "ambiguous" if code == _AMBIGUOUS else "out_of_range", None)
    return Choice(code, "ok", None)


def _read_whole_reply(text: str, options: _OptionTexts) -> int | None:
    """The choice that is the whole text, or None."""
    head = _HEAD.match(text)
    for position in (0, head.end()) if head else (0,):
        choice = options.at(text, position)
        if choice is not None and _TAIL.match(text, choice.end):
            return choice.index
    return None


def _read_prose(text: str, options: _OptionTexts) -> int | None:
    following = _NEXT_QUESTION.search(text)
    if following and following.start() > 0:  # base models continue with a question they invent
        text = text[: following.start()]
    claims = _find_statements(text, options)
    stated = _decide([statement for statement in claims if not statement.tentative], text, options.count)
    if stated is not None:
        return stated
    lined = _read_lines(text, options)
    if lined is not None:
        return lined
    if REFUSAL.search(text):
        return None
    if claims:
        return _decide(claims, text, options.count)
    if NONE_OF_THEM.search(text):
        return _OUT_OF_RANGE
    return _read_mentions(text, options)


def _read_lines(text: str, options: _OptionTexts) -> int | None:
    """The choice that starts a line or ends the text."""
    starts: list[tuple[_Expression, _Statement]] = []
    position = 0
    for line in text.split("\n"):
        bullet = _BULLET.match(text, position)
        choice = options.at(text, bullet.end() if bullet else position)
        if choice and choice.end <= position + len(line) and _AFTER_LINE_CHOICE.match(text, choice.end):
            lone = bool(_TAIL.match(line, choice.end - position))
            # Numbers at the start of lines count steps; option texts may start any sentence.
            letter = choice.symbol and not choice.number
            if letter or lone or (choice.texted and (choice.number or position == 0)):
                starts.append((choice, _Statement(choice.index, position, choice.end, not lone or choice.texted)))
        position += len(line) + 1
    if trailing := _TRAILING.search(text[-16:]):
        start = len(text) - len(text[-16:]) + trailing.start(1)
        if (last := options.at(text, start)) is not None and last.index >= 0:
            starts.append((last, _Statement(last.index, start, last.end, False)))
    lone_letters = [statement for _, statement in starts if not statement.tentative]
    if lone_letters:
        return _decide(lone_letters, text, options.count)
    indexes = {choice.index for choice, _ in starts}
    in_range = {index for index in indexes if index >= 0} or indexes
    return in_range.pop() if len(in_range) == 1 else _AMBIGUOUS if in_range else None


def _read_mentions(text: str, options: _OptionTexts) -> int | None:
    """The only option that is mentioned and not ruled out, by letter or else by text."""
    letters = [(ord(match[1].upper()) - ord("A"), match) for match in BRACKETED.finditer(text)]
    by_letter = [Word(index, match.start(), match.end()) for index, match in letters if index < options.count]
    by_text = [Word(options.named(match), *match.span()) for match in options.anywhere.finditer(text)]
    mentioned = _not_ruled_out(text, by_letter) or _not_ruled_out(text, by_text)
    if not mentioned:
        return None
    return mentioned.pop() if len(mentioned) == 1 else _AMBIGUOUS


def _not_ruled_out(text: str, words: list[Word]) -> set[int]:
    """The options that are mentioned and neither denied nor called wrong."""
    numbers = set()
    at = 0
    for start, end, is_question in split_clauses(text):
        first = at
        while at < len(words) and words[at].start < end:
            at += 1
        inside = words[first:at]
        for word, is_denied in zip(inside, find_denied(text, inside, start, end), strict=True):
            if not (is_denied or is_question) and not RULED_OUT_AFTER.match(text, word.end):
                numbers.add(word.number)
    return numbers


_SYMBOL = re.compile(
    rf"(?P<before>{OPEN})(?P<noun>{NOUN})(?P<open>{OPEN})(?P<symbol>[A-Za-z]|\d{{1,4}})(?![\w’'-]\w)(?!\w|\.[a-z]\b)(?P<close>{CLOSE})",
    re.I,
)
_QUOTE = re.compile(OPEN)
# What may follow a letter that could be a word (a, A, I): the end, punctuation, or a word that starts no noun phrase.
_MARKS = r"[.,;:!?…)\]}>。，、；！？：]"
_STOP = re.compile(
    rf"$|\n| ?{_MARKS}| ?[/&=<]| ?(?:[-–—]|->|→) "
    r"| (?:because|since|as|for|and|or|but|due|is|was|would|which|given|based|if|"
    r"at|it is|seems|appears|looks|must|should|fits|matches)\b"
)
_FULL_STOP = re.compile(rf"$|\n| ?{_MARKS}")
_DECIMAL = re.compile(r"[.,]\d| ?%|°")
_DELIMITER = re.compile(r" ?[.:,)\]/=|–—-]{0,2} ?\n?" + OPEN)
_ALSO = r"(?:also |both |possibly |maybe |perhaps |even )?(?:the |an? )?"
_AND = re.compile(rf"(?: ?(?P<mark>[,/&+;])| ?,? ?(?:and|or|und|oder|as well as|and/or)\b) ?{_ALSO}")
_SECOND = re.compile(
    rf"{NOUN}(?:[{OPENING}]{{1,4}} ?(?P<held>[A-Za-z])(?!\w)(?![\"'] ?:)|(?P<bare>[A-Z])(?!\w|['’-]\w))"
)
_PHRASE_END = re.compile(rf"$|\n| ?{_MARKS}| ?[/&]| (?:and|or|are|both)\b")
_AFTER_AND = re.compile(rf"{_PHRASE_END.pattern}| (?:is|could|may|might|would|seem)")


@dataclass(frozen=True, slots=True)
class _Expression:
    """A choice written at one place of a reply: its index, or _AMBIGUOUS or _OUT_OF_RANGE; its end; and its form."""

    index: int
    end: int
    symbol: bool  # a letter or number, not an option's text alone
    marked: bool  # in brackets, after a noun such as "option", or before punctuation: cannot be a word
    number: bool = False
    texted: bool = False  # written with the option's own text


class _OptionTexts:
    """The options of one question, as a reply may write them.

    A letter counts only where it cannot be a word: "A surgeon", "I see", "C-arm" and "Answer" are not choices. Numbers
    count from 1, and only if no option is that number's text.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self.count = len(options)
        texts = [normalise_reply(option).rstrip(" .") for option in options]
        known = Counter(text.casefold() for text in texts)
        self.texts = {index: text for index, text in enumerate(texts) if text and known[text.casefold()] == 1}
        longest = sorted(self.texts, key=lambda index: -len(self.texts[index]))
        self._groups = longest
        words = ["[ _-]?".join(re.escape(word) for word in re.split(r"[ _-]", self.texts[k])) for k in longest]
        pattern = "|".join(f"({word})" for word in words) or "(?!)"
        self.anywhere = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.I)

    def named(self, match: re.Match[str]) -> int:
        """The option that `anywhere` has matched."""
        return self._groups[(match.lastindex or 1) - 1]

    def text_at(self, text: str, position: int) -> tuple[int, int] | None:
        """The option whose text is at a position, with or without quotes, and its end."""
        opened = _QUOTE.match(text, position)
        match = self.anywhere.match(text, opened.end() if opened else position) or self.anywhere.match(text, position)
        return (self.named(match), match.end()) if match else None

    def at(self, text: str, position: int) -> _Expression | None:
        """The choice written at a position; _AMBIGUOUS if a second one is joined to it ("A or C")."""
        choice = self._first_at(text, position)
        if choice is None or choice.index < 0:
            return choice
        end = self._second_end(text, choice.end, choice.index)
        return choice if end is None else _Expression(_AMBIGUOUS, end, symbol=choice.symbol, marked=True)

    def _first_at(self, text: str, position: int) -> _Expression | None:
        named = self.text_at(text, position)
        symbol = self._symbol_at(text, position)
        if symbol is None or (named and (symbol.number or named[1] > symbol.end)):
            return _Expression(named[0], named[1], symbol=False, marked=True, texted=True) if named else None
        return symbol

    def _second_end(self, text: str, end: int, index: int) -> int | None:
        """The end of a second, different choice that "and", "or" or a comma joins to the first; None without one."""
        joint = _AND.match(text, end)
        if joint is None:
            return None
        after = _PHRASE_END if joint["mark"] else _AFTER_AND  # "B, A is wrong" chooses B, "B or A is right" neither
        if letter := _SECOND.match(text, joint.end()):
            other = ord((letter["held"] or letter["bare"]).upper()) - ord("A")
            ends = letter["held"] or after.match(text, letter.end())
            return letter.end() if ends and other != index and other < self.count else None
        named = self.text_at(text, joint.end())
        return named[1] if named and named[0] != index and after.match(text, named[1]) else None

    def _symbol_at(self, text: str, position: int) -> _Expression | None:
        match = _SYMBOL.match(text, position)
        if match is None:
            return None
        sign = match["symbol"]
        marked = any(match[part].strip() for part in ("before", "noun", "open", "close"))
        if sign.isdigit():
            if _DECIMAL.match(text, match.end("symbol")) or not (marked or _FULL_STOP.match(text, match.end())):
                return None
            if named := self.text_at(text, match.start("symbol")):
                return _Expression(named[0], named[1], symbol=False, marked=True, texted=True)
            index = int(sign) - 1
            marked = True
        else:
            ended = bool(_STOP.match(text, match.end()))
            if not marked and not ended and (sign in "AI" or sign.islower()):
                return None
            marked = marked or bool(_FULL_STOP.match(text, match.end()))
            index = ord(sign.upper()) - ord("A")
        if not 0 <= index < self.count:
            return _Expression(_OUT_OF_RANGE, match.end(), symbol=True, marked=marked, number=sign.isdigit())
        return self._with_text(text, index, match.end(), marked, sign.isdigit())

    def _with_text(self, text: str, index: int, end: int, marked: bool, number: bool) -> _Expression:
        """The choice with the option text after it: its own text confirms it, that of another makes it ambiguous."""
        delimiter = _DELIMITER.match(text, end)
        named = self.text_at(text, delimiter.end()) if delimiter and delimiter.end() > end else None
        own = self._own_text(text, index, delimiter.end() if delimiter else end)
        if own is not None:
            return _Expression(index, own, symbol=True, marked=True, number=number, texted=True)
        same_line = delimiter is not None and "\n" not in delimiter[0]
        if named and same_line and self._ends_phrase(text, named[1]):
            return _Expression(_AMBIGUOUS, named[1], symbol=True, marked=True, number=number)
        return _Expression(index, end, symbol=True, marked=marked, number=number)

    def _own_text(self, text: str, index: int, position: int) -> int | None:
        own = self.texts.get(index)
        if own is None or text[position : position + len(own)].casefold() != own.casefold():
            return None
        return position + len(own)

    @staticmethod
    def _ends_phrase(text: str, end: int) -> bool:
        """Whether the phrase ends with the option's text: "B. Forceps" does, "B. Forceps are not used" does not."""
        return bool(_FULL_STOP.match(text, end))


@dataclass(frozen=True, slots=True)
class _Statement:
    """A choice that a reply states, such as "Answer: C", "the answer is (C)", "I choose C" or `{"answer": "C"}`.

    A tentative one ("it may be A") counts only if nothing else is stated; one that is denied or hypothetical ("if the
    answer were A") is no statement.
    """

    index: int
    start: int
    end: int
    tentative: bool
    kind: str = ""  # "answer" after a word for it, the start of a tag such as boxed, "" otherwise


_ANSWER = "answer"
_BOX_END = re.compile(r"(?:^|[^\w])([A-Z])[ )}\]]{0,6}$")
_DOUBTED = re.compile(r" ?\?")
_JOINT = re.compile(r"\b(?:and|or|und|oder)(?: (?:also|the|my|final|maybe|perhaps|possibly)){0,3}[ \n:]?$", re.I)
_REFUTED = re.compile(r" ?\?[ \n]?(?:no|not|nope|wrong|incorrect|hardly)\b", re.I)


def _find_statements(text: str, options: _OptionTexts) -> list[_Statement]:
    """Every stated choice of a normalised reply, ordered by where it ends."""
    every = [
        *_find_tagged(text, options),
        *_find_answers(text, options),
        *_find_after_verbs(text, options),
        *_find_subjects(text, options),
    ]
    standing = (statement for statement in every if not _REFUTED.match(text, statement.end))  # "Is it A? No."
    return sorted(standing, key=lambda statement: (statement.end, statement.start))


def _decide(stated: list[_Statement], text: str, count: int) -> int | None:
    """The choice that a reply ends with; _AMBIGUOUS if two different ones are side by side at its end.

    "Answer: C" at the end replaces earlier statements, because models correct themselves, unless "or" joins it to
    another answer or it ends a list of `count` answers, one per option.
    """
    if not stated:
        return None
    last = stated[-1]
    answers = [statement for statement in stated if statement.kind == _ANSWER]
    if answers and answers[-1].end == last.end:  # "is C" in "the answer is C" does not count separately
        return _AMBIGUOUS if _is_joined(text, answers) or _is_list(text, answers, count) else answers[-1].index
    for earlier in reversed(stated[:-1]):
        if earlier.kind != last.kind or not _are_adjacent(text, earlier, last):
            break
        if earlier.index not in (last.index, _OUT_OF_RANGE):
            return _AMBIGUOUS
    return last.index


def _are_adjacent(text: str, earlier: _Statement, last: _Statement) -> bool:
    """Whether only punctuation is between two statements, so that neither corrects the other."""
    between = text[earlier.end : last.start]
    return len(between) < 12 and not any(character.isalnum() for character in between)


def _is_joined(text: str, answers: list[_Statement]) -> bool:
    """Whether "and" or "or" joins the last answer to a different one: "answer: A or answer: C"."""
    if len(answers) < 2:
        return False
    earlier, last = answers[-2:]
    joint = _JOINT.search(text, earlier.start, last.start)
    if joint is None or earlier.index == last.index:
        return False
    return not any(character.isalnum() for character in text[earlier.end : joint.start()])


def _is_list(text: str, answers: list[_Statement], count: int) -> bool:
    """Whether the reply ends with an answer for every option, side by side; with two options it is a correction."""
    listed = {answers[-1].index}
    for earlier, later in zip(answers[-2::-1], answers[:0:-1], strict=True):
        if not _are_adjacent(text, earlier, later):
            break
        listed.add(earlier.index)
    return count > 2 and listed >= set(range(count))


def _find_answers(text: str, options: _OptionTexts) -> Iterator[_Statement]:
    for marker in ANSWER.finditer(text):
        if _is_unsaid(text, marker.start()) or (
            "would" in marker[0] and HYPOTHETICAL.search(_text_before(text, marker.start()))
        ):
            continue
        position = marker.end()
        if replaced := NOT_BUT.match(text, position):
            position = replaced.end()
        choice = options.at(text, position)
        if choice is None and NONE_OF_THEM.match(text, position):
            choice = _Expression(_OUT_OF_RANGE, position + 4, symbol=False, marked=True)
        if choice is not None and (choice.marked or not marker[0].endswith("\n")):
            yield _statement(text, marker.start(), choice, kind=_ANSWER)


def _find_after_verbs(text: str, options: _OptionTexts) -> Iterator[_Statement]:
    """Choices after a verb or "so": only letters that cannot be words."""
    for marker in VERB.finditer(text):
        choice = options.at(text, marker.end())
        if choice is None or not choice.symbol or choice.number or not choice.marked or choice.index == _OUT_OF_RANGE:
            continue
        if text[choice.end - 1] not in "Ii" and not _is_unsaid(text, marker.start()):
            yield _statement(text, marker.start(), choice, tentative=bool(marker["tentative"]))


def _find_subjects(text: str, options: _OptionTexts) -> Iterator[_Statement]:
    """Choices before a predicate: "C is correct", "Option C (forceps) is the best", "Forceps is right"."""
    reached = 0
    for mention in SUBJECT.finditer(text):
        choice = options.at(text, mention.start()) if mention.start() >= reached else None
        if choice is None or choice.index == _OUT_OF_RANGE:
            continue
        reached = choice.end  # B in "both A and B are correct" does not count separately
        yield from _read_predicate(text, mention.start(), choice)
    for named in options.anywhere.finditer(text):
        yield from _read_predicate(
            text, named.start(), _Expression(options.named(named), named.end(), symbol=False, marked=True)
        )


def _read_predicate(text: str, start: int, choice: _Expression) -> Iterator[_Statement]:
    """The statement that a choice and its predicate make; "B is correct only for hooks" is a tentative one."""
    verdict = PREDICATE.match(text, choice.end)
    if verdict and not _is_unsaid(text, start):
        condition = verdict["tentative"] or CONDITIONAL.match(text, verdict.end())
        yield _statement(text, start, choice, tentative=bool(condition))


def _find_tagged(text: str, options: _OptionTexts) -> Iterator[_Statement]:
    for tag in TAG.finditer(text):
        choice: _Expression | None = options.at(text, tag.end())
        if choice is None and tag[0].startswith("boxed"):
            choice = _read_box_end(text, tag.end(), options)
        if choice is not None:
            yield _Statement(choice.index, tag.start(), choice.end, False, tag[0][:5])


def _read_box_end(text: str, position: int, options: _OptionTexts) -> _Expression | None:
    """A letter at the end of the boxed text."""
    close = text.find("}", position, position + 200)
    match = _BOX_END.search(text[position:close]) if close >= 0 else None
    if match is None:
        return None
    return options.at(text, position + match.start(1))


def _statement(text: str, start: int, choice: _Expression, *, tentative: bool = False, kind: str = "") -> _Statement:
    tentative = tentative or bool(_DOUBTED.match(text, choice.end) or TENTATIVE.search(_text_before(text, start)))
    return _Statement(choice.index, start, choice.end, tentative, kind)


def _is_unsaid(text: str, start: int) -> bool:
    """Whether the words before a statement deny it or make it hypothetical."""
    before = _text_before(text, start)
    return bool(DENIED.search(before[-40:]) or UNSAID.search(before))


def _text_before(text: str, start: int) -> str:
    return text[max(0, start - 80) : start]
