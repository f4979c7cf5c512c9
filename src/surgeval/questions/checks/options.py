"""Checks of the options: how many, all different, one right, none that stands out, none that leans on another."""

from __future__ import annotations

import re
from statistics import median

from surgeval.questions.checks.kind import Facts, plain
from surgeval.questions.draft import LETTERS, Draft
from surgeval.questions.template import Rules

__all__ = ["option_count"]

_LEANS = re.compile(
    r"\b(?:all|none|both|any|either|neither) of (?:the )?(?:above|below|these|those|them)\b"
    r"|\b(?:both|neither) \(?[A-H]\)? (?:and|nor) \(?[A-H]\b|\boptions? \(?[A-H]\b",
    re.IGNORECASE,
)
_SLACK = 20  # characters that any option may be longer than its fellows
_PULL = re.compile(r"\b(?:traction|pull(?:s|ing|ed)?|tug(?:ging)?|drag(?:ging)?)\b", re.IGNORECASE)
# Where a clause ends: "No hurry, then I pull" denies the hurry alone.
_CLAUSE_END = re.compile(r"[,;:.!?()—–]|\s-\s|\b(?:then|but|until|I|we|he|she|they)\b", re.IGNORECASE)
_NO_ACT = re.compile(
    r"\b(?:not|never|cannot|\w{1,8}n['’]t|avoid\w*|refus\w+|rather than|instead of|stop\w*)(?!\w)", re.IGNORECASE
)
_NO_THING = re.compile(r"\b(?:no|without|free of|zero)\b", re.IGNORECASE)  # "no force and pull" denies the force alone
_NO_LIST = re.compile(  # "without pushing, twisting or" before "pulling"
    r"\b(?:no|without|not|never|avoid\w*)\s(?:\w{1,20}(?:ing|ion)\b(?:,\s?|\s)(?:(?:or|and)\s)?){1,4}$", re.IGNORECASE
)


def option_count(draft: Draft, wanted: int | None) -> str:
    """As many options as asked for (2 to 8 where nobody asked)."""
    count = len(draft.options)
    if wanted is not None and count != wanted:
        return f"{count} options, expected {wanted}"
    return "" if 2 <= count <= 8 else f"{count} options, expected 2 to 8"


def options_distinct(draft: Draft, rules: Rules, facts: Facts) -> str:
    """No two options are the same but for case, spacing and punctuation."""
    seen: dict[str, int] = {}
    for number, option in enumerate(draft.options):
        key = " ".join(re.findall(r"\w+", plain(option)))
        if key in seen:
            return f"options {LETTERS[seen[key] % 8]} and {LETTERS[number % 8]} are the same"
        seen[key] = number
    return ""


def one_answer(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Exactly one of the options is called right."""
    if len(draft.answers) != 1:
        return f"{len(draft.answers)} options are called right"
    return "" if draft.answers[0] < len(draft.options) else "the right option is none of the options"


def options_comparable(draft: Draft, rules: Rules, facts: Facts) -> str:
    """No option is more than twice as long as the options usually are, and the right one does not stand out."""
    lengths = [len(option) for option in draft.options]
    usual = median(lengths) if lengths else 0
    for number, length in enumerate(lengths):
        if length > 2 * usual + _SLACK:
            return f"option {LETTERS[number % 8]} has {length} characters, the others about {usual:.0f}"
    if len(draft.answers) == 1 and draft.answers[0] < len(lengths) > 1:
        right = draft.answers[0]
        second = max(length for number, length in enumerate(lengths) if number != right)
        if lengths[right] > 1.5 * second + _SLACK:
            return f"the right option has {lengths[right]} characters, the next longest {second}"
    return ""


def options_stand_alone(draft: Draft, rules: Rules, facts: Facts) -> str:
    """No option refers to another, so that their order can be changed."""
    for option in draft.options:
        if leaning := _LEANS.search(option):
            return f"{leaning[0]!r}"
    return ""


def habit_is_wrong(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Where a template asks for it: the older habit is among the wrong options."""
    if not rules.habit:
        return ""
    if draft.habit is None:
        return "no option is marked as the older habit"
    return "the right option is the older habit" if draft.habit in draft.answers else ""


def no_traction(draft: Draft, rules: Rules, facts: Facts) -> str:
    """At a breech birth the right option never pulls at the child."""
    if not rules.no_traction or len(draft.answers) != 1 or draft.answers[0] >= len(draft.options):
        return ""
    right = draft.options[draft.answers[0]]
    for pull in _PULL.finditer(right):
        if not _is_denied(right[max(0, pull.start() - 120) : pull.start()]):
            return f"{pull[0]!r} in the right option"
    return ""


def _is_denied(before: str) -> bool:
    """Whether the words before a pull say that it is not done; a denial counts only inside its clause."""
    clause = " ".join(_CLAUSE_END.split(before)[-1].split()[-5:])
    thing = re.split(r"\band\b", clause, flags=re.IGNORECASE)[-1]
    return bool(_NO_ACT.search(clause) or _NO_THING.search(thing) or _NO_LIST.search(before))
