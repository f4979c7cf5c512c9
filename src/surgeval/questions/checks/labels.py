"""Checks of what the generator says about its own question, against the rules and what is known of the scene."""

from __future__ import annotations

import re
from collections.abc import Sequence

from surgeval.questions.checks.kind import Facts, plain
from surgeval.questions.draft import LETTERS, Draft
from surgeval.questions.template import Rules

_SHORTEST_REASON, _LONGEST_REASON = 8, 400  # characters
# The thing itself ends where its explanation begins.
_HEAD = re.compile(
    r"[,;:(—–]| - | because | for | to | that | which | while | since | as | near | beside | behind | next "
)


def known_skill(draft: Draft, rules: Rules, facts: Facts) -> str:
    """The skill is one of the six."""
    return "" if draft.skill else f"the skill {draft.called[:60]!r}"


def perceptual_labels(draft: Draft, rules: Rules, facts: Facts) -> str:
    """In a perceptual trap exactly the right option is visible."""
    return _exactly(draft, "visible", "absent") if draft.trap == "perceptual" else ""


def cognitive_labels(draft: Draft, rules: Rules, facts: Facts) -> str:
    """In a cognitive trap exactly the right option rejects the premise."""
    return _exactly(draft, "rejects", "accepts") if draft.trap == "cognitive" else ""


def _exactly(draft: Draft, right: str, wrong: str) -> str:
    if len(draft.labels) != len(draft.options) or set(draft.labels) - {right, wrong}:
        return f"options are labelled {', '.join(label or 'nothing' for label in draft.labels) or 'nothing'}"[:200]
    labelled = [number for number, label in enumerate(draft.labels) if label == right]
    if len(labelled) != 1:
        return f"{len(labelled)} options are labelled {right}"
    return (
        ""
        if tuple(labelled) == draft.answers
        else f"option {LETTERS[labelled[0] % 8]} is labelled {right} and not right"
    )


def labels_match_scene(draft: Draft, rules: Rules, facts: Facts) -> str:
    """What is labelled visible is known to be in the pictures, what is labelled absent is not."""
    if draft.trap != "perceptual" or not facts.visible:
        return ""
    seen = {plain(name) for name in (*facts.visible, *facts.actions)}
    unseen = {plain(name) for name in facts.absent} - seen
    for number, (option, label) in enumerate(zip(draft.options, draft.labels, strict=False)):
        named = _named(option, (*seen, *unseen))
        letter = LETTERS[number % 8]
        if label == "absent" and (visible := next((name for name in named if name in seen), "")):
            return f"option {letter} is labelled absent, and the record says that {visible!r} is seen"
        if label == "visible" and named and not any(name in seen for name in named):
            return f"option {letter} is labelled visible, and the record says that {named[0]!r} is not seen"
        if label == "visible" and not named:
            return f"option {letter} is labelled visible, and the record knows nothing of the kind"
    return ""


def _named(option: str, names: Sequence[str]) -> list[str]:
    """The known things that an option names before it explains itself; the longest names win."""
    known = sorted({name for name in names if name}, key=len, reverse=True)
    if not known:
        return []
    pattern = re.compile(rf"\b({'|'.join(re.escape(name) for name in known)})(?:e?s)?\b")
    text = plain(option)
    head = _HEAD.split(f"{text} ", maxsplit=1)[0]
    return pattern.findall(head) or pattern.findall(text)[:1]


def trap_reasons(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Each option of a trap carries a short reason."""
    if draft.trap is None:
        return ""
    for number in range(len(draft.options)):
        reason = draft.reasons[number] if number < len(draft.reasons) else ""
        if not _SHORTEST_REASON <= len(reason) <= _LONGEST_REASON:
            return f"option {LETTERS[number % 8]} has a reason of {len(reason)} characters"
    return ""


def gaze_told(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Where gaze counts: the question says whether its answer depends on it."""
    return (
        "not said whether the answer depends on the gaze"
        if rules.gaze_dependent and draft.gaze_dependent is None
        else ""
    )


def look_alone(draft: Draft, rules: Rules, facts: Facts) -> str:
    """A trap is decided by looking alone."""
    return "looking alone does not decide it" if rules.look_alone and draft.observable is not True else ""


def source_year(draft: Draft, rules: Rules, facts: Facts) -> str:
    """A guideline is named with its year, and the year is recent enough."""
    if rules.years is None or draft.source_kind != "guideline":
        return ""
    low, high = rules.years
    if not draft.source:
        return "a guideline without a name"
    if draft.year is None:
        return f"{draft.source[:60]!r} without a year"
    return "" if low <= draft.year <= high else f"{draft.source[:60]!r} of {draft.year}, expected {low} to {high}"
