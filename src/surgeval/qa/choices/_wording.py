"""The words by which models state, consider, deny or refuse a choice, as patterns over text in the one spelling.

All repeats are bounded and white space is single, so every pattern takes time linear in the reply.
"""

from __future__ import annotations

import re

__all__ = [
    "ANSWER",
    "BRACKETED",
    "CLOSE",
    "CLOSING",
    "CONDITIONAL",
    "CONSIDERED",
    "DENIED",
    "NONE_OF_THEM",
    "NOT_BUT",
    "NOUN",
    "OPEN",
    "OPENING",
    "PREDICATE",
    "REFUSAL",
    "RULED_OUT_AFTER",
    "RULED_OUT_BEFORE",
    "SUBJECT",
    "TAG",
    "VERB",
]

OPENING = r"(\[{<\"'“‘«【「『《〈|_"
CLOSING = r")\]}>\"'”’»】」』》〉|_"
OPEN = rf"[{OPENING}]{{0,4}} ?"
CLOSE = rf"(?: ?[{CLOSING}]{{1,4}})?"


def _any(*phrases: str) -> str:
    """A pattern for one of several phrases, given as comma-separated lists."""
    return "(?:" + "|".join(phrase.strip() for phrase in ", ".join(phrases).split(", ")) + ")"


_LABEL = _any("option, choice, letter, answer, number, alternative, statement")
NOUN = rf"(?:(?:the )?{_LABEL}s?(?: ?[:#] ?| |(?=[{OPENING}])))?"

