"""Patterns for the words with which models state, consider, deny or refuse a choice.

They apply to replies as `normalise_reply` returns them. There, white space is a single character, so bounded repeats
reach across any gap and every pattern takes time linear in the reply.
"""

from __future__ import annotations

import re

from surgeval.qa.answer_formats.text import visible_text

__all__ = ["ANSWER", "BRACKETED", "CLOSE", "CLOSING", "CONDITIONAL", "DENIED", "HYPOTHETICAL", "NONE_OF_THEM",
           "NOT_BUT", "NOUN", "OPEN", "OPENING", "PREDICATE", "REFUSAL", "RULED_OUT_AFTER", "SUBJECT", "TAG",
           "TENTATIVE", "UNSAID", "VERB", "normalise_reply"]  # fmt: skip

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
    "seems to be, appears to be, remains, lies, to be, with, ist, est, es, è",
)
_LINK = rf"(?: ?(?:[:=：]|->|=>|→|[-–—](?= ))|,?{_ADVERB} {_IS}\b{_ADVERB}(?: that)? ?[:=]?|是|为|為|\n)[ \n]?"
_CALLED = _any("answer, response, solution, antwort, réponse, respuesta, risposta, ответ")
_CALLED_ALSO = _any("option, choice, alternative, selection, pick, guess, conclusion, verdict, letter, result")
# "answer to this question is", "option that fits best is"; not "answer depends on whether it is"
_NOT_THEN = _any("not, depends, whether, if, unless, because, is, are, was")
_OF_WHAT = rf"(?:(?: (?!{_NOT_THEN}\b)[\w'’-]{{1,20}}){{1,8}}?(?= {_IS}\b))?"
# "the correct answer to this question is", "Answer:", "my choice would be"
ANSWER = re.compile(
    rf"(?:\b(?:{_CALLED}|{_CALLED_ALSO}(?! ?[a-z0-9]\b))(?: {_any('option, choice, letter')})?\b(?:\(s\))?"
    rf"{_OF_WHAT}|{_any('答案, 回答, 正解, 选择, 選擇, 正确选项')}){_LINK}(?:a: )?",
    re.I,
)
_IT_IS = r"(?: it is| it's)?"
_TENTATIVELY = _any("probably, perhaps, maybe, possibly, likely, hmm, either, between, could be, may be, might be")
# "I choose", "so it must be", "which corresponds to"
VERB = re.compile(
    rf"(?:\b(?:choos(?:e|ing)|chose|select(?:ing|ed)?|pick(?:ing|ed)?|go(?:ing)? (?:with|for)|opt(?:ing)? for|"
    rf"settle on|say{_IT_IS}|(?:conclude|think|believe)(?: that)?{_IT_IS}|it'?s(?: probably| likely)?|"
    rf"is(?: probably| likely)?|"
    rf"must be|has to be|leav(?:es|ing)(?: us with| only)?|therefore|thus|hence|so|consequently|matches|corresponds to|"
    rf"points to|refers to|indicates|suggests|only|guess|"
    rf"(?P<tentative>{_TENTATIVELY}))"
    rf",?:? |选择? ?|選擇? ?)(?:only )?",
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
    rf"(?:\b{_LABEL} ?:? ?{OPEN}[A-Za-z]|(?<!\w)[{OPENING}][A-Za-z]"
    rf"|(?<![\w'’-])[A-Za-z])(?![\w'’-]\w)(?!\w){CLOSE}"
)
_FILLER = _any(
    "the, clearly, definitely, most likely, likely, probably, indeed, therefore, thus, still, only, one, single, a",
    "my, our",
)
_MOST = _any("answer, choice, likely, appropriate, suitable, plausible, accurate, consistent, probable")
# what follows a choice as subject: "is the correct answer", "(the forceps) seems right"
PREDICATE = re.compile(
    rf" ?[,:;.]? ?(?:\([^()\n]{{0,120}}\) ?,? ?)?"
    rf"(?:{_any('is, are, was, must be, seems(?: to be)?, appears(?: to be)?, looks, remains')}"
    rf"|(?P<tentative>would be))"
    rf"(?: {_FILLER}){{0,3}} (?:correct|right|best|better|answer|(?:final|most|more) {_MOST}|true|one)\b"
    rf"| (?:it is|matches|fits)\b| ?[:–—-] ?(?:correct|yes|true)\b|[.:)]? ?(?:✓|✔|✅|\(correct\))",
    re.I,
)
NOT_BUT = re.compile(
    rf"not {OPEN}(?:option |choice )?[A-Za-z](?!\w){CLOSE},? {_any('but, rather')}"
    rf"(?: rather| instead)?(?: option| choice)? ",
    re.I,
)
NONE_OF_THEM = re.compile(
    rf"\b(?:none|all) of (?:the {_any('above, options, choices, answers, given')}|these|them)\b|\bnone(?=$|[.,;\n])",
    re.I,
)
DENIED = re.compile(r"(?:\b(?:not|never|cannot|nor|neither|hardly|each|every)|n't)(?: \w{1,12}){0,2} ?$", re.I)
CONDITIONAL = re.compile(r"[^.!?\n]{0,12} (?:if|when|for|in case|unless)\b", re.I)
_SUPPOSE = _any("think, believe, assume, say, choose, pick, guess, suggest, argue, conclude")
_WORDS = r"(?: [\w'’]{1,12}){0,5} ?"
# before a statement that is not made: "if the answer is A", "one might think that the answer is A"
UNSAID = re.compile(
    rf"\b(?:(?:may|might|could|can|would|tempt\w{{0,4}})(?: \w{{1,12}})? {_SUPPOSE}|"
    rf"{_any('if, whether, unless, why, tempting, tempted, assume, assuming, suppose, someone, some people')}|"
    rf"{_any('distractors?, example, such as, format, like, consider')}){_WORDS}$",
    re.I,
)
# before "the answer would be B"
HYPOTHETICAL = re.compile(r"\b(?:if|had|were)\b[^.!?\n]{0,70}$", re.I)
TENTATIVE = re.compile(r"\b(?:at first|initial(?:ly)?|first thought)\b[^.!?\n]{0,40}$", re.I)
_CANNOT = _any("can ?not, can't, could not, couldn't, won't, will not, do not, don't, am not going to")
_SURELY = _any("really, reliably, confidently, definitively, accurately")
_PICTURE = _any("image, picture, video, frame, photo, images, pictures, frames")
_ACT = _any(
    "answer, determine, assist, help, provide, identify, tell, say, choose, select, know, comply, view, access, make a"
)
REFUSAL = re.compile(
    rf"\b(?:I|we)(?:'m| am|'re| are)? ?(?:really |truly |very )?"
    rf"{_any('sorry, unable to, not able to, unsure, uncertain, afraid')}\b"
    rf"|\bnot sure\b|\bno idea\b|\bnot allow {_any('me, us')} to\b"
    rf"|\b(?:I|we) {_CANNOT} (?:{_SURELY} )?(?:{_ACT}|see {_any('the, any, an, your')} {_PICTURE}|"
    rf"have {_any('access, enough, sufficient')})"
    rf"|\b{_any('cannot, can not, could not, not possible to, impossible to, difficult to')} (?:be )?"
    rf"{_any('determined?, answered?, identify, identified, tell, say')}\b"
    rf"|\b(?:unable|refuse|decline) to {_ACT}|\bas an? (?:ai|language model)\b"
    rf"|\b(?:can't|cannot|can not) see (?:{_any('the, any, an, your')} )?{_PICTURE}\b"
    rf"|\b(?:insufficient|not (?:\w{{1,10}} )?enough) {_any('information, context, detail')}"
    rf"|\bno {_PICTURE} {_any('was, were, is, has been, have been')} {_any('provided, attached, shared, given')}"
    rf"|\b(?:consult|seek) {_any('a, an, your')} (?:qualified )?"
    rf"{_any('doctor, physician, surgeon, medical, healthcare')}",
    re.I,
)
BRACKETED = re.compile(r"(?:[(\[]|\b(?:option|choice|answer) [(\[\"']{0,2})([A-Z])(?![\w'’-])[)\]\"']{0,2}", re.I)
_WRONG = _any(
    "not, incorrect, wrong, false, ruled, excluded, absent, unlikely, less, eliminated, a distractor",
    "a common distractor",
)
RULED_OUT_AFTER = re.compile(
    rf"[)\]\"']? ?(?:\([^()\n]{{0,80}}\) ?)?(?:\?|{_any('is, are, was, were, can be, would be, seems, looks')}"
    rf"(?:n't| {_WRONG}\b)|does(?:n't| not)|do not|cannot|can't)",
    re.I,
)


