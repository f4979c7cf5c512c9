"""Checks of the six questions of one reply together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from surgeval.questions.draft import Draft
from surgeval.questions.template import Rules, skills

__all__ = ["BATCH_CHECKS", "longest_answer"]


def six_skills(drafts: Sequence[Draft], rules: Rules) -> str:
    """Exactly six questions, one for each skill."""
    counts = Counter(draft.skill for draft in drafts)
    odd = [f"{counts[name]} for {name}" for name in skills() if counts[name] != 1]
    if len(drafts) != len(skills()):
        odd.insert(0, f"{len(drafts)} questions")
    return ", ".join(odd)


def enough_gaze(drafts: Sequence[Draft], rules: Rules) -> str:
    """At least as many questions depend on the gaze as the template asks for."""
    count = sum(draft.gaze_dependent is True for draft in drafts)
    return (
        f"{count} of {len(drafts)} depend on the gaze, expected {rules.gaze_dependent}"
        if count < rules.gaze_dependent
        else ""
    )


def enough_sources(drafts: Sequence[Draft], rules: Rules) -> str:
    """At least as many questions rest on a recent guideline or a rare lethal detail as the template asks for."""
    count = sum(draft.source_kind in ("guideline", "rare") and bool(draft.source) for draft in drafts)
    return f"{count} of {len(drafts)} name a source, expected {rules.sources}" if count < rules.sources else ""


def not_always_longest(drafts: Sequence[Draft], rules: Rules) -> str:
    """The right option is not the longest every time."""
    told = [longest_answer(draft) for draft in drafts]
    return "the right option is the longest of each question" if len(told) > 2 and all(told) else ""


def longest_answer(draft: Draft) -> bool:
    """Whether the right option is longer than every other."""
    lengths = [len(option) for option in draft.options]
    right = draft.answers[0] if len(draft.answers) == 1 and draft.answers[0] < len(lengths) else None
    return right is not None and all(length < lengths[right] for n, length in enumerate(lengths) if n != right)


BATCH_CHECKS = (six_skills, enough_gaze, enough_sources, not_always_longest)