_ADVERB = "(?: " + _any(
    "most likely, likely, probably, clearly, definitely, certainly, therefore, thus, hence, then, actually, simply",
    "indeed, obviously, still, now, also, best, correctly, given by, indicated by, represented by, labell?ed, in",
    "among, between, either",
) + ")?"  # fmt: skip
_IS = _any(
    "is, was, are, would be, would have to be, should be, must be, will be, has to be, might be, may be, could be",
    "seems to be, appears to be, remains, lies, ist, est, es, è",
)
_LINK = rf"(?: ?(?:[:=：]|->|=>|→|[-–—](?= ))|,?{_ADVERB} {_IS}{_ADVERB}(?: that)? ?[:=]?|是|为|為|\n)[ \n]?"
_CALLED = _any("answer, response, solution, antwort, réponse, respuesta, risposta, ответ")
_CALLED_ALSO = _any("option, choice, alternative, selection, pick, guess, conclusion, verdict, letter, result")
_OF_WHAT = (
    rf"(?: {_any('to, for, of, in')} {_any('this, the, that, your')}(?: \w{{1,20}})?"
    rf"(?: {_any('question, case, image, frame, picture, scenario')})?| here| that [^.,\n]{{1,60}}?)?"
)
# "the correct answer to this question is", "Answer:", "my choice would be"
ANSWER = re.compile(
    rf"(?:\b(?:{_CALLED}|{_CALLED_ALSO}(?! ?[a-z0-9]\b))(?: {_any('option, choice, letter')})?\b(?:\(s\))?"
    rf"{_OF_WHAT}|{_any('答案, 回答, 正解, 选择, 選擇, 正确选项')}){_LINK}(?:a: )?",
    re.I,
)
_IT_IS = r"(?: it is| it's)?"
# "I choose", "so it must be", "which corresponds to"
VERB = re.compile(
    rf"\b(?:choos(?:e|ing)|chose|select(?:ing|ed)?|pick(?:ing|ed)?|go(?:ing)? (?:with|for)|opt(?:ing)? for|settle on|"
    rf"say{_IT_IS}|(?:conclude|think|believe)(?: that)?{_IT_IS}|(?:it'?s|it is)(?: probably| likely)?|must be|"
    rf"has to be|leav(?:es|ing)(?: us with| only)?|therefore|thus|hence|so|consequently|matches|corresponds to|"
    rf"points to|refers to|indicates|probably|perhaps|maybe|likely|hmm|only|either|"
    rf"between|suggests|describe this \w{{1,20}} is),?:? (?:only )?",
    re.I,
)
_FIELD = _any("answer, choice, option, prediction, response, selection, letter, label")
_WHICH = _any("final, correct, selected, predicted, best")
# <answer>, \boxed{ (its backslash is gone), "answer":
TAG = re.compile(
    rf"<(?:final[_ ]?)?(?:answer|choice|option)> ?\n?|boxed ?\{{"
    rf"|[\"'](?:{_WHICH}[_ ]?)?{_FIELD}(?:[_ ]?{_any('letter, choice, option, label, id')})?[\"'] ?: ?",
    re.I,
)
SUBJECT = re.compile(
    rf"(?:\b{_LABEL} ?:? ?{OPEN}[A-Z]|(?<!\w)[(\[\"'][A-Z]"
    rf"|(?<![\w'’-])[A-Z])(?![\w'’-]\w)(?!\w){CLOSE}"
)
_FILLER = _any(
    "the, clearly, definitely, most likely, likely, probably, indeed, therefore, thus, still, only, one, single, a",
    "my, our",
)
_MOST = _any("answer, choice, likely, appropriate, suitable, plausible, accurate, consistent, probable")
# what follows a choice as subject: "is the correct answer", "(the forceps) seems right"
PREDICATE = re.compile(
    rf" ?[,:;.]? ?(?:\([^()\n]{{0,120}}\) ?,? ?)?"
    rf"{_any('is, are, was, would be, must be, seems(?: to be)?, appears(?: to be)?, looks, remains')}"
    rf"(?: {_FILLER}){{0,3}} (?:correct|right|best|answer|(?:final|most) {_MOST}|true|one)\b"
    rf"| (?:it is|matches|fits)\b| ?(?:✓|✔|✅|\(correct\))",
    re.I,
)
NOT_BUT = re.compile(
    rf"not {OPEN}(?:option |choice )?[A-Za-z](?!\w){CLOSE},? {_any('but, rather')}"
    rf"(?: rather| instead)?(?: option| choice)? ",
    re.I,
)
NONE_OF_THEM = re.compile(
    rf"\b(?:none|all) of (?:the {_any('above, options, choices, answers, given')}|these|them)\b|^none\b.?$", re.I
)
DENIED = re.compile(r"(?:\b(?:not|never|cannot|nor|neither|hardly|each|every)|n't)(?: \w{1,12}){0,2} ?$", re.I)
CONDITIONAL = re.compile(r"[^.!?\n]{0,12} (?:if|when|for|in case|unless)\b", re.I)
_SUPPOSE = _any("think, believe, assume, say, choose, pick, guess, suggest, argue, conclude")
CONSIDERED = re.compile(
    rf"\b(?:(?:may|might|could|can|would|tempt\w{{0,4}})(?: \w{{1,12}})? {_SUPPOSE}|"
    rf"{_any('if, whether, unless, why, tempting, tempted, at first, initially, assume, assuming, suppose')}|"
    rf"{_any('someone, some people, distractors?, example, such as, format, like, consider')})\b[^.!?\n]{{0,40}}$",
    re.I,
)
_CANNOT = _any("can ?not, can't, could not, couldn't, won't, will not, do not, don't, am not going to")
_SURELY = _any("really, reliably, confidently, definitively, accurately")
_PICTURE = _any("image, picture, video, frame, photo, images, pictures, frames")
_ACT = _any(
    "answer, determine, assist, help, provide, identify, tell, say, choose, select, know, comply, view, access, make a"
)
REFUSAL = re.compile(
    rf"\b(?:I|we)(?:'m| am|'re| are)? ?(?:really |truly |very )?"
    rf"{_any('sorry, unable to, not able to, not sure, unsure, uncertain, afraid')}\b"
    rf"|\b(?:I|we) {_CANNOT} (?:{_SURELY} )?(?:{_ACT}|see {_any('the, any, an, your')} {_PICTURE}|"
    rf"have {_any('access, enough, sufficient')})"
    rf"|\b{_any('cannot, can not, could not, not possible to, impossible to, difficult to')} (?:be )?"
    rf"{_any('determined?, answered?, identify, identified, tell, say')}\b"
    rf"|\b(?:unable|refuse|decline) to {_ACT}|\bas an ai\b"
    rf"|\b(?:insufficient|not (?:\w{{1,10}} )?enough) {_any('information, context, detail')}"
    rf"|\bno {_PICTURE} {_any('was, were, is, has been, have been')} {_any('provided, attached, shared, given')}"
    rf"|\b(?:consult|seek) {_any('a, an, your')} (?:qualified )?"
    rf"{_any('doctor, physician, surgeon, medical, healthcare')}",
    re.I,
)
BRACKETED = re.compile(r"(?:[(\[]|\b(?:option|choice|answer) [(\[\"']{0,2})([A-Z])(?![\w'’-])[)\]\"']{0,2}", re.I)
_BEFORE = _any(
    "not, no, nor, neither, never, without, than, instead of, except, excludes?, excluding, ruled? out",
    r"eliminat\w{1,4}, unlike, versus",
)
_BETWEEN = _any(
    "the, a, an, any, be, see, visible, option, choice, answer, really, actually, use, show, in, on, at, of"
)
RULED_OUT_BEFORE = re.compile(rf"(?:\b{_BEFORE}|n't)(?: {_BETWEEN}){{0,3}} ?[(\[\"']?$", re.I)
_WRONG = _any(
    "not, incorrect, wrong, false, ruled, excluded, absent, unlikely, less, eliminated, a distractor",
    "a common distractor",
)
RULED_OUT_AFTER = re.compile(
    rf"[)\]\"']? ?(?:\([^()\n]{{0,80}}\) ?)?(?:\?|{_any('is, are, was, were, can be, would be, seems, looks')}"
    rf"(?:n't| {_WRONG}\b)|does(?:n't| not)|do not|cannot|can't)",
    re.I,
)
