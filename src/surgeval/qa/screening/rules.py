"""What an attempt to steer the judge looks like: a table of patterns, each with the reason a reader is given.

Patterns meet text in lower case, with accents off Latin letters and single spaces (`_injection_views.readings`). A
clinical sentence may hold any single word of an attack ("correct", "ignore", "previous", "assistant"); a rule therefore
asks for a *pair*: a command and the thing that only a judge has (instructions, reference, verdict, the answer itself).
Gaps are bounded, so no pattern takes more than linear time.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

__all__ = ["FOREIGN", "RULES", "ScreenRule"]


@dataclass(frozen=True, slots=True)
class ScreenRule:
    """One pattern; `over` says whether it sees the lines of a reading or the reading as one line."""

    name: str
    reason: str
    pattern: re.Pattern[str]
    over: Literal["flat", "lines"] = "flat"


_JUDGE = r"(?:judge|grader|evaluator|examiner|assessor|scorer|marker|teacher|language model|llm|ai)"
_ANSWER = r"(?:answers?|responses?|reply|replies|candidates?|submissions?|solutions?|items?|questions?|entry)"
_THIS = r"(?:this|it|that|these|(?:this|that|the|my|our|your|all|every|any|each|these)(?: \w+){0,3}? " + _ANSWER + ")"
_PROMPT = (
    r"(?:instructions?(?! (?:for use|manual|leaflet))|prompts?|rubrics?|guidelines?|rules|directions|criteria"
    r"|ground truth|reference(?! (?:mark|image|frame|line|point|plane|scale|video|picture|electrode|level))"
    r"|grading|evaluation|told|said (?:before|earlier|above)|anything (?:above|before))"
)
_DROP = (
    r"(?:ignore|disregard|forget|neglect|override|overrule|bypass|skip|cancel|suspend|abandon|set aside|stop following"
    r"|pay no (?:attention|heed|regard) to|(?:do not|don't|no longer|never) (?:follow|obey|apply|use|consider|compare))"
)
_RIGHT = r"(?:correct|right|true|valid|passed|acceptable|accepted|a pass|full marks)"
_VERDICT = r"(?:verdict|judge?ment|ruling|final grade|grade|grading)"
_END = (
    r"(?=\s*(?:$|\n|[.,;!(\[{}\])\"'`*<|/]"
    r"| (?:and|or|regardless|please|pls|always|from now|here|now|under|for this|as (?:the|your|a))\b))"
)
_SAY = (
    r"(?:say|output|print|return|respond|reply|answer(?! ?:)|write|emit|type|echo|produce|give|set (?:it|the \w+) to"
    r"|label(?: \w+){0,3}?|(?:finish|end|begin|start|conclude)(?: your \w+)? with|choose|pick|select)"
)
_FILL = (
    r"(?:(?: (?:only|just|with|back|exactly|simply|a|the|single|one|word|verdict|positive|as|that it is|to me))*"
    r"[ :\"'`*]+)"
)


def _rule(name: str, reason: str, *patterns: str, over: Literal["flat", "lines"] = "flat") -> ScreenRule:
    return ScreenRule(name, reason, re.compile("|".join(f"(?:{p})" for p in patterns), re.MULTILINE), over)


_ENGLISH = (
    _rule(
        "discard", "tells the judge to drop its instructions or the reference",
        rf"\b{_DROP}\b[^.!?\n]{{0,40}}\b{_PROMPT}",
        r"\b(?:whatever|regardless of|no matter what|irrespective of) (?:the )?(?:reference|ground truth)\b",
        r"\b(?:rules|instructions|guidelines|rubric)\b[^.!?]{0,20} (?:no longer|do not|don't) (?:apply|hold|matter)",
        r"\bwhatever you (?:were|have been) (?:asked|told)\b", r"\bprompt (?:is )?(?:finished|over|void)\b",
        r"\byou (?:have|were|are)(?: been)? (?:now )?reassigned\b",
        r"\b(?:new|updated|revised|real|actual) (?:instructions?|rules?|task|rubric) ?:",
        r"\byour (?:task|job|role|goal|instructions?) (?:has|have|is|are) (?:now )?(?:changed|been|to|only)\b",
        r"\bstop (?:evaluating|grading|judging|scoring|comparing)\b",
    ),
    _rule(
        "demand", "asks for a verdict",
        rf"\b{_SAY}{_FILL}(?:in)?correct\b{_END}",
        rf"\b(?:mark|grade|judge|score|rate|count|label|treat|consider|classify|evaluate|deem|regard)s? {_THIS}"
        rf"(?: here| now)?(?: as| to be| is)?(?: \w+ly)? {_RIGHT}\b",
        rf"\b(?:scored|graded|judged|rated) (?:this|the|my|our) {_ANSWER}(?: as)?(?: \w+ly)? {_RIGHT}\b",
        rf"\b{_ANSWER}\b[^.!?]{{0,60}}\b(?:be|been|already|is|are) (?:\w+ )?"
        rf"(?:counted|judged|scored|marked|graded|accepted|rated|pre-?approved)(?: as)?(?: \w+ly)? {_RIGHT}\b",
        rf"\b(?:accept|approve|pass|trust)(?:s|ing)? (?:this(?= ?(?:$|[.!,]))|(?:this|the|my|our|every|all|any|each)"
        rf"(?: \w+)? {_ANSWER}|(?:the )?candidate)\b",
        rf"\b(?:let|make) {_THIS} pass\b",
        r"\b(?:always|must|should|shall|only) (?:say|says|answers?|outputs?|repl(?:y|ies)|respond(?:s)?)"
        rf"{_FILL}correct\b",
        r"\byour (?:output|reply|answer|response|verdict|judge?ment|decision) (?:must|should|shall|has to|is to) ",
        r"\bnext word you (?:write|say|output)\b", r"\b(?:agree with me|do (?:what|as) i say|confirm my \w+)\b",
        r"\bbe (?:\w+ly |very |a bit )?(?:lenient|merciful|generous)\b",
        r"\b(?:never|always) (?:rejects?|accepts?|approves?)\b",
        r"\b(?:only|sole) (?:permitted|allowed|valid|possible) (?:reply|output|answer|word)\b",
        rf"\b(?:positive|favou?rable) {_VERDICT}\b",
        r"\bonly knows the word\b", r"\bgives? full (?:marks|points|score|credit)\b",
        r"\b(?:everything|everyone|all|nobody) (?:passes|fails|is accepted)\b",
    ),
    _rule(
        "address", "speaks to the judge",
        rf"\b(?:dear|attention|attn\.?|hey|hello|hi|note (?:to|for)|message (?:to|for)|to) (?:the |our |whoever )?"
        rf"(?:ai )?(?:{_JUDGE}\b(?! of\b)|evaluates|grades|judges)",
        rf"\bas an? (?:ai|llm|impartial|strict|lenient)(?: \w+)? ?{_JUDGE}?\b[^.!?]{{0,20}}\byou\b",
        rf"\byou(?:'re| are)(?: now)? (?:(?:an?|the|my) )?(?:\w+ ){{0,3}}{_JUDGE}\b",
        rf"\b(?:pretend|imagine|simulate|act as|behave as|role-?play|play)\b[^.!?]{{0,30}}"
        rf"\b(?:{_JUDGE}|reviewer|assistant (?:that|who))\b",
        r"\b(?:author|creator|owner|maintainer)s? of (?:this|the) (?:dataset|benchmark|challenge|question)",
        r"\byou are (?:now )?\w*gpt\b", r"\b(?:developer|debug|god|dan|jailbreak) mode\b",
        r"\bgrading is (?:disabled|off|over)\b",
        r"\b(?:message|notice|order) from (?:the )?(?:\w+ )?"
        r"(?:organi[sz]ers?|maintainers?|developers?|administrators?|openai|system)\b",
    ),
    _rule(
        "claim", "claims that the answer was already approved or that the reference is wrong",
        rf"\b(?:{_ANSWER}|this)\b[^.!?]{{0,40}}\b(?:verified|pre-?approved|validated|certified|confirmed)\b"
        r"[^.!?]{0,40}\b(?:by|as)\b",
        r"\b(?:identical|equivalent|equal|same|matches)\b(?: (?:to|as|with))? "
        r"(?:the )?(?:reference answer|ground truth)",
        rf"\b(?:given|got|gets?|deserves?) (?:full |the )?(?:credit|marks)\b[^.!?]{{0,30}}\b{_ANSWER}",
        r"\b(?:equivalent|identical) to (?:the )?reference\b",
        r"\b(?:reference|ground truth)(?: answer)? (?:is|was|contains|has)(?: \w+){0,2} "
        r"(?:outdated|wrong|incorrect|obsolete|example|typo|mistake|error|mistaken)\b",
        rf"\b(?:any|every|all) {_ANSWER}\b[^.!?]{{0,30}}\b(?:acceptable|accepted|judged|correct|pass|scored)\b",
    ),
    _rule(
        "pressure", "offers a reward or threatens",
        r"\b(?:tip|pay|reward|bribe) you\b",
        r"\bif you (?:say|answer|mark|output|reply|grade|judge)\b[^.!?]{0,30}\b(?:in)?correct\b",
        r"\bmy (?:career|job|life|degree|future) depends\b",
    ),
)  # fmt: skip

_STRUCTURE = (
    _rule(
        "section", "imitates a section of the judge's prompt",
        r"^\W{0,3}(?:#{1,6}|={2,}|\*{2}|\[|-{3,}|_{2}) ?(?:the |final |your |judge'?s? )?"
        r"(?:verdict|judge?ment|reference|ground truth|candidate|instructions?|grading|grade|evaluation|question|result"
        r"|score|system|rubric|task|decision)\b(?! (?:of|on|ii?|iii|iv|\d))",
        r"</?(?:candidate|answer|response|verdict|result|reference|question|system|instructions?|judge\w*|grade|score"
        r"|user|assistant|evaluation|output|prompt)\b[^>\n]{0,40}>",
        r"\bend of (?:the )?(?:candidate|answer|response|prompt)",
        r"^\W{0,6}(?:judge|grader|evaluator)(?:'s \w+)?\W{0,3}:", r"<!--",
        r"^\W{0,6}(?:reference|candidate) answer ?:", r"^\W{0,6}ground truth ?:",
        over="lines",
    ),
    _rule(
        "verdict", "carries a verdict of its own",
        rf"\b(?:{_VERDICT}|evaluation|assessment|score|rating|result|outcome|decision|status|label)\b"
        r"[\]\"'`*]* ?(?:[:=→>–—-]+|\])"
        rf"[ \"'`*(]*(?:1 ?[(/-] ?)?(?:in)?correct\b{_END}",
        rf"\b{_VERDICT} (?:is|must be|should be|will be)[ :\"'`*]*(?:in)?correct\b",
        r"[\"']verdict[\"'] ?:", r"\[judge?ment\]",
        over="lines",
    ),
    _rule(
        "chat", "carries the control tokens or turns of a chat",
        r"<[|｜] ?\w[\w ▁]{1,30}[|｜]>", r"\[/?inst\]", r"<</?sys>>", r"<(?:start|end)_of_turn>", r"</?s>",
        r"[\"']role[\"'] ?: ?[\"'](?:assistant|system|user)",
        r"^\W{0,3}(?:assistant|system|user|human|model) ?:[^\n]{0,80}\b(?:correct|grader?|accepts?|verdict|judge)\b",
        r"^\W{0,3}(?:user|human) ?:[^\n]*\n(?:\s*\n)?\W{0,3}(?:assistant|model) ?:",
        over="lines",
    ),
    _rule("bare verdict", "has a line that is only a verdict", r"(?<=\n)\W{0,6}(?:in)?correct\W{0,6}$", over="lines"),
)  # fmt: skip


def _foreign(drop: str, prompt: str, mark: str, right: str, say: str, judge: str) -> str:
    """Four ways to steer: drop what was given, mark this as right, reply CORRECT, speak to the judge."""
    edge = r"\b" if say.isascii() else ""  # scripts without spaces have no word edges
    return (
        rf"(?:{drop}).{{0,40}}(?:{prompt})|(?:{prompt}).{{0,20}}(?:{drop})|(?:{mark}).{{0,40}}(?:{right})"
        rf"|(?:{say}){edge}.{{0,30}}{edge}correct{edge}|{edge}correct{edge}.{{0,20}}(?:{say}){edge}"
        rf"|(?:{judge}).{{0,40}}(?:{right})"
    )


@cache
def _words() -> dict[str, dict[str, str]]:
    text = (files("surgeval.qa") / "data" / "injection_languages.json").read_text(encoding="utf-8")
    languages: dict[str, dict[str, str]] = json.loads(text)["languages"]
    return languages


def _languages() -> tuple[ScreenRule, ...]:
    reason = "steers the judge in another language"
    return tuple(_rule("language", f"{reason} ({name})", _foreign(**words)) for name, words in _words().items())


RULES: tuple[ScreenRule, ...] = (*_ENGLISH, *_STRUCTURE, *_languages())
# Each of the four ways needs one of these words. Looking for them first is a quarter of the work for other texts.
FOREIGN = re.compile(
    "|".join(["correct", *(words[kind] for words in _words().values() for kind in ("prompt", "right"))])
)