_LATEX = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|sf|it|tt)|bf|rm|displaystyle)(?![A-Za-z])")
_CHAT_TOKEN = re.compile(r"<\|[a-z_]{1,20}\|>|</?s>|\[/?INST\]|<(?:start|end)_of_turn>|<eos>", re.I)
_ESCAPED_LINE = re.compile(r"\\n(?![a-z])")
_MARKUP = re.compile(r"[*`$#\\~]|__")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_CIRCLED = {
    start + k: first + k
    for start, first, count in (
        (0x24B6, 65, 26), (0x24D0, 97, 26), (0x1F130, 65, 26), (0x1F150, 65, 26), (0x1F170, 65, 26), (0x2460, 49, 9),
    )
    for k in range(count)
}  # fmt: skip


def normalise_reply(text: str) -> str:
    r"""The text without markup, LaTeX commands and chat tokens, with single spaces and plain letters for circled ones.

    >>> normalise_reply("**Answer:**   $\\boxed{\\text{C}}$")
    'Answer: boxed{{C}}'
    >>> normalise_reply("Ⓑ"), normalise_reply("（Ｂ）")
    ('B', '(B)')
    """
    plain = visible_text(text.translate(_CIRCLED)) if not text.isascii() else text
    plain = _ESCAPED_LINE.sub("\n", _LATEX.sub("", _CHAT_TOKEN.sub(" ", plain)))
    return _LINES.sub("\n", _SPACES.sub(" ", _MARKUP.sub("", plain))).strip()
