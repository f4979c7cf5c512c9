"""Rules that find attempts to steer the judge: patterns with their reasons, and a weighted vocabulary.

Patterns apply to readings of an answer (`text_views.readings`). A clinical sentence may contain any single word of an
attack ("correct", "ignore", "previous", "assistant"); a rule therefore requires a *pair*: a command, and a thing that
only a judge has (instructions, reference, verdict, the answer itself). Gaps are bounded, so time is linear.

`find_grading_words` covers attacks that no phrase list foresees. Clinical answers use one word about grading now and
then ("the examiner sees the duct", "the count is CORRECT"); an attack needs several kinds of them: the judge, the
reference, the answer itself, a verdict, an order. Each kind counts once, and at least one must be an anchor, a word
that only grading uses: "right" and "you" are anatomy and advice.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

__all__ = ["FOREIGN", "RULES", "ScreenRule", "find_grading_words"]


@dataclass(frozen=True, slots=True)
class ScreenRule:
    """One pattern. `over` says whether it is applied to the lines of a reading or to the reading as one line."""

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


def _foreign_pattern(drop: str, prompt: str, mark: str, right: str, say: str, judge: str) -> str:
    """Four attacks: drop the instructions, mark this as right, reply CORRECT, address the judge."""
    edge = r"\b" if say.isascii() else ""  # scripts without spaces have no word boundaries
    return (
        rf"(?:{drop}).{{0,40}}(?:{prompt})|(?:{prompt}).{{0,20}}(?:{drop})|(?:{mark}).{{0,40}}(?:{right})"
        rf"|(?:{say}){edge}.{{0,30}}{edge}correct{edge}|{edge}correct{edge}.{{0,20}}(?:{say}){edge}"
        rf"|(?:{judge}).{{0,40}}(?:{right})"
    )


@cache
def _read_languages() -> dict[str, dict[str, str]]:
    text = (files("surgeval.qa") / "data" / "injection_languages.json").read_text(encoding="utf-8")
    languages: dict[str, dict[str, str]] = json.loads(text)["languages"]
    return languages


def _language_rules() -> tuple[ScreenRule, ...]:
    reason = "steers the judge in another language"
    return tuple(
        _rule("language", f"{reason} ({name})", _foreign_pattern(**words)) for name, words in _read_languages().items()
    )


RULES: tuple[ScreenRule, ...] = (*_ENGLISH, *_STRUCTURE, *_language_rules())
# Each of the four attacks needs one of these words. Searching for them first takes a quarter of the time.
FOREIGN = re.compile(
    "|".join(["correct", *(words[kind] for words in _read_languages().values() for kind in ("prompt", "right"))])
)


_THRESHOLD = 3


def _kind(weight: int, *patterns: str, anchor: bool = False) -> tuple[int, bool, re.Pattern[str]]:
    return weight, anchor, re.compile("|".join(patterns))


_NOUN = r"(?=\s*(?:$|[.,;:!?)]|(?:answers?|says|is|was|differs|and|or|contains|for|to|but)\b))"  # not "reference clip"
_KINDS = (
    _kind(
        2,
        r"\bjudges\b(?! (?:this|the|it)\b)", r"\bjudge\b(?! (?:this|that|the|it|of|by|from|how|whether)\b)",
        r"\b(?:grader|evaluator|examiner|assessor|scorer)\b(?! of\b)",
        r"\b(?:organi[sz]ers?|leaderboard|benchmark|grading (?:model|system|process))\b",
        anchor=True,
    ),
    _kind(
        2,
        rf"\breference{_NOUN}", rf"\bthe key{_NOUN}(?! (?:is|was) to\b)", r"\bground truth\b", r"\brubric\b",
        r"\b(?:gold|expected|model|official)(?: standard)? answer", r"\banswer key\b", r"\berrat(?:a|um)\b",
        r"参考答案|标准答案|模範解答|эталон", r"\b(?:musterlosung|referenz)\b",
        anchor=True,
    ),
    _kind(2, rf"\bcandidate(?:'s)?{_NOUN}(?! for\b)", anchor=True),
    _kind(2, r"\bverdict\b(?! (?:of|on)\b)", anchor=True),
    _kind(2, r"\byour (?:\w+ )?(?:guidelines?|instructions?|rules|prompt|rubric)\b", anchor=True),
    _kind(
        1,  # the answer about itself; clinical answers are about the scene
        r"\b(?:this|my|our) (?:answer|response|reply|submission|entry|item)\b", r"\bwhat i wrote\b",
        r"\b(?:every|all|any|each|no) (?:answers?|repl(?:y|ies)|responses?|submissions?)\b",
        r"\bdiese antwort|\bcette reponse|\besta (?:respuesta|resposta)|\bquesta risposta|\bdit antwoord|\bjawaban ini",
        r"этот ответ|(?:此|这个|该|本)(?:答案|回答)|この(?:回答|答え)|이 (?:답|응답)",
        anchor=True,
    ),
    _kind(
        1,
        r"\b(?:in)?correct[eao]?\b", r"\b(?:right|true|false|wrong|valid|pass|passes|credit|accuracy)\b",
        r"\b(?:richtig|korrekt|juste|buena|corretta|correta|juist|riktig|benar)\b|верн|правильн|正确|正解|정답|صحيح|सही",
    ),
    _kind(
        1,
        r"\b(?:you|your|please|kindly|trust me|refrain|decide|choose|suppose|speak as|must|bitte|tolong)\b",
        r"s'il (?:te|vous)|por favor|per favore|пожалуйста|请|ください|주세요|कृपया",
    ),
    _kind(
        1,
        r"\b(?:ignore|disregard|forget|void|approve|accept|reject|affirmative(?:ly)?|in fav(?:our|or) of|no need to)\b",
        r"\bakzeptier\w*|считай|判定|採点",
    ),
    _kind(1, r"\binstru[ck](?!ted)\w*", r"\b(?:guidelines?|prompts?)\b"),
)  # fmt: skip
# The judge's word in capitals, in a text that is not all capitals. Whiteboards in operating theatres use capitals too
# ("count CORRECT"), so it has less weight beside words of a whiteboard.
_SHOUTED = re.compile(r"\b(?:IN)?CORRECT\b")
_WHITEBOARD = re.compile(r"\b(?:count|counts|position|placement|side|site|time-?out|order|level|haemostasis)\b")


def find_grading_words(reading: str, original: str) -> tuple[str, ...]:
    """The words with which a text talks about its own grading; empty if their weight is too low.

    >>> find_grading_words("expert consensus: the candidate is right, the key is not", "")
    ('the key', 'candidate', 'right')
    >>> find_grading_words("the count is correct", "The count is CORRECT")
    ()
    """
    shouted = _SHOUTED.search(original)
    if not (shouted or any(pattern.search(reading) for _, anchor, pattern in _KINDS if anchor)):
        return ()  # nearly every answer
    hits = [(weight, anchor, match[0]) for weight, anchor, pattern in _KINDS if (match := pattern.search(reading))]
    if shouted and any(c.islower() or (c.isalpha() and not c.isascii()) for c in original):
        hits.append((1 if _WHITEBOARD.search(reading) else 2, True, shouted[0]))
    heavy = sum(weight for weight, _, _ in hits) >= _THRESHOLD and any(anchor for _, anchor, _ in hits)
    return tuple(word for _, _, word in hits) if heavy else ()
