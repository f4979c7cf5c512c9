"""The automatic checks of written questions: each a named function; every failure says which check and what it found.

`check_question` applies those of one question, `check_batch` those of the six of one reply, `check_set` those of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from surgeval.questions.checks.batch import BATCH_CHECKS
from surgeval.questions.checks.imaging import site_hidden, view_words
from surgeval.questions.checks.kind import Check, Facts, Fault, name_of
from surgeval.questions.checks.labels import (
    cognitive_labels,
    gaze_told,
    known_skill,
    labels_match_scene,
    look_alone,
    perceptual_labels,
    source_year,
    trap_reasons,
)
from surgeval.questions.checks.options import (
    habit_is_wrong,
    no_traction,
    one_answer,
    option_count,
    options_comparable,
    options_distinct,
    options_stand_alone,
)
from surgeval.questions.checks.set import SET_CHECKS, LongestBias, longest_bias
from surgeval.questions.checks.stem import first_person, no_coordinates, stem_names_scene, where_question
from surgeval.questions.draft import Draft
from surgeval.questions.template import Rules

__all__ = ["CHECKS", "Facts", "Fault", "LongestBias", "check_batch", "check_names", "check_question", "check_set",
           "longest_bias"]  # fmt: skip

CHECKS: tuple[Check, ...] = (
    known_skill, first_person, no_coordinates, where_question, stem_names_scene, options_distinct, one_answer,
    options_comparable, options_stand_alone, habit_is_wrong, no_traction, site_hidden, view_words, perceptual_labels,
    cognitive_labels, labels_match_scene, trap_reasons, gaze_told, look_alone, source_year,
)  # fmt: skip


def check_names() -> dict[str, str]:
    """Every check with its claim.

    >>> check_names()["first-person"]
    'The question speaks as "I", not about the surgeon.'
    """
    every: tuple[Callable[..., str], ...] = (*CHECKS, option_count, *BATCH_CHECKS, *SET_CHECKS)
    return {name_of(check): (check.__doc__ or "").strip().splitlines()[0] for check in every}


def check_question(
    draft: Draft, rules: Rules, facts: Facts | None = None, *, options: int | None = None, where: str = ""
) -> list[Fault]:
    """What is wrong with one question.

    >>> draft = Draft("relative", "What is at x=0.5?", ("hook", "clip"), (0,))
    >>> [str(fault) for fault in check_question(draft, Rules())]
    ['first-person: no "I" in the question', "no-coordinates: 'x=0.5'"]
    """
    known = facts or Facts()
    told = [(name_of(check), check(draft, rules, known)) for check in CHECKS]
    told.append((name_of(option_count), option_count(draft, options)))
    return [Fault(name, where, reason) for name, reason in told if reason]


def check_batch(drafts: Sequence[Draft], rules: Rules, where: str = "") -> list[Fault]:
    """What is wrong with the six questions of one reply together.

    >>> [fault.check for fault in check_batch([], Rules())]
    ['six-skills']
    """
    told = [(name_of(check), check(drafts, rules)) for check in BATCH_CHECKS]
    return [Fault(name, where, reason) for name, reason in told if reason]


def check_set(drafts: Mapping[str, Draft]) -> list[Fault]:
    """What is wrong with a set of questions as a whole.

    >>> check_set({})
    []
    """
    told = [(name_of(check), check(drafts)) for check in SET_CHECKS]
    return [Fault(name, "the set", reason) for name, reason in told if reason]
