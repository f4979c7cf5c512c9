"""The checks of one written question: functions that say what is wrong with it, or "" if nothing is.

A check is declared with `question_check`. Its name is the function's name with hyphens, its claim the first line of the
docstring. `CHECKS` has all checks, those of batches and sets too; other packages add theirs by an entry point of the
group `surgeval.question_checks`. The reasons are shown to the generator, which then repairs its questions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any, Literal, TypeAlias

from surgeval.questions.drafts import LETTERS, Draft, Facts, find_site_word, normalise_text
from surgeval.questions.prompt_templates import Rules
from surgeval.registry import Registry

__all__ = ["CHECKS", "Fault", "QuestionCheck", "Scope", "check_claims", "check_question", "checks_of", "question_check"]

Scope: TypeAlias = Literal["question", "batch", "set", "probe"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A check that failed: its name, the question, batch or set, and the reason.

    >>> str(Fault("first-person", "op1.relative", "no I"))
    'op1.relative: first-person: no I'
    """

    check: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.check}: {self.reason}" if self.where else f"{self.check}: {self.reason}"


@dataclass(frozen=True, slots=True)
class QuestionCheck:
    """A check. `find` gets what its scope has and says what is wrong; `needs` names what items may lack.

    | scope | arguments of `find` | result |
    | --- | --- | --- |
    | question | draft, rules, facts | a reason, "" if the question is sound |
    | batch | the drafts of one reply, rules | a reason, or "" |
    | set | drafts by id | a reason, or "" |
    | probe | the set, the rows of its probe | pairs of place and reason |
    """

    name: str
    claim: str
    scope: Scope
    needs: str
    find: Callable[..., Any]


def question_check(
    scope: Scope = "question", *, needs: Literal["", "labels", "scene", "gaze", "batch", "probe"] = ""
) -> Callable[[Callable[..., Any]], QuestionCheck]:
    """Declare a check.

    >>> @question_check()
    ... def ends_with_mark(draft, rules, facts):
    ...     "The question ends with a question mark."
    ...     return "" if draft.question.endswith("?") else "no question mark"
    >>> ends_with_mark.name, ends_with_mark.claim
    ('ends-with-mark', 'The question ends with a question mark.')
    """

    def declare(find: Callable[..., Any]) -> QuestionCheck:
        claim = (find.__doc__ or "").strip().partition("\n")[0]
        return QuestionCheck(find.__name__.replace("_", "-"), claim, scope, needs, find)

    return declare


_HERE, _SETS = __name__, "surgeval.questions.set_checks"
_TARGETS = (
    (_HERE, "known-skill first-person no-coordinates where-question stem-names-scene options-distinct one-answer "
            "options-comparable options-stand-alone habit-is-wrong no-traction site-hidden view-words "
            "perceptual-labels cognitive-labels labels-match-scene trap-reasons gaze-told look-alone source-year "
            "option-count"),
    (_SETS, "six-skills enough-gaze enough-sources not-always-longest positions-balanced answer-not-longest "
            "questions-distinct not-guessable gaze-confirmed"),
)  # fmt: skip
CHECKS: Registry[QuestionCheck] = Registry(
    "surgeval.question_checks",
    {name: f"{module}:{name.replace('-', '_')}" for module, names in _TARGETS for name in names.split()},
    QuestionCheck,
    "question check",
)


@cache
def checks_of(scope: Scope) -> tuple[QuestionCheck, ...]:
    """The checks of a scope, in their order.

    >>> [check.name for check in checks_of("set")]
    ['positions-balanced', 'answer-not-longest', 'questions-distinct']
    """
    return tuple(check for check in CHECKS.load_all().values() if check.scope == scope)


def check_claims() -> dict[str, str]:
    """Every check with its claim.

    >>> check_claims()["first-person"]
    'The question speaks as "I", not about the surgeon.'
    """
    return {name: check.claim for name, check in CHECKS.load_all().items()}


def check_question(
    draft: Draft, rules: Rules, facts: Facts | None = None, *, options: int | None = None, where: str = ""
) -> list[Fault]:
    """Apply the checks of one question; `options` is the number of options it must have.

    >>> draft = Draft("relative", "What is at x=0.5?", ("hook", "clip"), (0,))
    >>> [str(fault) for fault in check_question(draft, Rules())]
    ['first-person: no "I" in the question', "no-coordinates: 'x=0.5'"]
    """
    rules = rules if options is None else rules.model_copy(update={"options": options})
    found = [(check.name, check.find(draft, rules, facts or Facts())) for check in checks_of("question")]
    return [Fault(name, where, reason) for name, reason in found if reason]


_SMALL = frozenset(
    ["the", "and", "with", "from", "into", "onto", "near", "over", "under", "this", "that", "for", "its", "right"]
)


