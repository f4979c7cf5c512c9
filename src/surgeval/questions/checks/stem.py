"""Checks of the question itself: who speaks, what it gives away, what it has to name."""

from __future__ import annotations

import re
import unicodedata

from surgeval.questions.checks.kind import Facts, content_words, plain
from surgeval.questions.draft import Draft
from surgeval.questions.template import Rules

_I = re.compile(r"(?<!type )(?<!stage )(?<!grade )(?<!class )(?<!level )(?<!segment )(?<!zone )\bI\b(?!\.\s*[a-z])")
_OTHERS = re.compile(
    r"\bthe (?:\w+ )?(?:surgeon|obstetrician|radiologist|clinician|physician|doctor|operator)(?: \w+)? "
    r"(?:is|was|has|should|must|needs?|will|does|wants?|looks?)\b",
    re.IGNORECASE,
)
_NUMBER = r"(?<![\d.,])[+-]?(?:\d{1,9}(?:[.,]\d{1,9})?|[.,]\d{1,9})"  # bounded: a reply may be one long number
_DIGIT_WORD = r"(?:\d{1,9}|one|two|three|four|five|six|seven|eight|nine|ten)"
_PLACE = r"(?:frame|image|picture|screen|view|width|height|left|right|top|bottom|edge)"
_FRACTION = r"0?[.,]\d{1,9}"
_UNIT = (
    r"(?:%|(?:percent|[µμmck]?g|mcg|[mdc]?l|[mc]?m|cc|i?u|units?|m?mol|m?s|sec|min|h|hours?|fr|french|joules?|j|w)\b)"
)
_COORDINATES = re.compile(
    rf"(?<!\d )\b[xy]\s*(?:[=:≈~]|is|at|of|coordinate)?\s*{_NUMBER}(?![\w])"  # x = 0.5, y 0.3
    rf"|[(\[]\s*{_NUMBER}(?:\s*[,;]\s*|\s{{1,3}}){_NUMBER}\s*[)\]]"  # (0.4, 0.6), [120 300]
    rf"|(?<![\w.,/]){_FRACTION}(?:\s{{0,3}}[,;/|×]\s{{0,3}}|\s{{1,3}}(?:(?:and|by|x)\s{{1,3}})?){_FRACTION}"  # 0.4 0.6
    rf"(?![\w/]|[.,]\d|\s?{_UNIT})"  # and no unit after it
    rf"|\bpixels?\s+{_NUMBER}"  # pixel 120 300
    r"|\b(?:rows?|lines?)\W{0,3}\d{1,9}\W{1,3}(?:and\s)?col(?:umn)?s?\W{0,3}\d{1,9}|\b(?:row|column)s?\s\d{3,9}\b"
    r"|\bcol(?:umn)?s?\W{0,3}\d{1,9}\W{1,3}(?:and\s)?(?:row|line)s?\W{0,3}\d{1,9}"
    rf"|\b(?:gaze |fixation |eye )?points?\s*(?:#|no\.?|number|index)?\s*{_DIGIT_WORD}\b"
    rf"|\b(?:fixations?|gaze)\s*(?:#|no\.?|number|index|sample)\s*{_DIGIT_WORD}\b|\bfixations?\s+\d{{1,9}}\b"
    r"|\bcoordinates?\b|\bnormali[sz]ed (?:position|location)"
    rf"|{_NUMBER}\s*(?:px|pixels?)\b"
    rf"|(?:{_NUMBER}\s*(?:%|percent)|(?<![\d.,])0?[.,]\d{{1,9}})\s*(?:of|from|along|across|down)\s+"
    rf"(?:the\s+)?(?:\w+\s+)?{_PLACE}\b",
    re.IGNORECASE,
)
_WHERE = re.compile(
    r"\bwhere\b|\b(?:which|what) (?:\w+ ){0,2}(?:areas?|regions?|parts?|zones?|locations?|fields?|sites?)\b",
    re.IGNORECASE,
)


def first_person(draft: Draft, rules: Rules, facts: Facts) -> str:
    """The question speaks as "I", not about the surgeon."""
    if other := _OTHERS.search(draft.question):
        return f"{other[0]!r} speaks of somebody else"
    return "" if _I.search(draft.question) else 'no "I" in the question'


def no_coordinates(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Neither question nor options hold coordinates or numbers of points."""
    for text in (draft.question, *draft.options):
        leak = _COORDINATES.search(unicodedata.normalize("NFKC", text))
        if leak:
            return f"{leak[0].strip()!r}"
    return ""


def where_question(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Where a template asks only for evidence: the question asks for a region."""
    return "the question asks for no region" if rules.where_only and not _WHERE.search(draft.question) else ""


def stem_names_scene(draft: Draft, rules: Rules, facts: Facts) -> str:
    """A trap's question names the procedure, the phase and the site."""
    stem = plain(draft.question)
    missing = []
    for field in rules.stem_names:
        words = content_words(getattr(facts, field))
        if words and sum(word in stem for word in words) * 2 < len(words):
            missing.append(field)
    return f"the question does not name the {' and the '.join(missing)}" if missing else ""
