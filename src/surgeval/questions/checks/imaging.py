"""Checks of questions about images: the site stays hidden, and words fit what a mammogram can show."""

from __future__ import annotations

import re

from surgeval.questions.checks.kind import Facts, plain
from surgeval.questions.draft import Draft
from surgeval.questions.template import Rules

_SITE = re.compile(
    r"\bleft\b(?! (?:to|for|over|out)\b)"
    r"|\bright\b(?! (?:now|away|after|before|answer|option|one|here|at)\b)"
    r"|\b(?:upper|lower|mid(?:dle)?|apical|apex|apices|basal|basilar|bibasilar|bases|hilar|hilum|perihilar|retrocardiac"
    r"|costophrenic|cardiophrenic|lingul\w+|lobes?|lobar|quadrants?|axillary|retroareolar|subareolar|peripheral"
    r"|superior|inferior|medial|lateral|anterior|posterior|inner|outer|bilateral(?:ly)?"
    r"|(?:supero|infero|antero|postero)(?:superior|inferior|medial|lateral)(?:ly)?)\b"
    r"|\b\d{1,2} ?o'?clock\b"
)
_COMMON = frozenset(
    [
        "lung",
        "lungs",
        "breast",
        "chest",
        "area",
        "region",
        "zone",
        "side",
        "field",
        "image",
        "view",
        "tissue",
        "wall",
        "left",
        "right",
    ]  # sides are looked for above, where they are no other word
)
_VIEW_NAMES = re.compile(r"\bcranio ?caudal\b|\bmedio ?lateral(?: oblique)?\b")
_UP_DOWN = re.compile(  # also in compounds: superolateral, anteroinferior
    r"\b(?:upper|lower)(?:most)?\b|\b[ul][oi]q\b|\b(?:supero|infero|cranio|caudo)\w{0,20}|\b(?:crani|caud)a[ld](?:ly)?\b"
    r"|\b\w{0,12}(?:superior|inferior)(?:ly|most)?\b"
)
_SIDES = re.compile(
    r"\b(?:inner|outer)(?:most)?\b|\b[ul][oi]q\b|\b(?:medio|latero)\w{0,20}"
    r"|\b(?:supero|infero|antero|postero|cranio|caudo)?(?:medial|lateral)(?:ly|most)?\b"
)


def site_hidden(draft: Draft, rules: Rules, facts: Facts) -> str:
    """An image's question does not say where the finding is."""
    word = site_word(draft.question, facts) if rules.hides_site else ""
    return f"{word!r} gives the site away" if word else ""


def site_word(text: str, facts: Facts) -> str:
    """The first word of a text that says where a finding is; "" where none does."""
    told = plain(text)
    if match := _SITE.search(told):
        return match[0]
    for location in (*facts.locations, facts.site):
        words = [word for word in plain(location).split() if word not in _COMMON and len(word) > 3]
        if known := next((word for word in words if re.search(rf"\b{re.escape(word)}\b", told)), ""):
            return known
    return ""


def view_words(draft: Draft, rules: Rules, facts: Facts) -> str:
    """A mammogram's CC view has no upper and lower, its MLO view no precise medial and lateral."""
    if not rules.view_words:
        return ""
    view = _view(facts.view) or _view(draft.question)
    unfit = {"CC": _UP_DOWN, "MLO": _SIDES}.get(view)
    for text in (draft.question, *draft.options) if unfit else ():
        if unfit and (word := unfit.search(_VIEW_NAMES.sub(" ", plain(text)))):
            return f"{word[0]!r} in a {view} view"
    return ""


def _view(text: str) -> str:
    known = plain(text)
    if re.search(r"\bcc\b|\bcranio ?caudal\b", known):
        return "CC"
    return "MLO" if re.search(r"\bmlo\b|\bmedio ?lateral oblique\b", known) else ""
