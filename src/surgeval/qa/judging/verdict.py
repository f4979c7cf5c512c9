"""Reading a judge's reply: one word, or nothing.

A substring search reads "Not correct", "uncorrected" and "I cannot tell whether it is correct" as a yes. Here the
verdict must be the whole reply, or stand alone on its first line with nothing after it that takes it back.
"""

from __future__ import annotations

import re
import unicodedata

from surgeval.qa.judging.vote import VoteState
from surgeval.qa.reasoning import remove_reasoning
from surgeval.qa.screening.views import shown

__all__ = ["parse_verdict", "parse_verdict_of_original"]

_LABEL = re.compile(r"\A(?:the )?(?:final )?(?:verdict|answer|judge?ment|decision)\s*(?::|is|=)\s*")
_DECORATION = " \t\"'`*_#<>[](){}“”‘’«».!"
_TAKES_BACK = re.compile(r"correct|wrong|mistake|verdict|actually|however|wait|\bnot\b|\bbut\b")


def parse_verdict(text: str | None) -> tuple[VoteState, str]:
    r"""State and reason of a reply: `correct`, `incorrect`, `unparsed`, or `error` for an empty one.

    >>> parse_verdict("**Correct.**")[0], parse_verdict("<think>is it CORRECT? no</think>\nINCORRECT")[0]
    ('correct', 'incorrect')
    >>> parse_verdict("Not correct")
    ('unparsed', 'the reply “Not correct” is not one of CORRECT and INCORRECT')
    """
    if text is None:
        return "unparsed", "the reply has no text (content null)"
    plain = shown(unicodedata.normalize("NFKC", text))
    if not plain.strip():
        return "error", "the reply is empty"
    answer = remove_reasoning(plain)
    text = plain.strip() if answer is None else answer.strip()
    first, _, rest = text.partition("\n")
    if text:
        rest += plain.rpartition(text)[2]  # reasoning after the verdict
    word = _LABEL.sub("", first.strip(_DECORATION).casefold()).strip(_DECORATION)
    reply = f"the reply “{_short(plain)}”"
    if word not in ("correct", "incorrect"):
        return "unparsed", f"{reply} is not one of CORRECT and INCORRECT"
    if _TAKES_BACK.search(rest.casefold()):
        return "unparsed", f"{reply} goes on after its verdict with words that may take it back"
    return ("correct" if word == "correct" else "incorrect"), f"{reply} says {word}"


def parse_verdict_of_original(text: str) -> tuple[VoteState, str]:
    """orena-focus 0.4: CORRECT somewhere and INCORRECT nowhere is a yes, all else a no.

    >>> parse_verdict_of_original("Not correct")[0]
    'correct'
    """
    upper = text.upper()
    yes = "CORRECT" in upper and "INCORRECT" not in upper
    return ("correct" if yes else "incorrect"), f"the reply “{_short(text)}” by substring"


def _short(text: str) -> str:
    text = " ".join(shown(text).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
