"""How options are shown to a model: a letter each, and a request for the form that `read_choice` reads best."""

from __future__ import annotations

import string
from collections.abc import Sequence

from surgeval.errors import BadInput

__all__ = ["choice_prompt", "letters"]


def letters(n: int) -> tuple[str, ...]:
    """The letters of n options.

    >>> letters(4)
    ('A', 'B', 'C', 'D')
    """
    if not 0 <= n <= len(string.ascii_uppercase):
        raise BadInput(f"options: found {n}, expected at most {len(string.ascii_uppercase)}, one for each letter")
    return tuple(string.ascii_uppercase[:n])


def choice_prompt(question: str, options: Sequence[str]) -> str:
    """The question, its options under letters, and how to answer.

    >>> print(choice_prompt("Which instrument is circled?", ["grasper", "hook"]))
    Which instrument is circled?
    A. grasper
    B. hook
    Choose exactly one option. End your reply with "Answer: X", where X is its letter.
    """
    lines = [
        f"{letter}. {' '.join(option.split())}" for letter, option in zip(letters(len(options)), options, strict=True)
    ]
    request = 'Choose exactly one option. End your reply with "Answer: X", where X is its letter.'
    return "\n".join([question.strip(), *lines, request])