def content_words(text: str) -> tuple[str, ...]:
    """The meaningful words of a name, cut to what their forms share.

    >>> content_words("Dissection of the Calot triangle")
    ('disse', 'calot', 'trian')
    """
    words = re.findall(r"[^\W\d_]{3,}", normalise_text(text))
    return tuple(word[:5] for word in words if word not in _SMALL)


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


@question_check()
def first_person(draft: Draft, rules: Rules, facts: Facts) -> str:
    """The question speaks as "I", not about the surgeon."""
    if other := _OTHERS.search(draft.question):
        return f"{other[0]!r} speaks of somebody else"
    return "" if _I.search(draft.question) else 'no "I" in the question'


@question_check()
def no_coordinates(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Neither question nor options hold coordinates or numbers of points."""
    for text in (draft.question, *draft.options):
        leak = _COORDINATES.search(unicodedata.normalize("NFKC", text))
        if leak:
            return f"{leak[0].strip()!r}"
    return ""


@question_check()
def where_question(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Where a template asks only for evidence: the question asks for a region."""
    return "the question asks for no region" if rules.where_only and not _WHERE.search(draft.question) else ""


@question_check()
def stem_names_scene(draft: Draft, rules: Rules, facts: Facts) -> str:
    """A trap's question names the procedure, the phase and the site."""
    stem = normalise_text(draft.question)
    missing = []
    for field in rules.stem_names:
        words = content_words(getattr(facts, field))
        if words and sum(word in stem for word in words) * 2 < len(words):
            missing.append(field)
    return f"the question does not name the {' and the '.join(missing)}" if missing else ""


_LEANS = re.compile(
    r"\b(?:all|none|both|any|either|neither) of (?:the )?(?:above|below|these|those|them)\b"
    r"|\b(?:both|neither) \(?[A-H]\)? (?:and|nor) \(?[A-H]\b|\boptions? \(?[A-H]\b",
    re.IGNORECASE,
)
_SLACK = 20  # characters by which any option may exceed the others
_PULL = re.compile(r"\b(?:traction|pull(?:s|ing|ed)?|tug(?:ging)?|drag(?:ging)?)\b", re.IGNORECASE)
# Where a clause ends: "No hurry, then I pull" denies only the hurry.
_CLAUSE_END = re.compile(r"[,;:.!?()—–]|\s-\s|\b(?:then|but|until|I|we|he|she|they)\b", re.IGNORECASE)
_NO_ACT = re.compile(
    r"\b(?:not|never|cannot|\w{1,8}n['’]t|avoid\w*|refus\w+|rather than|instead of|stop\w*)(?!\w)", re.IGNORECASE
)
_NO_THING = re.compile(r"\b(?:no|without|free of|zero)\b", re.IGNORECASE)  # "no force and pull" denies only the force
_NO_LIST = re.compile(  # "without pushing, twisting or" before "pulling"
    r"\b(?:no|without|not|never|avoid\w*)\s(?:\w{1,20}(?:ing|ion)\b(?:,\s?|\s)(?:(?:or|and)\s)?){1,4}$", re.IGNORECASE
)


@question_check()
def option_count(draft: Draft, rules: Rules, facts: Facts) -> str:
    """As many options as required (2 to 8 by default)."""
    count, wanted = len(draft.options), rules.options
    if wanted is not None and count != wanted:
        return f"{count} options, expected {wanted}"
    return "" if 2 <= count <= 8 else f"{count} options, expected 2 to 8"


@question_check()
def options_distinct(draft: Draft, rules: Rules, facts: Facts) -> str:
    """No two options are the same but for case, spacing and punctuation."""
    seen: dict[str, int] = {}
    for number, option in enumerate(draft.options):
        key = " ".join(re.findall(r"\w+", normalise_text(option)))
        if key in seen:
            return f"options {LETTERS[seen[key] % 8]} and {LETTERS[number % 8]} are the same"
        seen[key] = number
    return ""


@question_check()
def one_answer(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Exactly one of the options is called right."""
    if len(draft.answers) != 1:
        return f"{len(draft.answers)} options are called right"
    return "" if draft.answers[0] < len(draft.options) else "the right option is none of the options"


@question_check()
def options_comparable(draft: Draft, rules: Rules, facts: Facts) -> str:
    """No option is more than twice as long as the median, and the right one is not much longer than the others."""
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


@question_check()
def options_stand_alone(draft: Draft, rules: Rules, facts: Facts) -> str:
    """No option refers to another, so that their order can be changed."""
    for option in draft.options:
        if leaning := _LEANS.search(option):
            return f"{leaning[0]!r}"
    return ""


@question_check()
def habit_is_wrong(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Where a template asks for it: the older habit is among the wrong options."""
    if not rules.habit:
        return ""
    if draft.habit is None:
        return "no option is marked as the older habit"
    return "the right option is the older habit" if draft.habit in draft.answers else ""


@question_check()
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
    """Whether the words before a pull deny it; a denial counts only inside its clause."""
    clause = " ".join(_CLAUSE_END.split(before)[-1].split()[-5:])
    thing = re.split(r"\band\b", clause, flags=re.IGNORECASE)[-1]
    return bool(_NO_ACT.search(clause) or _NO_THING.search(thing) or _NO_LIST.search(before))


_SHORTEST_REASON, _LONGEST_REASON = 8, 400  # characters
# Where the explanation of an option begins, after the thing it names.
_HEAD = re.compile(
    r"[,;:(—–]| - | because | for | to | that | which | while | since | as | near | beside | behind | next "
)


@question_check()
def known_skill(draft: Draft, rules: Rules, facts: Facts) -> str:
    """The skill is one of the six."""
    return "" if draft.skill else f"the skill {draft.called[:60]!r}"


@question_check(needs="labels")
def perceptual_labels(draft: Draft, rules: Rules, facts: Facts) -> str:
    """In a perceptual trap exactly the right option is visible."""
    return _exactly(draft, "visible", "absent") if draft.trap == "perceptual" else ""


@question_check(needs="labels")
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


@question_check(needs="scene")
def labels_match_scene(draft: Draft, rules: Rules, facts: Facts) -> str:
    """What is labelled visible is known to be in the pictures, what is labelled absent is not."""
    if draft.trap != "perceptual" or not facts.visible:
        return ""
    seen = {normalise_text(name) for name in (*facts.visible, *facts.actions)}
    unseen = {normalise_text(name) for name in facts.absent} - seen
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
    """The known things that an option names before its explanation; longer names come first."""
    known = sorted({name for name in names if name}, key=len, reverse=True)
    if not known:
        return []
    pattern = re.compile(rf"\b({'|'.join(re.escape(name) for name in known)})(?:e?s)?\b")
    text = normalise_text(option)
    head = _HEAD.split(f"{text} ", maxsplit=1)[0]
    return pattern.findall(head) or pattern.findall(text)[:1]


@question_check(needs="labels")
def trap_reasons(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Each option of a trap carries a short reason."""
    if draft.trap is None:
        return ""
    for number in range(len(draft.options)):
        reason = draft.reasons[number] if number < len(draft.reasons) else ""
        if not _SHORTEST_REASON <= len(reason) <= _LONGEST_REASON:
            return f"option {LETTERS[number % 8]} has a reason of {len(reason)} characters"
    return ""


@question_check(needs="gaze")
def gaze_told(draft: Draft, rules: Rules, facts: Facts) -> str:
    """Where gaze counts: the question says whether its answer depends on it."""
    return (
        "not said whether the answer depends on the gaze"
        if rules.gaze_dependent and draft.gaze_dependent is None
        else ""
    )


@question_check()
def look_alone(draft: Draft, rules: Rules, facts: Facts) -> str:
    """A trap is decided by looking alone."""
    return "looking alone does not decide it" if rules.look_alone and draft.observable is not True else ""


@question_check()
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


_VIEW_NAMES = re.compile(r"\bcranio ?caudal\b|\bmedio ?lateral(?: oblique)?\b")
_UP_DOWN = re.compile(  # also in compounds: superolateral, anteroinferior
    r"\b(?:upper|lower)(?:most)?\b|\b[ul][oi]q\b|\b(?:supero|infero|cranio|caudo)\w{0,20}|\b(?:crani|caud)a[ld](?:ly)?\b"
    r"|\b\w{0,12}(?:superior|inferior)(?:ly|most)?\b"
)
_SIDES = re.compile(
    r"\b(?:inner|outer)(?:most)?\b|\b[ul][oi]q\b|\b(?:medio|latero)\w{0,20}"
    r"|\b(?:supero|infero|antero|postero|cranio|caudo)?(?:medial|lateral)(?:ly|most)?\b"
)


@question_check()
def site_hidden(draft: Draft, rules: Rules, facts: Facts) -> str:
    """An image's question does not say where the finding is."""
    word = find_site_word(draft.question, facts) if rules.hides_site else ""
    return f"{word!r} gives the site away" if word else ""


@question_check()
def view_words(draft: Draft, rules: Rules, facts: Facts) -> str:
    """A mammogram's CC view has no upper and lower, its MLO view no precise medial and lateral."""
    if not rules.view_words:
        return ""
    view = _view(facts.view) or _view(draft.question)
    unfit = {"CC": _UP_DOWN, "MLO": _SIDES}.get(view)
    for text in (draft.question, *draft.options) if unfit else ():
        if unfit and (word := unfit.search(_VIEW_NAMES.sub(" ", normalise_text(text)))):
            return f"{word[0]!r} in a {view} view"
    return ""


def _view(text: str) -> str:
    known = normalise_text(text)
    if re.search(r"\bcc\b|\bcranio ?caudal\b", known):
        return "CC"
    return "MLO" if re.search(r"\bmlo\b|\bmedio ?lateral oblique\b", known) else ""
